// The executor: a program that runs kernels in memory that it shares with the process that
// started it, so that a kernel that writes where it must not kills this program and no other.
#ifndef MLXC_EXECUTOR_H
#define MLXC_EXECUTOR_H
#include "abi.h"
#include <stdatomic.h>
#include <stdint.h>

// MAX_THREADS is the most threads of a threadgroup.
enum { MAX_THREADS = 1024, MAX_SIMDGROUPS = MAX_THREADS / SIMD_WIDTH, SLOTS = 31 };

// GUARD is how many bytes before and behind a buffer nobody may touch.
enum { GUARD = 1 << 16 };

// Descriptors that this program is started with, and all that it has.
enum { CHANNEL = 3, MEMORY = 4 };

// cage takes away from this program, all its threads, what kernels have no business with. It returns NULL, or says why
// that cannot be done here.
const char *cage(void);

// MAX_IMAGE is the most bytes of a kernel's code and constants.
enum { MAX_IMAGE = 1 << 28 };

// reader takes a request apart. A request that is too short is the caller's fault, and ends
// the program.
struct reader {
	const uint8_t *at, *end;
};

void take(struct reader *, void *to, size_t n);
uint32_t take32(struct reader *);
uint64_t take64(struct reader *);

// load_image maps a kernel's code, which fd has as the request says. It returns NULL, or says what is wrong.
const char *load_image(struct reader *, int fd, const struct kernel **);
// load_object loads a shared object.
const char *load_object(const char *path, const struct kernel **);

// exchange does what the active threads of a simdgroup of count threads do at a site.
void exchange(const struct site *, struct exchange *, uint32_t active, int count);

// shuffle_source is the lane whose value a lane gets at a site that shuffles; filling: its second operand. It is
// below 0 where the lane asks for one that no simdgroup has, -1 - that.
int shuffle_source(const struct site *, const struct exchange *, uint32_t active, int lane, int *filling);

// bound is what is known of the memory that is bound to an argument.
struct bound {
	uint64_t bytes;         // from the address on
	uint64_t buffer, offset; // where it lies
	uint8_t *state;         // of each byte, see check.h; NULL: unknown
	uint8_t read_only;      // the argument is declared so
	uint8_t declared;       // the dispatch's effects are known
	uint8_t races;          // some argument of the dispatch writes the buffer
};

// dispatch is one to run.
struct dispatch {
	const struct kernel *kernel;
	uint64_t frame_bytes; // of a coroutine, 0 for rows
	uint32_t grid[3];     // threads
	uint32_t group[3];    // threads of a threadgroup
	void *buffers[SLOTS];
	uint32_t threadgroup_bytes[SLOTS]; // of arguments in threadgroup space
	struct bound bound[SLOTS];         // of a checked one
	uint64_t seed;                     // of the order of threadgroups and threads; 0: as they are numbered
};

// run runs a dispatch on all workers. It returns NULL, or says what is wrong. Where *stop
// becomes true it ends early.
const char *run(const struct dispatch *, const _Atomic uint32_t *stop);

// MAX_MIXED is how many dispatches run_mixed takes.
enum { MAX_MIXED = 16 };

// run_mixed runs dispatches that nothing orders on the calling thread: their threadgroups in a
// random order, mixed, and the threads of each too.
const char *run_mixed(struct dispatch *const *, uint32_t count, uint64_t seed, const _Atomic uint32_t *stop);

struct check;

// run_checked is run, on the calling thread alone, of a kernel that was compiled for checking.
const char *run_checked(const struct dispatch *, const _Atomic uint32_t *stop, struct check *);

// start_workers starts so many threads besides the one that calls run, and waits for them.
void start_workers(int count);

// fault_stack gives the calling thread a stack on which it can say what went wrong, for when a
// kernel has used up its own.
void fault_stack(void);

// running is what the calling thread runs, for what a signal handler says.
extern _Thread_local const struct dispatch *running;

#endif
