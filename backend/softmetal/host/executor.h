// The executor is a program that runs kernels in memory that it shares with the process that started it, so that a
// kernel that writes out of bounds kills only this program.
#ifndef MLXC_EXECUTOR_H
#define MLXC_EXECUTOR_H
#include "abi.h"
#include <stdatomic.h>
#include <stdint.h>

// MAX_THREADS is the maximum number of threads in a threadgroup.
enum { MAX_THREADS = 1024, MAX_SIMDGROUPS = MAX_THREADS / SIMD_WIDTH, SLOTS = 31 };

// GUARD is the size in bytes of the inaccessible zones before and behind each buffer.
enum { GUARD = 1 << 16 };

// The descriptors with which this program is started; it has no others.
enum { CHANNEL = 3, MEMORY = 4 };

// cage confines this program, with all its threads, to what kernels need. It returns NULL, or says why that is not
// possible here.
const char *cage(void);

// apart gives this program, which has one thread yet, namespaces of its own where the system has them and allows it.
// Where not, what cage does suffices.
void apart(void);

// MAX_IMAGE is the maximum size of a kernel's code and constants, in bytes.
enum { MAX_IMAGE = 1 << 28 };

// reader is a position in a request. To read beyond the end is a bug of the sender, and ends the program.
struct reader {
	const uint8_t *at, *end;
};

void take(struct reader *, void *to, size_t n);
uint32_t take32(struct reader *);
uint64_t take64(struct reader *);

// load_image maps a kernel's code from the file fd, as the request describes it. It returns NULL or an error message.
const char *load_image(struct reader *, int fd, const struct kernel **);
// load_object loads a kernel from a shared object. It returns NULL or an error message.
const char *load_object(const char *path, const struct kernel **);

// exchange executes the operation of a site for the active threads of a simdgroup of count threads.
void exchange(const struct site *, struct exchange *, uint32_t active, int count);

// shuffle_source returns the lane whose value a lane gets at a shuffle, or -1 - n if it asks for a lane n that does
// not exist. *filling says whether the value is that of the second operand.
int shuffle_source(const struct site *, const struct exchange *, uint32_t active, int lane, int *filling);

// bound describes the memory that is bound to a buffer argument.
struct bound {
	uint64_t bytes;         // from the address on
	uint64_t buffer, offset; // id of the buffer, and where in it the memory begins
	uint8_t *state;         // state of each byte, see check.h; NULL: unknown
	uint8_t read_only;      // the argument is declared const
	uint8_t declared;       // the dispatch's effects are known
	uint8_t races;          // some argument of the dispatch writes the buffer
};

// dispatch is a dispatch that is to run.
struct dispatch {
	const struct kernel *kernel;
	uint64_t frame_bytes; // size of a coroutine frame; 0: the kernel is a function of rows
	uint32_t grid[3];     // threads
	uint32_t group[3];    // threads of a threadgroup
	void *buffers[SLOTS];
	uint32_t threadgroup_bytes[SLOTS]; // of arguments in threadgroup space
	struct bound bound[SLOTS];         // for buffers; all but bytes, buffer and offset only under the checker
	uint64_t seed;                     // shuffles threadgroups and threads; 0: they run in numerical order
};

// run runs a dispatch on all workers. It returns NULL or an error message. It ends early when *stop becomes true.
const char *run(const struct dispatch *, const _Atomic uint32_t *stop);

// MAX_MIXED is the maximum number of dispatches for run_mixed.
enum { MAX_MIXED = 16 };

// run_mixed runs dispatches that are not ordered among each other on the calling thread: it interleaves their
// threadgroups at random, and shuffles the threads of each.
const char *run_mixed(struct dispatch *const *, uint32_t count, uint64_t seed, const _Atomic uint32_t *stop);

struct check;

// run_checked is run on the calling thread alone, for a kernel that was compiled with checks.
const char *run_checked(const struct dispatch *, const _Atomic uint32_t *stop, struct check *);

// start_workers starts count threads besides the one that calls run, and waits until they are ready.
void start_workers(int count);

// fault_stack gives the calling thread an alternate signal stack, so that faults can be reported when a kernel has
// used up the stack.
void fault_stack(void);

// running is the dispatch that the calling thread runs, for messages of the signal handler.
extern _Thread_local const struct dispatch *running;

#endif
