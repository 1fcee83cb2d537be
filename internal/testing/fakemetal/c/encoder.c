// Compute encoders and compute pass descriptors.
#include "metal.h"

#include <stdlib.h>
#include <string.h>

bool push_group(long *groups, object *name, sel s);
void pop_group(long *groups, sel s);

// --- MTLComputePassDescriptor ---

struct attachment { object base; object *samples; uint64_t first, last; };
struct attachments { object base; struct attachment *at[4]; };
struct pass_descriptor { object base; uintptr_t type; struct attachments *attachments; };
static class MTLComputePassDescriptor, MTLComputePassSampleBufferAttachmentDescriptorArray, MTLComputePassSampleBufferAttachmentDescriptor;

static object *pass_descriptor(class *c, sel s) {
	(void)s;
	struct pass_descriptor *d = (struct pass_descriptor *)new_object(c);
	d->attachments = (struct attachments *)new_object(&MTLComputePassSampleBufferAttachmentDescriptorArray);
	for (int i = 0; i < 4; i++) {
		d->attachments->at[i] = (struct attachment *)new_object(&MTLComputePassSampleBufferAttachmentDescriptor);
		d->attachments->at[i]->first = d->attachments->at[i]->last = (uint64_t)NO_SAMPLE;
	}
	return autorelease(&d->base);
}
static void pass_descriptor_dealloc(object *o) { release(&((struct pass_descriptor *)o)->attachments->base); }
static void attachments_dealloc(object *o) {
	for (int i = 0; i < 4; i++) release(&((struct attachments *)o)->at[i]->base);
}
static void attachment_dealloc(object *o) { release(((struct attachment *)o)->samples); }
static void set_type(SELF, uintptr_t type) {
	if (type > 1) fail("%s: there is no type %lu", s, (unsigned long)type);
	((struct pass_descriptor *)self)->type = type;
}
static uintptr_t type_of(SELF) { UNUSED; return (uintptr_t)((struct pass_descriptor *)self)->type; }
static object *attachments(SELF) { UNUSED; return autorelease(retain(&((struct pass_descriptor *)self)->attachments->base)); }
static object *attachment(SELF, uintptr_t i) {
	struct attachments *a = (struct attachments *)self;
	if (i >= 4) {
		fail("%s: attachment %lu of 4", s, (unsigned long)i);
		return NULL;
	}
	return autorelease(retain(&a->at[i]->base));
}
static void set_samples(SELF, object *b) {
	struct attachment *a = (struct attachment *)self;
	if (b && !given(b, &MTLCounterSampleBuffer, s)) return;
	retain(b);
	release(a->samples);
	a->samples = b;
}
static void set_first(SELF, uintptr_t i) { UNUSED; ((struct attachment *)self)->first = i; }
static void set_last(SELF, uintptr_t i) { UNUSED; ((struct attachment *)self)->last = i; }

static class MTLComputePassDescriptor = {.name = "MTLComputePassDescriptor", .super = &NSObject, .size = sizeof(struct pass_descriptor), .dealloc = pass_descriptor_dealloc,
	.methods = (struct method[]){{"setDispatchType:", set_type}, {"dispatchType", type_of}, {"sampleBufferAttachments", attachments}, {0}},
	.statics = (struct method[]){{"computePassDescriptor", pass_descriptor}, {0}}};
static class MTLComputePassSampleBufferAttachmentDescriptorArray = {.name = "MTLComputePassSampleBufferAttachmentDescriptorArray",
	.super = &NSObject, .size = sizeof(struct attachments), .dealloc = attachments_dealloc,
	.methods = (struct method[]){{"objectAtIndexedSubscript:", attachment}, {0}}};
static class MTLComputePassSampleBufferAttachmentDescriptor = {.name = "MTLComputePassSampleBufferAttachmentDescriptor",
	.super = &NSObject, .size = sizeof(struct attachment), .dealloc = attachment_dealloc,
	.methods = (struct method[]){{"setSampleBuffer:", set_samples}, {"setStartOfEncoderSampleIndex:", set_first}, {"setEndOfEncoderSampleIndex:", set_last}, {0}}};

// --- MTLComputeCommandEncoder ---

struct encoder {
	object base;
	struct command_buffer *c; // retained
	struct pass *pass;        // owned by the command buffer
	struct bindings *b;
	bool ended;
	long groups;
};

static long inline_bytes;
// fakemetal_inline_bytes returns how many bytes setBytes: has copied.
EXPORT long fakemetal_inline_bytes(void) { return __atomic_load_n(&inline_bytes, __ATOMIC_SEQ_CST); }

object *new_encoder(struct command_buffer *c, bool concurrent) {
	struct encoder *e = (struct encoder *)new_object(&MTLComputeCommandEncoder);
	e->c = (struct command_buffer *)retain(&c->base);
	e->b = calloc(1, sizeof *e->b);
	e->pass = calloc(1, sizeof *e->pass);
	e->pass->concurrent = concurrent;
	e->pass->first_sample = e->pass->last_sample = (uint64_t)NO_SAMPLE;
	struct item *x = calloc(1, sizeof *x);
	x->kind = PASS, x->pass = e->pass;
	add_to(&c->items, x);
	c->open = &e->base;
	return &e->base;
}

object *new_encoder_of(struct command_buffer *c, object *descriptor, sel s) {
	if (!given(descriptor, &MTLComputePassDescriptor, s)) return NULL;
	struct pass_descriptor *d = (struct pass_descriptor *)descriptor;
	struct encoder *e = (struct encoder *)new_encoder(c, d->type == 1);
	for (int i = 0; i < 4; i++) {
		struct attachment *a = d->attachments->at[i];
		if (!a->samples) continue;
		if (i > 0) {
			fail("%s: the stand-in samples one set of counters", s);
			continue;
		}
		uint64_t n = sample_count(a->samples);
		if ((a->first != (uint64_t)NO_SAMPLE && a->first >= n) || (a->last != (uint64_t)NO_SAMPLE && a->last >= n)) {
			fail("%s: the samples %ld and %ld of a buffer of %lu", s, (long)a->first, (long)a->last, (unsigned long)n);
			continue;
		}
		// A sample buffer is retained even by a command buffer without references.
		add_to(&c->kept, retain(a->samples));
		e->pass->samples = a->samples, e->pass->first_sample = a->first, e->pass->last_sample = a->last;
	}
	return &e->base;
}

static void free_command(struct command *k) {
	if (k->launch) free_launch(k->launch);
	if (k->inherited) {
		for (int i = 0; i < SLOTS; i++) free(k->inherited->buffers[i].bytes);
		free(k->inherited);
	}
	free(k);
}
void free_pass(struct pass *p) {
	for (size_t i = 0; i < p->commands.n; i++) free_command(p->commands.at[i]);
	for (size_t i = 0; i < p->declared.n; i++) free(p->declared.at[i]);
	free(p->commands.at), free(p->waits.at), free(p->updates.at), free(p->declared.at);
	free(p);
}

static void encoder_dealloc(object *o) {
	struct encoder *e = (struct encoder *)o;
	if (!e->ended) {
		fail("an encoder is freed that has not ended");
		e->c->open = NULL;
	}
	for (int i = 0; i < SLOTS; i++) free(e->b->buffers[i].bytes);
	free(e->b);
	release(&e->c->base);
}

// encoding returns whether the encoder takes commands, and notes a mistake if it has ended.
static bool encoding(struct encoder *e, sel s) {
	if (!e->ended) return true;
	fail("%s: the encoder has ended", s);
	return false;
}
#define ENCODER                                     \
	struct encoder *e = (struct encoder *)self; \
	if (!encoding(e, s)) return

static void end_encoding(SELF) {
	ENCODER;
	if (e->groups) fail("%s: %ld debug groups are open", s, e->groups);
	e->ended = true;
	e->c->open = NULL;
}

static void set_pipeline(SELF, object *p) {
	ENCODER;
	if (!given(p, &MTLComputePipelineState, s)) return;
	keep(e->c, p);
	e->b->pipeline = p;
}

bool slot(uintptr_t i, sel s) {
	if (i < SLOTS) return true;
	fail("%s: slot %lu of %d", s, (unsigned long)i, SLOTS);
	return false;
}

static void set_buffer(SELF, object *o, uintptr_t offset, uintptr_t i) {
	ENCODER;
	if (!slot(i, s) || (o && !given(o, &MTLBuffer, s))) return;
	struct binding *b = &e->b->buffers[i];
	free(b->bytes);
	*b = (struct binding){0};
	if (!o) return;
	if (offset >= resource_of(o)->length) {
		fail("%s: byte %lu of a buffer of %lu, in slot %lu", s, (unsigned long)offset, (unsigned long)resource_of(o)->length, (unsigned long)i);
		return;
	}
	keep(e->c, o);
	fly(e->c, resource_of(o));
	b->buffer = o, b->offset = offset;
}
static void set_offset(SELF, uintptr_t offset, uintptr_t i) {
	ENCODER;
	if (!slot(i, s)) return;
	struct binding *b = &e->b->buffers[i];
	if (!b->buffer) fail("%s: slot %lu has no buffer", s, (unsigned long)i);
	else if (offset >= resource_of(b->buffer)->length) fail("%s: byte %lu of a buffer of %lu, in slot %lu", s, (unsigned long)offset, (unsigned long)resource_of(b->buffer)->length, (unsigned long)i);
	else b->offset = offset;
}
static void set_bytes(SELF, const void *bytes, uintptr_t n, uintptr_t i) {
	ENCODER;
	if (!slot(i, s)) return;
	if (!bytes || n == 0 || n > 4096) {
		fail("%s: %lu bytes: setBytes takes 1 to 4096", s, (unsigned long)n);
		return;
	}
	struct binding *b = &e->b->buffers[i];
	free(b->bytes);
	*b = (struct binding){.length = (uint32_t)n, .bytes = malloc(n)};
	memcpy(b->bytes, bytes, n);
	__atomic_add_fetch(&inline_bytes, n, __ATOMIC_SEQ_CST);
}

bool threadgroup_memory(uint32_t *lengths, uintptr_t n, uintptr_t i, sel s) {
	if (!slot(i, s)) return false;
	if (n % 16 || n > 32 << 10) {
		fail("%s: %lu bytes: threadgroup memory is a multiple of 16, at most 32 KiB", s, (unsigned long)n);
		return false;
	}
	lengths[i] = (uint32_t)n;
	return true;
}
static void set_threadgroup(SELF, uintptr_t n, uintptr_t i) {
	ENCODER;
	threadgroup_memory(e->b->threadgroup, n, i, s);
}

static struct command *command(struct encoder *e, enum command_kind kind) {
	struct command *k = calloc(1, sizeof *k);
	k->kind = kind, k->declared = e->pass->declared.n;
	add_to(&e->pass->commands, k);
	return k;
}

static void dispatch(struct encoder *e, struct grid *g, sel s) {
	struct launch *l = launch_of(e->b, g, s);
	if (!l) return;
	command(e, DISPATCH)->launch = l;
	((struct pipeline *)e->b->pipeline)->warm = true;
}
static void dispatch_groups(SELF, size_argument grid, size_argument group) {
	ENCODER;
	struct grid g = {.grid = TAKE(grid, s), .group = TAKE(group, s)};
	dispatch(e, &g, s);
}
static void dispatch_threads(SELF, size_argument grid, size_argument group) {
	ENCODER;
	struct grid g = {.threads = true, .grid = TAKE(grid, s), .group = TAKE(group, s)};
	dispatch(e, &g, s);
}
static void dispatch_indirect(SELF, object *counts, uintptr_t at, size_argument group) {
	ENCODER;
	struct grid g = {.indirect = counts, .at = at, .group = TAKE(group, s)};
	if (!given(counts, &MTLBuffer, s)) return;
	keep(e->c, counts);
	fly(e->c, resource_of(counts));
	dispatch(e, &g, s);
}

static void barrier(SELF, uintptr_t scope) {
	ENCODER;
	if (scope == 0 || scope & ~7ul) fail("%s: there is no scope %lu", s, (unsigned long)scope);
	else if (scope & 1) command(e, BARRIER);
}

static bool among(struct list *l, object *o) {
	for (size_t i = 0; i < l->n; i++)
		if (l->at[i] == o) return true;
	return false;
}
static void update_fence(SELF, object *f) {
	ENCODER;
	if (!given(f, &MTLFence, s)) return;
	keep(e->c, f);
	if (!among(&e->pass->updates, f)) add_to(&e->pass->updates, f);
}
static void wait_fence(SELF, object *f) {
	ENCODER;
	if (!given(f, &MTLFence, s)) return;
	if (among(&e->pass->updates, f)) {
		fail("%s: the encoder has updated the fence for which it waits", s);
		return;
	}
	keep(e->c, f);
	add_to(&e->pass->waits, f);
}

static void use(struct encoder *e, object *o, uintptr_t usage, sel s) {
	if (usage == 0 || usage & ~7ul) {
		fail("%s: there is no usage %lu", s, (unsigned long)usage);
		return;
	}
	if (!given(o, &MTLResource, s)) return;
	struct declared *d = calloc(1, sizeof *d);
	*d = (struct declared){o, usage & 5, usage & 2};
	keep(e->c, o);
	add_to(&e->pass->declared, d);
}
static void use_resource(SELF, object *o, uintptr_t usage) {
	ENCODER;
	use(e, o, usage, s);
}
static void use_resources(SELF, object **list, uintptr_t n, uintptr_t usage) {
	ENCODER;
	if (!list) fail("%s is given no resources", s);
	else for (uintptr_t i = 0; i < n; i++) use(e, list[i], usage, s);
}

bool inherits(object *icb);

static void execute(SELF, object *icb, uintptr_t from, uintptr_t n) {
	ENCODER;
	if (!given(icb, &MTLIndirectCommandBuffer, s)) return;
	uint64_t size = indirect_size(icb);
	if (n == 0 || n > (uintptr_t)options.range || from > size || n > size - from) {
		fail("%s: %lu commands from %lu on, of %lu: a range has 1 to %ld", s, (unsigned long)n, (unsigned long)from, (unsigned long)size, options.range);
		return;
	}
	keep(e->c, icb);
	add_to(&e->c->indirects, icb);
	struct command *k = command(e, EXECUTE);
	k->o = icb, k->from = from, k->count = n;
	if (inherits(icb)) {
		k->inherited = malloc(sizeof *k->inherited);
		*k->inherited = *e->b;
		for (int i = 0; i < SLOTS; i++)
			if (e->b->buffers[i].bytes) k->inherited->buffers[i].bytes = memcpy(malloc(e->b->buffers[i].length), e->b->buffers[i].bytes, e->b->buffers[i].length);
	}
}

static void sample_counters(SELF, object *b, uintptr_t i, uintptr_t with_barrier) {
	ENCODER;
	if (!given(b, &MTLCounterSampleBuffer, s)) return;
	if (!options.dispatches) {
		fail("%s: the device samples counters at the boundaries of encoders alone", s);
		return;
	}
	if (i >= sample_count(b)) {
		fail("%s: sample %lu of %lu", s, (unsigned long)i, (unsigned long)sample_count(b));
		return;
	}
	add_to(&e->c->kept, retain(b));
	struct command *k = command(e, SAMPLE);
	k->o = b, k->from = i, k->barrier = with_barrier & 0xff;
}

static void set_label(SELF, object *l) {
	UNUSED;
	if (given(l, &NSString, s)) note_label("MTLCommandEncoder", l);
}
static void push(SELF, object *name) {
	ENCODER;
	push_group(&e->groups, name, s);
}
static void pop(SELF) {
	ENCODER;
	pop_group(&e->groups, s);
}

// Both kinds of encoders inherit how they end, as those of Metal may inherit methods from a class that nobody sees.
static void end_any(SELF) {
	if (self->isa == &MTLBlitCommandEncoder) end_blits(self, s);
	else end_encoding(self, s);
}

class MTLCommandEncoder = {.name = "MTLCommandEncoder", .protocol = true, .super = &NSObject, .size = sizeof(object),
	.methods = (struct method[]){{"endEncoding", end_any}, {0}}};
class MTLComputeCommandEncoder = {.name = "MTLComputeCommandEncoder", .protocol = true, .super = &MTLCommandEncoder, .size = sizeof(struct encoder), .dealloc = encoder_dealloc,
	.methods = (struct method[]){{"setLabel:", set_label}, {"pushDebugGroup:", push}, {"popDebugGroup", pop},
		{"setComputePipelineState:", set_pipeline}, {"setBuffer:offset:atIndex:", set_buffer}, {"setBufferOffset:atIndex:", set_offset},
		{"setBytes:length:atIndex:", set_bytes}, {"setThreadgroupMemoryLength:atIndex:", set_threadgroup},
		{"dispatchThreadgroups:threadsPerThreadgroup:", dispatch_groups}, {"dispatchThreads:threadsPerThreadgroup:", dispatch_threads},
		{"dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:", dispatch_indirect},
		{"memoryBarrierWithScope:", barrier}, {"updateFence:", update_fence}, {"waitForFence:", wait_fence}, {"useResource:usage:", use_resource},
		{"useResources:count:usage:", use_resources}, {"executeCommandsInBuffer:withRange:", execute},
		{"sampleCountersInBuffer:atSampleIndex:withBarrier:", sample_counters}, {0}}};

__attribute__((constructor)) static void add(void) {
	class *all[] = {&MTLComputePassDescriptor, &MTLComputePassSampleBufferAttachmentDescriptorArray, &MTLComputePassSampleBufferAttachmentDescriptor, &MTLCommandEncoder, &MTLComputeCommandEncoder};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
}
