// A class for the tests of package objc.
#include "objc.h"

static class Probe;

static uintptr_t probe_digits(object *self, sel s, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f) {
	(void)self, (void)s;
	return ((((a * 10 + b) * 10 + c) * 10 + d) * 10 + e) * 10 + f;
}
static double probe_half(object *self, sel s) { (void)self, (void)s; return 0.5; }
static object *probe_another(object *self, sel s) { (void)self, (void)s; return autorelease(new_object(&Probe)); }
static object *probe_new(object *self, sel s) { (void)self, (void)s; return new_object(&Probe); }
// It changes the structure behind the pointer, as a called method may.
static uintptr_t probe_volume(object *self, sel s, uint64_t *size) {
	(void)self, (void)s;
	uint64_t v = size[0] * size[1] * size[2];
	size[0] = size[1] = size[2] = 0;
	return v;
}
static uintptr_t probe_range(object *self, sel s, uintptr_t location, uintptr_t length) { (void)self, (void)s; return location * 1000 + length; }
static uintptr_t probe_fails(object *self, sel s, object **e) {
	(void)self, (void)s;
	if (e) *e = error("ProbeDomain", 7, "it fails");
	return 0;
}

static class Probe = {.name = "Probe", .super = &NSObject, .size = sizeof(object),
	.methods = (struct method[]){
		{"digits::::::", probe_digits}, {"half", probe_half}, {"another", probe_another}, {"newOne", probe_new},
		{"volume:", probe_volume}, {"range:", probe_range}, {"failsWithError:", probe_fails}, {0}}};

__attribute__((constructor)) static void add(void) { add_class(&Probe); }
