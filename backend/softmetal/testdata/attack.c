// A kernel that does what no kernel could if its text had been looked at: it calls the system, by itself. Which
// attack it makes the first word of buffer 1 says. Buffer 0 gets 1 for an attack that has gone through.
#include "abi.h"

#if defined(__x86_64__)
#include <asm/unistd_64.h>
static long call(long n, long a, long b, long c, long d, long e, long f) {
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "+a"(n) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return n;
}
#define NR(x64, arm64) x64
#else
static long call(long n, long a, long b, long c, long d, long e, long f) {
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
#define NR(x64, arm64) arm64
#endif

enum {
	RUN_A_SHELL,
	OPEN_A_FILE,
	MAKE_A_FILE,
	OPEN_A_SOCKET,
	FORK,
	MAKE_A_THREAD,
	TRACE,
	SIGNAL_ANOTHER,
	READ_ANOTHER,
	CODE_IN_MEMORY,
	CODE_OF_DATA,
	CODE_IN_A_BUFFER,
	SHARED_MEMORY,
	MORE_RIGHTS,
	HIGHER_LIMITS,
	A_FILE_IN_MEMORY,
	A_RING,
	WRITE_TO_A_TERMINAL,
	END_THIS_THREAD,
	END_THE_PROGRAM,
	CLOSE_THE_CHANNEL,
	SLEEP,
	WAIT_FOR_EVER,
	LOOP_FOR_EVER,
	TAKE_ALL_MEMORY,
	CLAIM_A_LOT,
	CLAIM_NONSENSE,
	CLAIM_SUCCESS,
	OVERWRITE_CODE,
};

static volatile uint32_t spin;

static void row(const struct group *g, uint32_t y, uint32_t z) {
	(void)y, (void)z;
	uint32_t *out = g->buffers[0];
	static const char shell[] = "/bin/sh", hosts[] = "/etc/hosts", made[] = "/tmp/mlxc-made-by-a-kernel", told[] = "told by a kernel\n";
	const char *const args[] = {shell, "-c", "touch /tmp/mlxc-made-by-a-kernel", 0};
	long result = -1;
	uint32_t head[2] = {0, 0xfffffff0u}, odd[2] = {7, 0};
	uint64_t done[5] = {0x2000000000u, 1000, 0, 0, 0};
	switch (*(const uint32_t *)g->buffers[1]) {
	case RUN_A_SHELL: result = call(NR(59, 221), (long)shell, (long)args, 0, 0, 0, 0); break;
	case OPEN_A_FILE: result = call(NR(257, 56), -100, (long)hosts, 0, 0, 0, 0); break;
	case MAKE_A_FILE: result = call(NR(257, 56), -100, (long)made, 0101, 0600, 0, 0); break;
	case OPEN_A_SOCKET: result = call(NR(41, 198), 2, 1, 0, 0, 0, 0); break;
	case FORK: result = call(NR(56, 220), 17, 0, 0, 0, 0, 0); break;
	case MAKE_A_THREAD: result = call(NR(56, 220), 0x10f00, (long)(out + 1024), 0, 0, 0, 0); break;
	case TRACE: result = call(NR(101, 117), 0, 0, 0, 0, 0, 0); break;
	case SIGNAL_ANOTHER: result = call(NR(62, 129), 1, 9, 0, 0, 0, 0); break;
	case READ_ANOTHER: result = call(NR(310, 270), 1, 0, 0, 0, 0, 0); break;
	case CODE_IN_MEMORY: result = call(NR(9, 222), 0, 4096, 7, 0x22, -1, 0) < 0 ? -1 : 0; break;
	case CODE_OF_DATA: result = call(NR(10, 226), (long)out & ~4095l, 4096, 5, 0, 0, 0); break;
	case CODE_IN_A_BUFFER: result = call(NR(9, 222), 0, 4096, 5, 1, 4, 0) < 0 ? -1 : 0; break;
	case SHARED_MEMORY: result = call(NR(9, 222), 0, 1 << 20, 3, 0x21, -1, 0) < 0 ? -1 : 0; break;
	case MORE_RIGHTS: result = call(NR(157, 167), 4, 1, 0, 0, 0, 0); break;
	case HIGHER_LIMITS: result = call(NR(302, 261), 0, 2, 0, 0, 0, 0); break;
	case A_FILE_IN_MEMORY: result = call(NR(319, 279), (long)shell, 0, 0, 0, 0, 0); break;
	case A_RING: result = call(425, 1, 0, 0, 0, 0, 0); break;
	case WRITE_TO_A_TERMINAL: result = call(NR(1, 64), 2, (long)told, sizeof told - 1, 0, 0, 0); break;
	case END_THIS_THREAD: result = call(NR(60, 93), 0, 0, 0, 0, 0, 0); break;
	case END_THE_PROGRAM: result = call(NR(231, 94), 0, 0, 0, 0, 0, 0); break;
	case CLOSE_THE_CHANNEL: result = call(NR(3, 57), 3, 0, 0, 0, 0, 0); for (;;) spin++;
	case SLEEP: result = call(NR(35, 101), (long)done, 0, 0, 0, 0, 0); break;
	case WAIT_FOR_EVER: for (;;) call(NR(202, 98), (long)out, 0, *out, 0, 0, 0);
	case LOOP_FOR_EVER: for (;;) out[2]++;
	case TAKE_ALL_MEMORY:
		for (;;) {
			long at = call(NR(9, 222), 0, 1 << 26, 3, 0x22, -1, 0);
			if (at < 0 && at > -4096)
				break;
			for (long i = 0; i < 1 << 26; i += 4096)
				((char *)at)[i] = 1;
		}
		break;
	case CLAIM_A_LOT: result = call(NR(1, 64), 3, (long)head, 8, 0, 0, 0); for (;;) spin++;
	case CLAIM_NONSENSE: result = call(NR(1, 64), 3, (long)odd, 8, 0, 0, 0); for (;;) spin++;
	case CLAIM_SUCCESS: head[1] = 40; result = call(NR(1, 64), 3, (long)head, 8, 0, 0, 0); call(NR(1, 64), 3, (long)done, 40, 0, 0, 0); for (;;) spin++;
	case OVERWRITE_CODE: *(volatile char *)(uintptr_t)row = 0; result = 0; break;
	}
	out[0] = result >= 0 ? 1 : (uint32_t)result;
}

const struct kernel mlxc_kernel = {0, row, 0, 0, 0, 0, 0, 0, 0};
