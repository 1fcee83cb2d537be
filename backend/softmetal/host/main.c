// The protocol of the executor. Requests come on a socket, descriptor 3, and answers go there; descriptor 4 is the
// file of the shared memory. Integers are little-endian, as the machine's are.
//
// A request is an operation, the number of bytes of its payload, and the payload. An answer is a status, 0 for
// success, the number of bytes of its payload, and the payload: the result, or an error message.
#include "check.h"
#include "executor.h"
#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum request { REQUEST_MAP = 1, REQUEST_UNMAP, REQUEST_LOAD, REQUEST_RUN, REQUEST_START, REQUEST_CHECK };


// buffer is a mapped piece of the shared memory.
struct buffer {
	uint64_t id;
	uint8_t *at;
	uint64_t size;
	int used;
};

static struct buffer *buffers;
static size_t buffer_count;

// kernels are the loaded kernels, by number.
static struct {
	const struct kernel *kernel;
	uint64_t frame_bytes;
	char name[120];
} *kernels;
static uint32_t kernel_count;

// control is the first page of the shared memory.
static struct {
	_Atomic uint32_t stop;    // becomes 1 when the batch is to end early
	_Atomic uint32_t running; // index of the command that runs, for the host to read if this program is killed
} *control;

// now_running is the command that runs, for fault's message.
static struct {
	uint32_t index;
	const char *kernel;
} now_running;

static int write_all(const void *data, size_t n) {
	const char *p = data;
	while (n > 0) {
		ssize_t k = write(CHANNEL, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return 0;
		p += k, n -= (size_t)k;
	}
	return 1;
}

// received is the descriptor that came with the request, or -1.
static int received = -1;

static int read_all(void *data, size_t n) {
	char *p = data;
	while (n > 0) {
		struct iovec part = {p, n};
		_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
		struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
		ssize_t k = recvmsg(CHANNEL, &m, 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return 0;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int))) {
			if (received >= 0)
				close(received);
			memcpy(&received, CMSG_DATA(c), sizeof(int));
		}
		p += k, n -= (size_t)k;
	}
	return 1;
}

static void answer(uint32_t status, const void *data, uint32_t n) {
	uint32_t head[2] = {status, n};
	if (!write_all(head, sizeof head) || !write_all(data, n))
		_exit(1);
}

static void fail(const char *message) { answer(1, message, (uint32_t)strlen(message)); }

void take(struct reader *r, void *to, size_t n) {
	if ((size_t)(r->end - r->at) < n)
		_exit(2);
	memcpy(to, r->at, n);
	r->at += n;
}

uint32_t take32(struct reader *r) {
	uint32_t v;
	take(r, &v, 4);
	return v;
}

uint64_t take64(struct reader *r) {
	uint64_t v;
	take(r, &v, 8);
	return v;
}

// place takes a buffer's id and an offset from the request. It returns the address of n bytes there, or NULL if they
// do not lie in a buffer.
static uint8_t *place(struct reader *r, uint64_t n) {
	uint64_t id = take64(r), offset = take64(r);
	if (id >= buffer_count || !buffers[id].used || offset > buffers[id].size || n > buffers[id].size - offset)
		return NULL;
	return buffers[id].at + offset;
}

static void map(struct reader *r) {
	uint64_t id = take64(r), offset = take64(r), size = take64(r);
	uint32_t read_only = take32(r);
	if (id > 1u << 26) {
		fail("there are too many buffers");
		return;
	}
	if (id >= buffer_count) {
		size_t n = (size_t)id * 2 + 64;
		struct buffer *more = realloc(buffers, n * sizeof *more);
		if (!more) {
			fail("there is no memory for the table of buffers");
			return;
		}
		memset(more + buffer_count, 0, (n - buffer_count) * sizeof *more);
		buffers = more, buffer_count = n;
	}
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
	uint8_t *at = mmap(NULL, whole + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED) {
		fail("there is no room for a buffer in the address space");
		return;
	}
	at += GUARD;
	if (whole && mmap(at, whole, PROT_READ | (read_only ? 0 : PROT_WRITE), MAP_SHARED | MAP_FIXED, MEMORY, (off_t)offset) == MAP_FAILED) {
		int why = errno;
		munmap(at - GUARD, whole + 2 * GUARD);
		fail(why == ENOMEM ? "a buffer cannot be mapped: it takes up to three mappings, and a process may have only so many (vm.max_map_count of Linux)"
		                   : "a buffer cannot be mapped");
		return;
	}
	buffers[id] = (struct buffer){id, at, size, 1};
	answer(0, NULL, 0);
}

static void unmap(struct reader *r) {
	uint64_t id = take64(r);
	if (id < buffer_count && buffers[id].used) {
		uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole = (buffers[id].size + page - 1) / page * page;
		munmap(buffers[id].at - GUARD, whole + 2 * GUARD);
		buffers[id].used = 0;
	}
	answer(0, NULL, 0);
}

// load takes a kernel's name and code. It answers with the kernel's number and the bytes of a thread's coroutine
// frame.
static void load(struct reader *r) {
	char name[120] = {0};
	uint32_t n = take32(r);
	for (uint32_t i = 0; i < n; i++) {
		char c;
		take(r, &c, 1);
		if (i < sizeof name - 1)
			name[i] = c;
	}
	const struct kernel *k = NULL;
#ifdef __APPLE__
	char path[4096];
	n = take32(r);
	if (n >= sizeof path)
		_exit(2);
	take(r, path, n);
	path[n] = 0;
	const char *wrong = load_object(path, &k);
#else
	const char *wrong = received < 0 ? "a kernel came without its code" : load_image(r, received, &k);
	if (received >= 0)
		close(received);
	received = -1;
#endif
	void *more = wrong ? NULL : realloc(kernels, (kernel_count + 1) * sizeof *kernels);
	if (!wrong && !more)
		wrong = "there is no memory for the table of kernels";
	if (wrong) {
		fail(wrong);
		return;
	}
	now_running.index = 0;
	now_running.kernel = name;
	kernels = more;
	kernels[kernel_count].kernel = k;
	kernels[kernel_count].frame_bytes = k->start ? (uint64_t)(uintptr_t)k->start(NULL, NULL, NULL) : 0;
	memcpy(kernels[kernel_count].name, name, sizeof name);
	now_running.kernel = "";
	struct {
		uint64_t number, frame_bytes;
	} loaded = {kernel_count, kernels[kernel_count].frame_bytes};
	answer(0, &loaded, sizeof loaded);
	kernel_count++;
}

// watching is set when the watching thread runs: the start of a thread makes system calls that the cage forbids.
static _Atomic int watching;

// start starts the workers, and then confines the program. The answer is empty, or says why it is not confined.
static void start(struct reader *r) {
	start_workers((int)take32(r));
	while (!atomic_load(&watching))
		sched_yield();
	const char *wrong = take32(r) ? cage() : "nobody asked for one";
	answer(0, wrong, wrong ? (uint32_t)strlen(wrong) : 0);
}

static uint64_t nanoseconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

enum command { DISPATCH = 1, COPY, FILL, MIXED };
enum argument { BUFFER = 1, BYTES, LENGTH };

// constants holds inline arguments of dispatches.
struct constants {
	_Alignas(16) uint8_t bytes[1 << 16];
	size_t used;
};

// read_dispatch reads the next dispatch, and its inline arguments into constants. It returns NULL or an error
// message.
static const char *read_dispatch(struct reader *r, struct dispatch *d, struct constants *c) {
	memset(d, 0, sizeof *d);
	uint32_t k = take32(r);
	if (k >= kernel_count)
		return "the kernel was not loaded";
	d->kernel = kernels[k].kernel;
	d->frame_bytes = kernels[k].frame_bytes;
	now_running.kernel = kernels[k].name;
	take(r, d->grid, 12);
	take(r, d->group, 12);
	const char *wrong = NULL;
	for (uint32_t n = take32(r); n > 0; n--) {
		uint32_t slot = take32(r), kind = take32(r);
		if (slot >= SLOTS)
			_exit(2);
		struct bound *b = &d->bound[slot];
		switch (kind) {
		case BUFFER: {
			uint64_t id = take64(r), offset = take64(r), size = take64(r);
			if (id >= buffer_count || !buffers[id].used || offset > buffers[id].size || size > buffers[id].size - offset) {
				wrong = "an argument lies in no buffer";
				break;
			}
			d->buffers[slot] = buffers[id].at + offset;
			*b = (struct bound){.bytes = size, .buffer = id, .offset = offset};
			break;
		}
		case BYTES: {
			uint32_t size = take32(r);
			c->used = (c->used + 15) & ~(size_t)15;
			if (size > sizeof c->bytes - c->used)
				return "the constants of a dispatch are too long";
			take(r, c->bytes + c->used, size);
			d->buffers[slot] = c->bytes + c->used;
			*b = (struct bound){.bytes = size, .read_only = 1};
			c->used += size;
			break;
		}
		case LENGTH:
			d->threadgroup_bytes[slot] = take32(r);
			break;
		default:
			_exit(2);
		}
	}
	if (wrong)
		return wrong;
	for (int i = 0; i < 3; i++)
		if (d->group[i] == 0)
			return "a threadgroup has no threads";
	if ((uint64_t)d->group[0] * d->group[1] * d->group[2] > MAX_THREADS)
		return "a threadgroup has too many threads";
	return NULL;
}

// check_dispatch runs one dispatch of a checked kernel. The request has a seed; for each slot the buffer with the
// states of its bytes, the offset at which they begin, and flags (8: there are states); then the dispatch. The answer
// has the number of findings, how many more were dropped, and the findings.
static void check_dispatch(struct reader *r) {
	static struct dispatch d;
	static struct check *c;
	struct {
		uint64_t id, offset;
		uint32_t flags;
	} states[SLOTS];
	uint64_t seed = take64(r);
	for (int i = 0; i < SLOTS; i++) {
		states[i].id = take64(r);
		states[i].offset = take64(r);
		states[i].flags = take32(r);
	}
	now_running.index = 0;
	static struct constants constants;
	constants.used = 0;
	const char *wrong = read_dispatch(r, &d, &constants);
	if (!wrong && !c && !(c = calloc(1, sizeof *c)))
		wrong = "there is no memory for the checker";
	for (int i = 0; !wrong && i < SLOTS; i++) {
		struct bound *b = &d.bound[i];
		if (states[i].flags & 8) {
			struct buffer *s = states[i].id < buffer_count ? &buffers[states[i].id] : NULL;
			if (!s || !s->used || states[i].offset > s->size || b->bytes > s->size - states[i].offset)
				wrong = "the states of an argument lie in no buffer";
			else
				b->state = s->at + states[i].offset;
		}
		b->read_only |= (states[i].flags & 1) != 0;
		b->declared = (states[i].flags & 2) != 0;
		b->races = (states[i].flags & 4) != 0;
	}
	d.seed = seed;
	if (!wrong)
		wrong = run_checked(&d, &control->stop, c);
	if (wrong) {
		char message[400];
		snprintf(message, sizeof message, "%s: %s", now_running.kernel, wrong);
		fail(message);
		return;
	}
	uint32_t n = 16 + c->count * (uint32_t)sizeof(struct finding);
	uint8_t *out = malloc(n);
	if (!out) {
		fail("there is no memory for findings");
		return;
	}
	uint64_t head[2] = {c->count, c->dropped};
	memcpy(out, head, 16);
	memcpy(out + 16, c->findings, c->count * sizeof(struct finding));
	answer(0, out, n);
	free(out);
}

// command runs the next command of a batch. It returns NULL or an error message.
static const char *command(struct reader *r) {
	switch (take32(r)) {
	case DISPATCH: {
		static struct dispatch d;
		static struct constants constants;
		constants.used = 0;
		const char *wrong = read_dispatch(r, &d, &constants);
		return wrong ? wrong : run(&d, &control->stop);
	}
	case MIXED: {
		static struct dispatch d[MAX_MIXED], *list[MAX_MIXED];
		static struct constants constants;
		constants.used = 0;
		uint64_t seed = take64(r);
		uint32_t count = take32(r);
		if (count > MAX_MIXED)
			_exit(2);
		for (uint32_t i = 0; i < count; i++) {
			take32(r); // DISPATCH
			list[i] = &d[i];
			const char *wrong = read_dispatch(r, &d[i], &constants);
			if (wrong)
				return wrong;
		}
		return run_mixed(list, count, seed, &control->stop);
	}
	case COPY: {
		uint64_t n = take64(r);
		uint8_t *to = place(r, n), *from = place(r, n);
		if (!to || !from)
			return "a copy leaves its buffers";
		memmove(to, from, n);
		return NULL;
	}
	case FILL: {
		uint64_t n = take64(r);
		uint8_t *to = place(r, n);
		int value = (int)take32(r);
		if (!to)
			return "a fill leaves its buffer";
		memset(to, value, n);
		return NULL;
	}
	}
	_exit(2);
}

// run_batch runs commands one after another. The answer has how many have run, whether the batch was stopped, this
// program's clock, and, if asked for, when each command began and ended.
static void run_batch(struct reader *r) {
	uint32_t count = take32(r), timed = take32(r);
	uint64_t *times = calloc(4 + (timed ? 2 * (size_t)count : 0), 8);
	if (!times) {
		fail("there is no memory for times");
		return;
	}
	const char *wrong = NULL;
	uint32_t done = 0;
	for (; done < count; done++) {
		if (atomic_load(&control->stop))
			break;
		now_running.index = done;
		atomic_store_explicit(&control->running, done, memory_order_relaxed);
		now_running.kernel = "";
		if (timed)
			times[4 + 2 * done] = nanoseconds();
		if ((wrong = command(r)))
			break;
		if (timed)
			times[5 + 2 * done] = nanoseconds();
	}
	if (wrong) {
		char message[400];
		snprintf(message, sizeof message, "command %u: %s%s%s", done, now_running.kernel, *now_running.kernel ? ": " : "", wrong);
		fail(message);
	} else {
		times[0] = done;
		times[1] = atomic_load(&control->stop);
		times[2] = nanoseconds();
		answer(0, times, (uint32_t)(8 * (4 + (timed ? 2 * (size_t)done : 0))));
	}
	free(times);
}

// append adds text to a message of at most room bytes. Unlike snprintf it may be called in a signal handler.
static void append(char *to, size_t *at, size_t room, const char *s) {
	while (*s && *at < room)
		to[(*at)++] = *s++;
}

static void append_number(char *to, size_t *at, size_t room, uint64_t n) {
	char digits[21];
	int i = 20;
	digits[i] = 0;
	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	append(to, at, room, digits + i);
}

// append_place describes an address by its distance from the nearest argument of the dispatch that the calling thread
// runs.
static void append_place(char *to, size_t *at, size_t room, const uint8_t *p) {
	const struct dispatch *d = running;
	int nearest = -1;
	uint64_t least = (uint64_t)1 << 40;
	for (int i = 0; d && i < SLOTS; i++) {
		const uint8_t *begin = d->buffers[i];
		if (!begin)
			continue;
		uint64_t n = d->bound[i].bytes;
		uint64_t away = p < begin ? (uint64_t)(begin - p) : (uint64_t)(p - begin) < n ? 0 : (uint64_t)(p - begin) - n + 1;
		if (away < least)
			least = away, nearest = i;
	}
	if ((uintptr_t)p < GUARD) {
		append(to, at, room, ": byte ");
		append_number(to, at, room, (uint64_t)(uintptr_t)p);
		append(to, at, room, " of an argument that is not bound, or of a null pointer");
	} else if (nearest >= 0) {
		const uint8_t *begin = d->buffers[nearest];
		append(to, at, room, ": ");
		append_number(to, at, room, p < begin ? (uint64_t)(begin - p) : (uint64_t)(p - begin) - d->bound[nearest].bytes);
		append(to, at, room, p < begin ? " bytes before argument " : " bytes behind the end of argument ");
		append_number(to, at, room, (uint64_t)nearest);
		append(to, at, room, ", which has ");
		append_number(to, at, room, d->bound[nearest].bytes);
	}
}

// fault handles signals: it answers which command has faulted and where, and ends the program.
static void fault(int number, siginfo_t *info, void *context) {
	(void)context;
	static _Atomic int first;
	if (atomic_exchange(&first, 1))
		for (;;)
			pause();
	static char message[600];
	size_t at = 0, room = sizeof message;
	append(message, &at, room, "command ");
	append_number(message, &at, room, now_running.index);
	append(message, &at, room, ": ");
	append(message, &at, room, now_running.kernel && *now_running.kernel ? now_running.kernel : "no kernel");
	switch (number) {
	case SIGFPE:
		append(message, &at, room, ": an arithmetic fault");
		break;
	case SIGILL:
	case SIGTRAP:
		append(message, &at, room, ": an instruction that this machine lacks, or a trap");
		break;
	default:
		append(message, &at, room, ": an access to memory that is not its own");
		append_place(message, &at, room, info->si_addr);
	}
	answer(2, message, (uint32_t)at);
	_exit(3);
}

void fault_stack(void) {
	enum { SIZE = 1 << 16 };
	stack_t s = {.ss_sp = malloc(SIZE), .ss_size = SIZE};
	if (s.ss_sp)
		sigaltstack(&s, NULL);
}

// watch ends the program, even while a kernel runs, when the other end of the channel closes because the process
// there has ended.
static void *watch(void *ignored) {
	atomic_store(&watching, 1);
	struct pollfd p = {.fd = CHANNEL};
	for (;;)
		if (poll(&p, 1, -1) > 0 && (p.revents & (POLLHUP | POLLERR | POLLNVAL)))
			_exit(0);
	return ignored;
}

// main has the argument "apart" where this program is to be confined.
int main(int argc, char **argv) {
	(void)argv;
	if (argc > 1)
		apart();
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1); // with more arenas, the C library would ask the system for the number of cores
#endif
	long page = sysconf(_SC_PAGESIZE);
	control = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, MEMORY, 0);
	if (control == MAP_FAILED)
		return 1;
	// Signals that a terminal sends to the whole process group are for the process that started this one, whose end
	// closes the channel and so ends this one too.
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	struct sigaction a = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	fault_stack();
	pthread_t t;
	if (pthread_create(&t, NULL, watch, NULL) != 0)
		return 1;
	pthread_detach(t);
	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGBUS, &a, NULL);
	sigaction(SIGFPE, &a, NULL);
	sigaction(SIGILL, &a, NULL);
	sigaction(SIGTRAP, &a, NULL);
	uint8_t *data = NULL;
	size_t room = 0;
	for (;;) {
		uint32_t head[2];
		if (!read_all(head, sizeof head))
			return 0;
		if (head[1] > room) {
			free(data);
			room = head[1];
			if (!(data = malloc(room)))
				return 1;
		}
		if (!read_all(data, head[1]))
			return 0;
		struct reader r = {data, data + head[1]};
		switch (head[0]) {
		case REQUEST_MAP:
			map(&r);
			break;
		case REQUEST_UNMAP:
			unmap(&r);
			break;
		case REQUEST_LOAD:
			load(&r);
			break;
		case REQUEST_RUN:
			run_batch(&r);
			break;
		case REQUEST_CHECK:
			check_dispatch(&r);
			break;
		case REQUEST_START:
			start(&r);
			break;
		default:
			return 2;
		}
	}
}
