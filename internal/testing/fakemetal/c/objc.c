#include "objc.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- mistakes of callers ---

static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;
static char *failures[64];
static long failed;

void fail(const char *format, ...) {
	char text[512];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	pthread_mutex_lock(&failing);
	if (failed < 64) failures[failed] = strdup(text);
	failed++;
	pthread_mutex_unlock(&failing);
}

// fakemetal_failures returns the number of mistakes; fakemetal_failure the text of mistake i, NULL
// for those beyond the 64 that are kept; fakemetal_forgive forgets all.
EXPORT long fakemetal_failures(void) { return failed; }
EXPORT const char *fakemetal_failure(long i) { return 0 <= i && i < 64 && i < failed ? failures[i] : NULL; }
EXPORT void fakemetal_forgive(void) {
	pthread_mutex_lock(&failing);
	for (long i = 0; i < failed && i < 64; i++) free(failures[i]);
	failed = 0;
	pthread_mutex_unlock(&failing);
}

// fakemetal_note notes a mistake that the Go half has found.
EXPORT void fakemetal_note(const char *text) { fail("%s", text); }

// --- selectors and classes ---

enum { BUCKETS = 1024 };
static struct name {
	struct name *next;
	long sent; // messages with this selector
	char text[];
} *names[BUCKETS];
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

sel intern(const char *text) {
	unsigned hash = 5381;
	for (const char *s = text; *s; s++) hash = hash * 33 + (unsigned char)*s;
	struct name **at = &names[hash % BUCKETS], *n;
	pthread_mutex_lock(&naming);
	for (n = *at; n && strcmp(n->text, text) != 0; n = n->next) {}
	if (!n) {
		n = calloc(1, sizeof *n + strlen(text) + 1);
		strcpy(n->text, text);
		n->next = *at, *at = n;
	}
	pthread_mutex_unlock(&naming);
	return n->text;
}

static struct name *name_of(sel s) { return (struct name *)(s - offsetof(struct name, text)); }

// fakemetal_sent returns how many messages with a selector were sent.
EXPORT long fakemetal_sent(const char *selector) {
	return __atomic_load_n(&name_of(intern(selector))->sent, __ATOMIC_RELAXED);
}

static class *classes;
int macos = 15;

void add_class(class *c) {
	struct method *lists[] = {c->methods, c->statics, c->newer, c->fourteen};
	for (int i = 0; i < 4; i++)
		for (struct method *m = lists[i]; m && m->name; m++) m->name = intern(m->name);
	c->next = classes, classes = c;
}

void add_methods(class *c, struct method *methods, struct method *statics) {
	struct method *lists[] = {methods, statics};
	struct method **ends[] = {c->more, c->more_statics};
	size_t rooms[] = {sizeof c->more / sizeof *c->more, sizeof c->more_statics / sizeof *c->more_statics};
	for (int i = 0; i < 2; i++) {
		if (!lists[i]) continue;
		for (struct method *m = lists[i]; m->name; m++) m->name = intern(m->name);
		size_t n = 0;
		while (n < rooms[i] && ends[i][n]) n++;
		if (n == rooms[i]) abort();
		ends[i][n] = lists[i];
	}
}

bool is_kind(object *o, class *k) {
	if (!o) return false;
	for (class *c = o->isa; c; c = c->super)
		if (c == k) return true;
	return false;
}

static void *in(struct method *m, sel s) {
	for (; m && m->name; m++)
		if (m->name == s) return m->code;
	return NULL;
}

// in_class returns a class's own code for a selector that every version of macOS has.
static void *in_class(class *c, sel s, bool statically) {
	void *code = statically ? NULL : in(c->added, s);
	if (!code) code = in(statically ? c->statics : c->methods, s);
	struct method **more = statically ? c->more_statics : c->more;
	size_t n = statically ? sizeof c->more_statics / sizeof *more : sizeof c->more / sizeof *more;
	for (size_t i = 0; !code && i < n && more[i]; i++) code = in(more[i], s);
	return code;
}

// find returns an object's code for a selector, NULL if there is none. newer: a later macOS would
// have the method.
static void *find(object *o, sel s, bool *newer) {
	bool is_class = o->isa == NULL;
	*newer = false;
	for (class *c = is_class ? (class *)o : o->isa; c; c = c->super) {
		void *code = in_class(c, s, is_class);
		int since = 0;
		if (!code && !is_class && (code = in(c->newer, s))) since = 15;
		if (!code && !is_class && (code = in(c->fourteen, s))) since = 14;
		if (code && macos < since) {
			*newer = true;
			return NULL;
		}
		if (code) return code;
	}
	return NULL;
}

bool responds(object *o, sel asked) {
	bool newer;
	return find(o, asked, &newer) != NULL;
}

static uintptr_t nothing(void) { return 0; }

// A freed object keeps its memory and gets this class, so that later uses are noticed.
static class freed = {.name = "an object that was freed"};

// method_of returns the code of a message. registers are its arguments: self, the selector, four more.
__attribute__((used)) static void *method_of(object *o, sel s, uintptr_t *registers) {
	if (o->isa == &freed) {
		fail("%s is sent to an object that was freed", s);
		return nothing;
	}
	bool dropped = false, again = false;
	__atomic_add_fetch(&name_of(s)->sent, 1, __ATOMIC_RELAXED);
	if (mishearing) mishear(o, &s, registers, &dropped, &again), registers[1] = (uintptr_t)s;
	if (dropped) return nothing;
	bool newer;
	void *code = find(o, s, &newer);
	if (newer) {
		fail("%s is sent to a %s: macOS %d does not have it", s, o->isa->name, macos);
		return nothing;
	}
	if (!code) {
		fail("%s does not understand %s", o->isa ? o->isa->name : ((class *)o)->name, s);
		return nothing;
	}
	if (again) twice(registers, s, code);
	return code;
}

// objc_msgSend asks method_of for the code and jumps there, with the registers as they were.
#if defined(__x86_64__)
__asm__(".globl objc_msgSend\n.type objc_msgSend,@function\nobjc_msgSend:\n"
	"test %rdi, %rdi\n je 1f\n"
	"push %rbp\n mov %rsp, %rbp\n push %r9\n push %r8\n push %rcx\n push %rdx\n push %rsi\n push %rdi\n"
	"mov %rsp, %rdx\n call method_of\n"
	"pop %rdi\n pop %rsi\n pop %rdx\n pop %rcx\n pop %r8\n pop %r9\n pop %rbp\n jmp *%rax\n"
	"1: xor %eax, %eax\n xorps %xmm0, %xmm0\n ret\n");
#elif defined(__aarch64__)
__asm__(".globl objc_msgSend\n.type objc_msgSend,@function\nobjc_msgSend:\n"
	"cbz x0, 1f\n"
	"stp x29, x30, [sp, #-80]!\n mov x29, sp\n stp x0, x1, [sp, #16]\n stp x2, x3, [sp, #32]\n stp x4, x5, [sp, #48]\n stp x6, x7, [sp, #64]\n"
	"add x2, sp, #16\n bl method_of\n mov x16, x0\n"
	"ldp x0, x1, [sp, #16]\n ldp x2, x3, [sp, #32]\n ldp x4, x5, [sp, #48]\n ldp x6, x7, [sp, #64]\n ldp x29, x30, [sp], #80\n br x16\n"
	"1: fmov d0, xzr\n ret\n");
#endif

EXPORT sel sel_registerName(const char *name) { return intern(name); }

EXPORT class *objc_getClass(const char *name) {
	for (class *c = classes; c; c = c->next)
		if (strcmp(c->name, name) == 0 && !c->protocol && c->since <= macos) return c;
	return NULL;
}

// The runtime's reflection, for libraries that replace methods.
EXPORT class *object_getClass(object *o) { return o ? o->isa : NULL; }

EXPORT class *class_getSuperclass(class *c) { return c ? c->super : NULL; }

// own_method returns the method that a class itself has.
static struct method *own_method(class *c, sel s) {
	struct method *lists[4 + sizeof c->more / sizeof *c->more] = {c->added, c->methods, macos >= 14 ? c->fourteen : NULL, macos >= 15 ? c->newer : NULL};
	memcpy(lists + 4, c->more, sizeof c->more);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		for (struct method *m = lists[i]; m && m->name; m++)
			if (m->name == s) return m;
	return NULL;
}

EXPORT struct method *class_getInstanceMethod(class *c, sel s) {
	struct method *m = NULL;
	for (; c && !m; c = c->super) m = own_method(c, s);
	return m;
}

EXPORT void *method_getImplementation(struct method *m) { return m->code; }
EXPORT const char *method_getTypeEncoding(struct method *m) { return m ? "v@:" : NULL; } // nobody looks into it

// class_addMethod gives a class a method that it does not have itself, in place of an inherited one.
EXPORT bool class_addMethod(class *c, sel s, void *code, const char *types) {
	enum { MOST = 32 };
	size_t n = 0;
	if (!types || own_method(c, s)) return false;
	if (!c->added) c->added = calloc(MOST + 1, sizeof *c->added);
	while (c->added[n].name) n++;
	if (n == MOST) abort();
	c->added[n].code = code;
	__atomic_store_n(&c->added[n].name, s, __ATOMIC_RELEASE);
	return true;
}

EXPORT void *method_setImplementation(struct method *m, void *code) {
	void *was = m->code;
	m->code = code;
	return was;
}

static class *any_class(const char *name) {
	for (class *c = classes; c; c = c->next)
		if (strcmp(c->name, name) == 0) return c;
	return NULL;
}

// --- objects ---

object *new_object(class *c) {
	object *o = calloc(1, c->size);
	o->isa = c, o->refs = 1;
	for (class *k = c; k; k = k->super) {
		__atomic_add_fetch(&k->live, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&k->made, 1, __ATOMIC_SEQ_CST);
	}
	return o;
}

object *retain(object *o) {
	if (!o || !o->isa) return o;
	if (o->isa == &freed) fail("an object that was freed is retained");
	__atomic_add_fetch(&o->refs, 1, __ATOMIC_SEQ_CST);
	return o;
}

void release(object *o) {
	if (!o || !o->isa) return;
	if (o->isa == &freed) {
		fail("an object that was freed is released");
		return;
	}
	if (__atomic_sub_fetch(&o->refs, 1, __ATOMIC_SEQ_CST) > 0) return;
	class *c = o->isa;
	for (class *k = c; k; k = k->super)
		if (k->dealloc) k->dealloc(o);
	o->isa = &freed;
	for (class *k = c; k; k = k->super) __atomic_sub_fetch(&k->live, 1, __ATOMIC_SEQ_CST);
}

// misheard applies an alteration to a C function that counts as a message: it returns how often to do it.
static int misheard(object *o, const char *function) {
	bool dropped = false, again = false;
	sel s = NULL;
	if (mishearing && o && o->isa != &freed) s = intern(function), mishear(o, &s, NULL, &dropped, &again);
	return dropped ? 0 : again ? 2 : 1;
}
EXPORT object *objc_retain(object *o) {
	for (int n = misheard(o, "objc_retain"); n > 0; n--) retain(o);
	return o;
}
EXPORT void objc_release(object *o) {
	for (int n = misheard(o, "objc_release"); n > 0; n--) release(o);
}

// fakemetal_live returns the number of live objects of a class and its subclasses, −1 if there is no
// such class.
EXPORT long fakemetal_live(const char *name) {
	class *c = any_class(name);
	return c ? __atomic_load_n(&c->live, __ATOMIC_SEQ_CST) : -1;
}

// fakemetal_made returns the number of such objects that were ever made.
EXPORT long fakemetal_made(const char *name) {
	class *c = any_class(name);
	return c ? __atomic_load_n(&c->made, __ATOMIC_SEQ_CST) : -1;
}

// fakemetal_class returns the name of class i, NULL after the last.
EXPORT const char *fakemetal_class(long i) {
	for (class *c = classes; c; c = c->next)
		if (i-- == 0) return c->name;
	return NULL;
}

// fakemetal_knows returns whether objects of a class, or the class itself, understand a selector.
EXPORT bool fakemetal_knows(const char *class_name, const char *selector, bool statically) {
	class *c = any_class(class_name);
	sel s = intern(selector);
	for (class *k = c; k; k = k->super)
		if (in_class(k, s, statically) || (!statically && (in(k->newer, s) || in(k->fourteen, s)))) return true;
	// A method of a class may be defined by its subclasses only: setLabel: of MTLResource.
	for (class *k = classes; c && k; k = k->next)
		for (class *up = k->super; up; up = up->super)
			if (up == c && in(k->methods, s)) return true;
	return false;
}

bool is_freed(object *o) { return o && o->isa == &freed; }

bool given(object *o, class *k, sel method) {
	if (is_kind(o, k)) return true;
	if (!o) fail("%s is given nil for a %s", method, k->name);
	else fail("%s is given %s for a %s", method, o->isa ? o->isa->name : "a class", k->name);
	return false;
}

struct pool { struct pool *below; long n, room; object **objects; };
static __thread struct pool *pools;

object *autorelease(object *o) {
	if (!o) return o;
	struct pool *p = pools;
	if (!p) {
		fail("a %s is autoreleased on a thread without a pool", o->isa->name);
		return o;
	}
	if (p->n == p->room) {
		p->room = 2 * p->room + 16;
		p->objects = realloc(p->objects, (size_t)p->room * sizeof *p->objects);
	}
	p->objects[p->n++] = o;
	return o;
}

EXPORT void *objc_autoreleasePoolPush(void) {
	struct pool *p = calloc(1, sizeof *p);
	p->below = pools;
	return pools = p;
}

EXPORT void objc_autoreleasePoolPop(void *which) {
	if (!which || pools != which) {
		fail("a pool is popped that is not this thread's uppermost");
		return;
	}
	struct pool *p = pools;
	// The pool stays in place while its objects are released, since these may autorelease others.
	for (long i = 0; i < p->n; i++) release(p->objects[i]);
	pools = p->below;
	free(p->objects);
	free(p);
}
