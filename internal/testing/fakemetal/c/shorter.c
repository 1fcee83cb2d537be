// Methods of Metal's objects that do what another method does with a default argument.
#include "metal.h"

#include <string.h>

object *new_buffer(SELF, uintptr_t length, uintptr_t mode);

#define SEND(type) ((type)objc_msgSend)

static object *buffer_with(SELF, const void *bytes, uintptr_t length, uintptr_t mode) {
	object *b = new_buffer(self, s, length, mode);
	if (b) memcpy(resource_of(b)->address, bytes, length);
	return b;
}

static object *serial_encoder(SELF) {
	(void)s;
	return SEND(object *(*)(object *, sel, uintptr_t))(self, intern("computeCommandEncoderWithDispatchType:"), 0);
}

__attribute__((constructor)) static void add(void) {
	static struct method device[] = {{"newBufferWithBytes:length:options:", buffer_with}, {0}}, commands[] = {{"computeCommandEncoder", serial_encoder}, {0}};
	add_methods(&MTLDevice, device, NULL);
	add_methods(&MTLCommandBuffer, commands, NULL);
}
