// Foundation's mutable collections, numbers and locks, and what compiled Objective-C asks of the classes of foundation.c.
#define _GNU_SOURCE
#include "metal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- NSObject ---

static object *object_new(class *c, sel s) {
	(void)s;
	object *o = new_object(c);
	return ((object * (*)(object *, sel))objc_msgSend)(o, intern("init"));
}

// --- NSString ---

static object *string_of(class *c, sel s, const char *text) { (void)c, (void)s; return string(text); }
static object *string_init(SELF, const char *bytes, uintptr_t n, uintptr_t encoding) {
	if (encoding != 4) fail("%s: the encoding %lu of a string", s, (unsigned long)encoding);
	struct string *t = (struct string *)self;
	free(t->text);
	t->text = strndup(bytes, n);
	return self;
}
static uintptr_t string_length(SELF) { UNUSED; return strlen(text_of(self)); } // of ASCII
static uintptr_t string_contains(SELF, object *part) { UNUSED; return strstr(text_of(self), text_of(part)) != NULL; }
static uintptr_t string_equals(SELF, object *other) { UNUSED; return is_kind(other, &NSString) && strcmp(text_of(self), text_of(other)) == 0; }

// --- NSNumber ---

struct number { object base; long value; };
static class NSNumber;
static object *number_of(class *c, sel s, int value) {
	(void)s;
	struct number *n = (struct number *)new_object(c);
	n->value = value;
	return autorelease(&n->base);
}
static int int_of(SELF) { UNUSED; return (int)((struct number *)self)->value; }
static class NSNumber = {.name = "NSNumber", .super = &NSObject, .size = sizeof(struct number),
	.methods = (struct method[]){{"intValue", int_of}, {0}},
	.statics = (struct method[]){{"numberWithInt:", number_of}, {0}}};

// same returns whether two objects are equal: strings by their text.
static bool same(object *a, object *b) {
	if (a == b) return true;
	return is_kind(a, &NSString) && is_kind(b, &NSString) && strcmp(text_of(a), text_of(b)) == 0;
}

// --- NSArray, NSMutableArray ---

struct enumeration { unsigned long state; object **items; unsigned long *changes; unsigned long extra[5]; };
static uintptr_t enumerate(SELF, struct enumeration *e, object **room, uintptr_t n) {
	UNUSED, (void)room, (void)n;
	struct array *a = (struct array *)self;
	if (e->state) return 0;
	e->state = 1, e->items = a->elements, e->changes = &e->extra[0]; // nobody changes an array meanwhile
	return a->n;
}
static object *array_sub(SELF, uintptr_t i) {
	struct array *a = (struct array *)self;
	if (i < a->n) return a->elements[i];
	fail("%s: element %lu of an array of %zu", s, (unsigned long)i, a->n);
	return NULL;
}
static class NSMutableArray;
static void array_add(SELF, object *o) {
	struct array *a = (struct array *)self;
	if (!o) {
		fail("%s is given nil", s);
		return;
	}
	a->elements = realloc(a->elements, (a->n + 1) * sizeof *a->elements);
	a->elements[a->n++] = retain(o);
}
static void array_remove(SELF, object *o) {
	UNUSED;
	struct array *a = (struct array *)self;
	size_t n = 0;
	for (size_t i = 0; i < a->n; i++)
		if (same(a->elements[i], o)) release(a->elements[i]);
		else a->elements[n++] = a->elements[i];
	a->n = n;
}
static void array_clear(SELF) {
	UNUSED;
	struct array *a = (struct array *)self;
	while (a->n > 0) release(a->elements[--a->n]);
}
static class NSMutableArray = {.name = "NSMutableArray", .super = &NSArray, .size = sizeof(struct array),
	.methods = (struct method[]){{"addObject:", array_add}, {"removeObject:", array_remove}, {"removeAllObjects", array_clear}, {0}}};

// --- NSDictionary, NSMutableDictionary ---

struct dictionary { object base; size_t n; object **keys, **values; };
static void dictionary_dealloc(object *o) {
	struct dictionary *d = (struct dictionary *)o;
	for (size_t i = 0; i < d->n; i++) release(d->keys[i]), release(d->values[i]);
	free(d->keys), free(d->values);
}
static object *dictionary(class *c, sel s) { (void)s; return autorelease(new_object(c)); }
static object *value_of(SELF, object *key) {
	UNUSED;
	struct dictionary *d = (struct dictionary *)self;
	for (size_t i = 0; i < d->n; i++)
		if (same(d->keys[i], key)) return d->values[i];
	return NULL;
}
static object *all_keys(SELF) { UNUSED; return array(((struct dictionary *)self)->keys, ((struct dictionary *)self)->n); }
static uintptr_t pairs(SELF) { UNUSED; return ((struct dictionary *)self)->n; }
static void set_value_of(SELF, object *value, object *key) {
	struct dictionary *d = (struct dictionary *)self;
	if (!value || !key) {
		fail("%s is given nil", s);
		return;
	}
	for (size_t i = 0; i < d->n; i++)
		if (same(d->keys[i], key)) {
			retain(value);
			release(d->values[i]);
			d->values[i] = value;
			return;
		}
	d->keys = realloc(d->keys, (d->n + 1) * sizeof *d->keys), d->values = realloc(d->values, (d->n + 1) * sizeof *d->values);
	d->keys[d->n] = retain(key), d->values[d->n++] = retain(value);
}
static class NSDictionary = {.name = "NSDictionary", .super = &NSObject, .size = sizeof(struct dictionary), .dealloc = dictionary_dealloc,
	.methods = (struct method[]){{"objectForKey:", value_of}, {"objectForKeyedSubscript:", value_of}, {"allKeys", all_keys}, {"count", pairs}, {0}},
	.statics = (struct method[]){{"dictionary", dictionary}, {0}}};
static class NSMutableDictionary = {.name = "NSMutableDictionary", .super = &NSDictionary, .size = sizeof(struct dictionary),
	.methods = (struct method[]){{"setObject:forKey:", set_value_of}, {"setObject:forKeyedSubscript:", set_value_of}, {0}}};

static int by_text(const void *a, const void *b) { return strcmp(text_of(*(object **)a), text_of(*(object **)b)); }
char *with_macros(object *o, const char *source) {
	struct dictionary *d = (struct dictionary *)o;
	size_t n = strlen(source) + 1;
	object **keys = malloc(d->n * sizeof *keys + 1);
	for (size_t i = 0; i < d->n; i++) keys[i] = d->keys[i], n += strlen(text_of(d->keys[i])) + strlen(text_of(d->values[i])) + 10;
	qsort(keys, d->n, sizeof *keys, by_text);
	char *text = malloc(n), *at = text;
	for (size_t i = 0; i < d->n; i++) at += sprintf(at, "#define %s %s\n", text_of(keys[i]), text_of(value_of(o, NULL, keys[i])));
	strcpy(at, source);
	free(keys);
	return text;
}

// --- NSLock ---

struct lock { object base; pthread_mutex_t mutex; };
static class NSLock;
static object *lock_init(SELF) {
	UNUSED;
	pthread_mutex_init(&((struct lock *)self)->mutex, NULL);
	return self;
}
static void lock(SELF) { UNUSED; pthread_mutex_lock(&((struct lock *)self)->mutex); }
static void unlock(SELF) { UNUSED; pthread_mutex_unlock(&((struct lock *)self)->mutex); }
static class NSLock = {.name = "NSLock", .super = &NSObject, .size = sizeof(struct lock),
	.methods = (struct method[]){{"init", lock_init}, {"lock", lock}, {"unlock", unlock}, {0}}};

static object *error_text(SELF) { UNUSED; return ((object * (*)(object *, sel))objc_msgSend)(self, intern("localizedDescription")); }

__attribute__((constructor)) static void add(void) {
	class *all[] = {&NSNumber, &NSMutableArray, &NSDictionary, &NSMutableDictionary, &NSLock};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
	static struct method classes[] = {{"new", object_new}, {0}};
	static struct method strings[] = {{"initWithBytes:length:encoding:", string_init}, {"length", string_length}, {"containsString:", string_contains}, {"isEqualToString:", string_equals}, {0}};
	static struct method texts[] = {{"stringWithUTF8String:", string_of}, {0}}, errors[] = {{"description", error_text}, {0}};
	static struct method arrays[] = {{"objectAtIndexedSubscript:", array_sub}, {"countByEnumeratingWithState:objects:count:", enumerate}, {0}};
	add_methods(&NSObject, NULL, classes);
	add_methods(&NSString, strings, texts);
	add_methods(&NSError, errors, NULL);
	add_methods(&NSArray, arrays, NULL);
}
