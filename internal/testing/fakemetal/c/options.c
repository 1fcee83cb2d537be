// The options of a test's device, and the faults that it injects.
#include "metal.h"

#include <stdio.h>
#include <string.h>

static const struct options usual = {.patience = 5000, .threads = 1024, .buffer = 1L << 34, .working_set = 1L << 33, .family = 7, .width = 32, .constants = 4,
	.range = 1 << 14, .samples = 1 << 12, .reach = 1L << 32};
struct options options = {0};

static struct fault faults[64];
static size_t n_faults;
static long counts[OPERATIONS];
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
_Atomic bool faults_shown, lost;

// fakemetal_reset sets all options to their defaults and removes all faults.
EXPORT void fakemetal_reset(void) {
	options = usual;
	macos = 15;
	memset(counts, 0, sizeof counts);
	n_faults = 0, faults_shown = lost = false;
	forget_labels();
	hear_well();
	metal_begins_anew();
}

// fakemetal_option sets an option, and returns whether there is one of that name.
EXPORT bool fakemetal_option(const char *name, long value) {
	if (strcmp(name, "macos") == 0) {
		macos = (int)value;
		return true;
	}
	struct { const char *name; long *at; } all[] = {
		{"late", &options.late}, {"patience", &options.patience},
		{"threads", &options.threads}, {"buffer", &options.buffer}, {"working set", &options.working_set},
		{"family", &options.family}, {"width", &options.width}, {"constants", &options.constants}, {"residency", &options.residency}, {"dispatches", &options.dispatches}, {"capture", &options.capture}, {"most", &options.most},
		{"walls", &options.walls}, {"cold", &options.cold}, {"ignored", &options.ignored},
		{"range", &options.range}, {"samples", &options.samples}, {"reach", &options.reach}, {"full", &options.full}, {"lacks", &options.lacks}, {"anywhere", &options.anywhere}, {"in order", &options.in_order},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(name, all[i].name) == 0) {
			*all[i].at = value;
			return true;
		}
	return false;
}

// fakemetal_inject makes the nth operation of a kind fail, counted from 1.
EXPORT bool fakemetal_inject(long operation, long nth, long code, const char *text) {
	if (n_faults == sizeof faults / sizeof *faults || operation < 0 || operation >= OPERATIONS || nth < 1) return false;
	struct fault *f = &faults[n_faults++];
	f->operation = (int)operation, f->nth = nth, f->code = code;
	snprintf(f->text, sizeof f->text, "%s", text);
	return true;
}

const struct fault *faulty(enum operation o) {
	const struct fault *found = NULL;
	pthread_mutex_lock(&counting);
	counts[o]++;
	for (size_t i = 0; i < n_faults; i++)
		if (faults[i].operation == (int)o && faults[i].nth == counts[o]) found = &faults[i];
	if (found) faults_shown = true;
	pthread_mutex_unlock(&counting);
	return found;
}

void *fail_with(object **slot, const char *domain, long code, const char *text) {
	if (slot) *slot = error(domain, code, text);
	return NULL;
}

#ifndef __aarch64__
size3 take_size(size3 *at, sel s) {
	if (!at) {
		fail("%s is given no size", s);
		return (size3){0, 0, 0};
	}
	size3 v = *at;
	*at = (size3){~0ul, ~0ul, ~0ul}; // the called function may change its copy
	return v;
}
#endif

void add_to(struct list *l, void *v) {
	if (l->n == l->room) {
		l->room = 2 * l->room + 8;
		l->at = __builtin_realloc(l->at, l->room * sizeof *l->at);
	}
	l->at[l->n++] = v;
}
