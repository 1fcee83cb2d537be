// The two threads of the GPU: one runs nodes that are ready, the other completes command buffers, after
// a delay.
#include "schedule.h"

#include <stdlib.h>
#include <string.h>

static bool ending;
static pthread_t runner, completer;

static size_t choose(void) {
	size_t best = 0;
	if (options.seed > 1) return chance(ready.n);
	for (size_t i = 1; i < ready.n; i++) {
		bool later = ((struct node *)ready.at[i])->serial > ((struct node *)ready.at[best])->serial;
		if (later == (options.seed == 1)) best = i; // seed 1 takes the last that was committed, seed 0 the first
	}
	return best;
}

static void run(struct node *n) {
	struct command_buffer *c = n->c;
	struct pass *p = n->pass;
	double begin = now(), end;
	if (n->kind == SAMPLING) {
		sample(n->o, n->value, begin);
		return;
	}
	if (c->status == COMMITTED) c->status = SCHEDULED;
	if (c->stop_after == 0) fail_command_buffer(c, c->code, c->text);
	if (lost) fail_command_buffer(c, 11, text_of_code(11));
	if (c->failed) return;
	if (c->stop_after > 0) c->stop_after--;
	struct launch *l = n->launch;
	struct message m = {0};
	put(&m, l->request.bytes, l->request.n);
	running = true;
	pthread_mutex_unlock(&gpu);
	if (l->counts) {
		uint32_t counts[3];
		memcpy(counts, l->counts->address + l->counts_at, sizeof counts);
		size3 grid = {counts[0], counts[1], counts[2]};
		memcpy(m.bytes + l->grid_at, &grid, sizeof grid);
	}
	struct answer a = {0};
	if (l->blit) run_blit(l->blit);
	else ask(ASK_RUN, &m, &a);
	end = now();
	pthread_mutex_lock(&gpu);
	running = false;
	if (a.status != 0) fail_command_buffer(c, a.status == 2 ? 3 : 9, a.bytes);
	free(a.bytes);
	if (c->begin == 0) c->begin = begin;
	c->end = end;
	if (!p->begun) {
		p->begun = true, p->begin = begin;
		if (p->samples && p->first_sample != (uint64_t)NO_SAMPLE) sample(p->samples, p->first_sample, begin);
	}
	p->end = end;
}

// overlapping chooses a ready node that conflicts with n, to run at the same time; NULL: none.
static struct node *overlapping(struct node *n) {
	if (options.seed < 2 || n->kind != RUN || chance(2)) return NULL;
	for (size_t i = 0; i < ready.n; i++) {
		struct node *k = ready.at[i];
		if (k->kind == RUN && conflict(n->launch, k->launch)) return k;
	}
	return NULL;
}

static void *run_all(void *none) {
	pthread_mutex_lock(&gpu);
	while (!ending) {
		// With options.lazy, nodes run only when somebody waits, or nothing was committed for 20 ms.
		if (ready.n == 0 || (options.lazy && demanded == 0 && now() - last_given < 0.02)) {
			wait_changed(ready.n ? 5 : 1000);
			continue;
		}
		size_t i = choose();
		struct node *n = ready.at[i];
		ready.at[i] = ready.at[--ready.n];
		struct node *with = overlapping(n);
		struct image *before = with ? remember(n->launch) : NULL;
		run(n);
		if (before) {
			take_back(before);
			for (size_t k = 0; k < ready.n; k++)
				if (ready.at[k] == with) ready.at[k] = ready.at[--ready.n];
			run(with);
			put_together(before);
			finish(with);
		}
		finish(n);
	}
	pthread_mutex_unlock(&gpu);
	return none;
}

static void complete(struct command_buffer *c) {
	check_borrowed(c, "has completed");
	for (size_t i = 0; i < c->resources.n; i++) __atomic_sub_fetch(&((struct resource *)c->resources.at[i])->flights, 1, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < c->indirects.n; i++) indirect_fly(c->indirects.at[i], -1);
	struct list kept = c->kept, resources = c->resources;
	c->kept = c->resources = (struct list){0};
	for (size_t i = 0; i < resources.n; i++) unref(resources.at[i]);
	for (size_t i = 0; i < kept.n; i++) release(kept.at[i]);
	free(kept.at), free(resources.at);
	pthread_mutex_lock(&gpu);
	if (c->failed) c->error = new_error("MTLCommandBufferErrorDomain", c->code, c->text);
	c->status = c->failed ? ERROR : COMPLETED;
	c->queue->uncompleted--;
	size_t at = 0;
	while (scheduled.at[at] != c) at++;
	memmove(scheduled.at + at, scheduled.at + at + 1, (--scheduled.n - at) * sizeof *scheduled.at);
	has_completed();
	if (c->handlers.n > 0) {
		pthread_mutex_unlock(&gpu);
		call_handlers(c);
		pthread_mutex_lock(&gpu);
	}
	c->handled = true;
	in_flight--;
	last_progress = now();
	pthread_cond_broadcast(&gpu_changed);
	pthread_mutex_unlock(&gpu);
	release(&c->base);
}

// behind returns whether a command buffer completes only after another, which has not completed.
static bool behind(struct command_buffer *c) {
	for (size_t i = 0; options.in_order && scheduled.at[i] != c; i++)
		if (((struct command_buffer *)scheduled.at[i])->queue == c->queue) return true;
	return false;
}

static void *complete_all(void *none) {
	pthread_mutex_lock(&gpu);
	while (!ending || ended.n > 0) {
		size_t first = ended.n;
		uint64_t t = (uint64_t)(now() * 1e6);
		for (size_t i = 0; i < ended.n; i++)
			if (!behind(ended.at[i]) && (first == ended.n || ((struct command_buffer *)ended.at[i])->due < ((struct command_buffer *)ended.at[first])->due)) first = i;
		struct command_buffer *c = first < ended.n ? ended.at[first] : NULL;
		if (options.idle && !ending && (ready.n > 0 || running)) {
			wait_changed(1);
			continue;
		}
		if (!c || c->due > t) {
			wait_changed(c ? (long)((c->due - t) / 1000 + 1) : 1000);
			continue;
		}
		ended.at[first] = ended.at[--ended.n];
		pthread_mutex_unlock(&gpu);
		complete(c);
		pthread_mutex_lock(&gpu);
	}
	pthread_mutex_unlock(&gpu);
	return none;
}

// fakemetal_seed sets the seed by which the order of later commands is chosen.
EXPORT void fakemetal_seed(long v) {
	pthread_mutex_lock(&gpu);
	options.seed = v, options.lazy = v != 0;
	seed_chance((uint64_t)options.seed);
	pthread_mutex_unlock(&gpu);
}

// fakemetal_idle sets options.idle: command buffers complete only when nothing else is left to run.
EXPORT void fakemetal_idle(bool on) {
	pthread_mutex_lock(&gpu);
	options.idle = on;
	pthread_cond_broadcast(&gpu_changed);
	pthread_mutex_unlock(&gpu);
}

void gpu_begin(void) {
	ending = false, demanded = 0, last_progress = now();
	seed_chance((uint64_t)options.seed);
	pthread_create(&runner, NULL, run_all, NULL);
	pthread_create(&completer, NULL, complete_all, NULL);
}

void abandon(void);

long drain(void) {
	pthread_mutex_lock(&gpu);
	demand(1);
	double since = now();
	long left = 0;
	while (in_flight > 0) {
		if (stuck(since)) {
			left += in_flight;
			abandon();
			for (size_t i = 0; i < awaiting.n; i++) fail_command_buffer(((struct node *)awaiting.at[i])->c, 2, text_of_code(2));
			wake_gpu();
			since = now();
		}
		wait_changed(20);
	}
	demand(-1);
	pthread_mutex_unlock(&gpu);
	return left;
}

void gpu_end(void) {
	pthread_mutex_lock(&gpu);
	ending = true;
	pthread_cond_broadcast(&gpu_changed);
	pthread_mutex_unlock(&gpu);
	pthread_join(runner, NULL);
	pthread_join(completer, NULL);
}
