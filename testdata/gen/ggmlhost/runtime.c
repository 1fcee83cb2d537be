// What programs compiled from Objective-C for macOS need besides the messages that the stand-in for Metal answers: their
// references to classes and selectors, blocks, dispatch queues, and memory from the kernel.
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *objc_getClass(const char *name);
const char *sel_registerName(const char *name);
void *objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void *pool);
void *objc_retain(void *object);
void objc_release(void *object);

// --- references to classes and selectors ---

// The compiler writes the address of OBJC_CLASS_$_NAME for a class. Here that is its name, which ggmlhost_link replaces by
// the class.
#define CLASS(name) const char class_##name[] __asm__("OBJC_CLASS_$_" #name) = #name;
CLASS(MTLCaptureDescriptor) CLASS(MTLCaptureManager) CLASS(MTLCompileOptions) CLASS(MTLFunctionConstantValues) CLASS(MTLResidencySetDescriptor)
CLASS(NSLock) CLASS(NSMutableArray) CLASS(NSMutableDictionary) CLASS(NSNumber) CLASS(NSString) CLASS(NSURL)

char __CFConstantStringClassReference[8]; // the class of string literals, until ggmlhost_link has replaced it

struct literal { void *isa; uint64_t flags; const char *text; uint64_t length; };
extern const void *__start_objc_classrefs[], *__stop_objc_classrefs[];
extern const char *__start_objc_selrefs[], *__stop_objc_selrefs[];
extern struct literal __start_cfstring[], __stop_cfstring[];

__attribute__((visibility("default"))) void ggmlhost_link(void) {
	static bool done;
	if (done) return;
	done = true;
	for (const void **c = __start_objc_classrefs; c < __stop_objc_classrefs; c++) *c = objc_getClass(*c);
	for (const char **s = __start_objc_selrefs; s < __stop_objc_selrefs; s++) *s = sel_registerName(*s);
	for (struct literal *l = __start_cfstring; l < __stop_cfstring; l++) l->isa = objc_getClass("NSString"), l->flags = 1 << 20; // flags: its references
}

void objc_enumerationMutation(void *object) {
	fprintf(stderr, "%p was changed while it was enumerated\n", object);
	abort();
}

// --- blocks ---

enum { COPIED = 1 << 24, HAS_HELPERS = 1 << 25, GLOBAL = 1 << 28, FIELD_OBJECT = 3, FIELD_BLOCK = 7, FIELD_BYREF = 8 };
struct descriptor { unsigned long reserved, size; void (*copy)(void *to, const void *from); void (*dispose)(const void *); };
struct block { void *isa; int flags, references; void *code; struct descriptor *descriptor; };
struct byref { void *isa; struct byref *forwarding; int flags; unsigned size; void (*copy)(void *to, void *from); void (*dispose)(void *); };

void *_NSConcreteStackBlock[32], *_NSConcreteGlobalBlock[32];
static void *heap_block[32];

void *_Block_copy(const void *from) {
	struct block *b = (struct block *)from, *made;
	if (!b || b->flags & GLOBAL) return b;
	if (b->flags & COPIED) {
		__atomic_add_fetch(&b->references, 1, __ATOMIC_SEQ_CST);
		return b;
	}
	made = malloc(b->descriptor->size);
	memcpy(made, b, b->descriptor->size);
	made->isa = heap_block, made->flags |= COPIED, made->references = 1;
	if (b->flags & HAS_HELPERS) b->descriptor->copy(made, b);
	return made;
}
void _Block_release(const void *of) {
	struct block *b = (struct block *)of;
	if (!b || b->flags & GLOBAL || !(b->flags & COPIED)) return;
	if (__atomic_sub_fetch(&b->references, 1, __ATOMIC_SEQ_CST) > 0) return;
	if (b->flags & HAS_HELPERS) b->descriptor->dispose(b);
	free(b);
}

// A __block variable moves to the heap with the first block that is copied; its forwarding pointers then lead there. references of
// such a one are counted in its flags.
static struct byref *byref_copy(struct byref *v) {
	struct byref *made = v->forwarding;
	if (made->flags & COPIED) {
		__atomic_add_fetch(&made->flags, 1, __ATOMIC_SEQ_CST);
		return made;
	}
	made = malloc(v->size);
	memcpy(made, v, v->size);
	made->flags = (v->flags & ~0xffff) | COPIED | 2; // one for the block, one for the frame that made it
	made->forwarding = v->forwarding = made;
	if (v->flags & HAS_HELPERS) made->copy(made, v);
	return made;
}
static void byref_release(struct byref *v) {
	v = v->forwarding;
	if (!(v->flags & COPIED) || (__atomic_sub_fetch(&v->flags, 1, __ATOMIC_SEQ_CST) & 0xffff) > 0) return;
	if (v->flags & HAS_HELPERS) v->dispose(v);
	free(v);
}
void _Block_object_assign(void *to, const void *object, int kind) {
	const void *kept = object;
	if ((kind & 0xf) == FIELD_OBJECT) kept = objc_retain((void *)object);
	if ((kind & 0xf) == FIELD_BLOCK) kept = _Block_copy(object);
	if (kind & FIELD_BYREF) kept = byref_copy((struct byref *)object);
	*(const void **)to = kept;
}
void _Block_object_dispose(const void *object, int kind) {
	if (kind & FIELD_BYREF) byref_release((struct byref *)object);
	else if ((kind & 0xf) == FIELD_BLOCK) _Block_release(object);
	else if ((kind & 0xf) == FIELD_OBJECT) objc_release((void *)object);
}

// --- dispatch ---

// Queues have no threads of their own: a block that is to run later gets one.
struct object { void (*free)(struct object *); };
struct group { struct object base; pthread_mutex_t lock; pthread_cond_t changed; long running; };
struct semaphore { struct object base; pthread_mutex_t lock; pthread_cond_t changed; long value; };

static void free_plain(struct object *o) { free(o); }
void dispatch_release(struct object *o) { o->free(o); }
void *dispatch_queue_create(const char *label, const void *kind) {
	struct object *o = calloc(1, sizeof *o);
	(void)label, (void)kind;
	o->free = free_plain;
	return o;
}
void *dispatch_get_global_queue(intptr_t identifier, uintptr_t flags) {
	static struct object one;
	(void)identifier, (void)flags;
	return &one;
}

// call runs a block as a queue does, with a pool for the objects that it leaves to one.
static void call(struct block *b, size_t i) {
	void *pool = objc_autoreleasePoolPush();
	((void (*)(struct block *, size_t))b->code)(b, i);
	objc_autoreleasePoolPop(pool);
}

struct work { struct block *block; size_t i; struct group *group; };
static void *run(void *of) {
	struct work *w = of;
	call(w->block, w->i);
	if (w->group) {
		pthread_mutex_lock(&w->group->lock);
		w->group->running--;
		pthread_cond_broadcast(&w->group->changed);
		pthread_mutex_unlock(&w->group->lock);
		_Block_release(w->block);
		free(w);
	}
	return NULL;
}
void dispatch_apply(size_t n, void *queue, struct block *b) {
	(void)queue;
	struct work *all = calloc(n + 1, sizeof *all);
	pthread_t *threads = calloc(n + 1, sizeof *threads);
	for (size_t i = 1; i < n; i++) {
		all[i] = (struct work){b, i, NULL};
		pthread_create(&threads[i], NULL, run, &all[i]);
	}
	if (n) call(b, 0);
	for (size_t i = 1; i < n; i++) pthread_join(threads[i], NULL);
	free(all), free(threads);
}
static void free_group(struct object *o) {
	struct group *g = (struct group *)o;
	pthread_mutex_destroy(&g->lock), pthread_cond_destroy(&g->changed);
	free(g);
}
struct group *dispatch_group_create(void) {
	struct group *g = calloc(1, sizeof *g);
	g->base.free = free_group;
	pthread_mutex_init(&g->lock, NULL), pthread_cond_init(&g->changed, NULL);
	return g;
}
void dispatch_group_async(struct group *g, void *queue, struct block *b) {
	struct work *w = malloc(sizeof *w);
	pthread_t thread;
	(void)queue;
	*w = (struct work){_Block_copy(b), 0, g};
	pthread_mutex_lock(&g->lock);
	g->running++;
	pthread_mutex_unlock(&g->lock);
	if (pthread_create(&thread, NULL, run, w)) abort();
	pthread_detach(thread);
}
intptr_t dispatch_group_wait(struct group *g, uint64_t until) {
	(void)until; // forever
	pthread_mutex_lock(&g->lock);
	while (g->running) pthread_cond_wait(&g->changed, &g->lock);
	pthread_mutex_unlock(&g->lock);
	return 0;
}
static void free_semaphore(struct object *o) {
	struct semaphore *s = (struct semaphore *)o;
	pthread_mutex_destroy(&s->lock), pthread_cond_destroy(&s->changed);
	free(s);
}
struct semaphore *dispatch_semaphore_create(intptr_t value) {
	struct semaphore *s = calloc(1, sizeof *s);
	s->base.free = free_semaphore, s->value = value;
	pthread_mutex_init(&s->lock, NULL), pthread_cond_init(&s->changed, NULL);
	return s;
}
intptr_t dispatch_semaphore_wait(struct semaphore *s, uint64_t until) {
	(void)until; // forever
	pthread_mutex_lock(&s->lock);
	while (s->value <= 0) pthread_cond_wait(&s->changed, &s->lock);
	s->value--;
	pthread_mutex_unlock(&s->lock);
	return 0;
}
intptr_t dispatch_semaphore_signal(struct semaphore *s) {
	pthread_mutex_lock(&s->lock);
	s->value++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

// --- memory ---

enum { PAGE = 16 << 10 }; // as on Apple silicon; ggml asks by sysconf, which build.go redirects to here

long ggmlhost_sysconf(int name) { return name == _SC_PAGESIZE ? PAGE : sysconf(name); }

unsigned mach_task_self(void) { return 1; }
int vm_allocate(unsigned task, uintptr_t *address, size_t n, int flags) {
	(void)task, (void)flags;
	n = (n + PAGE - 1) / PAGE * PAGE;
	char *p = mmap(NULL, n + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED) return 3;
	char *from = (char *)(((uintptr_t)p + PAGE - 1) / PAGE * PAGE);
	if (from > p) munmap(p, (size_t)(from - p));
	if (from < p + PAGE) munmap(from + n, (size_t)(p + PAGE - from));
	*address = (uintptr_t)from;
	return 0;
}
int vm_deallocate(unsigned task, uintptr_t address, size_t n) {
	(void)task;
	return munmap((void *)address, (n + PAGE - 1) / PAGE * PAGE) ? 5 : 0;
}
