// Labels and debug groups, which are only recorded for tests.
#include "metal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct list labels; // "MTLBuffer weights"
static pthread_mutex_t labelling = PTHREAD_MUTEX_INITIALIZER;

void note_label(const char *what, object *text) {
	const char *t = text_of(text);
	size_t n = strlen(what) + strlen(t) + 2;
	char *both = malloc(n);
	snprintf(both, n, "%s %s", what, t);
	pthread_mutex_lock(&labelling);
	add_to(&labels, both);
	pthread_mutex_unlock(&labelling);
}

void forget_labels(void) {
	pthread_mutex_lock(&labelling);
	for (size_t i = 0; i < labels.n; i++) free(labels.at[i]);
	labels.n = 0;
	pthread_mutex_unlock(&labelling);
}

// fakemetal_label returns label i since the last reset, NULL after the last.
EXPORT const char *fakemetal_label(long i) {
	pthread_mutex_lock(&labelling);
	const char *t = 0 <= i && (size_t)i < labels.n ? labels.at[i] : NULL;
	pthread_mutex_unlock(&labelling);
	return t;
}
