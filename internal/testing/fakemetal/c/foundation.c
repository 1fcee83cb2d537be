#include "objc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- NSObject ---

static object *object_alloc(class *c, sel s) { (void)s; return new_object(c); }
static object *object_init(SELF) { UNUSED; return self; }
static object *object_retain(SELF) { UNUSED; return retain(self); }

// Only the low 8 bits of a BOOL are defined: the others are set to something, to find callers that use them.
static uintptr_t object_responds(SELF, sel asked) { UNUSED; return 0xabcdef00u | responds(self, asked); }

class NSObject = {.name = "NSObject", .size = sizeof(object),
	.methods = (struct method[]){{"init", object_init}, {"retain", object_retain}, {"respondsToSelector:", object_responds}, {0}},
	.statics = (struct method[]){{"alloc", object_alloc}, {0}}};

// --- NSString, NSURL ---

static void string_dealloc(object *o) { free(((struct string *)o)->text); }

object *string(const char *text) {
	struct string *o = (struct string *)new_object(&NSString);
	o->text = strdup(text);
	return autorelease(&o->base);
}
const char *text_of(object *o) {
	if (!o) return "";
	if (!is_kind(o, &NSString) && !is_kind(o, &NSURL)) {
		fail("a %s is given for a text", o->isa ? o->isa->name : "class");
		return "";
	}
	return ((struct string *)o)->text;
}
// is_utf8 returns whether bytes are UTF-8; for others NSString returns nil.
static bool is_utf8(const char *text) {
	const unsigned char *t = (const unsigned char *)text;
	while (*t) {
		int more = *t < 0x80 ? 0 : *t >> 5 == 6 ? 1 : *t >> 4 == 14 ? 2 : *t >> 3 == 30 ? 3 : -1;
		uint32_t v = more <= 0 ? *t : *t & (0x3f >> more);
		if (more < 0) return false;
		t++;
		for (int i = 0; i < more; i++, t++) {
			if (*t >> 6 != 2) return false;
			v = v << 6 | (*t & 0x3f);
		}
		static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
		if (v < least[more] || v > 0x10ffff || v >> 11 == 0x1b) return false;
	}
	return true;
}

static object *string_with(class *c, sel s, const char *text, uintptr_t encoding) {
	(void)c, (void)s;
	if (encoding != 4 && encoding != 1) { // UTF-8, or ASCII, which is a part of it
		fail("the encoding %lu of a string", (unsigned long)encoding);
		return NULL;
	}
	if (!is_utf8(text)) return NULL;
	return string(text);
}
static const char *string_text(SELF) { UNUSED; return text_of(self); }

class NSString = {.name = "NSString", .super = &NSObject, .size = sizeof(struct string), .dealloc = string_dealloc,
	.methods = (struct method[]){{"UTF8String", string_text}, {0}},
	.statics = (struct method[]){{"stringWithCString:encoding:", string_with}, {0}}};

object *new_url(const char *path) {
	struct string *o = (struct string *)new_object(&NSURL);
	o->text = strdup(path);
	return &o->base;
}
static object *url_with(class *c, sel s, object *path) {
	(void)c;
	if (!given(path, &NSString, s)) return NULL;
	return autorelease(new_url(text_of(path)));
}

class NSURL = {.name = "NSURL", .super = &NSObject, .size = sizeof(struct string), .dealloc = string_dealloc,
	.statics = (struct method[]){{"fileURLWithPath:", url_with}, {0}}};

// --- NSArray ---

static void array_dealloc(object *o) {
	struct array *a = (struct array *)o;
	for (size_t i = 0; i < a->n; i++) release(a->elements[i]);
	free(a->elements);
}
object *new_array(object **elements, size_t n) {
	struct array *a = (struct array *)new_object(&NSArray);
	a->n = n, a->elements = malloc(n * sizeof *elements + 1);
	for (size_t i = 0; i < n; i++) a->elements[i] = retain(elements[i]);
	return &a->base;
}
object *array(object **elements, size_t n) { return autorelease(new_array(elements, n)); }
static object *array_with(class *c, sel s, object **elements, uintptr_t n) { (void)c, (void)s; return array(elements, n); }
static uintptr_t array_count(SELF) { UNUSED; return ((struct array *)self)->n; }
static object *array_at(SELF, uintptr_t i) {
	UNUSED;
	struct array *a = (struct array *)self;
	if (i < a->n) return a->elements[i];
	fail("element %lu of an array of %zu", (unsigned long)i, a->n);
	return NULL;
}

class NSArray = {.name = "NSArray", .super = &NSObject, .size = sizeof(struct array), .dealloc = array_dealloc,
	.methods = (struct method[]){{"count", array_count}, {"objectAtIndex:", array_at}, {0}},
	.statics = (struct method[]){{"arrayWithObjects:count:", array_with}, {0}}};

// --- NSData ---

struct data { object base; size_t n; void *bytes; };
static void data_dealloc(object *o) { free(((struct data *)o)->bytes); }
object *data(const void *bytes, size_t n) {
	struct data *d = (struct data *)new_object(&NSData);
	d->n = n, d->bytes = malloc(n + 1);
	memcpy(d->bytes, bytes, n);
	return autorelease(&d->base);
}
static void *data_bytes(SELF) { UNUSED; return ((struct data *)self)->bytes; }
static uintptr_t data_length(SELF) { UNUSED; return ((struct data *)self)->n; }

class NSData = {.name = "NSData", .super = &NSObject, .size = sizeof(struct data), .dealloc = data_dealloc,
	.methods = (struct method[]){{"bytes", data_bytes}, {"length", data_length}, {0}}};

// --- NSError ---

struct error { object base; char *domain, *description; long code; };
static void error_dealloc(object *o) { free(((struct error *)o)->domain), free(((struct error *)o)->description); }
object *new_error(const char *domain, long code, const char *description) {
	struct error *e = (struct error *)new_object(&NSError);
	e->domain = strdup(domain), e->description = strdup(description), e->code = code;
	return &e->base;
}
object *error(const char *domain, long code, const char *description) { return autorelease(new_error(domain, code, description)); }
static object *error_domain(SELF) { UNUSED; return string(((struct error *)self)->domain); }
static object *error_description(SELF) { UNUSED; return string(((struct error *)self)->description); }
static long error_code(SELF) { UNUSED; return ((struct error *)self)->code; }

class NSError = {.name = "NSError", .super = &NSObject, .size = sizeof(struct error), .dealloc = error_dealloc,
	.methods = (struct method[]){{"domain", error_domain}, {"code", error_code}, {"localizedDescription", error_description}, {0}}};

// --- NSProcessInfo ---

static class process_info_class;
static object *process_info(class *c, sel s) {
	(void)s;
	static object *one;
	if (!one) one = new_object(c);
	return one;
}
static object *system_version(SELF) {
	UNUSED;
	char text[64];
	snprintf(text, sizeof text, "Version %d.0 (software Metal)", macos);
	return string(text);
}
static class process_info_class = {.name = "NSProcessInfo", .super = &NSObject, .size = sizeof(object),
	.methods = (struct method[]){{"operatingSystemVersionString", system_version}, {0}},
	.statics = (struct method[]){{"processInfo", process_info}, {0}}};

__attribute__((constructor)) static void add(void) {
	class *all[] = {&NSObject, &NSString, &NSURL, &NSArray, &NSData, &NSError, &process_info_class};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
}

uintptr_t array_length(object *a) { return array_count(a, NULL); }
object *array_element(object *a, uintptr_t i) { return array_at(a, NULL, i); }
