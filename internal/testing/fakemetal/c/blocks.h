// Blocks, for methods that take them.
#pragma once
#include "objc.h"

struct block {
	void *isa;
	_Atomic int32_t flags;
	int32_t reserved;
	void (*invoke)(void *, ...);
	struct {
		unsigned long reserved, size;
		void (*copy)(void *, const void *);
		void (*dispose)(const void *);
	} *descriptor;
};
void *_Block_copy(const void *block);
void _Block_release(const void *block);
