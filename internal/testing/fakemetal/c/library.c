// Libraries, functions and values of function constants.
#include "metal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char domain[] = "MTLLibraryErrorDomain";
enum { COMPILE_FAILURE = 3, FUNCTION_NOT_FOUND = 5, FILE_NOT_FOUND = 6 };

// --- MTLCompileOptions ---

struct compile_options { object base; bool fast, math_set, precise; uintptr_t math, language; object *macros; };
static class MTLCompileOptions;
static object *options_init(SELF) {
	UNUSED;
	((struct compile_options *)self)->fast = true;
	return self;
}
// setFastMathEnabled: also chooses fast or precise functions.
static void set_fast(SELF, uintptr_t on) {
	UNUSED;
	struct compile_options *o = (struct compile_options *)self;
	o->fast = on & 0xff, o->precise = !o->fast;
}
static void set_math(SELF, uintptr_t mode) {
	struct compile_options *o = (struct compile_options *)self;
	if (mode > 2) fail("%s: there is no mode %lu", s, (unsigned long)mode);
	o->math = mode, o->math_set = true;
}
static void set_functions(SELF, uintptr_t which) {
	if (which > 1) fail("%s: there are no functions %lu", s, (unsigned long)which);
	((struct compile_options *)self)->precise = which == 1;
}
static void set_language(SELF, uintptr_t v) {
	uintptr_t major = v >> 16, minor = v & 0xffff;
	bool known = (major == 1 && minor <= 2) || (major == 2 && minor <= 4) || (major == 3 && minor <= (macos < 15 ? 1 : 2));
	if (!known) fail("%s: macOS %d has no version %lu.%lu", s, macos, (unsigned long)major, (unsigned long)minor);
	((struct compile_options *)self)->language = v;
}
static void set_logging(SELF, uintptr_t on) { UNUSED; (void)on; } // kernels here log nothing
static uintptr_t language(SELF) { UNUSED; return ((struct compile_options *)self)->language; }
static void set_macros(SELF, object *dictionary) {
	UNUSED;
	struct compile_options *o = (struct compile_options *)self;
	retain(dictionary);
	release(o->macros);
	o->macros = dictionary;
}
static object *macros_of(SELF) { UNUSED; return ((struct compile_options *)self)->macros; }
static void options_dealloc(object *o) { release(((struct compile_options *)o)->macros); }
static class MTLCompileOptions = {.name = "MTLCompileOptions", .super = &NSObject, .size = sizeof(struct compile_options), .dealloc = options_dealloc,
	.methods = (struct method[]){{"init", options_init}, {"setPreprocessorMacros:", set_macros}, {"preprocessorMacros", macros_of}, {"setFastMathEnabled:", set_fast}, {"setLanguageVersion:", set_language}, {"languageVersion", language}, {0}},
	.newer = (struct method[]){{"setMathMode:", set_math}, {"setEnableLogging:", set_logging}, {"setMathFloatingPointFunctions:", set_functions}, {0}}};

// --- MTLLibrary ---

struct library { object base; uint32_t number; object *names; };
static void library_dealloc(object *o) { release(((struct library *)o)->names); }

// library sends a request for a library and makes it from the answer: a number, and the functions' names.
static object *library(enum request what, struct message *m, long code, object **e) {
	struct answer a;
	ask(what, m, &a);
	if (a.status != 0) {
		fail_with(e, domain, code, a.bytes);
		free(a.bytes);
		return NULL;
	}
	struct library *l = (struct library *)new_object(&MTLLibrary);
	l->number = get32(&a);
	uint32_t n = get32(&a);
	object **names = calloc(n + 1, sizeof *names);
	for (uint32_t i = 0; i < n; i++) names[i] = string(get_text(&a));
	l->names = new_array(names, n);
	free(names);
	free(a.bytes);
	return &l->base;
}

// unusable returns whether making a library fails, by a fault or since the device is lost.
static bool unusable(object **e) {
	const struct fault *f = faulty(COMPILATION);
	if (f) fail_with(e, domain, f->code ? f->code : COMPILE_FAILURE, f->text[0] ? f->text : "the compiler has ended without a word");
	else if (lost) fail_with(e, domain, 2, "the device is lost");
	return f || lost;
}

object *library_with_source(SELF, object *text, object *how, object **e) {
	(void)self;
	if (!given(text, &NSString, s) || (how && !given(how, &MTLCompileOptions, s)) || unusable(e)) return NULL;
	struct compile_options *o = (struct compile_options *)how;
	struct message m = {0};
	put32(&m, o ? o->fast : 1);
	put32(&m, o && o->math_set ? (uint32_t)o->math : ~0u);
	put32(&m, o && o->precise);
	put32(&m, o ? (uint32_t)o->language : 0);
	char *defined = o && o->macros ? with_macros(o->macros, text_of(text)) : NULL;
	put_text(&m, defined ? defined : text_of(text));
	free(defined);
	return library(ASK_SOURCE, &m, COMPILE_FAILURE, e);
}

object *library_with_url(SELF, object *url, object **e) {
	(void)self;
	if (!given(url, &NSURL, s) || unusable(e)) return NULL;
	struct message m = {0};
	put_text(&m, text_of(url));
	return library(ASK_OPEN, &m, FILE_NOT_FOUND, e);
}

static object *function_names(SELF) { UNUSED; return autorelease(retain(((struct library *)self)->names)); }

// --- MTLFunctionConstantValues ---

struct values { object base; struct constant *at; size_t n; };
extern class MTLFunctionConstantValues;
static void values_dealloc(object *o) { free(((struct values *)o)->at); }

static size_t bytes_of(uintptr_t type) {
	switch (type) {
	case 45: case 49: case 53: return 1;          // char, uchar, bool
	case 16: case 37: case 41: case 121: return 2; // half, short, ushort, bfloat
	case 3: case 29: case 33: return 4;            // float, int, uint
	case 81: case 85: return 8;                    // long, ulong
	}
	return 0;
}

static void set_constant(SELF, const void *value, uintptr_t type, uintptr_t index) {
	struct values *v = (struct values *)self;
	size_t size = bytes_of(type);
	if (!size || !value || index > 65535) {
		fail("%s: a value of type %lu at index %lu", s, (unsigned long)type, (unsigned long)index);
		return;
	}
	struct constant c = {.index = (uint32_t)index, .type = (uint32_t)type};
	memcpy(&c.bits, value, size);
	for (size_t i = 0; i < v->n; i++)
		if (v->at[i].index == index) {
			v->at[i] = c;
			return;
		}
	v->at = realloc(v->at, (v->n + 1) * sizeof *v->at);
	v->at[v->n++] = c;
}

class MTLFunctionConstantValues = {.name = "MTLFunctionConstantValues", .super = &NSObject, .size = sizeof(struct values), .dealloc = values_dealloc,
	.methods = (struct method[]){{"setConstantValue:type:atIndex:", set_constant}, {0}}};

// --- MTLFunction ---

static void function_dealloc(object *o) {
	struct function *f = (struct function *)o;
	release(f->library), free(f->name), free(f->constants);
}

object *new_function(SELF, object *name, object *values, object **e) {
	struct library *l = (struct library *)self;
	if (!given(name, &NSString, s) || (values && !given(values, &MTLFunctionConstantValues, s))) return NULL;
	struct message m = {0};
	put32(&m, l->number);
	put_text(&m, text_of(name));
	struct answer a;
	ask(ASK_FUNCTION, &m, &a);
	if (a.status != 0) {
		fail_with(e, domain, FUNCTION_NOT_FOUND, a.bytes);
		free(a.bytes);
		return NULL;
	}
	uint32_t n = get32(&a);
	struct constant *constants = calloc(n + 1, sizeof *constants);
	char text[256] = "";
	for (uint32_t i = 0; i < n; i++) {
		struct constant *c = &constants[i];
		c->index = get32(&a), c->type = get32(&a);
		const char *called = get_text(&a);
		struct values *v = (struct values *)values;
		for (size_t k = 0; v && k < v->n; k++)
			if (v->at[k].index == c->index) {
				c->given = true, c->bits = v->at[k].bits;
				if (v->at[k].type != c->type) snprintf(text, sizeof text, "function constant %s (%u) has the type %u, its value %u", called, c->index, c->type, v->at[k].type);
			}
		if (!c->given) snprintf(text, sizeof text, "function constant %s (%u) of %s has no value", called, c->index, text_of(name));
	}
	free(a.bytes);
	if (text[0]) {
		fail_with(e, domain, COMPILE_FAILURE, text);
		free(constants);
		return NULL;
	}
	struct function *f = (struct function *)new_object(&MTLFunction);
	f->library = retain(self), f->number = l->number, f->name = strdup(text_of(name)), f->constants = constants, f->n = n;
	return &f->base;
}

class MTLFunction = {.name = "MTLFunction", .protocol = true, .super = &NSObject, .size = sizeof(struct function), .dealloc = function_dealloc};
class MTLLibrary = {.name = "MTLLibrary", .protocol = true, .super = &NSObject, .size = sizeof(struct library), .dealloc = library_dealloc,
	.methods = (struct method[]){{"functionNames", function_names}, {"newFunctionWithName:constantValues:error:", new_function}, {0}}};

__attribute__((constructor)) static void add(void) {
	class *all[] = {&MTLCompileOptions, &MTLLibrary, &MTLFunctionConstantValues, &MTLFunction};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
}
