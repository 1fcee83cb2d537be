// Captures. The file says how many command buffers were committed meanwhile to the captured queue or
// device, and how many were in flight at its beginning and end, of which it would have only a part.
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char domain[] = "MTLCaptureErrorDomain";
enum { NOT_SUPPORTED = 1, ALREADY = 2, INVALID = 3 };

// Whether captures are enabled is read from C's environment once, when Metal starts.
static bool started, enabled;
void metal_begins_anew(void) { started = false; }
void metal_starts(void) {
	if (started) return;
	const char *v = getenv("MTL_CAPTURE_ENABLED");
	started = true, enabled = v && strcmp(v, "1") == 0;
}
static bool possible(void) { return enabled || options.capture; }

static bool capturing;
static long captured, flying;
static object *captured_object; // retained
static char *path;

static long flights(void) {
	pthread_mutex_lock(&gpu);
	long n = in_flight;
	pthread_mutex_unlock(&gpu);
	return n;
}

struct capture_descriptor { object base; object *what, *url; uintptr_t destination; };
static class MTLCaptureDescriptor;
static void descriptor_dealloc(object *o) {
	struct capture_descriptor *d = (struct capture_descriptor *)o;
	release(d->what), release(d->url);
}
static void set_object(SELF, object *o) {
	struct capture_descriptor *d = (struct capture_descriptor *)self;
	if (!is_kind(o, &MTLDevice) && !given(o, &MTLCommandQueue, s)) return;
	retain(o);
	release(d->what);
	d->what = o;
}
static void set_destination(SELF, uintptr_t v) { UNUSED; ((struct capture_descriptor *)self)->destination = v; }
static void set_url(SELF, object *url) {
	struct capture_descriptor *d = (struct capture_descriptor *)self;
	if (!given(url, &NSURL, s)) return;
	retain(url);
	release(d->url);
	d->url = url;
}
static class MTLCaptureDescriptor = {.name = "MTLCaptureDescriptor", .super = &NSObject, .size = sizeof(struct capture_descriptor), .dealloc = descriptor_dealloc,
	.methods = (struct method[]){{"setCaptureObject:", set_object}, {"setDestination:", set_destination}, {"setOutputURL:", set_url}, {0}}};

static object *shared(class *c, sel s) {
	(void)s;
	static object *one;
	if (!one) one = new_object(c);
	return one;
}
static uintptr_t supports(SELF, uintptr_t destination) { UNUSED; return destination == 2 && possible(); }
static uintptr_t is_capturing(SELF) { UNUSED; return capturing; }

static uintptr_t start(SELF, object *descriptor, object **e) {
	(void)self;
	if (!given(descriptor, &MTLCaptureDescriptor, s)) return 0;
	struct capture_descriptor *d = (struct capture_descriptor *)descriptor;
	const struct fault *fault = faulty(CAPTURE);
	if (fault) return (uintptr_t)fail_with(e, domain, fault->code ? fault->code : NOT_SUPPORTED, fault->text);
	if (capturing) return (uintptr_t)fail_with(e, domain, ALREADY, "a capture is being made");
	if (!possible() || d->destination != 2) return (uintptr_t)fail_with(e, domain, NOT_SUPPORTED, "captures are off: MTL_CAPTURE_ENABLED is not set");
	const char *to = text_of(d->url), *dot = strrchr(to, '.');
	if (!d->what || !d->url || !dot || strcmp(dot, ".gputrace") != 0 || access(to, F_OK) == 0)
		return (uintptr_t)fail_with(e, domain, INVALID, "a capture has an object, and a file that is not there and ends with .gputrace");
	FILE *f = fopen(to, "w");
	if (!f) return (uintptr_t)fail_with(e, domain, INVALID, "the file cannot be written");
	fclose(f);
	path = strdup(to), captured = 0, flying = flights(), captured_object = retain(d->what);
	capturing = true;
	return 1;
}

void capture_command_buffer(struct command_buffer *c) {
	if (capturing && (captured_object->isa == &MTLDevice || captured_object == &c->queue->base)) __atomic_add_fetch(&captured, 1, __ATOMIC_SEQ_CST);
}

static void write_capture(void) {
	FILE *f = fopen(path, "w");
	if (f) {
		fprintf(f, "%ld command buffers of software Metal, in flight before: %ld, after: %ld\n", captured, flying, flights());
		fclose(f);
	}
	free(path);
	path = NULL, capturing = false;
	release(captured_object);
	captured_object = NULL;
}

static void stop(SELF) {
	(void)self;
	if (capturing) write_capture();
	else fail("%s: no capture is being made", s);
}

void end_capture(void) {
	if (!capturing) return;
	fail("a capture was never stopped");
	write_capture();
}

static class MTLCaptureManager = {.name = "MTLCaptureManager", .super = &NSObject, .size = sizeof(object),
	.methods = (struct method[]){{"supportsDestination:", supports}, {"isCapturing", is_capturing},
		{"startCaptureWithDescriptor:error:", start}, {"stopCapture", stop}, {0}},
	.statics = (struct method[]){{"sharedCaptureManager", shared}, {0}}};

__attribute__((constructor)) static void add(void) {
	add_class(&MTLCaptureDescriptor);
	add_class(&MTLCaptureManager);
}
