// Residency sets. They make resources resident and order nothing.
#include "metal.h"

#include <stdlib.h>

struct set_descriptor { object base; uintptr_t capacity; };
static class MTLResidencySetDescriptor;
static void set_capacity(SELF, uintptr_t n) { UNUSED; ((struct set_descriptor *)self)->capacity = n; }
static void set_label(SELF, object *l) {
	UNUSED;
	if (given(l, &NSString, s)) note_label("MTLResidencySet", l);
}
static class MTLResidencySetDescriptor = {.name = "MTLResidencySetDescriptor", .since = 15, .super = &NSObject, .size = sizeof(struct set_descriptor),
	.newer = (struct method[]){{"setInitialCapacity:", set_capacity}, {"setLabel:", set_label}, {0}}};

// A set retains its committed contents, and those that the next commit will make valid.
struct set { object base; struct list committed, next; bool requested; };

static void release_all(struct list *l) {
	for (size_t i = 0; i < l->n; i++) release(l->at[i]);
	free(l->at);
	*l = (struct list){0};
}
static void set_dealloc(object *o) {
	struct set *set = (struct set *)o;
	release_all(&set->committed), release_all(&set->next);
}

object *new_residency(SELF, object *descriptor, object **e) {
	(void)self;
	if (!given(descriptor, &MTLResidencySetDescriptor, s)) return NULL;
	const struct fault *fault = faulty(RESIDENCY);
	if (fault) return fail_with(e, "MTLResidencySetDomain", fault->code, fault->text);
	if (e) *e = NULL; // ggml's code asks for the error after a success too, in a variable that it has not set
	return new_object(&MTLResidencySet);
}

static size_t place_of(struct list *l, object *o) {
	size_t i = 0;
	while (i < l->n && l->at[i] != o) i++;
	return i;
}
static void add_allocation(SELF, object *o) {
	struct set *set = (struct set *)self;
	if (given(o, &MTLResource, s) && place_of(&set->next, o) == set->next.n) add_to(&set->next, retain(o));
}
static void remove_allocation(SELF, object *o) {
	struct set *set = (struct set *)self;
	size_t i = place_of(&set->next, o);
	if (!given(o, &MTLResource, s)) return;
	if (i == set->next.n) {
		fail("%s: the set does not have the allocation", s);
		return;
	}
	release(o);
	set->next.at[i] = set->next.at[--set->next.n];
}
static void remove_all(SELF) { UNUSED; release_all(&((struct set *)self)->next); }
static void commit_set(SELF) {
	UNUSED;
	struct set *set = (struct set *)self;
	struct list before = set->committed;
	set->committed = (struct list){0};
	for (size_t i = 0; i < set->next.n; i++) add_to(&set->committed, retain(set->next.at[i]));
	release_all(&before);
}
static void request(SELF) { UNUSED; ((struct set *)self)->requested = true; }
static void end(SELF) { UNUSED; ((struct set *)self)->requested = false; }

bool resident(struct queue *q, struct resource *r) {
	for (size_t i = 0; i < q->n; i++) {
		struct set *set = (struct set *)q->sets[i];
		for (size_t k = 0; k < set->committed.n; k++)
			if (is_kind(set->committed.at[k], &MTLBuffer) && resource_of(set->committed.at[k]) == r) return true;
	}
	return false;
}

class MTLResidencySet = {.name = "MTLResidencySet", .protocol = true, .since = 15, .super = &NSObject, .size = sizeof(struct set), .dealloc = set_dealloc,
	.newer = (struct method[]){{"addAllocation:", add_allocation}, {"removeAllocation:", remove_allocation}, {"removeAllAllocations", remove_all}, {"commit", commit_set},
		{"requestResidency", request}, {"endResidency", end}, {0}}};

__attribute__((constructor)) static void add(void) {
	add_class(&MTLResidencySetDescriptor);
	add_class(&MTLResidencySet);
}
