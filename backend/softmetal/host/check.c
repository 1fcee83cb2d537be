// What a checked kernel calls before each access to memory: is it within bounds, were the bytes written before, does
// the dispatch declare it, and does it race with another thread?
//
// Two accesses of one byte by different threads are a race if one of them writes, not both are atomic, and no barrier
// orders them. Threads of different threadgroups are never ordered. Threads of one threadgroup are ordered by a
// threadgroup barrier that names the memory, and those of a simdgroup also by such a simdgroup barrier.
#include "check.h"
#include <stdlib.h>
#include <string.h>

_Thread_local struct check *checking;

// cell records who accessed some adjacent bytes (c->granule of them): the last writer, and two of the readers since.
struct cell {
	struct mover writer, reader, other;
	uint8_t atomic; // bits: 1: the writer is atomic, 2: the readers are
};

static int is_access(const struct access *a) { return a->kind <= COPIED; }
static int reads(const struct access *a) { return a->kind != STORE && a->kind != ATOMIC_STORE; }
static int writes(const struct access *a) { return a->kind != LOAD && a->kind != COPIED && a->kind != ATOMIC_LOAD; }

static const uint64_t page_cells = 1024;

static int same_thread(const struct mover *a, const struct mover *b) { return a->group == b->group && a->thread == b->thread; }

static int ordered(const struct mover *earlier, const struct mover *later) {
	if (earlier->group != later->group)
		return 0;
	if (earlier->thread == later->thread || earlier->epoch != later->epoch)
		return 1;
	return earlier->thread / SIMD_WIDTH == later->thread / SIMD_WIDTH && earlier->simd_epoch != later->simd_epoch;
}

// report adds a finding and returns it; a repetition at the same places of the code is only counted (NULL).
static struct finding *report(struct check *c, enum finding_kind kind, const struct mover *a, const struct mover *b, int32_t argument, int64_t offset) {
	uint32_t first = a->access, second = b ? b->access : 0xffff;
	for (uint32_t i = 0; i < c->count; i++) {
		struct finding *f = &c->findings[i];
		if (f->kind == (uint32_t)kind && f->access == first && f->other_access == second && f->argument == argument) {
			f->times++;
			return NULL;
		}
	}
	if (c->count == MAX_FINDINGS) {
		c->dropped++;
		return NULL;
	}
	struct finding *f = &c->findings[c->count++];
	*f = (struct finding){.kind = kind, .access = first, .other_access = second, .argument = argument, .offset = offset, .times = 1, .group = a->group - 1, .thread = a->thread};
	const struct kernel *k = c->dispatch->kernel;
	int site = kind >= DIVERGENT_BARRIER && kind <= PARTIAL_ACCESS;
	if (site && first < k->site_count)
		f->line = k->sites[first].line;
	if (!site && first < k->access_count)
		f->line = k->accesses[first].line;
	if (!site && first < k->access_count && is_access(&k->accesses[first]))
		f->bytes = k->accesses[first].bytes;
	if (second != 0xffff)
		f->other_line = site ? k->sites[second].line : k->accesses[second].line;
	if (b) {
		f->other_group = b->group - 1;
		f->other_thread = b->thread;
	}
	return f;
}

// settle decides the doubt after its store has happened: it was a race if the bytes have changed.
static void settle(struct check *c) {
	struct doubt *d = &c->doubt;
	if (d->at && memcmp(d->at, d->old, d->bytes) != 0)
		report(c, RACE_WRITE_AFTER_WRITE, &d->by, &d->before, d->argument, d->offset);
	d->at = NULL;
}

void check_report(struct check *c, enum finding_kind kind, uint32_t place, uint32_t thread, uint32_t other_place, uint32_t other_thread) {
	struct mover a = {c->group + 1, (uint16_t)thread, (uint16_t)place, 0, 0}, b = {c->group + 1, (uint16_t)other_thread, (uint16_t)other_place, 0, 0};
	report(c, kind, &a, &b, -1, 0);
}

void check_use(struct check *c, uint32_t place, uint32_t thread, const struct touched *t) {
	const struct access *a = &c->dispatch->kernel->accesses[place];
	const struct stray *s = &c->strays[thread];
	struct mover m = {c->group + 1, (uint16_t)thread, (uint16_t)place, 0, 0};
	int stray = (a->index & FROM_EXCHANGE) && (s->site || !(a->index & FROM_UNSET));
	struct finding *f = report(c, stray ? INACTIVE_LANE : UNDEFINED_VALUE, &m, NULL, t ? t->argument : -1, t ? t->offset : 0);
	if (!f)
		return;
	f->bytes = a->kind; // holds how the value is used, for these kinds
	f->other_line = a->bytes;
	f->lane = -1;
	if (stray && s->site) {
		f->other_line = c->dispatch->kernel->sites[s->site - 1].line;
		f->lane = s->lane;
	}
}

// count_bits returns the number of threads in a mask.
static int count_bits(uint32_t mask) { return __builtin_popcount(mask); }

void check_exchange(struct check *c, int site, const struct exchange *x, uint32_t active, int count, int simdgroup) {
	const struct site *s = &c->dispatch->kernel->sites[site];
	uint32_t base = (uint32_t)(simdgroup * SIMD_WIDTH), first = base + (uint32_t)__builtin_ctz(active);
	switch (s->operation) {
	case SIMDGROUP_BARRIER:
		check_barrier(c, s, (uint32_t)simdgroup);
		for (int i = 0; i < count; i++)
			if (x->site[i] >= 0 && x->site[i] != site) {
				check_report(c, PARTIAL_BARRIER, (uint32_t)site, first, (uint32_t)x->site[i], base + (uint32_t)i);
				break;
			}
		break;
	case JOIN:
		break;
	case TOGETHER:
		if (count_bits(active) != SIMD_WIDTH)
			check_report(c, PARTIAL_ACCESS, (uint32_t)site, first, 0xffff, 0);
		break;
	case MULTIPLY_ACCUMULATE:
		if (count_bits(active) != SIMD_WIDTH)
			check_report(c, PARTIAL_MATRIX, (uint32_t)site, first, 0xffff, 0);
		// fallthrough
	default:
		check_values(c, (uint32_t)site, x, active, count, simdgroup);
	}
}

static struct cell *cell_of(struct pages *p, uint64_t index) {
	uint64_t page = index / page_cells;
	if (page >= p->count) {
		uint64_t n = page * 2 + 16;
		struct cell **more = realloc(p->page, n * sizeof *more);
		if (!more)
			return NULL;
		memset(more + p->count, 0, (n - p->count) * sizeof *more);
		p->page = more, p->count = n;
	}
	if (!p->page[page] && !(p->page[page] = calloc(page_cells, sizeof **p->page)))
		return NULL;
	return &p->page[page][index % page_cells];
}

static void drop_pages(struct pages *p) {
	for (uint64_t i = 0; i < p->count; i++)
		free(p->page[i]);
	free(p->page);
	*p = (struct pages){0};
}

void check_begin(struct check *c, const struct dispatch *d) {
	c->dispatch = d;
	c->count = c->dropped = c->starved = 0;
	c->doubt.at = NULL;
	c->granule = 16;
	for (uint32_t i = 0; i < d->kernel->access_count; i++) {
		uint32_t n = d->kernel->accesses[i].bytes;
		if (!is_access(&d->kernel->accesses[i]))
			continue;
		uint32_t align = d->kernel->accesses[i].align;
		while (c->granule > 1 && (n == 0 || n % c->granule || align % c->granule))
			c->granule /= 2;
	}
}

void check_end(struct check *c) {
	settle(c);
	for (size_t i = 0; i < c->space_count; i++)
		drop_pages(c->spaces[i].cells);
	for (size_t i = 0; i < c->space_count; i++)
		free(c->spaces[i].cells);
	c->space_count = 0;
}

void check_group(struct check *c, uint32_t group, size_t memory) {
	settle(c);
	c->group = group;
	memset(c->left, 0, sizeof c->left);
	memset(c->taken, 0, sizeof c->taken);
	memset(c->strays, 0, sizeof c->strays);
	memset(c->own_count, 0, sizeof c->own_count);
	memset(c->device_epoch, 0, sizeof c->device_epoch);
	memset(c->threadgroup_epoch, 0, sizeof c->threadgroup_epoch);
	c->device_barriers = c->threadgroup_barriers = 0;
	drop_pages(&c->threadgroup_cells);
	if (c->written_room < memory) {
		free(c->written);
		c->written = malloc(memory);
		c->written_room = c->written ? memory : 0;
		c->starved |= !c->written;
	}
	if (c->written)
		memset(c->written, 0, memory);
}

void check_barrier(struct check *c, const struct site *s, uint32_t simdgroup) {
	int device = s->flags & MEM_DEVICE, threadgroup = s->flags & MEM_THREADGROUP;
	if (s->operation == THREADGROUP_BARRIER) {
		c->device_barriers += device != 0;
		c->threadgroup_barriers += threadgroup != 0;
		return;
	}
	c->device_epoch[simdgroup] += device != 0;
	c->threadgroup_epoch[simdgroup] += threadgroup != 0;
}

// touch_cells records an access to n bytes, the first of which is byte number at of the memory, and reports races
// with earlier accesses.
static void touch_cells(struct check *c, struct pages *cells, struct mover *m, const struct access *a, int32_t argument, int64_t offset, const uint8_t *memory, uint64_t at, uint64_t n, uint32_t granule) {
	int atomic = a->kind >= ATOMIC;
	for (uint64_t i = at / granule; i <= (at + n - 1) / granule; i++) {
		struct cell *x = cell_of(cells, i);
		if (!x) {
			c->starved = 1;
			return;
		}
		// A cell that a misaligned access covers in part is left out: races in it are not detected.
		if (i * granule < at || (i + 1) * granule > at + n)
			continue;
		int64_t here = offset + (int64_t)(i * granule) - (int64_t)at;
		if (x->writer.group && !same_thread(&x->writer, m) && !ordered(&x->writer, m) && !(atomic && (x->atomic & 1))) {
			int64_t first = here < offset ? offset : here;
			if (a->kind != STORE || n > sizeof c->doubt.old)
				report(c, !writes(a) ? RACE_READ_AFTER_WRITE : RACE_WRITE_AFTER_WRITE, m, &x->writer, argument, first);
			else if (!c->doubt.at) {
				c->doubt = (struct doubt){.at = memory, .bytes = (uint32_t)n, .argument = argument, .offset = first, .by = *m, .before = x->writer};
				memcpy(c->doubt.old, memory, n);
			}
		}
		if (reads(a)) {
			// Keep the first and the last of the readers that no barrier separates from this one: whichever thread
			// writes next, it differs from at least one of the two.
			if (!x->reader.group || (ordered(&x->reader, m) && (!x->other.group || ordered(&x->other, m))))
				x->reader = *m, x->other = (struct mover){0}, x->atomic = (uint8_t)((x->atomic & 1) | (atomic ? 2 : 0));
			else if (!same_thread(&x->reader, m))
				x->other = *m;
			if (!atomic)
				x->atomic &= 1;
		}
		if (writes(a)) {
			const struct mover *readers[2] = {&x->reader, &x->other};
			for (int k = 0; k < 2; k++)
				if (readers[k]->group && !same_thread(readers[k], m) && !ordered(readers[k], m) && !(atomic && (x->atomic & 2)))
					report(c, RACE_WRITE_AFTER_READ, m, readers[k], argument, here < offset ? offset : here);
			x->writer = *m;
			x->atomic = (uint8_t)((x->atomic & 2) | atomic);
		}
	}
}

// Accesses that are not allowed are redirected to this memory.
static _Alignas(64) uint8_t nowhere[1 << 16];

// space_of returns the cells of the buffer with an id, or NULL if there is no room for them.
static struct pages *space_of(struct check *c, uint64_t id) {
	for (size_t i = 0; i < c->space_count; i++)
		if (c->spaces[i].id == id)
			return c->spaces[i].cells;
	if (c->space_count == SLOTS)
		return NULL;
	struct pages *p = calloc(1, sizeof *p);
	if (p)
		c->spaces[c->space_count++] = (struct check_space){id, p};
	else
		c->starved = 1;
	return p;
}

// touch records an access, for the calls about its value that follow it (undefined.c).
static void touch(struct check *c, const struct access *a, uint64_t n, int32_t argument, int64_t offset, int private) {
	if (a->kind == COPIED) // the access before was the copy's destination
		c->before = c->last;
	struct touched *t = &c->last;
	t->state = NULL, t->n = n, t->argument = argument, t->offset = offset, t->private = (uint8_t)private;
}

// misaligned reports an address that is not a multiple of the alignment that Metal requires.
static void misaligned(struct check *c, const struct mover *m, const struct access *a, const uint8_t *at, int32_t argument, int64_t offset) {
	if (a->align > 1 && (uintptr_t)at % a->align != 0) {
		struct finding *f = report(c, MISALIGNED, m, NULL, argument, offset);
		if (f)
			f->lane = (int32_t)a->align;
	}
}

// device checks an access through a buffer argument, and returns the address to use.
static void *device(struct check *c, const struct lane *l, struct mover *m, const struct access *a, uint32_t argument, uint8_t *at, uint64_t n) {
	const struct dispatch *d = c->dispatch;
	const struct bound *b = &d->bound[argument];
	int64_t offset = at - (uint8_t *)d->buffers[argument];
	(void)l;
	touch(c, a, n, (int32_t)argument, offset, 0);
	// An argument that a function constant disables is not bound. Apple's compiler loads its value all the same,
	// ahead of a select that discards it.
	if (!d->buffers[argument] && a->kind == LOAD && a->space == SPACE_CONSTANT)
		return nowhere;
	if (offset < 0 || (uint64_t)offset > b->bytes || n > b->bytes - (uint64_t)offset) {
		report(c, OUT_OF_BOUNDS, m, NULL, (int32_t)argument, offset);
		return nowhere;
	}
	if (writes(a) && b->read_only) {
		report(c, WRITES_READ_ONLY, m, NULL, (int32_t)argument, offset);
		return nowhere;
	}
	misaligned(c, m, a, at, (int32_t)argument, offset);
	if (!b->state)
		return at; // inline bytes, or memory without recorded states
	int undefined = 0, undeclared = 0;
	for (uint64_t i = 0; i < n; i++) {
		uint8_t *s = &b->state[(uint64_t)offset + i];
		// A dispatch may read what it has written itself.
		if (reads(a) && !(*s & WAS_WRITTEN)) {
			undefined |= !(*s & DEFINED);
			undeclared |= !(*s & MAY_READ);
			*s |= WAS_READ;
		}
		if (writes(a)) {
			undeclared |= !(*s & MAY_WRITE);
			*s |= WAS_WRITTEN | DEFINED;
		}
	}
	if (undefined)
		report(c, UNDEFINED_READ, m, NULL, (int32_t)argument, offset);
	if (undeclared && b->declared)
		report(c, !writes(a) ? UNDECLARED_READ : UNDECLARED_WRITE, m, NULL, (int32_t)argument, offset);
	if (b->races) {
		struct pages *cells = space_of(c, b->buffer);
		if (cells)
			touch_cells(c, cells, m, a, (int32_t)argument, offset, at, b->offset + (uint64_t)offset, n, c->granule);
	}
	return at;
}

// threadgroup checks an access to threadgroup memory: to the argument or the variable that the access names, or, if
// neither is known, to the variable or the argument that holds the address. It returns the address to use.
static void *threadgroup(struct check *c, struct mover *m, const struct access *a, uint8_t *at, uint64_t n) {
	const struct kernel *k = c->dispatch->kernel;
	uint64_t offset = (uint64_t)(at - c->memory);
	int32_t number = -1;
	int64_t inside = 0;
	uint64_t bytes = 0;
	if (a->origin == ORIGIN_ARGUMENT && a->index < SLOTS) {
		number = 1000 + a->index, inside = at - c->arguments[a->index], bytes = c->dispatch->threadgroup_bytes[a->index];
	} else if (a->origin == ORIGIN_VARIABLE && a->index < k->variable_count) {
		const struct variable *v = &k->variables[a->index];
		number = 2000 + a->index, inside = (int64_t)offset - v->offset, bytes = v->bytes;
	} else {
		for (uint32_t i = 0; i < k->variable_count; i++) {
			const struct variable *v = &k->variables[i];
			if (offset >= v->offset && offset - v->offset < v->bytes)
				number = 2000 + (int32_t)i, inside = (int64_t)(offset - v->offset), bytes = v->bytes;
		}
		for (uint32_t i = 0; i < SLOTS; i++) {
			int64_t from = at - c->arguments[i];
			if (from >= 0 && from < c->dispatch->threadgroup_bytes[i])
				number = 1000 + (int32_t)i, inside = from, bytes = c->dispatch->threadgroup_bytes[i];
		}
	}
	if (number < 0) {
		report(c, OUT_OF_BOUNDS, m, NULL, NOBODYS, (int64_t)offset);
		return nowhere;
	}
	if (inside < 0 || (uint64_t)inside > bytes || n > bytes - (uint64_t)inside) {
		report(c, OUT_OF_BOUNDS, m, NULL, number, inside);
		return nowhere;
	}
	touch(c, a, n, number, inside, 0);
	misaligned(c, m, a, at, number, inside);
	int undefined = 0;
	for (uint64_t i = 0; c->written && i < n; i++) {
		if (reads(a))
			undefined |= !c->written[offset + i];
		if (writes(a))
			c->written[offset + i] = 1;
	}
	if (undefined)
		report(c, UNDEFINED_READ, m, NULL, number, inside);
	touch_cells(c, &c->threadgroup_cells, m, a, number, inside, at, offset, n, c->granule);
	return at;
}

// private checks an access to a private or constant array, and returns the address to use.
static void *private(struct check *c, struct mover *m, const struct access *a, uint8_t *base, uint64_t size, uint8_t *at, uint64_t n, uint8_t *written, int32_t number) {
	int64_t offset = at - base;
	touch(c, a, n, number, offset, 1);
	if (offset < 0 || (uint64_t)offset > size || n > size - (uint64_t)offset) {
		report(c, OUT_OF_BOUNDS, m, NULL, number, offset);
		return nowhere;
	}
	if (!written)
		return at;
	uint8_t *state = written + offset;
	int set = 1;
	for (uint64_t i = 0; i < n; i++)
		set &= state[i] == SET;
	c->last.state = state, c->last.parts = a->kind == COPIED, c->last.set = (uint8_t)set;
	if (reads(a) && a->kind != COPIED && !set && memchr(state, UNSET, n))
		report(c, UNDEFINED_READ, m, NULL, number, offset);
	if (writes(a))
		memset(state, SET, n);
	return at;
}

static struct mover mover_of(struct check *c, const struct lane *l, uint32_t access, int space) {
	uint32_t s = l->simdgroup_index_in_threadgroup;
	struct mover m = {c->group + 1, (uint16_t)l->thread_index_in_threadgroup, (uint16_t)access, 0, 0};
	if (space == SPACE_THREADGROUP)
		m.epoch = (uint16_t)c->threadgroup_barriers, m.simd_epoch = (uint16_t)c->threadgroup_epoch[s];
	else
		m.epoch = (uint16_t)c->device_barriers, m.simd_epoch = (uint16_t)c->device_epoch[s];
	return m;
}

// mlxc_touch is called before each access; it returns the address to use instead of at.
__attribute__((visibility("default"), used)) void *mlxc_touch(const struct lane *l, uint8_t *at, uint64_t n, uint32_t access) {
	struct check *c = checking;
	if (!c)
		return at;
	settle(c);
	const struct access *a = &c->dispatch->kernel->accesses[access];
	if (n == 0) {
		touch(c, a, 0, -1, 0, 1);
		return at;
	}
	int in_threadgroup = at >= c->memory - THREADGROUP_GUARD && at < c->memory + c->memory_bytes + THREADGROUP_GUARD;
	if (a->space == SPACE_THREADGROUP || (a->space == SPACE_GENERIC && in_threadgroup)) {
		struct mover m = mover_of(c, l, access, SPACE_THREADGROUP);
		return threadgroup(c, &m, a, at, n);
	}
	struct mover m = mover_of(c, l, access, SPACE_DEVICE);
	if (a->origin == ORIGIN_ARGUMENT)
		return device(c, l, &m, a, a->index, at, n);
	// The argument is not known: take the one whose memory holds the address.
	for (uint32_t i = 0; i < SLOTS; i++) {
		const struct bound *b = &c->dispatch->bound[i];
		uint8_t *begin = c->dispatch->buffers[i];
		if (begin && at >= begin && at < begin + b->bytes)
			return device(c, l, &m, a, i, at, n);
	}
	// Or the one whose guard zones hold the address: no private memory lies there.
	for (uint32_t i = 0; i < SLOTS; i++) {
		const struct bound *b = &c->dispatch->bound[i];
		uint8_t *begin = c->dispatch->buffers[i];
		if (begin && b->state && at >= begin - GUARD && at < begin + b->bytes + GUARD)
			return device(c, l, &m, a, i, at, n);
	}
	touch(c, a, n, -1, 0, 1);
	if (a->space == SPACE_GENERIC) {
		uint32_t t = l->thread_index_in_threadgroup;
		for (uint32_t i = 0; i < c->own_count[t]; i++) {
			const struct own *o = &c->own[t][i];
			if (at >= o->at && at < o->at + o->bytes)
				return private(c, &m, a, o->at, o->bytes, at, n, o->state, 3000 + (int32_t)o->number);
		}
		return at; // other private memory
	}
	report(c, OUT_OF_BOUNDS, &m, NULL, -1, 0);
	return nowhere;
}

// mlxc_own registers a private variable that generic pointers may reach, at the start of its thread.
__attribute__((visibility("default"), used)) void mlxc_own(const struct lane *l, uint8_t *at, uint64_t bytes, uint8_t *state, uint32_t number) {
	struct check *c = checking;
	uint32_t t = l->thread_index_in_threadgroup;
	if (c && c->own_count[t] < MAX_OWN)
		c->own[t][c->own_count[t]++] = (struct own){at, bytes, state, number};
}

// mlxc_private is called before an access to a private or constant array of size bytes. written has the state of each
// of them, or is NULL.
__attribute__((visibility("default"), used)) void *mlxc_private(const struct lane *l, uint8_t *base, uint64_t size, uint8_t *at, uint64_t n, uint32_t access, uint8_t *written) {
	struct check *c = checking;
	if (!c)
		return at;
	settle(c);
	const struct access *a = &c->dispatch->kernel->accesses[access];
	if (n == 0) {
		touch(c, a, 0, -1, 0, 1);
		return at;
	}
	struct mover m = mover_of(c, l, access, SPACE_GENERIC);
	return private(c, &m, a, base, size, at, n, written, (a->origin == ORIGIN_TABLE ? 4000 : 3000) + a->index);
}
