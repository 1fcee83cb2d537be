// Command buffers: their contents and their status.
#include "blocks.h"
#include "metal.h"

#include <stdlib.h>
#include <string.h>

object *new_encoder(struct command_buffer *c, bool concurrent);
object *new_encoder_of(struct command_buffer *c, object *descriptor, sel s);
void free_pass(struct pass *p);

object *new_command_buffer(struct queue *q, bool references) {
	struct command_buffer *c = (struct command_buffer *)new_object(&MTLCommandBuffer);
	c->queue = (struct queue *)retain(&q->base), c->references = references, c->stop_after = -1;
	return &c->base;
}

static void command_buffer_dealloc(object *o) {
	struct command_buffer *c = (struct command_buffer *)o;
	if (c->status < COMMITTED) {
		pthread_mutex_lock(&gpu);
		struct list *order = &c->queue->order;
		size_t n = 0;
		for (size_t i = 0; i < order->n; i++)
			if (order->at[i] != c) order->at[n++] = order->at[i];
		order->n = n;
		c->queue->uncompleted--;
		schedule(c->queue);
		pthread_cond_broadcast(&gpu_changed);
		pthread_mutex_unlock(&gpu);
	}
	for (size_t i = 0; i < c->handlers.n; i++) _Block_release(c->handlers.at[i]); // it was not committed
	free(c->handlers.at);
	for (size_t i = 0; i < c->kept.n; i++) release(c->kept.at[i]);
	for (size_t i = 0; i < c->resources.n; i++) unref(c->resources.at[i]);
	for (size_t i = 0; i < c->items.n; i++) {
		struct item *x = c->items.at[i];
		if (x->pass) free_pass(x->pass);
		free(x);
	}
	for (size_t i = 0; i < c->borrowed.n; i++) free(c->borrowed.at[i]);
	free(c->borrowed.at), free(c->kept.at), free(c->resources.at), free(c->items.at), free(c->indirects.at);
	release(c->error);
	release(&c->queue->base);
}

void keep(struct command_buffer *c, object *o) {
	if (c->references) {
		add_to(&c->kept, retain(o));
		return;
	}
	struct borrowed *b = malloc(sizeof *b);
	*b = (struct borrowed){o, o->isa};
	add_to(&c->borrowed, b);
}
void check_borrowed(struct command_buffer *c, const char *when) {
	for (size_t i = 0; i < c->borrowed.n; i++) {
		struct borrowed *b = c->borrowed.at[i];
		if (!is_freed(b->o) || !b->k) continue;
		// For a buffer in flight buffer_dealloc notes the mistake.
		if (b->k != &MTLBuffer || c->status < COMMITTED) fail("an %s is freed before a command buffer that uses it %s", b->k->name, when);
		b->k = NULL;
	}
}
void fly(struct command_buffer *c, struct resource *r) {
	__atomic_add_fetch(&r->refs, 1, __ATOMIC_SEQ_CST);
	add_to(&c->resources, r);
}

// encodes returns whether more can be encoded, and notes a mistake if not.
static bool encodes(struct command_buffer *c, sel s) {
	if (c->status >= COMMITTED) fail("%s: the command buffer was committed", s);
	else if (c->open) fail("%s: an encoder of the command buffer has not ended", s);
	else return true;
	return false;
}

static object *encoder_of_type(SELF, uintptr_t type) {
	struct command_buffer *c = (struct command_buffer *)self;
	if (type > 1) fail("%s: there is no type %lu", s, (unsigned long)type);
	if (!encodes(c, s)) return NULL;
	return autorelease(new_encoder(c, type == 1));
}
static object *encoder_of_pass(SELF, object *descriptor) {
	struct command_buffer *c = (struct command_buffer *)self;
	if (!encodes(c, s)) return NULL;
	return autorelease(new_encoder_of(c, descriptor, s));
}

static void event(object *self, sel s, object *e, uintptr_t value, enum item_kind kind) {
	struct command_buffer *c = (struct command_buffer *)self;
	if (!given(e, &MTLEvent, s) || !encodes(c, s)) return;
	struct item *x = calloc(1, sizeof *x);
	x->kind = kind, x->event = e, x->value = value;
	keep(c, e);
	add_to(&c->items, x);
}
static void signal_event(SELF, object *e, uintptr_t value) { event(self, s, e, value, SIGNAL); }
static void wait_event(SELF, object *e, uintptr_t value) { event(self, s, e, value, WAIT); }

static void enqueue(SELF) {
	struct command_buffer *c = (struct command_buffer *)self;
	pthread_mutex_lock(&gpu);
	if (c->status != NOT_ENQUEUED) fail("%s: the command buffer is enqueued", s);
	else c->status = ENQUEUED, add_to(&c->queue->order, c);
	pthread_mutex_unlock(&gpu);
}

static long committed, peak; // committed command buffers that have not completed, and their max; guarded by gpu

// fakemetal_peak returns the max number of command buffers that were committed and not completed at the same
// time, since its last call.
EXPORT long fakemetal_peak(void) {
	pthread_mutex_lock(&gpu);
	long n = peak;
	peak = committed;
	pthread_mutex_unlock(&gpu);
	return n;
}
void has_completed(void) { committed--; }

static void commit(SELF) {
	struct command_buffer *c = (struct command_buffer *)self;
	if (!encodes(c, s)) return;
	if (c->groups) fail("%s: %ld debug groups are open", s, c->groups);
	check_borrowed(c, "is committed");
	for (size_t i = 0; i < c->resources.n; i++) {
		struct resource *r = c->resources.at[i];
		__atomic_add_fetch(&r->flights, 1, __ATOMIC_SEQ_CST);
	}
	for (size_t i = 0; i < c->indirects.n; i++) indirect_fly(c->indirects.at[i], 1);
	retain(self);
	capture_command_buffer(c);
	pthread_mutex_lock(&gpu);
	if (c->status == NOT_ENQUEUED) add_to(&c->queue->order, c);
	c->status = COMMITTED;
	if (++committed > peak) peak = committed;
	schedule(c->queue);
	pthread_mutex_unlock(&gpu);
}

void abandon(void);

static void wait_completed(SELF) {
	struct command_buffer *c = (struct command_buffer *)self;
	pthread_mutex_lock(&gpu);
	if (c->status < COMMITTED) {
		fail("%s: the command buffer was not committed", s);
		pthread_mutex_unlock(&gpu);
		return;
	}
	double since = now();
	bool asked = false;
	while (!c->handled) { // a wait ends behind the completion handlers
		bool runs = c->pending > 0 || !c->scheduled;
		if (runs != asked) demand(runs ? 1 : -1), asked = runs;
		if (runs && stuck(since)) {
			if (!c->scheduled) {
				if (!faults_shown) fail("%s: a command buffer that was enqueued before is not committed: a deadlock", s);
				abandon();
			} else {
				if (!faults_shown) fail("%s: the command buffer waits for an event that nothing signals: a deadlock", s);
				give_up(c, "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)");
			}
			since = now();
		}
		wait_changed(20);
	}
	if (asked) demand(-1);
	pthread_mutex_unlock(&gpu);
}

static void add_handler(SELF, void *block) {
	struct command_buffer *c = (struct command_buffer *)self;
	if (c->status >= COMMITTED) fail("%s: the command buffer was committed", s);
	else add_to(&c->handlers, _Block_copy(block));
}
void *objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void *);
void call_handlers(struct command_buffer *c) {
	void *pool = objc_autoreleasePoolPush();
	for (size_t i = 0; i < c->handlers.n; i++) {
		struct block *b = c->handlers.at[i];
		b->invoke(b, c);
		_Block_release(b);
	}
	free(c->handlers.at);
	c->handlers = (struct list){0};
	objc_autoreleasePoolPop(pool);
}

static uintptr_t status(SELF) {
	UNUSED;
	pthread_mutex_lock(&gpu);
	enum status v = ((struct command_buffer *)self)->status;
	pthread_mutex_unlock(&gpu);
	return v;
}
static object *error_of(SELF) {
	UNUSED;
	pthread_mutex_lock(&gpu);
	object *e = retain(((struct command_buffer *)self)->error);
	pthread_mutex_unlock(&gpu);
	return autorelease(e);
}
static double time_of(object *self, sel s, bool end) {
	struct command_buffer *c = (struct command_buffer *)self;
	pthread_mutex_lock(&gpu);
	if (c->status < COMPLETED) fail("%s: the command buffer has not completed", s);
	double v = end ? c->end : c->begin;
	pthread_mutex_unlock(&gpu);
	return v;
}
static double start_time(SELF) { return time_of(self, s, false); }
static double end_time(SELF) { return time_of(self, s, true); }

static void set_label(SELF, object *l) {
	UNUSED;
	if (given(l, &NSString, s)) note_label("MTLCommandBuffer", l);
}

bool push_group(long *groups, object *name, sel s) {
	if (!given(name, &NSString, s)) return false;
	++*groups;
	note_label("group", name);
	return true;
}
void pop_group(long *groups, sel s) {
	if (*groups == 0) fail("%s: no debug group is open", s);
	else --*groups;
}
static void push(SELF, object *name) { push_group(&((struct command_buffer *)self)->groups, name, s); }
static void pop(SELF) { pop_group(&((struct command_buffer *)self)->groups, s); }

class MTLCommandBuffer = {.name = "MTLCommandBuffer", .protocol = true, .super = &NSObject, .size = sizeof(struct command_buffer), .dealloc = command_buffer_dealloc,
	.methods = (struct method[]){{"setLabel:", set_label}, {"pushDebugGroup:", push}, {"popDebugGroup", pop},
		{"computeCommandEncoderWithDispatchType:", encoder_of_type}, {"computeCommandEncoderWithDescriptor:", encoder_of_pass},
		{"encodeSignalEvent:value:", signal_event}, {"encodeWaitForEvent:value:", wait_event}, {"enqueue", enqueue}, {"commit", commit},
		{"waitUntilCompleted", wait_completed}, {"addCompletedHandler:", add_handler}, {"status", status}, {"error", error_of}, {"GPUStartTime", start_time}, {"GPUEndTime", end_time}, {0}}};

__attribute__((constructor)) static void add(void) { add_class(&MTLCommandBuffer); }
