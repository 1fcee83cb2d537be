// What capturing costs: a program that sends dispatches to a Metal whose methods do nothing, so that next to all of its time is the
// library's that captures.
//
//	cost LIBRARY LOG
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PUBLIC __attribute__((visibility("default"), used))

typedef struct { const char *name; void *code; } method;
typedef struct { method methods[16]; } class;
typedef struct { class *isa; _Alignas(16) char contents[128]; } object;

static class device, queue, commands, encoder, buffer, library, function, pipeline, string;
static object the_device = {.isa = &device}, text = {.isa = &string};

PUBLIC const char *sel_registerName(const char *s) {
	static const char *known[256];
	int i = 0;
	while (known[i] && strcmp(known[i], s) != 0) i++;
	return known[i] ? known[i] : (known[i] = strdup(s));
}
PUBLIC void *class_getInstanceMethod(class *c, const char *s) {
	for (method *m = c->methods; m->name; m++)
		if (m->name == s) return m;
	return NULL;
}
PUBLIC void *object_getClass(object *o) { return o->isa; }
PUBLIC void *method_setImplementation(method *m, void *code) {
	void *was = m->code;
	m->code = code;
	return was;
}
PUBLIC void *method_getImplementation(method *m) { return m->code; }
PUBLIC const char *method_getTypeEncoding(method *m) { return m->name; }
PUBLIC int class_addMethod(class *c, const char *s, void *code, const char *types) { return (void)c, (void)s, (void)code, (void)types, 0; } // all are its own
PUBLIC void *class_getSuperclass(class *c) { return (void)c, NULL; }
PUBLIC void *objc_getClass(const char *name) { return (void)name, NULL; }
PUBLIC void *objc_retain(void *o) { return o; }
PUBLIC void objc_release(void *o) { (void)o; }
PUBLIC void *objc_autoreleasePoolPush(void) { return NULL; }
PUBLIC void objc_autoreleasePoolPop(void *p) { (void)p; }
PUBLIC void *MTLCreateSystemDefaultDevice(void) { return &the_device; }
PUBLIC void *objc_msgSend(object *o, const char *s) { return (void)s, o->isa == &string ? "kernel" : o->contents; }

static object *new_object(class *c) {
	object *o = calloc(1, sizeof *o);
	o->isa = c;
	return o;
}
static object *again(class *c, object *from) { // one of 64, as Metal gives addresses again
	static int n;
	object *o = &from[n++ % 64];
	o->isa = c;
	return o;
}
static object *new_queue(void) { return new_object(&queue); }
static object *new_buffer(void) { return new_object(&buffer); }
static object *new_library(void) { return new_object(&library); }
static object *new_function(void) { return new_object(&function); }
static object *new_pipeline(void) { return new_object(&pipeline); }
static object *new_commands(void) { static object all[64]; return again(&commands, all); }
static object *new_encoder(void) { static object all[64]; return again(&encoder, all); }
static void nothing(void) {}

static void has(class *c, const char *name, void *code) {
	method *m = c->methods;
	while (m->name) m++;
	*m = (method){sel_registerName(name), code};
}
static method *of(object *o, const char *name) { return class_getInstanceMethod(o->isa, sel_registerName(name)); }
#define SEND(o, message, ...) ({ method *m_ = of(o, message); ((object * (*)(object *, const char *, ...)) m_->code)(o, m_->name, ##__VA_ARGS__); })

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

enum { ROUNDS = 500, DISPATCHES = 200, BUFFERS = 64 };

// measure prints nanoseconds of a dispatch: of its four messages, and of all that belongs to its command buffer too.
static void measure(const char *what) {
	object *q = SEND(&the_device, "newCommandQueue"), *l = SEND(&the_device, "newLibraryWithSource:options:error:", &text, NULL, NULL);
	object *f = SEND(l, "newFunctionWithName:", &text), *p = SEND(&the_device, "newComputePipelineStateWithFunction:error:", f, NULL), *b[BUFFERS];
	for (int i = 0; i < BUFFERS; i++) b[i] = SEND(&the_device, "newBufferWithLength:options:", (uint64_t)sizeof b[i]->contents, (uint64_t)0);
	struct { uint64_t x, y, z; } size = {4, 1, 1};
	uint32_t bytes[2] = {1, 2};
	double messages = 0, whole = now();
	for (int r = 0; r < ROUNDS; r++) {
		object *c = SEND(q, "commandBuffer");
		object *e = SEND(c, "computeCommandEncoder");
		method *use = of(e, "setComputePipelineState:"), *bind = of(e, "setBuffer:offset:atIndex:"), *inline_ = of(e, "setBytes:length:atIndex:"), *run = of(e, "dispatchThreads:threadsPerThreadgroup:");
		double begin = now();
		for (int i = 0; i < DISPATCHES; i++) {
			((void (*)(object *, const char *, object *))use->code)(e, use->name, p);
			((void (*)(object *, const char *, object *, uint64_t, uint64_t))bind->code)(e, bind->name, b[i % BUFFERS], 0, 0);
			((void (*)(object *, const char *, void *, uint64_t, uint64_t))inline_->code)(e, inline_->name, bytes, sizeof bytes, 1);
			((void (*)(object *, const char *, void *, void *))run->code)(e, run->name, &size, &size);
		}
		messages += now() - begin;
		SEND(e, "endEncoding");
		SEND(c, "commit");
		SEND(c, "waitUntilCompleted");
	}
	printf("%s %.1f %.1f\n", what, messages / ROUNDS / DISPATCHES, (now() - whole) / ROUNDS / DISPATCHES);
}

int main(int argc, char **argv) {
	has(&device, "newCommandQueue", new_queue), has(&device, "newBufferWithLength:options:", new_buffer);
	has(&device, "newLibraryWithSource:options:error:", new_library), has(&device, "newComputePipelineStateWithFunction:error:", new_pipeline);
	has(&library, "newFunctionWithName:", new_function), has(&queue, "commandBuffer", new_commands), has(&commands, "computeCommandEncoder", new_encoder);
	has(&commands, "commit", nothing), has(&commands, "waitUntilCompleted", nothing), has(&encoder, "endEncoding", nothing);
	const char *messages[] = {"setComputePipelineState:", "setBuffer:offset:atIndex:", "setBytes:length:atIndex:", "dispatchThreads:threadsPerThreadgroup:"};
	for (int i = 0; i < 4; i++) has(&encoder, messages[i], nothing);
	void *shim = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*start)(const char *, void *) = shim ? (int (*)(const char *, void *))dlsym(shim, "mlxcapture_start") : NULL;
	int (*stop)(void) = shim ? (int (*)(void))dlsym(shim, "mlxcapture_stop") : NULL;
	if (!start || !stop) return puts("usage: cost LIBRARY LOG"), 2;
	measure("alone");
	if (start(argv[2], &the_device)) return 1;
	measure("captured");
	if (stop()) return 1;
	measure("stopped");
	return 0;
}
