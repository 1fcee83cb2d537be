// Compute pipelines and their descriptors.
#include "metal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char domain[] = "AGXMetalSoftware"; // a driver's domain; real ones differ from chip to chip
enum { FAIL_ON_ARCHIVE_MISS = 1 << 2 };

struct descriptor { object base; object *function, *label, *archives; bool indirect; };
static void descriptor_dealloc(object *o) {
	struct descriptor *d = (struct descriptor *)o;
	release(d->function), release(d->label), release(d->archives);
}
static void assign(object **to, object *o) {
	retain(o);
	release(*to);
	*to = o;
}
static void set_function(SELF, object *f) {
	if (given(f, &MTLFunction, s)) assign(&((struct descriptor *)self)->function, f);
}
static void set_label(SELF, object *l) {
	if (!given(l, &NSString, s)) return;
	assign(&((struct descriptor *)self)->label, l);
	note_label("MTLComputePipelineDescriptor", l);
}
static void set_archives(SELF, object *a) {
	if (!a || given(a, &NSArray, s)) assign(&((struct descriptor *)self)->archives, a);
}
static void set_indirect(SELF, uintptr_t on) { UNUSED; ((struct descriptor *)self)->indirect = on & 0xff; }

class MTLComputePipelineDescriptor = {.name = "MTLComputePipelineDescriptor", .super = &NSObject, .size = sizeof(struct descriptor), .dealloc = descriptor_dealloc,
	.methods = (struct method[]){{"setComputeFunction:", set_function}, {"setSupportIndirectCommandBuffers:", set_indirect},
		{"setLabel:", set_label}, {"setBinaryArchives:", set_archives}, {0}}};

object *new_descriptor_of(object *function) {
	object *d = new_object(&MTLComputePipelineDescriptor);
	assign(&((struct descriptor *)d)->function, function);
	return d;
}

object *descriptor_function(object *descriptor, bool *indirect) {
	struct descriptor *d = (struct descriptor *)descriptor;
	*indirect = d->indirect;
	return d->function;
}

uintptr_t array_length(object *a);
object *array_element(object *a, uintptr_t i);

object *new_pipeline(SELF, object *descriptor, uintptr_t how, void *reflection, object **e) {
	(void)self;
	if (!given(descriptor, &MTLComputePipelineDescriptor, s)) return NULL;
	struct descriptor *d = (struct descriptor *)descriptor;
	struct function *f = (struct function *)d->function;
	if (reflection) fail("%s: reflection is not known here", s);
	if (!f) {
		fail("%s: the descriptor has no function", s);
		return NULL;
	}
	const struct fault *fault = faulty(PIPELINE);
	if (fault || lost) return fail_with(e, domain, fault && fault->code ? fault->code : 3, fault && fault->text[0] ? fault->text : "the compiler's service has ended");
	if (how & FAIL_ON_ARCHIVE_MISS) {
		char *key = archive_key(f, d->indirect);
		bool found = false;
		for (uintptr_t i = 0; d->archives && i < array_length(d->archives); i++) found = found || archived(array_element(d->archives, i), key);
		free(key);
		if (!found) return fail_with(e, "MTLBinaryArchiveDomain", 2, "no archive has the pipeline");
	}
	struct message m = {0};
	put32(&m, f->number);
	put_text(&m, f->name);
	put32(&m, (uint32_t)f->n);
	for (size_t i = 0; i < f->n; i++) put32(&m, f->constants[i].index), put64(&m, f->constants[i].bits);
	struct answer a;
	ask(ASK_PIPELINE, &m, &a);
	if (a.status != 0) {
		fail_with(e, domain, 3, a.bytes);
		free(a.bytes);
		return NULL;
	}
	struct pipeline *p = (struct pipeline *)new_object(&MTLComputePipelineState);
	p->indirect = d->indirect;
	p->number = get32(&a);
	uint32_t promised = get32(&a);
	p->max_threads = promised && promised < options.threads ? promised : options.threads;
	p->own_memory = (long)get64(&a);
	p->n = get32(&a);
	p->arguments = calloc(p->n + 1, sizeof *p->arguments);
	for (size_t i = 0; i < p->n; i++) {
		struct argument *x = &p->arguments[i];
		x->space = get32(&a), x->slot = get32(&a);
		uint32_t flags = get32(&a);
		x->reads = flags & 1, x->writes = flags & 2, x->used = flags & 4, x->needed = flags & 8;
		x->size = get64(&a), x->align = get64(&a);
		snprintf(x->name, sizeof x->name, "%s", get_text(&a));
	}
	free(a.bytes);
	return &p->base;
}

static void pipeline_dealloc(object *o) { free(((struct pipeline *)o)->arguments); }
static uintptr_t max_threads(SELF) { UNUSED; return (uintptr_t)((struct pipeline *)self)->max_threads; }
static uintptr_t width(SELF) { UNUSED; return (uintptr_t)options.width; }
static uintptr_t own_memory(SELF) { UNUSED; return (uintptr_t)((struct pipeline *)self)->own_memory; }

class MTLComputePipelineState = {.name = "MTLComputePipelineState", .protocol = true, .super = &NSObject, .size = sizeof(struct pipeline), .dealloc = pipeline_dealloc,
	.methods = (struct method[]){{"maxTotalThreadsPerThreadgroup", max_threads}, {"threadExecutionWidth", width},
		{"staticThreadgroupMemoryLength", own_memory}, {0}}};

__attribute__((constructor)) static void add(void) {
	add_class(&MTLComputePipelineDescriptor);
	add_class(&MTLComputePipelineState);
}
