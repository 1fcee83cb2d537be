// Two unordered dispatches may run at the same time, so each may read memory from before the other has
// written, which neither order of the two would show. To simulate that, both run on the same contents,
// and the bytes that each has changed are merged. If neither touches bytes that the other writes, the
// result is the same as in any order.
#include "metal.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 64 << 20 }; // max bytes that remember saves

struct image { size_t n; struct { struct resource *r; char *before, *after; } at[SLOTS + 1]; };

bool conflict(const struct launch *a, const struct launch *b) {
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (a->uses[i].r == b->uses[k].r && (a->uses[i].writes || b->uses[k].writes)) return true;
	return false;
}

struct image *remember(const struct launch *l) {
	uint64_t bytes = 0;
	for (size_t i = 0; i < l->n; i++)
		if (l->uses[i].writes) bytes += l->uses[i].r->length;
	if (bytes > MOST) return NULL;
	struct image *m = calloc(1, sizeof *m);
	for (size_t i = 0; i < l->n; i++) {
		struct resource *r = l->uses[i].r;
		bool known = !l->uses[i].writes;
		for (size_t k = 0; k < m->n; k++) known = known || m->at[k].r == r;
		if (known) continue;
		m->at[m->n].r = r, m->at[m->n].before = malloc(r->length), m->at[m->n].after = malloc(r->length);
		memcpy(m->at[m->n++].before, r->address, r->length);
	}
	return m;
}

// take_back saves what a dispatch has changed, and restores the contents from before it.
void take_back(struct image *m) {
	for (size_t i = 0; i < m->n; i++) {
		struct resource *r = m->at[i].r;
		memcpy(m->at[i].after, r->address, r->length);
		for (uint64_t k = 0; k < r->length; k++)
			if (m->at[i].after[k] != m->at[i].before[k]) r->address[k] = m->at[i].before[k];
	}
}

// put_together applies the saved changes again, except to bytes that were changed since.
void put_together(struct image *m) {
	for (size_t i = 0; i < m->n; i++) {
		struct resource *r = m->at[i].r;
		char *before = m->at[i].before, *after = m->at[i].after;
		for (uint64_t k = 0; k < r->length; k++)
			if (after[k] != before[k] && r->address[k] == before[k]) r->address[k] = after[k];
		free(before), free(after);
	}
	free(m);
}
