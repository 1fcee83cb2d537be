// MTLBuffer. The Go half allocates its memory in this process, shared with the process that runs kernels.
#define _GNU_SOURCE
#include "metal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 16 << 10 }; // the page size of Apple's machines, in bytes

struct buffer { object base; struct resource *r; bool shared; object *label, *heap; };

static uint64_t allocated;
static struct list hosts; // struct resource that share host memory
static pthread_mutex_t hosting = PTHREAD_MUTEX_INITIALIZER;

uintptr_t allocated_size(SELF) { UNUSED; return __atomic_load_n(&allocated, __ATOMIC_SEQ_CST); }

struct resource *resource_of(object *o) { return ((struct buffer *)o)->r; }

// The guard bytes after a buffer, and their value.
enum { BEHIND = 64, NOBODYS = 0xc5 };

// allocate asks the Go half for memory of a resource, and returns whether there is some.
static bool allocate(struct resource *r, uint64_t length) {
	struct message m = {0};
	put64(&m, length + BEHIND);
	struct answer a;
	ask(ASK_ALLOCATE, &m, &a);
	bool ok = a.status == 0;
	if (ok) {
		r->handle = get64(&a), r->connection = connection;
		r->address = (char *)get64(&a);
		r->length = length;
		r->behind = memset(r->address + length, NOBODYS, BEHIND);
		__atomic_add_fetch(&allocated, length, __ATOMIC_SEQ_CST);
	}
	free(a.bytes);
	return ok;
}

// pages returns whether host memory is all mapped; writable: it may be written; ours: it is memory that
// software Metal has allocated and shares.
static bool pages(char *from, uint64_t length, bool *writable, bool *ours) {
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4400];
	uintptr_t at = (uintptr_t)from, end = at + length;
	*writable = *ours = true;
	while (maps && at < end && fgets(line, sizeof line, maps)) {
		unsigned long a, b;
		char mode[8];
		if (sscanf(line, "%lx-%lx %7s", &a, &b, mode) != 3 || b <= at) continue;
		if (a > at) break;
		if (mode[0] != 'r') break;
		if (mode[1] != 'w') *writable = false;
		if (!strstr(line, "mlxc-softmetal")) *ours = false;
		at = b;
	}
	if (maps) fclose(maps);
	return at >= end;
}

// give_back replaces the shared mapping of host memory by private memory with the same contents. The
// mapping is replaced at once, so that readers in between see these contents too.
static void give_back(struct resource *r) {
	pthread_mutex_lock(&hosting);
	for (size_t i = 0; i < hosts.n; i++)
		if (hosts.at[i] == r) hosts.at[i] = hosts.at[--hosts.n];
	pthread_mutex_unlock(&hosting);
	bool writable, ours;
	if (!pages(r->host, r->length, &writable, &ours) || !ours) {
		fail("the memory of a buffer without a copy was unmapped before the buffer was freed");
		return;
	}
	char *copy = mmap(NULL, r->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(copy, r->host, r->length);
	mremap(copy, r->length, r->length, MREMAP_MAYMOVE | MREMAP_FIXED, r->host);
}

void unref(struct resource *r) {
	if (__atomic_sub_fetch(&r->refs, 1, __ATOMIC_SEQ_CST) > 0) return;
	if (r->inside) {
		__atomic_sub_fetch(&r->inside->within, 1, __ATOMIC_SEQ_CST);
		unref(r->inside);
	} else {
		bool there = connected() && r->connection == connection;
		if (r->host) give_back(r);
		else if (r->behind && there)
			for (uint64_t i = 0; i < BEHIND; i++)
				if ((unsigned char)r->behind[i] != NOBODYS) {
					fail("a kernel has written behind the end of a buffer of %lu bytes", (unsigned long)r->length);
					break;
				}
		__atomic_sub_fetch(&allocated, r->length, __ATOMIC_SEQ_CST);
		if (there) {
			struct message m = {0};
			put64(&m, r->handle);
			struct answer a;
			ask(ASK_FREE, &m, &a);
			free(a.bytes);
		}
	}
	for (size_t i = 0; i < r->n; i++) unref_node(r->accesses[i].n);
	free(r->accesses);
	free(r);
}

static void buffer_dealloc(object *o) {
	struct buffer *b = (struct buffer *)o;
	if (__atomic_load_n(&b->r->flights, __ATOMIC_SEQ_CST) > 0)
		fail("an MTLBuffer is freed while a command buffer in flight uses it");
	b->r->freed = true;
	// Command buffers that have completed may still know the resource, but the program may now unmap its memory.
	if (b->r->host && __atomic_load_n(&b->r->flights, __ATOMIC_SEQ_CST) == 0 && __atomic_load_n(&b->r->within, __ATOMIC_SEQ_CST) == 0) {
		give_back(b->r);
		b->r->host = NULL;
	}
	unref(b->r);
	release(b->label), release(b->heap);
}

// may_be returns whether a buffer of this length and with these options can be made.
static bool may_be(uintptr_t length, uintptr_t mode, sel s) {
	uintptr_t storage = mode >> 4 & 0xf, hazards = mode >> 8 & 3;
	if (length == 0 || length > (uintptr_t)options.buffer) {
		fail("%s: %lu bytes: a buffer has 1 to %ld", s, (unsigned long)length, options.buffer);
		return false;
	}
	if ((storage != 0 && storage != 2) || hazards == 3 || mode & ~0x3ffUL || (mode & 0xf) > 1) {
		fail("%s: the options %#lx", s, (unsigned long)mode);
		return false;
	}
	return !lost && !faulty(ALLOCATION);
}

static object *buffer_of(struct resource *r, uintptr_t mode) {
	struct buffer *b = (struct buffer *)new_object(&MTLBuffer);
	r->refs = 1;
	r->tracked = (mode >> 8 & 3) != 1;
	b->r = r, b->shared = (mode >> 4 & 0xf) == 0;
	return &b->base;
}

object *new_buffer(SELF, uintptr_t length, uintptr_t mode) {
	(void)self;
	if (!may_be(length, mode, s)) return NULL;
	struct resource *r = calloc(1, sizeof *r);
	if (allocate(r, length)) return buffer_of(r, mode);
	free(r);
	return NULL;
}

object *new_buffer_no_copy(SELF, void *bytes, uintptr_t length, uintptr_t mode, void *block) {
	(void)self;
	if (!may_be(length, mode, s)) return NULL;
	bool writable, ours;
	if (block) fail("%s: blocks are not called", s);
	if (options.anywhere && bytes && length && (mode >> 4 & 0xf) == 0 && ((uintptr_t)bytes % PAGE || length % PAGE)) {
		// The Go half has no such memory, so that no kernel can use it.
		struct resource *r = calloc(1, sizeof *r);
		r->address = bytes, r->length = length;
		__atomic_add_fetch(&allocated, length, __ATOMIC_SEQ_CST);
		return buffer_of(r, mode);
	}
	if ((uintptr_t)bytes % PAGE || length % PAGE || !bytes) {
		fail("%s: %p and %lu bytes are not whole pages of 16 KiB", s, bytes, (unsigned long)length);
		return NULL;
	}
	if ((mode >> 4 & 0xf) != 0) {
		fail("%s: memory of the host is not private", s);
		return NULL;
	}
	if (!pages(bytes, length, &writable, &ours)) {
		fail("%s: the memory is not mapped", s);
		return NULL;
	}
	struct resource *r = calloc(1, sizeof *r);
	r->read_only = !writable;
	// Memory within a resource that is shared already uses that resource's memory.
	pthread_mutex_lock(&hosting);
	for (size_t i = 0; i < hosts.n; i++) {
		struct resource *h = hosts.at[i];
		if ((char *)bytes + length <= h->host || h->host + h->length <= (char *)bytes) continue;
		if ((char *)bytes < h->host || h->host + h->length < (char *)bytes + length) {
			pthread_mutex_unlock(&hosting);
			fail("%s: the stand-in shares no memory that is written and lies partly in another buffer", s);
			free(r);
			return NULL;
		}
		__atomic_add_fetch(&h->refs, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&h->within, 1, __ATOMIC_SEQ_CST);
		r->inside = h, r->handle = h->handle, r->offset = (uint64_t)((char *)bytes - h->host), r->address = bytes, r->length = length;
		pthread_mutex_unlock(&hosting);
		return buffer_of(r, mode);
	}
	pthread_mutex_unlock(&hosting);
	if (!allocate(r, length)) {
		free(r);
		return NULL;
	}
	memcpy(r->address, bytes, length);
	r->behind = NULL; // host memory has no room for guard bytes
	if (writable) {
		// Map the shared memory a second time, over the host's.
		if (mremap(r->address, 0, length, MREMAP_MAYMOVE | MREMAP_FIXED, bytes) == MAP_FAILED) fail("%s: the memory cannot be shared", s);
		r->host = bytes;
		pthread_mutex_lock(&hosting);
		add_to(&hosts, r);
		pthread_mutex_unlock(&hosting);
	}
	r->address = bytes;
	return buffer_of(r, mode);
}

static void *contents(SELF) {
	UNUSED;
	struct buffer *b = (struct buffer *)self;
	return b->shared ? b->r->address : NULL;
}
static object *heap_of(SELF) { UNUSED; return ((struct buffer *)self)->heap; }
void set_heap(object *b, object *heap) { ((struct buffer *)b)->heap = retain(heap); }
static uintptr_t storage(SELF) { UNUSED; return ((struct buffer *)self)->shared ? 0 : 2; }
static uintptr_t length(SELF) { UNUSED; return ((struct buffer *)self)->r->length; }
static void set_label(SELF, object *label) {
	struct buffer *b = (struct buffer *)self;
	if (!given(label, &NSString, s)) return;
	release(b->label);
	b->label = retain(label);
	note_label("MTLBuffer", label);
}

class MTLResource = {.name = "MTLResource", .protocol = true, .super = &NSObject, .size = sizeof(object)};
class MTLBuffer = {.name = "MTLBuffer", .protocol = true, .super = &MTLResource, .size = sizeof(struct buffer), .dealloc = buffer_dealloc,
	.methods = (struct method[]){{"contents", contents}, {"length", length}, {"allocatedSize", length}, {"storageMode", storage}, {"heap", heap_of}, {"setLabel:", set_label}, {0}}};

__attribute__((constructor)) static void add(void) {
	add_class(&MTLResource);
	add_class(&MTLBuffer);
}
