// Blocks and their __block variables, as clang's Block ABI lays them out (Block-ABI-Apple in clang's documentation).
// Compilers emit calls of these functions; a completion handler is a block.
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

// shared is a __block variable, which a copied block and the function that declares it have in common.
struct shared {
	void *isa;
	struct shared *forwarding;
	_Atomic int32_t flags;
	uint32_t size;
	void (*keep)(struct shared *, struct shared *);
	void (*destroy)(struct shared *);
};

// What a block captures, as _Block_object_assign is told.
enum { IS_OBJECT = 3, IS_BLOCK = 7, IS_SHARED = 8, KIND = 15, FROM_COPIER = 128 };
// Flags: the count of references in steps of 2, and what there is.
enum { COUNT = 0xfffe, NEEDS_FREE = 1 << 24, HAS_COPY = 1 << 25, IS_GLOBAL = 1 << 28 };

EXPORT void *_NSConcreteGlobalBlock[32], *_NSConcreteMallocBlock[32], *_NSConcreteStackBlock[32];

EXPORT void *_Block_copy(const void *from) {
	struct block *b = (struct block *)from, *copy;
	if (!b || b->flags & IS_GLOBAL) return b;
	if (b->flags & NEEDS_FREE) {
		b->flags += 2;
		return b;
	}
	copy = malloc(b->descriptor->size);
	memcpy(copy, b, b->descriptor->size);
	copy->isa = _NSConcreteMallocBlock;
	copy->flags = (copy->flags & ~0xffff) | NEEDS_FREE | 2;
	if (b->flags & HAS_COPY) b->descriptor->copy(copy, b);
	return copy;
}

EXPORT void _Block_release(const void *block) {
	struct block *b = (struct block *)block;
	if (!b || !(b->flags & NEEDS_FREE) || ((b->flags -= 2) & COUNT)) return;
	if (b->flags & HAS_COPY) b->descriptor->dispose(b);
	free(b);
}

EXPORT void _Block_object_assign(void *to, const void *from, int kind) {
	struct shared *s;
	switch (kind & KIND) {
	case IS_OBJECT:
		*(const void **)to = kind & FROM_COPIER ? from : retain((object *)from);
		return;
	case IS_BLOCK:
		*(const void **)to = kind & FROM_COPIER ? from : _Block_copy(from);
		return;
	default:
		if (!(kind & IS_SHARED)) return;
	}
	s = ((struct shared *)from)->forwarding;
	if (s->flags & NEEDS_FREE) {
		s->flags += 2;
	} else { // it still lies on the stack: its copy on the heap has two owners, the block and the stack's
		struct shared *copy = malloc(s->size);
		memcpy(copy, s, s->size);
		copy->flags = (copy->flags & ~0xffff) | NEEDS_FREE | 4;
		copy->forwarding = copy, s->forwarding = copy;
		if (s->flags & HAS_COPY) s->keep(copy, s);
		s = copy;
	}
	*(struct shared **)to = s;
}

EXPORT void _Block_object_dispose(const void *o, int kind) {
	struct shared *s;
	if (kind & FROM_COPIER) return;
	if ((kind & KIND) == IS_OBJECT) release((object *)o);
	if ((kind & KIND) == IS_BLOCK) _Block_release(o);
	if ((kind & KIND) != IS_SHARED) return;
	s = ((struct shared *)o)->forwarding;
	if (!(s->flags & NEEDS_FREE) || ((s->flags -= 2) & COUNT)) return;
	if (s->flags & HAS_COPY) s->destroy(s);
	free(s);
}
