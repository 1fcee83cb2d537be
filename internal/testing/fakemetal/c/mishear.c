// A test may have one message altered before it arrives, which looks to Metal like a mistake of the
// sender. Tests of the sender must notice it by a noted mistake, a result, an error or a leak.
#include "metal.h"

#include <stdlib.h>
#include <string.h>

enum how { NOTHING, DROP, ADD, SET, BEFORE, SIZE, BYTES, OMIT, TWICE, RENAME };

static struct {
	const char *class; // of the receiver, or a superclass; NULL: any
	sel selector;      // NULL: no message is altered
	long nth;          // which of these messages, from 1; 0: all
	enum how how;
	long arg;          // the argument, from 0, without self and the selector
	long at, by;
	sel as;
	long seen, altered;
	struct { uintptr_t v[6]; bool some; } last, older; // arguments of such messages before: of the last, and of the last with another arg
} wrong;

// counted has the numbers of messages by class and selector, while messages are counted.
static struct counted { class *c; sel s; long n; } counted[1024];
static size_t n_counted;
static bool counting;
bool mishearing; // messages are to be altered or counted
static pthread_mutex_t hearing = PTHREAD_MUTEX_INITIALIZER;

void hear_well(void) {
	pthread_mutex_lock(&hearing);
	memset(&wrong, 0, sizeof wrong);
	mishearing = counting = false;
	pthread_mutex_unlock(&hearing);
}

EXPORT void fakemetal_mishear(const char *class_name, const char *selector, long nth, long how, long arg, long at, long by, const char *as) {
	hear_well();
	pthread_mutex_lock(&hearing);
	wrong.class = class_name[0] ? intern(class_name) : NULL, wrong.selector = intern(selector), wrong.nth = nth;
	wrong.how = (enum how)how, wrong.arg = arg, wrong.at = at, wrong.by = by, wrong.as = as[0] ? intern(as) : NULL;
	mishearing = true;
	pthread_mutex_unlock(&hearing);
}

// fakemetal_misheard returns how many messages were altered.
EXPORT long fakemetal_misheard(void) {
	pthread_mutex_lock(&hearing);
	long n = wrong.altered;
	pthread_mutex_unlock(&hearing);
	return n;
}

// fakemetal_count begins to count messages by class and selector. fakemetal_counted_class and
// fakemetal_counted_selector return those of count i, NULL after the last, fakemetal_counted the count.
EXPORT void fakemetal_count(void) {
	pthread_mutex_lock(&hearing);
	n_counted = 0, counting = mishearing = true;
	pthread_mutex_unlock(&hearing);
}
EXPORT const char *fakemetal_counted_class(long i) { return (size_t)i < n_counted ? counted[i].c->name : NULL; }
EXPORT const char *fakemetal_counted_selector(long i) { return (size_t)i < n_counted ? counted[i].s : NULL; }
EXPORT long fakemetal_counted(long i) { return (size_t)i < n_counted ? counted[i].n : 0; }

static void count(class *c, sel s) {
	size_t i = 0;
	while (i < n_counted && (counted[i].c != c || counted[i].s != s)) i++;
	if (i == sizeof counted / sizeof *counted) return;
	if (i == n_counted) counted[n_counted++] = (struct counted){c, s, 0};
	counted[i].n++;
}

// copy_of copies bytes that an argument points to. The copy lives until this thread has made 8 more.
static void *copy_of(const void *from, size_t n) {
	static __thread char *copies[8];
	static __thread int next;
	char **to = &copies[next++ % 8];
	free(*to);
	*to = malloc(n + 16);
	return memcpy(*to, from, n);
}

static bool is_named(class *c, const char *name) {
	for (; c; c = c->super)
		if (strcmp(c->name, name) == 0) return true;
	return false;
}

// alter changes a message and returns whether it has. v: its arguments without self and the selector.
static bool alter(uintptr_t *v, sel *s, bool *dropped, bool *again) {
	if (!v && wrong.how != DROP && wrong.how != TWICE) return false;
	uintptr_t *a = v ? v + wrong.arg : NULL;
	switch (wrong.how) {
	case NOTHING: return false;
	case DROP: return *dropped = true;
	case ADD: *a += (uintptr_t)wrong.by; return wrong.by != 0;
	case SET:
		if (*a == (uintptr_t)wrong.by) return false;
		*a = (uintptr_t)wrong.by;
		return true;
	case BEFORE: {
		uintptr_t other = 0;
		bool some = false;
		if (wrong.last.some && wrong.last.v[wrong.arg] != *a) other = wrong.last.v[wrong.arg], some = true;
		else if (wrong.older.some && wrong.older.v[wrong.arg] != *a) other = wrong.older.v[wrong.arg], some = true;
		if (some) *a = other;
		return some;
	}
	case SIZE: {
		if (!*a) return false;
		uint64_t *size = copy_of((void *)*a, 24);
		size[wrong.at] += (uint64_t)wrong.by;
		*a = (uintptr_t)size;
		return true;
	}
	case BYTES: {
		size_t n = strstr(*s, "ength:") ? a[1] : 8; // setBytes:length:, or a constant's value
		if (!*a || (size_t)wrong.at >= n || n > 4096) return false;
		char *bytes = copy_of((void *)*a, n);
		bytes[wrong.at] = (char)(bytes[wrong.at] + wrong.by);
		*a = (uintptr_t)bytes;
		return true;
	}
	case OMIT: {
		size_t n = a[1];
		if (!*a || (size_t)wrong.at >= n) return false;
		uintptr_t *list = copy_of((void *)*a, n * sizeof *list);
		memmove(list + wrong.at, list + wrong.at + 1, (n - 1 - (size_t)wrong.at) * sizeof *list);
		*a = (uintptr_t)list, a[1] = n - 1;
		if (n == 1) *dropped = true;
		return true;
	}
	case TWICE: return *again = true;
	case RENAME: *s = wrong.as; return true;
	}
	return false;
}

// mishear counts a message and, if it is the one to alter, changes its selector or its arguments, which
// follow self and the selector in registers. dropped: it shall not arrive. again: it shall arrive twice.
void mishear(object *o, sel *s, uintptr_t *registers, bool *dropped, bool *again) {
	*dropped = *again = false;
	pthread_mutex_lock(&hearing);
	class *c = o->isa ? o->isa : (class *)o;
	if (counting) count(c, *s);
	if (wrong.selector == *s && (!wrong.class || is_named(c, wrong.class))) {
		uintptr_t *v = registers ? registers + 2 : NULL, was[6] = {0};
		if (v) memcpy(was, v, 4 * sizeof *was);
		wrong.seen++;
		if ((wrong.nth == 0 || wrong.seen == wrong.nth) && alter(v, s, dropped, again)) wrong.altered++;
		if (wrong.last.some && wrong.last.v[wrong.arg] != was[wrong.arg]) wrong.older = wrong.last;
		memcpy(wrong.last.v, was, sizeof was);
		wrong.last.some = true;
	}
	pthread_mutex_unlock(&hearing);
}

// twice sends a message the first of two times. MTLSize arguments are copied, since the called function may
// change them.
void twice(uintptr_t *r, sel s, void *code) {
	uintptr_t v[4];
	memcpy(v, r + 2, sizeof v);
	if (strstr(s, "threadsPerThreadgroup:")) {
		bool indirect = strstr(s, "Indirect") != NULL;
		if (!indirect) v[0] = (uintptr_t)copy_of((void *)v[0], 24), v[1] = (uintptr_t)copy_of((void *)v[1], 24);
		else v[2] = (uintptr_t)copy_of((void *)v[2], 24);
	}
	((uintptr_t(*)(uintptr_t, sel, uintptr_t, uintptr_t, uintptr_t, uintptr_t))code)(r[0], s, v[0], v[1], v[2], v[3]);
}
