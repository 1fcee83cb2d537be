/* Runs functions over arrays: requests on standard input, results on standard output. A
   request is four 64-bit numbers (function, count, bytes of arguments, bytes of results), its
   highest bit of the function asking for denormals to be flushed, and the arguments, one
   array after the other. Freestanding where there is Linux, for a linker alone. */
typedef unsigned long long u64;

extern void (*const functions[])(const char *, char *, u64);

static char in[1 << 23], out[1 << 23];

#ifdef __linux__
static long sys(long n, long a, long b, long c) {
#ifdef __x86_64__
	long r;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return r;
#else
	register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#endif
}
#ifdef __x86_64__
enum { READ = 0, WRITE = 1, EXIT = 60 };
#else
enum { READ = 63, WRITE = 64, EXIT = 93 };
#endif
static long read(int f, void *p, u64 n) { return sys(READ, f, (long)p, (long)n); }
static long write(int f, const void *p, u64 n) { return sys(WRITE, f, (long)p, (long)n); }
static void exit(int c) {
	sys(EXIT, c, 0, 0);
	for (;;) {
	}
}
/* What clang makes of loops that copy and fill. */
void *memcpy(void *to, const void *from, u64 n) {
	for (u64 i = 0; i < n; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}
void *memset(void *to, int c, u64 n) {
	for (u64 i = 0; i < n; i++)
		((volatile char *)to)[i] = (char)c;
	return to;
}
#else
long read(int, void *, u64);
long write(int, const void *, u64);
void exit(int);
#endif

static int take(char *p, u64 n) {
	while (n) {
		long r = read(0, p, n);
		if (r <= 0)
			return 0;
		p += r;
		n -= (u64)r;
	}
	return 1;
}

static void flush(int on) {
#ifdef __x86_64__
	unsigned csr = on ? 0x9fc0 : 0x1f80;
	__asm__ volatile("ldmxcsr %0" : : "m"(csr));
#else
	u64 fpcr = on ? 1 << 24 : 0;
	__asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static int serve(void) {
	u64 h[4];
	while (take((char *)h, sizeof h)) {
		if (h[2] > sizeof in || h[3] > sizeof out || !take(in, h[2]))
			return 2;
		flush(h[0] >> 63);
		functions[h[0] & 0xffff](in, out, h[1]);
		flush(0);
		for (u64 done = 0; done < h[3];) {
			long r = write(1, out + done, h[3] - done);
			if (r <= 0)
				return 3;
			done += (u64)r;
		}
	}
	return 0;
}

#ifdef __linux__
__attribute__((force_align_arg_pointer, used)) void start(void) { exit(serve()); }
__asm__(".globl _start\n_start:\n"
#ifdef __x86_64__
	"call start\n"
#else
	"bl start\n"
#endif
);
#else
int main(void) { return serve(); }
#endif
