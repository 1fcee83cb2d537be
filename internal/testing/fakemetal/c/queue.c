// Command queues.
#include "metal.h"

#include <stdlib.h>

object *new_command_buffer(struct queue *q, bool references);

static struct list queues;

object *new_queue(SELF, uintptr_t max) {
	(void)self;
	if (max == 0) {
		fail("%s: a queue of no command buffers", s);
		return NULL;
	}
	if (lost || faulty(QUEUE)) return NULL;
	struct queue *q = (struct queue *)new_object(&MTLCommandQueue);
	q->max = (long)max;
	pthread_mutex_lock(&gpu);
	add_to(&queues, q);
	pthread_mutex_unlock(&gpu);
	return &q->base;
}

// abandon removes command buffers that were enqueued and not committed from all queues, so that those
// behind them can run. gpu is held.
void abandon(void) {
	for (size_t i = 0; i < queues.n; i++) {
		struct queue *q = queues.at[i];
		size_t n = 0;
		for (size_t k = 0; k < q->order.n; k++)
			if (((struct command_buffer *)q->order.at[k])->status >= COMMITTED) q->order.at[n++] = q->order.at[k];
		q->order.n = n;
		schedule(q);
	}
}

static void queue_dealloc(object *o) {
	struct queue *q = (struct queue *)o;
	pthread_mutex_lock(&gpu);
	for (size_t i = 0; i < queues.n; i++)
		if (queues.at[i] == q) queues.at[i] = queues.at[--queues.n];
	pthread_mutex_unlock(&gpu);
	for (size_t i = 0; i < q->n; i++) release(q->sets[i]);
	free(q->sets), free(q->order.at);
}

// room makes a command buffer, after it has waited until the queue has room for one more.
static object *room(object *self, sel s, bool references) {
	struct queue *q = (struct queue *)self;
	pthread_mutex_lock(&gpu);
	double since = now();
	if (q->uncompleted >= q->max && options.full) {
		fail("%s: %ld command buffers of the queue are uncompleted: who asks for one more blocks", s, q->uncompleted);
	} else if (q->uncompleted >= q->max) {
		demand(1);
		while (q->uncompleted >= q->max) {
			if (stuck(since)) {
				fail("%s: all %ld command buffers of the queue are uncompleted, and none comes to its end: a deadlock", s, q->max);
				break;
			}
			wait_changed(20);
		}
		demand(-1);
	}
	q->uncompleted++;
	pthread_mutex_unlock(&gpu);
	return autorelease(new_command_buffer(q, references));
}

static object *command_buffer(SELF) { return room(self, s, true); }
static object *unretained(SELF) { return room(self, s, false); }

struct buffer_descriptor { object base; bool without; uintptr_t errors; };
static class MTLCommandBufferDescriptor;
static void set_errors(SELF, uintptr_t v) {
	if (v > 1) fail("%s: there is no option %lu", s, (unsigned long)v);
	((struct buffer_descriptor *)self)->errors = v;
}
static void set_references(SELF, uintptr_t on) { UNUSED; ((struct buffer_descriptor *)self)->without = !(on & 0xff); }
static class MTLCommandBufferDescriptor = {.name = "MTLCommandBufferDescriptor", .super = &NSObject, .size = sizeof(struct buffer_descriptor),
	.methods = (struct method[]){{"setErrorOptions:", set_errors}, {"setRetainedReferences:", set_references}, {0}}};

static object *described(SELF, object *d) {
	if (!given(d, &MTLCommandBufferDescriptor, s)) return NULL;
	return room(self, s, !((struct buffer_descriptor *)d)->without);
}

static void set_label(SELF, object *l) {
	UNUSED;
	if (given(l, &NSString, s)) note_label("MTLCommandQueue", l);
}

void add_set(SELF, object *set) {
	struct queue *q = (struct queue *)self;
	if (!given(set, &MTLResidencySet, s)) return;
	if (q->n == 32) {
		fail("%s: a queue has at most 32 residency sets", s);
		return;
	}
	q->sets = realloc(q->sets, (q->n + 1) * sizeof *q->sets);
	q->sets[q->n++] = retain(set);
}
static void remove_set(SELF, object *set) {
	struct queue *q = (struct queue *)self;
	if (!given(set, &MTLResidencySet, s)) return;
	for (size_t i = 0; i < q->n; i++)
		if (q->sets[i] == set) {
			q->sets[i] = q->sets[--q->n];
			release(set);
			return;
		}
	fail("%s: the queue does not have the set", s);
}

class MTLCommandQueue = {.name = "MTLCommandQueue", .protocol = true, .super = &NSObject, .size = sizeof(struct queue), .dealloc = queue_dealloc,
	.methods = (struct method[]){{"setLabel:", set_label}, {"commandBuffer", command_buffer}, {"commandBufferWithUnretainedReferences", unretained},
		{"commandBufferWithDescriptor:", described}, {0}},
	.newer = (struct method[]){{"addResidencySet:", add_set}, {"removeResidencySet:", remove_set}, {0}}};

__attribute__((constructor)) static void add(void) {
	add_class(&MTLCommandBufferDescriptor);
	add_class(&MTLCommandQueue);
}
