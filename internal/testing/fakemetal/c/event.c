// MTLFence, MTLEvent and MTLSharedEvent.
#include "metal.h"

#include <stdlib.h>

static object *made(class *c) { return lost || faulty(EVENT) ? NULL : new_object(c); }
object *new_fence(SELF) { UNUSED; return made(&MTLFence); }
object *new_event(SELF) { UNUSED; return made(&MTLEvent); }
object *new_shared_event(SELF) {
	UNUSED;
	struct event *e = (struct event *)made(&MTLSharedEvent);
	if (e) e->shared = true;
	return (object *)e;
}

static uintptr_t value(SELF) {
	UNUSED;
	pthread_mutex_lock(&gpu);
	uint64_t v = ((struct event *)self)->value;
	wake_gpu(); // a caller that polls is waiting too
	pthread_mutex_unlock(&gpu);
	return v;
}
static void set_value(SELF, uintptr_t v) {
	struct event *e = (struct event *)self;
	pthread_mutex_lock(&gpu);
	if (v < e->value) fail("%s: %lu after %lu", s, (unsigned long)v, (unsigned long)e->value);
	e->value = v;
	wake_gpu();
	pthread_mutex_unlock(&gpu);
}
static uintptr_t wait_value(SELF, uintptr_t v, uintptr_t milliseconds) {
	UNUSED;
	struct event *e = (struct event *)self;
	double end = now() + (double)milliseconds / 1e3;
	pthread_mutex_lock(&gpu);
	demand(1);
	while (e->value < v) {
		double left = end - now();
		if (left <= 0) break;
		wait_changed(left < 0.1 ? (long)(left * 1e3) + 1 : 100);
	}
	bool reached = e->value >= v;
	demand(-1);
	pthread_mutex_unlock(&gpu);
	return 0x5500u | reached;
}

static void fence_dealloc(object *o) { unref_node(((struct fence *)o)->update); }

class MTLFence = {.name = "MTLFence", .protocol = true, .super = &NSObject, .size = sizeof(struct fence), .dealloc = fence_dealloc};
class MTLEvent = {.name = "MTLEvent", .protocol = true, .super = &NSObject, .size = sizeof(struct event)};
class MTLSharedEvent = {.name = "MTLSharedEvent", .protocol = true, .super = &MTLEvent, .size = sizeof(struct event),
	.methods = (struct method[]){{"signaledValue", value}, {"setSignaledValue:", set_value}, {0}},
	.newer = (struct method[]){{"waitUntilSignaledValue:timeoutMS:", wait_value}, {0}}};

__attribute__((constructor)) static void add(void) {
	class *all[] = {&MTLFence, &MTLEvent, &MTLSharedEvent};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) add_class(all[i]);
}
