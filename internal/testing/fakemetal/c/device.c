// MTLDevice and its properties. The objects that it makes are in files of their own.
#include "metal.h"

object *the_device;

static object *device_name(SELF) { UNUSED; return string("software Metal"); }
static uintptr_t registry(SELF) { UNUSED; return 0x4d544c; }
static uintptr_t no(SELF) { UNUSED; return 0x7700; } // only the low 8 bits of a BOOL are defined
static uintptr_t yes(SELF) { UNUSED; return 0x7701; }
static uintptr_t max_buffer(SELF) { UNUSED; return (uintptr_t)options.buffer; }
static uintptr_t max_threadgroup(SELF) { UNUSED; return 32 << 10; }
static uintptr_t working_set(SELF) { UNUSED; return (uintptr_t)options.working_set; }
static uintptr_t supports_family(SELF, uintptr_t family) {
	UNUSED;
	switch (family) {
	case 2002: case 5001: return 1; // Mac2, Metal3
	}
	return (1001 <= family && family <= 1000 + (uintptr_t)options.family) || (3001 <= family && family <= 3003); // Apple's, Common3
}

static class MTLArchitecture;
static object *architecture(SELF) { UNUSED; return autorelease(new_object(&MTLArchitecture)); }
static object *architecture_name(SELF) { UNUSED; return string("applegpu_software"); }
static class MTLArchitecture = {.name = "MTLArchitecture", .super = &NSObject, .size = sizeof(object),
	.methods = (struct method[]){{"name", architecture_name}, {0}}};

uintptr_t allocated_size(SELF);
object *new_buffer(SELF, uintptr_t length, uintptr_t mode);
object *new_buffer_no_copy(SELF, void *bytes, uintptr_t length, uintptr_t mode, void *block);
object *new_queue(SELF, uintptr_t max);
object *new_fence(SELF);
object *new_event(SELF);
object *new_shared_event(SELF);
object *library_with_source(SELF, object *text, object *how, object **e);
object *library_with_url(SELF, object *url, object **e);
object *new_archive(SELF, object *descriptor, object **e);
object *new_indirect(SELF, object *descriptor, uintptr_t count, uintptr_t mode);
object *new_residency(SELF, object *descriptor, object **e);
object *counter_sets(SELF);
uintptr_t supports_sampling(SELF, uintptr_t point);
object *new_samples(SELF, object *descriptor, object **e);
void sample_timestamps(SELF, uint64_t *cpu, uint64_t *device);

class MTLDevice = {.name = "MTLDevice", .protocol = true, .super = &NSObject, .size = sizeof(object),
	.methods = (struct method[]){
		{"name", device_name}, {"registryID", registry}, {"supportsFamily:", supports_family},
		{"hasUnifiedMemory", yes}, {"isLowPower", no}, {"isRemovable", no}, {"isHeadless", no}, {"maxBufferLength", max_buffer},
		{"maxThreadgroupMemoryLength", max_threadgroup}, {"recommendedMaxWorkingSetSize", working_set},
		{"currentAllocatedSize", allocated_size}, {"newBufferWithLength:options:", new_buffer},
		{"newBufferWithBytesNoCopy:length:options:deallocator:", new_buffer_no_copy},
		{"newCommandQueueWithMaxCommandBufferCount:", new_queue}, {"newFence", new_fence}, {"newEvent", new_event},
		{"newSharedEvent", new_shared_event}, {"newLibraryWithSource:options:error:", library_with_source},
		{"newLibraryWithURL:error:", library_with_url},
		{"newComputePipelineStateWithDescriptor:options:reflection:error:", new_pipeline},
		{"newBinaryArchiveWithDescriptor:error:", new_archive},
		{"newIndirectCommandBufferWithDescriptor:maxCommandCount:options:", new_indirect}, {"counterSets", counter_sets},
		{"supportsCounterSampling:", supports_sampling}, {"newCounterSampleBufferWithDescriptor:error:", new_samples},
		{"sampleTimestamps:gpuTimestamp:", sample_timestamps}, {0}},
	.fourteen = (struct method[]){{"architecture", architecture}, {0}},
	.newer = (struct method[]){{"newResidencySetWithDescriptor:error:", new_residency}, {0}}};

EXPORT object *MTLCreateSystemDefaultDevice(void) {
	metal_starts();
	return the_device ? retain(the_device) : NULL;
}
EXPORT object *MTLCopyAllDevices(void) {
	metal_starts();
	return new_array(&the_device, the_device != NULL);
}

__attribute__((constructor)) static void add(void) {
	add_class(&MTLDevice);
	add_class(&MTLArchitecture);
}
