// Functions that compiled kernels may call, and that not every machine's C library has.
#include <stdint.h>
#include <string.h>

__attribute__((visibility("default"), used)) __bf16 __truncsfbf2(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	uint16_t r = (u & 0x7fffffff) > 0x7f800000 ? (uint16_t)(u >> 16 | 0x40) : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
	__bf16 b;
	memcpy(&b, &r, 2);
	return b;
}
