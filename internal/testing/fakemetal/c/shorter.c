// Methods of Metal's objects that do what another method does with a default argument.
#include "metal.h"

#include <string.h>

object *new_queue(SELF, uintptr_t max);
object *new_buffer(SELF, uintptr_t length, uintptr_t mode);

#define SEND(type) ((type)objc_msgSend)

static object *queue(SELF) { return new_queue(self, s, 64); }

static object *buffer_with(SELF, const void *bytes, uintptr_t length, uintptr_t mode) {
	object *b = new_buffer(self, s, length, mode);
	if (b) memcpy(resource_of(b)->address, bytes, length);
	return b;
}

static object *pipeline_of(SELF, object *function, object **e) {
	object *d = new_object(&MTLComputePipelineDescriptor);
	SEND(void (*)(object *, sel, object *))(d, intern("setComputeFunction:"), function);
	object *p = new_pipeline(self, s, d, 0, NULL, e);
	release(d);
	return p;
}

static object *function_of(SELF, object *name) {
	(void)s;
	return SEND(object *(*)(object *, sel, object *, object *, object **))(self, intern("newFunctionWithName:constantValues:error:"), name, NULL, NULL);
}

static object *serial_encoder(SELF) {
	(void)s;
	return SEND(object *(*)(object *, sel, uintptr_t))(self, intern("computeCommandEncoderWithDispatchType:"), 0);
}

__attribute__((constructor)) static void add(void) {
	static struct method device[] = {{"newCommandQueue", queue}, {"newBufferWithBytes:length:options:", buffer_with}, {"newComputePipelineStateWithFunction:error:", pipeline_of}, {0}};
	static struct method library[] = {{"newFunctionWithName:", function_of}, {0}}, commands[] = {{"computeCommandEncoder", serial_encoder}, {0}};
	add_methods(&MTLDevice, device, NULL);
	add_methods(&MTLLibrary, library, NULL);
	add_methods(&MTLCommandBuffer, commands, NULL);
}
