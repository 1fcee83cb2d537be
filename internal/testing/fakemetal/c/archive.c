// Binary archives, as lists of pipelines' keys. A file has a first line, and a line for each pipeline.
#include "metal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char domain[] = "MTLBinaryArchiveDomain";
enum { INVALID_FILE = 1, INTERNAL = 4 };
static const char first_line[] = "pipelines of software Metal\n";

struct archive_descriptor { object base; object *url; };
static class MTLBinaryArchiveDescriptor;
static void descriptor_dealloc(object *o) { release(((struct archive_descriptor *)o)->url); }
static void set_url(SELF, object *url) {
	struct archive_descriptor *d = (struct archive_descriptor *)self;
	if (url && !given(url, &NSURL, s)) return;
	release(d->url);
	d->url = retain(url);
}
static class MTLBinaryArchiveDescriptor = {.name = "MTLBinaryArchiveDescriptor", .super = &NSObject, .size = sizeof(struct archive_descriptor), .dealloc = descriptor_dealloc,
	.methods = (struct method[]){{"setUrl:", set_url}, {0}}};

struct archive { object base; struct list keys; };
static void archive_dealloc(object *o) {
	struct archive *a = (struct archive *)o;
	for (size_t i = 0; i < a->keys.n; i++) free(a->keys.at[i]);
	free(a->keys.at);
}

object *new_archive(SELF, object *descriptor, object **e) {
	(void)self;
	if (!given(descriptor, &MTLBinaryArchiveDescriptor, s)) return NULL;
	const struct fault *fault = faulty(ARCHIVE);
	if (fault) return fail_with(e, domain, fault->code ? fault->code : INTERNAL, fault->text[0] ? fault->text : "the archive cannot be used");
	object *url = ((struct archive_descriptor *)descriptor)->url;
	struct list keys = {0};
	if (url) {
		FILE *f = fopen(text_of(url), "r");
		char line[4096];
		if (!f || !fgets(line, sizeof line, f) || strcmp(line, first_line) != 0) {
			if (f) fclose(f);
			return fail_with(e, domain, INVALID_FILE, "the file is no archive");
		}
		while (fgets(line, sizeof line, f)) {
			line[strcspn(line, "\n")] = 0;
			add_to(&keys, strdup(line));
		}
		fclose(f);
	}
	struct archive *a = (struct archive *)new_object(&MTLBinaryArchive);
	a->keys = keys;
	return &a->base;
}

char *archive_key(struct function *f, bool indirect) {
	char *key = NULL;
	size_t n;
	FILE *to = open_memstream(&key, &n);
	fprintf(to, "%u %s %d", f->number, f->name, indirect);
	for (size_t i = 0; i < f->n; i++) fprintf(to, " %u=%lx", f->constants[i].index, (unsigned long)f->constants[i].bits);
	fclose(to);
	return key;
}

bool archived(object *o, const char *key) {
	if (!given(o, &MTLBinaryArchive, intern("setBinaryArchives:"))) return false;
	struct archive *a = (struct archive *)o;
	if (options.lacks & ARCHIVE_HITS) return false;
	for (size_t i = 0; i < a->keys.n; i++)
		if (strcmp(a->keys.at[i], key) == 0) return true;
	return false;
}

object *descriptor_function(object *descriptor, bool *indirect);

static uintptr_t add_functions(SELF, object *descriptor, object **e) {
	struct archive *a = (struct archive *)self;
	if (!given(descriptor, &MTLComputePipelineDescriptor, s)) return 0;
	bool indirect;
	struct function *f = (struct function *)descriptor_function(descriptor, &indirect);
	if (!f) {
		fail("%s: the descriptor has no function", s);
		return 0;
	}
	const struct fault *fault = faulty(ARCHIVE);
	if (fault) return (uintptr_t)fail_with(e, domain, fault->code ? fault->code : INTERNAL, fault->text[0] ? fault->text : "the pipeline cannot be added");
	char *key = archive_key(f, indirect);
	if (archived(self, key)) free(key);
	else add_to(&a->keys, key);
	return 1;
}

static uintptr_t serialize(SELF, object *url, object **e) {
	struct archive *a = (struct archive *)self;
	if (!given(url, &NSURL, s)) return 0;
	const struct fault *fault = faulty(ARCHIVE);
	if (fault) return (uintptr_t)fail_with(e, domain, fault->code ? fault->code : INTERNAL, fault->text[0] ? fault->text : "the archive cannot be written");
	FILE *f = fopen(text_of(url), "w");
	if (!f) return (uintptr_t)fail_with(e, domain, INTERNAL, "the file cannot be written");
	fputs(first_line, f);
	for (size_t i = 0; i < a->keys.n; i++) fprintf(f, "%s\n", (char *)a->keys.at[i]);
	fclose(f);
	return 1;
}

class MTLBinaryArchive = {.name = "MTLBinaryArchive", .protocol = true, .super = &NSObject, .size = sizeof(struct archive), .dealloc = archive_dealloc,
	.methods = (struct method[]){{"addComputePipelineFunctionsWithDescriptor:error:", add_functions}, {"serializeToURL:error:", serialize}, {0}}};

__attribute__((constructor)) static void add(void) {
	add_class(&MTLBinaryArchiveDescriptor);
	add_class(&MTLBinaryArchive);
}
