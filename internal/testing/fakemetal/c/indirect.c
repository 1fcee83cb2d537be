// Indirect command buffers. They do not retain the objects that their commands use.
#include "metal.h"

#include <stdlib.h>
#include <string.h>

enum { DISPATCH_GROUPS = 1 << 5, DISPATCH_THREADS = 1 << 6 };

struct indirect_descriptor { object base; uintptr_t types, buffers, threadgroups; bool inherit_buffers, inherit_pipeline; };
static class MTLIndirectCommandBufferDescriptor;
static object *descriptor_init(SELF) {
	UNUSED;
	struct indirect_descriptor *d = (struct indirect_descriptor *)self;
	d->inherit_buffers = d->inherit_pipeline = true; // Metal's defaults
	return self;
}
static void set_types(SELF, uintptr_t v) { UNUSED; ((struct indirect_descriptor *)self)->types = v; }
static void set_inherit_buffers(SELF, uintptr_t on) { UNUSED; ((struct indirect_descriptor *)self)->inherit_buffers = on & 0xff; }
static void set_inherit_pipeline(SELF, uintptr_t on) { UNUSED; ((struct indirect_descriptor *)self)->inherit_pipeline = on & 0xff; }
static void set_buffers(SELF, uintptr_t n) {
	if (n > SLOTS) fail("%s: %lu buffers of %d", s, (unsigned long)n, SLOTS);
	else ((struct indirect_descriptor *)self)->buffers = n;
}
static void set_threadgroups(SELF, uintptr_t n) {
	if (n > SLOTS) fail("%s: %lu lengths of %d", s, (unsigned long)n, SLOTS);
	else ((struct indirect_descriptor *)self)->threadgroups = n;
}
static class MTLIndirectCommandBufferDescriptor = {.name = "MTLIndirectCommandBufferDescriptor", .super = &NSObject, .size = sizeof(struct indirect_descriptor),
	.methods = (struct method[]){{"init", descriptor_init}, {"setCommandTypes:", set_types}, {"setInheritBuffers:", set_inherit_buffers},
		{"setInheritPipelineState:", set_inherit_pipeline}, {"setMaxKernelBufferBindCount:", set_buffers},
		{"setMaxKernelThreadgroupMemoryBindCount:", set_threadgroups}, {0}}};

struct stored { object *pipeline; struct binding *buffers; uint32_t *threadgroup; struct grid grid; bool dispatches, barrier, ran; };
struct indirect { object base; struct indirect_descriptor d; uint64_t n; struct stored *at; long flights; };

object *new_indirect(SELF, object *descriptor, uintptr_t count, uintptr_t mode) {
	(void)self, (void)mode;
	if (!given(descriptor, &MTLIndirectCommandBufferDescriptor, s)) return NULL;
	struct indirect_descriptor *d = (struct indirect_descriptor *)descriptor;
	if (count == 0 || !(d->types & (DISPATCH_GROUPS | DISPATCH_THREADS)) || d->types & ~(uintptr_t)(DISPATCH_GROUPS | DISPATCH_THREADS)) {
		fail("%s: %lu commands of the types %#lx", s, (unsigned long)count, (unsigned long)d->types);
		return NULL;
	}
	if (lost || faulty(ALLOCATION)) return NULL;
	struct indirect *b = (struct indirect *)new_object(&MTLIndirectCommandBuffer);
	b->d = *d, b->n = count, b->at = calloc(count, sizeof *b->at);
	return &b->base;
}

static void clear(struct stored *k) {
	free(k->buffers), free(k->threadgroup);
	*k = (struct stored){0};
}
static void indirect_dealloc(object *o) {
	struct indirect *b = (struct indirect *)o;
	for (uint64_t i = 0; i < b->n; i++) clear(&b->at[i]);
	free(b->at);
}

uint64_t indirect_size(object *o) { return ((struct indirect *)o)->n; }
bool inherits(object *o) { return ((struct indirect *)o)->d.inherit_buffers || ((struct indirect *)o)->d.inherit_pipeline; }
void indirect_fly(object *o, long by) { __atomic_add_fetch(&((struct indirect *)o)->flights, by, __ATOMIC_SEQ_CST); }

// --- MTLIndirectComputeCommand ---

struct indirect_command { object base; struct indirect *of; uint64_t i; };
static class MTLIndirectComputeCommand;
static void command_dealloc(object *o) { release(&((struct indirect_command *)o)->of->base); }

static object *command_at(SELF, uintptr_t i) {
	struct indirect *b = (struct indirect *)self;
	if (i >= b->n) {
		fail("%s: command %lu of %lu", s, (unsigned long)i, (unsigned long)b->n);
		return NULL;
	}
	struct indirect_command *k = (struct indirect_command *)new_object(&MTLIndirectComputeCommand);
	k->of = (struct indirect *)retain(self), k->i = i;
	return autorelease(&k->base);
}

// stored returns a command to change, or NULL, with a mistake noted, while it is being executed.
static struct stored *stored(object *self, sel s) {
	struct indirect_command *k = (struct indirect_command *)self;
	struct stored *at = &k->of->at[k->i];
	if (__atomic_load_n(&k->of->flights, __ATOMIC_SEQ_CST) == 0) {
		if (at->ran && options.lacks & PARTIAL_CHANGES) clear(at);
		return at;
	}
	fail("%s: a command buffer in flight executes the indirect command buffer", s);
	return NULL;
}
#define COMMAND                                                                    \
	struct indirect_descriptor *d = &((struct indirect_command *)self)->of->d; \
	(void)d;                                                                   \
	struct stored *k = stored(self, s);                                        \
	if (!k) return

static void set_pipeline(SELF, object *p) {
	COMMAND;
	if (!given(p, &MTLComputePipelineState, s)) return;
	if (d->inherit_pipeline) fail("%s: the commands inherit the pipeline", s);
	else if (!((struct pipeline *)p)->indirect) fail("%s: the pipeline was made without supportIndirectCommandBuffers", s);
	else k->pipeline = p;
}
static void set_buffer(SELF, object *o, uintptr_t offset, uintptr_t i) {
	COMMAND;
	if (!given(o, &MTLBuffer, s)) return;
	if (d->inherit_buffers) fail("%s: the commands inherit the buffers", s);
	else if (i >= d->buffers) fail("%s: slot %lu, and maxKernelBufferBindCount is %lu", s, (unsigned long)i, (unsigned long)d->buffers);
	else if (offset >= (uintptr_t)options.reach) fail("%s: byte %lu: an indirect command has offsets below %ld", s, (unsigned long)offset, options.reach);
	else if (offset >= resource_of(o)->length) fail("%s: byte %lu of a buffer of %lu", s, (unsigned long)offset, (unsigned long)resource_of(o)->length);
	else {
		if (!k->buffers) k->buffers = calloc(SLOTS, sizeof *k->buffers);
		k->buffers[i] = (struct binding){.buffer = o, .offset = offset};
	}
}
bool threadgroup_memory(uint32_t *lengths, uintptr_t n, uintptr_t i, sel s);
static void set_threadgroup(SELF, uintptr_t n, uintptr_t i) {
	COMMAND;
	if (i >= d->threadgroups) {
		fail("%s: slot %lu, and maxKernelThreadgroupMemoryBindCount is %lu", s, (unsigned long)i, (unsigned long)d->threadgroups);
		return;
	}
	if (!k->threadgroup) k->threadgroup = calloc(SLOTS, sizeof *k->threadgroup);
	threadgroup_memory(k->threadgroup, n, i, s);
}
static void dispatch(object *self, sel s, uintptr_t type, bool threads, size3 grid, size3 group) {
	COMMAND;
	if (!(d->types & type)) {
		fail("%s: the command types are %#lx", s, (unsigned long)d->types);
		return;
	}
	k->grid = (struct grid){.threads = threads, .grid = grid, .group = group};
	k->dispatches = true;
}
static void dispatch_groups(SELF, size_argument grid, size_argument group) { dispatch(self, s, DISPATCH_GROUPS, false, TAKE(grid, s), TAKE(group, s)); }
static void dispatch_threads(SELF, size_argument grid, size_argument group) { dispatch(self, s, DISPATCH_THREADS, true, TAKE(grid, s), TAKE(group, s)); }
static void set_barrier(SELF) {
	COMMAND;
	k->barrier = true;
}
static void clear_barrier(SELF) {
	COMMAND;
	k->barrier = false;
}
static void reset(SELF) {
	COMMAND;
	clear(k);
}

struct launch *indirect_launch(object *o, uint64_t i, const struct bindings *inherited, bool *barrier, sel s) {
	struct indirect *b = (struct indirect *)o;
	struct stored *k = &b->at[i];
	*barrier = k->barrier;
	if (!k->dispatches) return NULL;
	k->ran = true;
	struct bindings all = {0};
	if (inherited && b->d.inherit_buffers) all = *inherited;
	all.pipeline = inherited && b->d.inherit_pipeline ? inherited->pipeline : k->pipeline;
	if (all.pipeline && !is_freed(all.pipeline) && !((struct pipeline *)all.pipeline)->indirect) {
		fail("%s: a pipeline was made without supportIndirectCommandBuffers", s);
		return NULL;
	}
	if (options.cold && all.pipeline && !is_freed(all.pipeline) && !((struct pipeline *)all.pipeline)->warm) return NULL;
	if (k->buffers && !b->d.inherit_buffers) memcpy(all.buffers, k->buffers, sizeof all.buffers);
	if (k->threadgroup && !(options.lacks & INDIRECT_THREADGROUPS)) memcpy(all.threadgroup, k->threadgroup, sizeof all.threadgroup);
	return launch_of(&all, &k->grid, s);
}

class MTLIndirectCommandBuffer = {.name = "MTLIndirectCommandBuffer", .protocol = true, .super = &MTLResource, .size = sizeof(struct indirect), .dealloc = indirect_dealloc,
	.methods = (struct method[]){{"indirectComputeCommandAtIndex:", command_at}, {0}}};
static class MTLIndirectComputeCommand = {.name = "MTLIndirectComputeCommand", .protocol = true, .super = &NSObject, .size = sizeof(struct indirect_command), .dealloc = command_dealloc,
	.methods = (struct method[]){{"setComputePipelineState:", set_pipeline}, {"setKernelBuffer:offset:atIndex:", set_buffer},
		{"setThreadgroupMemoryLength:atIndex:", set_threadgroup}, {"concurrentDispatchThreadgroups:threadsPerThreadgroup:", dispatch_groups},
		{"concurrentDispatchThreads:threadsPerThreadgroup:", dispatch_threads}, {"setBarrier", set_barrier}, {"clearBarrier", clear_barrier},
		{"reset", reset}, {0}}};

__attribute__((constructor)) static void add(void) {
	class *all[] = {&MTLIndirectCommandBufferDescriptor, &MTLIndirectCommandBuffer, &MTLIndirectComputeCommand};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
}
