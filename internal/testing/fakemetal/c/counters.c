// Counter sample buffers: timestamps in ticks of the GPU's own clock.
#include "metal.h"

#include <stdlib.h>

// 24 MHz, and a zero that no other clock has: a caller that takes ticks for other times is noticed.
enum { MEGAHERTZ = 24 };
static const double beginning = 1000;
uint64_t ticks_of(double seconds) { return (uint64_t)((seconds + beginning) * MEGAHERTZ * 1e6); }

void sample_timestamps(SELF, uint64_t *cpu, uint64_t *device) {
	(void)self;
	if (!cpu || !device) {
		fail("%s is given no place for a time", s);
		return;
	}
	double t = now();
	*cpu = (uint64_t)(t * 1e9), *device = ticks_of(t);
}

static class MTLCounterSet;
static object *set_name(SELF) { UNUSED; return string("timestamp"); }
static class MTLCounterSet = {.name = "MTLCounterSet", .protocol = true, .super = &NSObject, .size = sizeof(object),
	.methods = (struct method[]){{"name", set_name}, {0}}};

object *counter_sets(SELF) {
	UNUSED;
	object *one = autorelease(new_object(&MTLCounterSet));
	return array(&one, 1);
}
uintptr_t supports_sampling(SELF, uintptr_t point) { UNUSED; return point == 0 || (point == 2 && options.dispatches); }

struct sample_descriptor { object base; object *set; uintptr_t count, storage; };
static class MTLCounterSampleBufferDescriptor;
static void descriptor_dealloc(object *o) { release(((struct sample_descriptor *)o)->set); }
static void set_counter_set(SELF, object *set) {
	struct sample_descriptor *d = (struct sample_descriptor *)self;
	if (!given(set, &MTLCounterSet, s)) return;
	release(d->set);
	d->set = retain(set);
}
static void set_count(SELF, uintptr_t n) { UNUSED; ((struct sample_descriptor *)self)->count = n; }
static void set_storage(SELF, uintptr_t mode) { UNUSED; ((struct sample_descriptor *)self)->storage = mode; }
static class MTLCounterSampleBufferDescriptor = {.name = "MTLCounterSampleBufferDescriptor", .super = &NSObject, .size = sizeof(struct sample_descriptor), .dealloc = descriptor_dealloc,
	.methods = (struct method[]){{"setCounterSet:", set_counter_set}, {"setSampleCount:", set_count}, {"setStorageMode:", set_storage}, {0}}};

struct samples { object base; uint64_t n, *at; };
static void samples_dealloc(object *o) { free(((struct samples *)o)->at); }

object *new_samples(SELF, object *descriptor, object **e) {
	(void)self;
	if (!given(descriptor, &MTLCounterSampleBufferDescriptor, s)) return NULL;
	struct sample_descriptor *d = (struct sample_descriptor *)descriptor;
	const struct fault *fault = faulty(COUNTERS);
	if (fault) return fail_with(e, "MTLCounterErrorDomain", fault->code, fault->text);
	// Metal limits a sample buffer to 32 KiB; options.samples is that limit in samples.
	if (!d->set || d->count == 0 || d->count > (uintptr_t)options.samples) {
		if (!d->set) fail("%s: the descriptor has no counter set", s);
		return fail_with(e, "MTLCounterErrorDomain", 1, "a sample buffer has so many samples of a counter set, or none");
	}
	if (d->storage != 0) fail("%s: resolveCounterRange: reads shared memory alone", s);
	struct samples *b = (struct samples *)new_object(&MTLCounterSampleBuffer);
	b->n = d->count, b->at = malloc(d->count * sizeof *b->at);
	for (uint64_t i = 0; i < b->n; i++) b->at[i] = ~0ul; // MTLCounterErrorValue
	return &b->base;
}

uint64_t sample_count(object *o) { return ((struct samples *)o)->n; }
void sample(object *o, uint64_t i, double seconds) {
	struct samples *b = (struct samples *)o;
	if (i < b->n) __atomic_store_n(&b->at[i], options.lacks & TIMES && i < 2 ? 0 : ticks_of(seconds), __ATOMIC_SEQ_CST);
}

static object *resolve(SELF, uintptr_t from, uintptr_t count) {
	struct samples *b = (struct samples *)self;
	if (from > b->n || count > b->n - from) {
		fail("%s: %lu samples from %lu on, of %lu", s, (unsigned long)count, (unsigned long)from, (unsigned long)b->n);
		return NULL;
	}
	return data(b->at + from, count * sizeof *b->at);
}

class MTLCounterSampleBuffer = {.name = "MTLCounterSampleBuffer", .protocol = true, .super = &NSObject, .size = sizeof(struct samples), .dealloc = samples_dealloc,
	.methods = (struct method[]){{"resolveCounterRange:", resolve}, {0}}};

__attribute__((constructor)) static void add(void) {
	class *all[] = {&MTLCounterSet, &MTLCounterSampleBufferDescriptor, &MTLCounterSampleBuffer};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
}
