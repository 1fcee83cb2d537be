// Checks of dispatches, as by Metal's API validation, and the requests that run them.
#include "metal.h"

#include <stdlib.h>
#include <string.h>

static bool sizes(const struct pipeline *p, const struct bindings *b, const struct grid *g, sel s) {
	uint64_t threads = g->group.x * g->group.y * g->group.z;
	if (!g->indirect && (g->grid.x == 0 || g->grid.y == 0 || g->grid.z == 0)) {
		fail("%s: a grid of %lu × %lu × %lu", s, (unsigned long)g->grid.x, (unsigned long)g->grid.y, (unsigned long)g->grid.z);
		return false;
	}
	if (g->group.x > 1024 || g->group.y > 1024 || g->group.z > 1024 || threads == 0 || threads > (uint64_t)p->max_threads) {
		fail("%s: threadgroups of %lu × %lu × %lu: the pipeline has 1 to %ld threads", s, (unsigned long)g->group.x, (unsigned long)g->group.y, (unsigned long)g->group.z, p->max_threads);
		return false;
	}
	uint64_t memory = (uint64_t)p->own_memory;
	for (int i = 0; i < SLOTS; i++) memory += b->threadgroup[i];
	if (memory > 32 << 10) {
		fail("%s: %lu bytes of threadgroup memory: there are 32 KiB", s, (unsigned long)memory);
		return false;
	}
	if (g->indirect && (g->at % 4 || g->at + 12 > resource_of(g->indirect)->length)) {
		fail("%s: three numbers at byte %lu of a buffer of %lu", s, (unsigned long)g->at, (unsigned long)resource_of(g->indirect)->length);
		return false;
	}
	return true;
}

// suits returns whether a binding can be an argument of the kernel, and notes a mistake if not.
static bool suits(const struct argument *a, const struct binding *b, sel s) {
	if (!b->buffer && !b->bytes) {
		if (a->needed) fail("%s: argument %u (%s) is not bound", s, a->slot, a->name);
		return false;
	}
	if (b->bytes) {
		if (a->space == DEVICE && a->writes) fail("%s: argument %u (%s) is written, and bound to the bytes of setBytes", s, a->slot, a->name);
		else if (a->size > b->length) fail("%s: argument %u (%s) has %lu bytes, setBytes gave %u", s, a->slot, a->name, (unsigned long)a->size, b->length);
		else return true;
		return false;
	}
	if (is_freed(b->buffer)) {
		fail("%s: the buffer of argument %u (%s) was freed", s, a->slot, a->name);
		return false;
	}
	struct resource *r = resource_of(b->buffer);
	uint64_t align = a->align;
	if (a->space == CONSTANT && (uint64_t)options.constants > align) align = (uint64_t)options.constants;
	if (align && b->offset % align) fail("%s: argument %u (%s) begins at byte %lu, no multiple of %lu", s, a->slot, a->name, (unsigned long)b->offset, (unsigned long)align);
	else if (a->size > r->length - b->offset) fail("%s: argument %u (%s) has %lu bytes, its buffer %lu from the offset on", s, a->slot, a->name, (unsigned long)a->size, (unsigned long)(r->length - b->offset));
	else if (a->writes && a->space == DEVICE && r->read_only) fail("%s: argument %u (%s) is written, and lies in memory of the host that is mapped for reading", s, a->slot, a->name);
	else return true;
	return false;
}

static void add_use(struct launch *l, struct resource *r, bool reads, bool writes) {
	__atomic_add_fetch(&r->refs, 1, __ATOMIC_SEQ_CST);
	l->uses[l->n++] = (struct use){r, reads, writes};
}

struct launch *launch_of(const struct bindings *b, const struct grid *g, sel s) {
	struct pipeline *p = (struct pipeline *)b->pipeline;
	if (!p || is_freed(b->pipeline)) {
		fail("%s: no pipeline is set%s", s, p ? " that was not freed" : "");
		return NULL;
	}
	if (!sizes(p, b, g, s)) return NULL;
	struct launch *l = calloc(1, sizeof *l);
	struct message *m = &l->request;
	put32(m, p->number);
	put32(m, g->threads);
	l->grid_at = m->n;
	put(m, &g->grid, sizeof g->grid);
	put(m, &g->group, sizeof g->group);
	size_t count_at = m->n;
	uint32_t count = 0;
	put32(m, 0);
	bool ok = true;
	for (size_t i = 0; i < p->n; i++) {
		const struct argument *a = &p->arguments[i];
		if (a->slot >= SLOTS) continue;
		if (a->space == THREADGROUP) {
			uint32_t n = b->threadgroup[a->slot];
			if (n == 0 && a->needed) {
				fail("%s: threadgroup argument %u (%s) has no length", s, a->slot, a->name);
				ok = false;
			}
			if (n) put32(m, a->slot), put32(m, 3), put32(m, n), count++;
			continue;
		}
		const struct binding *x = &b->buffers[a->slot];
		if (!suits(a, x, s)) {
			ok = ok && !a->needed && !x->buffer && !x->bytes;
			continue;
		}
		put32(m, a->slot);
		count++;
		if (x->bytes) {
			put32(m, 2), put32(m, x->length), put(m, x->bytes, x->length);
			continue;
		}
		struct resource *r = resource_of(x->buffer);
		put32(m, 1), put64(m, r->handle), put64(m, r->offset + x->offset), put64(m, r->length - x->offset);
		if (a->used) add_use(l, r, a->reads, a->writes && a->space == DEVICE);
	}
	memcpy(m->bytes + count_at, &count, sizeof count);
	if (g->indirect) {
		l->counts = resource_of(g->indirect), l->counts_at = g->at;
		add_use(l, l->counts, true, false);
	}
	if (ok) return l;
	free_launch(l);
	return NULL;
}

void free_launch(struct launch *l) {
	for (size_t i = 0; i < l->n; i++) unref(l->uses[i].r);
	free(l->blit);
	free(l->request.bytes);
	free(l);
}
