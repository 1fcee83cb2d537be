// Runs the threadgroups of a dispatch on the workers. The threads of a threadgroup run one after another, each up to
// its next site: a barrier or a simdgroup operation.
#include "check.h"
#include "executor.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef void (*resume)(void *frame);

// worker is the memory in which a thread of this program runs threadgroups.
struct worker {
	char *frames;
	size_t frames_bytes;
	char *memory; // threadgroup variables and arguments
	size_t memory_bytes;
	struct lane lanes[MAX_THREADS];
	struct exchange exchanges[MAX_SIMDGROUPS];
};

_Thread_local const struct dispatch *running;

// work is the dispatch that the workers run together, and their synchronization.
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct dispatch *dispatch;
	const _Atomic uint32_t *stop;
	uint32_t groups[3];
	uint64_t total;
	_Atomic uint64_t next; // index of the next threadgroup to run
	uint64_t round;        // number of the dispatch
	int busy;              // workers that have not ended this round
	int workers;           // number of workers besides the calling thread
	int ready;             // how many of these have started
	_Atomic(const char *) error;
} work = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

// flush_denormals makes the calling thread treat denormal numbers as zero, as Metal's
// compilers promise (air.compile.denorms_disable).
static void flush_denormals(void) {
#if defined(__x86_64__)
	_mm_setcsr(_mm_getcsr() | 0x8040);
#elif defined(__aarch64__)
	uint64_t fpcr;
	__asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
	fpcr |= 1u << 24;
	__asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static const char *reserve(char **memory, size_t *have, size_t want) {
	if (want <= *have)
		return NULL;
	free(*memory);
	*have = 0;
	if (posix_memalign((void **)memory, 64, want) != 0) {
		*memory = NULL;
		return "there is no memory for the threads of a threadgroup";
	}
	*have = want;
	return NULL;
}

// round_up rounds n up to a multiple of 64.
static size_t round_up(size_t n) { return (n + 63) & ~(size_t)63; }

// converge runs the threads of one simdgroup until each waits at a threadgroup barrier or has returned. It always
// resumes the threads that wait at the lowest-numbered site, so that threads behind it in the code catch up, and
// diverged threads reconverge where branches join.
static void converge(const struct kernel *k, char *frames, size_t frame, struct exchange *x, int count, int simdgroup) {
	for (;;) {
		int32_t least = INT32_MAX;
		for (int i = 0; i < count; i++) {
			int32_t s = x->site[i];
			if (s >= 0 && s < least && k->sites[s].operation != THREADGROUP_BARRIER)
				least = s;
		}
		if (least == INT32_MAX)
			return;
		uint32_t active = 0;
		for (int i = 0; i < count; i++)
			active |= (uint32_t)(x->site[i] == least) << i;
		const struct site *site = &k->sites[least];
		if (checking)
			check_exchange(checking, least, x, active, count, simdgroup);
		exchange(site, x, active, count);
		for (uint32_t rest = active; rest; rest &= rest - 1) {
			char *f = frames + frame * (size_t)__builtin_ctz(rest);
			(*(resume *)f)(f);
		}
	}
}

// sum returns (a + b) % m without overflow, for a and b below m.
static uint64_t sum(uint64_t a, uint64_t b, uint64_t m) { return a >= m - b ? a - (m - b) : a + b; }

// product returns a * b % m. A 128-bit modulus would need the compiler's runtime library, which is not linked.
static uint64_t product(uint64_t a, uint64_t b, uint64_t m) {
	a %= m, b %= m;
	if (m <= UINT32_MAX)
		return a * b % m;
	uint64_t all = 0;
	for (; b; b >>= 1, a = sum(a, a, m))
		if (b & 1)
			all = sum(all, a, m);
	return all;
}

// permuted returns element n of a permutation of the numbers below total, which depends on the seed.
static uint64_t permuted(uint64_t n, uint64_t total, uint64_t seed) {
	uint64_t factor = seed % total | 1;
	for (;; factor += 2) { // the next that shares no divisor with total
		uint64_t a = factor, b = total;
		while (b) {
			uint64_t r = a % b;
			a = b, b = r;
		}
		if (a == 1)
			break;
	}
	return sum(product(n, factor, total), (seed >> 17) % total, total);
}

// check_meeting checks that all threads of a threadgroup wait at the same barrier.
static void check_meeting(struct worker *w, const struct kernel *k, int threads) {
	int waits = -1, returned = -1;
	for (int i = 0; i < threads; i++) {
		int32_t s = w->exchanges[i / SIMD_WIDTH].site[i % SIMD_WIDTH];
		if (s < 0) {
			returned = i;
			continue;
		}
		if (waits < 0) {
			waits = i;
			check_barrier(checking, &k->sites[s], 0);
			continue;
		}
		int32_t first = w->exchanges[waits / SIMD_WIDTH].site[waits % SIMD_WIDTH];
		if (s != first)
			check_report(checking, DIFFERENT_BARRIERS, (uint32_t)first, (uint32_t)waits, (uint32_t)s, (uint32_t)i);
	}
	if (waits >= 0 && returned >= 0)
		check_report(checking, DIVERGENT_BARRIER, (uint32_t)w->exchanges[waits / SIMD_WIDTH].site[waits % SIMD_WIDTH], (uint32_t)waits, 0xffff, (uint32_t)returned);
}

// run_group runs a threadgroup of a kernel that was compiled to a coroutine.
static void run_group(struct worker *w, const struct dispatch *d, const struct group *g) {
	const struct kernel *k = d->kernel;
	const uint32_t *size = g->threads_per_threadgroup;
	int threads = (int)(size[0] * size[1] * size[2]), simdgroups = (threads + SIMD_WIDTH - 1) / SIMD_WIDTH;
	size_t frame = round_up(d->frame_bytes);
	uint32_t x = 0, y = 0, z = 0;
	for (int i = 0; i < threads; i++) {
		struct lane *l = &w->lanes[i];
		l->exchange = &w->exchanges[i / SIMD_WIDTH];
		uint32_t at[3] = {x, y, z};
		for (int c = 0; c < 3; c++) {
			l->thread_position_in_threadgroup[c] = at[c];
			l->thread_position_in_grid[c] = g->threadgroup_position_in_grid[c] * d->group[c] + at[c];
		}
		l->thread_index_in_simdgroup = i % SIMD_WIDTH;
		l->simdgroup_index_in_threadgroup = i / SIMD_WIDTH;
		l->thread_index_in_threadgroup = i;
		if (++x == size[0] && (x = 0, ++y == size[1]))
			y = 0, z++;
	}
	for (int n = 0; n < threads; n++) {
		int i = d->seed ? (int)permuted((uint64_t)n, (uint64_t)threads, d->seed) : n;
		k->start(w->frames + frame * (size_t)i, g, &w->lanes[i]);
	}
	for (;;) {
		int waiting = 0;
		for (int s = 0; s < simdgroups; s++) {
			int count = threads - s * SIMD_WIDTH < SIMD_WIDTH ? threads - s * SIMD_WIDTH : SIMD_WIDTH;
			struct exchange *e = &w->exchanges[s];
			converge(k, w->frames + frame * (size_t)(s * SIMD_WIDTH), frame, e, count, s);
			for (int i = 0; i < count; i++)
				waiting |= e->site[i] >= 0;
		}
		if (!waiting)
			return;
		// Every thread that has not returned waits at a threadgroup barrier.
		if (checking)
			check_meeting(w, k, threads);
		for (int n = 0; n < threads; n++) {
			int i = d->seed ? (int)permuted((uint64_t)n, (uint64_t)threads, d->seed) : n;
			if (w->exchanges[i / SIMD_WIDTH].site[i % SIMD_WIDTH] >= 0) {
				char *f = w->frames + frame * (size_t)i;
				(*(resume *)f)(f);
			}
		}
	}
}

// place is the memory and the arguments with which a worker runs the threadgroups of a dispatch.
struct place {
	struct group group;
	void *arguments[SLOTS];
	char *begin;   // of threadgroup memory
	size_t memory; // bytes of it
};

static const char *make_place(struct place *p, struct worker *w, const struct dispatch *d, const uint32_t groups[3]) {
	const char *wrong = NULL;
	size_t threads = (size_t)d->group[0] * d->group[1] * d->group[2];
	if (d->frame_bytes && (wrong = reserve(&w->frames, &w->frames_bytes, round_up(d->frame_bytes) * threads)))
		return wrong;
	p->memory = round_up(d->kernel->memory);
	for (int i = 0; i < SLOTS; i++)
		p->memory += round_up(d->threadgroup_bytes[i]);
	size_t guard = checking ? THREADGROUP_GUARD : 0;
	if ((wrong = reserve(&w->memory, &w->memory_bytes, guard + p->memory + 64 + guard)))
		return wrong;
	p->begin = w->memory + guard;
	char *at = p->begin + round_up(d->kernel->memory);
	for (int i = 0; i < SLOTS; i++) {
		p->arguments[i] = at;
		at += round_up(d->threadgroup_bytes[i]);
	}
	p->group = (struct group){.buffers = d->buffers, .threadgroups = p->arguments, .memory = p->begin};
	memcpy(p->group.threadgroups_per_grid, groups, 3 * sizeof *groups);
	memcpy(p->group.threads_per_grid, d->grid, sizeof d->grid);
	memcpy(p->group.dispatch_threads_per_threadgroup, d->group, sizeof d->group);
	p->group.dispatch_simdgroups_per_threadgroup = (uint32_t)((threads + SIMD_WIDTH - 1) / SIMD_WIDTH);
	return NULL;
}

// run_one runs the threadgroup with index n.
static void run_one(struct place *p, struct worker *w, const struct dispatch *d, uint64_t n) {
	struct group *g = &p->group;
	const uint32_t *groups = g->threadgroups_per_grid, *size = g->threads_per_threadgroup;
	uint32_t position[3] = {(uint32_t)(n % groups[0]), (uint32_t)(n / groups[0] % groups[1]), (uint32_t)(n / groups[0] / groups[1])};
	for (int c = 0; c < 3; c++) {
		uint32_t left = d->grid[c] - position[c] * d->group[c];
		g->threadgroup_position_in_grid[c] = position[c];
		g->threads_per_threadgroup[c] = left < d->group[c] ? left : d->group[c];
	}
	g->simdgroups_per_threadgroup = (size[0] * size[1] * size[2] + SIMD_WIDTH - 1) / SIMD_WIDTH;
	if (d->frame_bytes) {
		if (checking) {
			checking->memory = (uint8_t *)p->begin;
			checking->memory_bytes = p->memory;
			checking->arguments = (uint8_t **)p->arguments;
			check_group(checking, (uint32_t)n, p->memory);
		}
		run_group(w, d, g);
		return;
	}
	for (uint32_t z = 0; z < size[2]; z++)
		for (uint32_t y = 0; y < size[1]; y++)
			d->kernel->row(g, y, z);
}

// run_share runs threadgroups until none are left or *stop is true.
static const char *run_share(struct worker *w, const struct dispatch *d) {
	struct place p;
	const char *wrong = make_place(&p, w, d, work.groups);
	if (wrong)
		return wrong;
	for (;;) {
		uint64_t n = atomic_fetch_add_explicit(&work.next, 1, memory_order_relaxed);
		if (n >= work.total || atomic_load_explicit(work.stop, memory_order_relaxed))
			return NULL;
		run_one(&p, w, d, d->seed ? permuted(n, work.total, d->seed) : n);
	}
}

static void *worker_main(void *ignored) {
	(void)ignored;
	struct worker *w = calloc(1, sizeof *w);
	uint64_t round = 0;
	flush_denormals();
	fault_stack();
	pthread_mutex_lock(&work.lock);
	work.ready++;
	pthread_cond_broadcast(&work.changed);
	for (;;) {
		while (work.round == round || !work.dispatch)
			pthread_cond_wait(&work.changed, &work.lock);
		round = work.round;
		const struct dispatch *d = work.dispatch;
		work.busy++;
		pthread_mutex_unlock(&work.lock);
		running = d;
		const char *wrong = w ? run_share(w, d) : "there is no memory for a worker";
		running = NULL;
		if (wrong)
			atomic_store(&work.error, wrong);
		pthread_mutex_lock(&work.lock);
		if (--work.busy == 0)
			pthread_cond_broadcast(&work.changed);
	}
}

void start_workers(int count) {
	for (int i = 0; i < count; i++) {
		pthread_t t;
		if (pthread_create(&t, NULL, worker_main, NULL) == 0) {
			pthread_detach(t);
			work.workers++;
		}
	}
	pthread_mutex_lock(&work.lock);
	while (work.ready < work.workers)
		pthread_cond_wait(&work.changed, &work.lock);
	pthread_mutex_unlock(&work.lock);
	flush_denormals();
}

static struct worker *own_worker(void) {
	static struct worker *own;
	if (!own)
		own = calloc(1, sizeof *own);
	return own;
}

// begin prepares work for a dispatch, and returns its number of threadgroups.
static uint64_t begin(const struct dispatch *d, const _Atomic uint32_t *stop) {
	uint64_t total = 1;
	for (int c = 0; c < 3; c++) {
		work.groups[c] = (uint32_t)(((uint64_t)d->grid[c] + d->group[c] - 1) / d->group[c]);
		total *= work.groups[c];
	}
	work.total = total;
	work.stop = stop;
	atomic_store(&work.next, 0);
	atomic_store(&work.error, NULL);
	return total;
}

const char *run_checked(const struct dispatch *d, const _Atomic uint32_t *stop, struct check *c) {
	struct worker *own = own_worker();
	if (!own)
		return "there is no memory for a worker";
	if (begin(d, stop) == 0)
		return NULL;
	check_begin(c, d);
	checking = c;
	running = d;
	const char *wrong = run_share(own, d);
	running = NULL;
	checking = NULL;
	check_end(c);
	return wrong || !c->starved ? wrong : "there is no memory for the checker's tables";
}

// next_random is the random number generator splitmix64.
static uint64_t next_random(uint64_t *state) {
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

const char *run_mixed(struct dispatch *const *d, uint32_t count, uint64_t seed, const _Atomic uint32_t *stop) {
	struct worker *own = own_worker();
	uint32_t groups[MAX_MIXED][3];
	uint64_t total[MAX_MIXED], done[MAX_MIXED] = {0}, left = 0;
	if (!own)
		return "there is no memory for a worker";
	for (uint32_t i = 0; i < count; i++) {
		total[i] = 1;
		for (int c = 0; c < 3; c++) {
			groups[i][c] = (d[i]->grid[c] + d[i]->group[c] - 1) / d[i]->group[c];
			total[i] *= groups[i][c];
		}
		left += total[i];
		d[i]->seed = next_random(&seed) | 1;
	}
	while (left > 0 && !atomic_load(stop)) {
		// Choose a dispatch with a probability that is proportional to its threadgroups left, and run some of these.
		uint64_t at = next_random(&seed) % left;
		uint32_t i = 0;
		while (at >= total[i] - done[i])
			at -= total[i] - done[i], i++;
		struct place p;
		const char *wrong = make_place(&p, own, d[i], groups[i]);
		if (wrong)
			return wrong;
		running = d[i];
		for (uint64_t row = 1 + next_random(&seed) % (1 + total[i] / 4); row > 0 && done[i] < total[i]; row--, left--)
			run_one(&p, own, d[i], permuted(done[i]++, total[i], d[i]->seed));
		running = NULL;
	}
	return NULL;
}

const char *run(const struct dispatch *d, const _Atomic uint32_t *stop) {
	struct worker *own = own_worker();
	if (!own)
		return "there is no memory for a worker";
	uint64_t total = begin(d, stop);
	if (total == 0)
		return NULL;
	int share = work.workers > 0 && total > 1;
	if (share) {
		pthread_mutex_lock(&work.lock);
		work.dispatch = d;
		work.round++;
		pthread_cond_broadcast(&work.changed);
		pthread_mutex_unlock(&work.lock);
	}
	running = d;
	const char *wrong = run_share(own, d);
	running = NULL;
	if (share) {
		pthread_mutex_lock(&work.lock);
		work.dispatch = NULL;
		while (work.busy > 0)
			pthread_cond_wait(&work.changed, &work.lock);
		pthread_mutex_unlock(&work.lock);
	}
	return wrong ? wrong : atomic_load(&work.error);
}
