// Tracks values of checked kernels that may be undefined (undefined.go of internal/air): where they are used, and how
// they pass through private memory and between threads.
#include "check.h"
#include <string.h>

#define CALLED __attribute__((visibility("default"), used))

// mlxc_used is called before a use of a value; mask has a bit for each undefined element of it.
CALLED void mlxc_used(const struct lane *l, uint64_t mask, uint32_t place) {
	if (mask && checking)
		check_use(checking, place, l->thread_index_in_threadgroup, NULL);
}

// mlxc_stored is called after a store of a value of which mask's elements are undefined.
CALLED void mlxc_stored(const struct lane *l, uint64_t mask, uint64_t element_bytes, uint32_t place) {
	struct check *c = checking;
	if (!mask || !c)
		return;
	const struct touched *t = &c->last;
	if (!t->private) {
		check_use(c, place, l->thread_index_in_threadgroup, t);
		return;
	}
	int unset = c->dispatch->kernel->accesses[place].index & IS_UNSET;
	for (uint64_t i = 0; t->state && i < t->n; i++)
		if (i / element_bytes < 64 && mask >> i / element_bytes & 1)
			t->state[i] = unset ? UNSET : SET_UNDEFINED;
}

// mlxc_loaded is called after a load, and returns the mask of undefined elements.
CALLED uint64_t mlxc_loaded(const struct lane *l, uint64_t element_bytes) {
	struct check *c = checking;
	uint64_t mask = 0;
	(void)l;
	if (!c || !c->last.state || c->last.set)
		return 0;
	for (uint64_t i = 0; i < c->last.n; i++)
		if (i / element_bytes < 64 && (c->last.state[i] == SET_UNDEFINED || (c->last.parts && c->last.state[i] == UNSET)))
			mask |= 1ull << i / element_bytes;
	return mask;
}

// mlxc_copied is called after a copy from private memory: the last access is its source, the one before its
// destination. Outside private memory it is a use if no byte is set; single unset bytes may be gaps between members.
CALLED void mlxc_copied(const struct lane *l, uint32_t place) {
	struct check *c = checking;
	if (!c || !c->last.state)
		return;
	const struct touched *to = &c->before, *from = &c->last;
	if (to->private) {
		if (to->state && to->n == from->n)
			memmove(to->state, from->state, from->n);
		return;
	}
	for (uint64_t i = 0; i < from->n; i++)
		if (from->state[i] == SET)
			return;
	check_use(c, place, l->thread_index_in_threadgroup, to);
}

// mlxc_forget is called where the lifetime of a private variable begins: its bytes are unset.
CALLED void mlxc_forget(uint8_t *base, uint64_t size, uint8_t *at, uint64_t n, uint8_t *state) {
	uint64_t offset = (uint64_t)(at - base);
	if (state && at >= base && offset <= size && n <= size - offset)
		memset(state + offset, UNSET, n);
}

// mlxc_leave is called before a site with the mask of undefined elements of an operand.
CALLED void mlxc_leave(const struct lane *l, uint32_t operand, uint64_t mask) {
	if (checking)
		checking->left[l->thread_index_in_threadgroup][operand] = (uint8_t)mask;
}

// mlxc_taken is called after a site, and returns the mask of undefined elements of the result.
CALLED uint64_t mlxc_taken(const struct lane *l) {
	return checking ? checking->taken[l->thread_index_in_threadgroup] : 0;
}

// shuffled propagates undefined elements through a shuffle, to one lane.
static void shuffled(struct check *c, uint32_t number, const struct exchange *x, uint32_t active, int lane, uint32_t base, const struct stray *before) {
	const struct site *s = &c->dispatch->kernel->sites[number];
	int filling, source = shuffle_source(s, x, active, lane, &filling);
	uint32_t thread = base + (uint32_t)lane;
	if (source < 0 || !(active >> source & 1)) {
		c->taken[thread] = (uint8_t)((1u << s->count) - 1);
		c->strays[thread] = (struct stray){number + 1, source < 0 ? -1 - source : source};
		return;
	}
	uint32_t from = base + (uint32_t)source;
	c->taken[thread] = c->left[from][filling];
	if (c->taken[thread] && before[source].site)
		c->strays[thread] = before[source];
}

// multiplied propagates undefined elements through a matrix product: an element depends on a row and a column.
static void multiplied(struct check *c, uint32_t active, uint32_t base) {
	uint8_t rows[8] = {0}, columns[8] = {0};
	for (int pass = 0; pass < 2; pass++)
		for (int l = 0; l < SIMD_WIDTH; l++) {
			int row = (l >> 2 & 4) | (l >> 1 & 3), column = 2 * ((l >> 2 & 2) | (l & 1));
			const uint8_t *left = c->left[base + (uint32_t)l];
			for (int k = 0; k < 2; k++) {
				if (pass == 0) {
					rows[row] |= left[0] >> k & 1;
					columns[column + k] |= left[1] >> k & 1;
				} else if (active >> l & 1)
					c->taken[base + (uint32_t)l] |= (uint8_t)(((left[2] >> k & 1) | rows[row] | columns[column + k]) << k);
			}
		}
}

void check_values(struct check *c, uint32_t number, const struct exchange *x, uint32_t active, int count, int simdgroup) {
	const struct site *s = &c->dispatch->kernel->sites[number];
	uint32_t base = (uint32_t)(simdgroup * SIMD_WIDTH);
	struct stray before[SIMD_WIDTH];
	memcpy(before, c->strays + base, sizeof before);
	int exclusive = s->operation == PREFIX_EXCLUSIVE_SUM || s->operation == PREFIX_EXCLUSIVE_PRODUCT;
	int prefix = exclusive || s->operation == PREFIX_INCLUSIVE_SUM || s->operation == PREFIX_INCLUSIVE_PRODUCT;
	for (int i = 0; i < count; i++)
		c->taken[base + (uint32_t)i] &= (active >> i & 1) ? 0 : 0xff;
	if (s->operation == MULTIPLY_ACCUMULATE)
		multiplied(c, active, base);
	else if (s->operation >= SHUFFLE && s->operation <= BROADCAST_FIRST) {
		for (int i = 0; i < count; i++)
			if (active >> i & 1)
				shuffled(c, number, x, active, i, base, before);
	} else
		for (int first = 0; first < count; first += s->width) {
			// A reduction depends on the values of all active threads, a prefix on those of threads before.
			uint8_t all = 0;
			const struct stray *from = NULL;
			for (int i = first; i < first + s->width && i < count; i++) {
				if (!(active >> i & 1))
					continue;
				uint8_t own = c->left[base + (uint32_t)i][0];
				if (own && before[i].site)
					from = &before[i];
				if (prefix) {
					c->taken[base + (uint32_t)i] = all | (exclusive ? 0 : own);
					if (c->taken[base + (uint32_t)i] && from)
						c->strays[base + (uint32_t)i] = *from;
				}
				all |= own;
			}
			for (int i = first; !prefix && i < first + s->width && i < count; i++)
				if (active >> i & 1) {
					c->taken[base + (uint32_t)i] = all;
					if (all && from)
						c->strays[base + (uint32_t)i] = *from;
				}
		}
	for (int i = 0; i < count; i++)
		if (active >> i & 1)
			memset(c->left[base + (uint32_t)i], 0, sizeof c->left[0]);
}
