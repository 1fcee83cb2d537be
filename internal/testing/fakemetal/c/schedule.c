// The order of commands on the GPU. Committed commands become a graph of nodes: dispatches, and edges
// for what orders them. Of the nodes that are ready the seed chooses one, or two conflicting ones (gpu.c).
//
// These mechanisms order nodes; what is not known to order does not:
//   - Serial encoders: each dispatch waits for the one before it. In a concurrent encoder only
//     memoryBarrierWithScope: orders.
//   - Indirect commands are unordered, as dispatches of a concurrent encoder, also in a serial one. One
//     with setBarrier waits for all earlier commands of the executed range. Whether the commands after
//     it wait for these too is not known (options.walls: they do).
//   - Hazard tracking: a dispatch waits for those of earlier encoders of the same queue that use a
//     tracked buffer which one of both writes. Indirect commands count as using their buffers in the
//     way in which useResource: has declared them before.
//   - Fences: an encoder that waits for a fence runs after the last encoder that updates it, in the
//     order in which command buffers were enqueued.
//   - Events: what is encoded after a wait runs after the signal; a signal comes after all that is
//     encoded before it in its command buffer.
//   - Command buffers as such are unordered, also those of one queue.
// options.ignored switches off mechanisms.
#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

pthread_mutex_t gpu = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t gpu_changed = PTHREAD_COND_INITIALIZER;

struct list ready, awaiting, scheduled, ended;
long in_flight, demanded;
double last_given, last_progress;
bool running;
static uint64_t serials;
static uint64_t state; // of the random number generator

double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

uint64_t chance(uint64_t n) {
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (state * 0x2545f4914f6cdd1dUL >> 11) % n;
}

void seed_chance(uint64_t seed) {
	state = 0x9e3779b97f4a7c15UL * (seed + 1) | 1;
	for (int i = 0; i < 8; i++) chance(2);
}

bool wait_changed(long milliseconds) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += milliseconds % 1000 * 1000000, t.tv_sec += milliseconds / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return pthread_cond_timedwait(&gpu_changed, &gpu, &t) != ETIMEDOUT;
}

void demand(long by) {
	demanded += by;
	pthread_cond_broadcast(&gpu_changed);
}

bool stuck(double since) {
	double from = since > last_progress ? since : last_progress;
	return !running && ready.n == 0 && ended.n == 0 && (now() - from) * 1e3 > (double)options.patience;
}

// --- nodes ---

static struct node *ref(struct node *n) {
	__atomic_add_fetch(&n->refs, 1, __ATOMIC_SEQ_CST);
	return n;
}
void unref_node(struct node *n) {
	if (!n || __atomic_sub_fetch(&n->refs, 1, __ATOMIC_SEQ_CST) > 0) return;
	free(n->next.at);
	free(n);
}

// node makes a node. Its count of waits begins at 1, so that it cannot start while it is being set up.
static struct node *node(struct command_buffer *c, struct pass *p, enum node_kind kind) {
	struct node *n = calloc(1, sizeof *n);
	n->kind = kind, n->c = c, n->pass = p, n->serial = ++serials, n->waits = 1;
	add_to(&c->nodes, ref(n));
	c->pending++;
	return n;
}

static void after(struct node *earlier, struct node *later) {
	if (!earlier || earlier->done) return;
	add_to(&earlier->next, later);
	later->waits++;
}

static uint64_t delay(void) { return options.late > 0 ? chance((uint64_t)options.late) : 0; }

void fail_command_buffer(struct command_buffer *c, long code, const char *text) {
	if (c->failed) return;
	c->failed = true, c->code = code;
	if (text != c->text) snprintf(c->text, sizeof c->text, "%s", text);
	if (code == 11) lost = true;
}

const char *text_of_code(long code) {
	switch (code) {
	case 1: return "Internal Error (00000001:kIOGPUCommandBufferCallbackErrorInternal)";
	case 2: return "Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)";
	case 3: return "Caused GPU Address Fault Error (0000000b:kIOGPUCommandBufferCallbackErrorPageFault)";
	case 4: return "Ignored (for causing prior/excessive GPU errors) (00000004:kIOGPUCommandBufferCallbackErrorSubmissionsIgnored)";
	case 7: return "Insufficient Permission (to submit GPU work from background) (00000006:kIOGPUCommandBufferCallbackErrorBackgroundExecutionNotPermitted)";
	case 8: return "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)";
	case 9: return "Invalid Resource (00000009:kIOGPUCommandBufferCallbackErrorInvalidResource)";
	case 11: return "Device Removed (0000000b:kIOGPUCommandBufferCallbackErrorDeviceRemoved)";
	case 12: return "Stack Overflow (0000000c:kIOGPUCommandBufferCallbackErrorStackOverflow)";
	case 14: return "Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)";
	}
	return "Execution of the command buffer was aborted due to an error during execution.";
}

// all_ran is called when all nodes of a command buffer have run.
static void all_ran(struct command_buffer *c) {
	if (c->stop_after >= 0 && !c->failed) fail_command_buffer(c, c->code, c->text);
	for (size_t i = 0; i < c->nodes.n; i++) unref_node(c->nodes.at[i]);
	free(c->nodes.at);
	c->nodes = (struct list){0};
	if (c->begin == 0) c->begin = c->end = now();
	c->due = (uint64_t)(now() * 1e6) + delay();
	add_to(&ended, c);
}

static void wake_awaiting(void) {
	for (size_t i = 0; i < awaiting.n; i++) {
		struct node *n = awaiting.at[i];
		if (((struct event *)n->o)->value < n->value && !n->c->failed) continue;
		awaiting.at[i] = awaiting.at[--awaiting.n];
		finish(n);
		i = (size_t)-1; // finish may have changed the list
	}
}
void wake_gpu(void) {
	wake_awaiting();
	pthread_cond_broadcast(&gpu_changed);
}

static void start(struct node *n);

// finish marks a node as run and starts those that waited only for it; joins and signals finish at once.
void finish(struct node *first) {
	struct list stack = {0};
	bool signalled = false;
	add_to(&stack, first);
	while (stack.n > 0) {
		struct node *n = stack.at[--stack.n];
		struct command_buffer *c = n->c;
		if (n->kind == SET && !c->failed) {
			struct event *e = (struct event *)n->o;
			if (n->value <= e->value) fail("encodeSignalEvent:value: %lu after %lu", (unsigned long)n->value, (unsigned long)e->value);
			else e->value = n->value;
			signalled = true;
		}
		if (n->leaves && n->pass->samples && n->pass->last_sample != (uint64_t)NO_SAMPLE)
			sample(n->pass->samples, n->pass->last_sample, n->pass->begun ? n->pass->end : now());
		n->done = true;
		if (n->own_launch) free_launch(n->launch);
		n->launch = NULL;
		for (size_t i = 0; i < n->next.n; i++) {
			struct node *k = n->next.at[i];
			if (--k->waits > 0) continue;
			if (k->kind == JOIN || k->kind == SET) add_to(&stack, k);
			else start(k);
		}
		free(n->next.at);
		n->next = (struct list){0};
		if (--c->pending == 0) all_ran(c);
	}
	free(stack.at);
	last_progress = now();
	if (signalled) wake_awaiting();
	pthread_cond_broadcast(&gpu_changed);
}

// start is called when a node waits for no other node any more.
static void start(struct node *n) {
	switch (n->kind) {
	case RUN: case SAMPLING: add_to(&ready, n); break;
	case AWAIT: add_to(&awaiting, n); break;
	default: finish(n);
	}
}

// --- orders ---

// builder has the nodes of a command buffer that later ones have to wait for, while it is being built.
struct builder {
	struct command_buffer *c;
	struct pass *p;
	struct node *front; // all later nodes of the encoder wait for it; NULL: none
	struct list open;   // nodes after front
};

// tracked makes a node wait for conflicting nodes of earlier encoders on a tracked resource.
static void tracked(struct builder *b, struct node *n, struct resource *r, bool writes) {
	if (options.ignored & TRACKING) return;
	size_t left = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct access *a = &r->accesses[i];
		if (a->n->done) {
			unref_node(a->n);
			continue;
		}
		if (a->n->pass != n->pass && a->q == b->c->queue && (writes || a->writes)) after(a->n, n);
		r->accesses[left++] = *a;
	}
	r->n = left;
	if (r->n == r->room) {
		r->room = 2 * r->room + 4;
		r->accesses = realloc(r->accesses, r->room * sizeof *r->accesses);
	}
	r->accesses[r->n++] = (struct access){ref(n), b->c->queue, writes};
}

static void close_open(struct builder *b, struct node *join) {
	after(b->front, join);
	for (size_t i = 0; i < b->open.n; i++) after(b->open.at[i], join);
	b->open.n = 0;
	b->front = join;
}

static void join(struct builder *b) {
	struct node *n = node(b->c, b->p, JOIN);
	close_open(b, n);
	if (--n->waits == 0) finish(n);
}

// placed adds a node to its encoder: unordered in a concurrent one, else after the node before it.
static void placed(struct builder *b, struct node *n) {
	if (b->p->concurrent || options.ignored & SERIAL) {
		after(b->front, n);
		add_to(&b->open, n);
	} else {
		close_open(b, n);
	}
}

static const struct declared *declared(struct command *k, struct pass *p, struct resource *r) {
	const struct declared *found = NULL;
	static struct declared both;
	for (size_t i = 0; i < k->declared; i++) {
		struct declared *d = p->declared.at[i];
		if (is_freed(d->o) || !is_kind(d->o, &MTLBuffer) || resource_of(d->o) != r) continue;
		both = (struct declared){d->o, d->reads || (found && found->reads), d->writes || (found && found->writes)};
		found = &both;
	}
	return found;
}

static void executes(struct builder *b, struct command *k) {
	sel s = intern("executeCommandsInBuffer:withRange:");
	if (is_freed(k->o)) {
		fail("%s: the indirect command buffer was freed", s);
		return;
	}
	struct list here = {0};
	struct node *wall = NULL; // with options.walls: what commands after the last setBarrier wait for
	for (uint64_t i = 0; i < k->count; i++) {
		bool barrier;
		struct launch *l = indirect_launch(k->o, k->from + i, k->inherited, &barrier, s);
		if (!l) continue;
		barrier = barrier && !(options.ignored & INDIRECT_BARRIERS);
		if (barrier && options.walls) {
			struct node *next = node(b->c, b->p, JOIN);
			for (size_t x = 0; x < here.n; x++) after(here.at[x], next);
			if (wall) after(wall, next);
			wall = next;
			add_to(&here, wall);
		}
		struct node *n = node(b->c, b->p, RUN);
		n->launch = l, n->own_launch = true;
		after(b->front, n);
		if (barrier)
			for (size_t x = 0; x < here.n; x++) after(here.at[x], n);
		else if (wall)
			after(wall, n);
		for (size_t x = 0; x < l->n; x++) {
			struct use *u = &l->uses[x];
			const struct declared *d = declared(k, b->p, u->r);
			if (options.residency && !d && !resident(b->c->queue, u->r))
				fail("%s: command %lu uses a buffer that is not resident: no useResource: before names it, and no residency set of the queue has it", s, (unsigned long)(k->from + i));
			if (d && ((u->reads && !d->reads) || (u->writes && !d->writes)))
				fail("%s: command %lu %s a buffer that useResource: declares otherwise", s, (unsigned long)(k->from + i), u->reads && !d->reads ? "reads" : "writes");
			if (d && u->r->tracked) tracked(b, n, u->r, d->writes);
			fly(b->c, u->r);
			__atomic_add_fetch(&u->r->flights, 1, __ATOMIC_SEQ_CST);
		}
		add_to(&here, n);
	}
	struct node *last = b->p->concurrent ? NULL : node(b->c, b->p, JOIN);
	for (size_t i = 0; i < here.n; i++) {
		add_to(&b->open, here.at[i]);
		if (last) after(here.at[i], last);
	}
	if (last) {
		after(b->front, last);
		b->front = last, b->open.n = 0;
	}
	// All orders are set, so the nodes may start.
	for (size_t i = 0; i < here.n; i++) {
		struct node *n = here.at[i];
		if (--n->waits == 0) start(n);
	}
	if (last && --last->waits == 0) finish(last);
	free(here.at);
}

static void build_pass(struct builder *b, struct pass *p) {
	struct command_buffer *c = b->c;
	struct node *gate = b->front;
	sel s = intern("waitForFence:");
	b->p = p, b->open.n = 0;
	if (p->waits.n > 0) {
		struct node *enter = node(c, p, JOIN);
		after(gate, enter);
		for (size_t i = 0; i < p->waits.n; i++) {
			struct fence *f = p->waits.at[i];
			if (is_freed(&f->base)) fail("%s: the fence was freed", s);
			else if (!f->update) fail("%s: nothing that was enqueued before updates the fence", s);
			else if (f->queue != c->queue) fail("%s: an encoder of another queue updates the fence", s);
			else if (!(options.ignored & FENCES)) after(f->update, enter);
		}
		b->front = enter;
		if (--enter->waits == 0) finish(enter);
	}
	size_t first = c->nodes.n;
	for (size_t i = 0; i < p->commands.n; i++) {
		struct command *k = p->commands.at[i];
		struct node *n;
		switch (k->kind) {
		case DISPATCH:
			n = node(c, p, RUN);
			n->launch = k->launch;
			placed(b, n);
			for (size_t x = 0; x < k->launch->n; x++)
				if (k->launch->uses[x].r->tracked) tracked(b, n, k->launch->uses[x].r, k->launch->uses[x].writes);
			if (--n->waits == 0) start(n);
			break;
		case SAMPLE:
			n = node(c, p, SAMPLING);
			n->o = k->o, n->value = k->from;
			if (k->barrier) close_open(b, n);
			else placed(b, n);
			if (--n->waits == 0) start(n);
			break;
		case BARRIER:
			if (!(options.ignored & BARRIERS)) join(b);
			break;
		case EXECUTE: executes(b, k); break;
		}
	}
	// The end of the pass waits for all its nodes.
	struct node *leave = node(c, p, JOIN);
	leave->leaves = true;
	for (size_t i = first; i + 1 < c->nodes.n; i++) after(c->nodes.at[i], leave);
	after(b->front, leave);
	for (size_t i = 0; i < p->updates.n; i++) {
		struct fence *f = p->updates.at[i];
		if (is_freed(&f->base)) {
			fail("updateFence: the fence was freed");
			continue;
		}
		unref_node(f->update);
		f->update = ref(leave), f->queue = c->queue;
	}
	if (--leave->waits == 0) finish(leave);
	b->front = gate, b->open.n = 0, b->p = NULL;
}

// build makes the nodes of a committed command buffer.
static void build(struct command_buffer *c) {
	struct builder b = {.c = c};
	const struct fault *f = faulty(COMMAND_BUFFER);
	long dispatches = 0;
	c->scheduled = true;
	in_flight++;
	add_to(&scheduled, c);
	last_given = now();
	for (size_t i = 0; i < c->items.n; i++) {
		struct item *x = c->items.at[i];
		for (size_t k = 0; x->kind == PASS && k < x->pass->commands.n; k++) {
			struct command *m = x->pass->commands.at[k];
			dispatches += m->kind == DISPATCH ? 1 : m->kind == EXECUTE ? (long)m->count : 0;
		}
	}
	static const struct fault waiting = {.code = 14};
	if (!f && options.most && dispatches > options.most) f = &waiting;
	if (f) {
		faults_shown = true;
		c->code = f->code;
		snprintf(c->text, sizeof c->text, "%s", f->text[0] ? f->text : text_of_code(f->code));
		c->stop_after = dispatches ? (options.seed ? (long)chance((uint64_t)dispatches) : dispatches / 2) : 0;
	}
	if (lost) fail_command_buffer(c, 11, text_of_code(11));
	// This node keeps the command buffer from ending while it is being built.
	struct node *whole = node(c, NULL, JOIN);
	for (size_t i = 0; i < c->items.n; i++) {
		struct item *x = c->items.at[i];
		struct node *n;
		switch (x->kind) {
		case PASS: build_pass(&b, x->pass); break;
		case SIGNAL:
			n = node(c, NULL, SET);
			n->o = x->event, n->value = x->value;
			for (size_t k = 0; k + 1 < c->nodes.n; k++)
				if (c->nodes.at[k] != whole) after(c->nodes.at[k], n);
			if (--n->waits == 0) finish(n);
			break;
		case WAIT:
			n = node(c, NULL, AWAIT);
			n->o = x->event, n->value = x->value;
			after(b.front, n);
			if (!(options.ignored & EVENTS)) b.front = n;
			if (--n->waits == 0) start(n);
			break;
		}
	}
	free(b.open.at);
	finish(whole);
	wake_gpu();
}

void schedule(struct queue *q) {
	while (q->order.n > 0 && ((struct command_buffer *)q->order.at[0])->status >= COMMITTED) {
		struct command_buffer *c = q->order.at[0];
		q->order.n--;
		memmove(q->order.at, q->order.at + 1, q->order.n * sizeof *q->order.at);
		build(c);
	}
}

void give_up(struct command_buffer *c, const char *why) {
	for (size_t i = 0; i < awaiting.n; i++) fail_command_buffer(((struct node *)awaiting.at[i])->c, 2, why);
	fail_command_buffer(c, 2, why);
	wake_gpu();
}
