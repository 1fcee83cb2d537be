// What programs in C++ and Objective-C ask for beyond what package objc sends: classes and protocols by their names,
// messages in place of functions, pools that are objects, other ways to make the same things, heaps. Their methods are
// added to classes as categories are.
#include "metal.h"

#include <stdlib.h>
#include <string.h>

// --- the runtime ---

class *objc_getClass(const char *name);
EXPORT class *objc_lookUpClass(const char *name) { return objc_getClass(name); }
EXPORT class *objc_getRequiredClass(const char *name) {
	class *c = objc_getClass(name);
	if (!c) fail("there is no class %s", name);
	return c;
}
// objc_getProtocol answers what metal-cpp keeps and no one looks into.
EXPORT class *objc_getProtocol(const char *name) { return (void)name, NULL; }

static void object_release(SELF) { UNUSED; release(self); }
static object *object_autorelease(SELF) { UNUSED; return autorelease(self); }

void *objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void *);
struct pool_object { object base; void *pool; };
static object *pool_init(SELF) { UNUSED; ((struct pool_object *)self)->pool = objc_autoreleasePoolPush(); return self; }
static void pool_dealloc(object *o) { objc_autoreleasePoolPop(((struct pool_object *)o)->pool); }
static class NSAutoreleasePool = {.name = "NSAutoreleasePool", .super = &NSObject, .size = sizeof(struct pool_object), .dealloc = pool_dealloc,
	.methods = (struct method[]){{"init", pool_init}, {"drain", object_release}, {0}}};

// --- libraries and pipelines ---

object *library_with_url(SELF, object *url, object **e);
object *new_function(SELF, object *name, object *values, object **e);
extern class MTLFunctionConstantValues;

static object *library_with_file(SELF, object *path, object **e) {
	if (!given(path, &NSString, s)) return NULL;
	object *url = new_url(text_of(path)), *l = library_with_url(self, s, url, e);
	release(url);
	return l;
}

struct function_descriptor { object base; object *name, *values; };
static void function_descriptor_dealloc(object *o) {
	struct function_descriptor *d = (struct function_descriptor *)o;
	release(d->name), release(d->values);
}
static object *function_descriptor(class *c, sel s) { (void)s; return autorelease(new_object(c)); }
static void assign(object **to, object *o) {
	retain(o);
	release(*to);
	*to = o;
}
static void set_function_name(SELF, object *name) {
	if (given(name, &NSString, s)) assign(&((struct function_descriptor *)self)->name, name);
}
// The name of the specialized function is not asked for again.
static void set_specialized_name(SELF, object *name) { (void)self, given(name, &NSString, s); }
static void set_constant_values(SELF, object *values) {
	if (given(values, &MTLFunctionConstantValues, s)) assign(&((struct function_descriptor *)self)->values, values);
}
static object *function_name(SELF) { UNUSED; return ((struct function_descriptor *)self)->name; }
static object *constant_values(SELF) { UNUSED; return ((struct function_descriptor *)self)->values; }
static class MTLFunctionDescriptor = {.name = "MTLFunctionDescriptor", .super = &NSObject, .size = sizeof(struct function_descriptor), .dealloc = function_descriptor_dealloc,
	.methods = (struct method[]){{"setName:", set_function_name}, {"setSpecializedName:", set_specialized_name}, {"setConstantValues:", set_constant_values},
		{"name", function_name}, {"constantValues", constant_values}, {0}},
	.statics = (struct method[]){{"functionDescriptor", function_descriptor}, {0}}};

static object *function_named(SELF, object *name) { return new_function(self, s, name, NULL, NULL); }
static object *function_described(SELF, object *descriptor, object **e) {
	if (!given(descriptor, &MTLFunctionDescriptor, s)) return NULL;
	struct function_descriptor *d = (struct function_descriptor *)descriptor;
	return new_function(self, s, d->name, d->values, e);
}

object *new_descriptor_of(object *function);
static object *pipeline_of_function(SELF, object *function, object **e) {
	if (!given(function, &MTLFunction, s)) return NULL;
	object *d = new_descriptor_of(function), *p = new_pipeline(self, s, d, 0, NULL, e);
	release(d);
	return p;
}

// --- queues and memory ---

object *new_queue(SELF, uintptr_t max);
static object *queue_of_usual_length(SELF) { return new_queue(self, s, 64); }

void add_set(SELF, object *set);
static void add_sets(SELF, object **sets, uintptr_t n) {
	for (uintptr_t i = 0; i < n; i++) add_set(self, s, sets[i]);
}

// A heap makes buffers until they fill it, then nil. They have memory of their own here.
struct heap { object base; uint64_t size, used; };
struct heap_descriptor { object base; uint64_t size, mode; };
static class MTLHeapDescriptor, MTLHeap;
static void set_size(SELF, uintptr_t n) { UNUSED; ((struct heap_descriptor *)self)->size = n; }
static void set_mode(SELF, uintptr_t mode) { UNUSED; ((struct heap_descriptor *)self)->mode = mode; }
static object *new_heap(SELF, object *descriptor) {
	(void)self;
	if (!given(descriptor, &MTLHeapDescriptor, s)) return NULL;
	struct heap *h = (struct heap *)new_object(&MTLHeap);
	h->size = ((struct heap_descriptor *)descriptor)->size;
	return &h->base;
}
object *new_buffer(SELF, uintptr_t length, uintptr_t mode);
static object *heap_buffer(SELF, uintptr_t length, uintptr_t mode) {
	struct heap *h = (struct heap *)self;
	uint64_t room = (length + 255) / 256 * 256;
	if (room > h->size - __atomic_load_n(&h->used, __ATOMIC_SEQ_CST)) return NULL;
	object *b = new_buffer(the_device, s, length, mode);
	if (!b) return NULL;
	__atomic_add_fetch(&h->used, room, __ATOMIC_SEQ_CST);
	set_heap(b, self);
	return b;
}
static uintptr_t heap_size(SELF) { UNUSED; return ((struct heap *)self)->size; }
static class MTLHeapDescriptor = {.name = "MTLHeapDescriptor", .super = &NSObject, .size = sizeof(struct heap_descriptor),
	.methods = (struct method[]){{"setSize:", set_size}, {"setResourceOptions:", set_mode}, {0}}};
static class MTLHeap = {.name = "MTLHeap", .protocol = true, .super = &MTLResource, .size = sizeof(struct heap),
	.methods = (struct method[]){{"newBufferWithLength:options:", heap_buffer}, {"size", heap_size}, {"allocatedSize", heap_size}, {0}}};

static struct method of_objects[] = {{"release", object_release}, {"autorelease", object_autorelease}, {0}},
	of_devices[] = {{"newLibraryWithFile:error:", library_with_file}, {"newComputePipelineStateWithFunction:error:", pipeline_of_function},
		{"newCommandQueue", queue_of_usual_length}, {"newHeapWithDescriptor:", new_heap}, {0}},
	of_libraries[] = {{"newFunctionWithName:", function_named}, {"newFunctionWithDescriptor:error:", function_described}, {0}},
	of_queues[] = {{"addResidencySets:count:", add_sets}, {0}};

__attribute__((constructor)) static void add(void) {
	class *all[] = {&NSAutoreleasePool, &MTLFunctionDescriptor, &MTLHeapDescriptor, &MTLHeap};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
	add_methods(&NSObject, of_objects, NULL);
	add_methods(&MTLDevice, of_devices, NULL);
	add_methods(&MTLLibrary, of_libraries, NULL);
	add_methods(&MTLCommandQueue, of_queues, NULL);
}
