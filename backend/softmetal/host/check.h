// The checker: see check.c.
#ifndef MLXC_CHECK_H
#define MLXC_CHECK_H
#include "executor.h"

enum { MAX_FINDINGS = 256 };

// What is known of a byte of device memory: bits of its state, one byte for each. They lie in
// shared memory; the other process sets DEFINED of what a replay begins with, and MAY_READ and
// MAY_WRITE before each dispatch.
enum { DEFINED = 1, MAY_READ = 2, MAY_WRITE = 4, WAS_READ = 8, WAS_WRITTEN = 16 };

enum finding_kind {
	OUT_OF_BOUNDS = 1,
	UNDEFINED_READ,
	UNDECLARED_READ,
	UNDECLARED_WRITE,
	WRITES_READ_ONLY,
	RACE_READ_AFTER_WRITE,
	RACE_WRITE_AFTER_WRITE,
	RACE_WRITE_AFTER_READ,
	DIVERGENT_BARRIER,  // some threads have returned
	DIFFERENT_BARRIERS, // threads wait at two
	PARTIAL_BARRIER,    // threads of a simdgroup that have not returned do not come to its barrier
	PARTIAL_MATRIX,     // not all threads of a simdgroup multiply matrices
	PARTIAL_ACCESS,     // or load or store one
	MISALIGNED,
	UNDEFINED_VALUE,    // of a variable that nothing has set, is used
	INACTIVE_LANE,      // a value of a thread that is not there is used
};

// finding is as the other process reads it.
struct finding {
	uint32_t kind;
	uint32_t access, other_access; // of kernel's accesses, or sites for barriers; 0xffff none
	int32_t argument;              // slot; 1000 + slot of threadgroup arguments; 2000 + variable; 3000 + private array; 4000 + constant array
	int64_t offset;                // bytes from its beginning
	uint32_t group, thread, other_group, other_thread;
	uint64_t times;
	uint32_t line, other_line; // of the source, 0 if unknown
	uint32_t bytes;            // of the access, 0 if that varies
	int32_t lane;              // that was asked for a value
};

// pages are the cells of a buffer, made as they are needed.
struct pages {
	struct cell **page;
	uint64_t count;
};

struct check_space {
	uint64_t id;
	struct pages *cells;
};

// mover is a thread at an access.
struct mover {
	uint32_t group; // number of the threadgroup, plus 1; 0: none
	uint16_t thread;
	uint16_t access;
	uint16_t epoch;      // threadgroup barriers passed that order the memory
	uint16_t simd_epoch; // the same of simdgroup barriers, those of the threadgroup included
};

// doubt is a store to bytes that another thread has written, about to happen. It is a finding
// if it changes them: what several threads write alike is whoever's, and MLX's kernels do so
// where the last rows of a matrix are computed twice.
struct doubt {
	const uint8_t *at; // NULL: there is none
	uint32_t bytes;
	int32_t argument;
	int64_t offset;
	struct mover by, before;
	uint8_t old[64];
};

// touched is an access that happens.
struct touched {
	uint8_t *state;  // of private memory, for each byte; NULL: it has none
	uint64_t n;
	int32_t argument; // as of a finding
	int64_t offset;
	uint8_t private;
	uint8_t parts; // what is read need not be set
	uint8_t set;   // all of it was
};

// own is a private variable of a thread whose address may be where the code does not show it.
struct own {
	uint8_t *at;
	uint64_t bytes;
	uint8_t *state; // or NULL
	uint32_t number;
};

enum { MAX_OWN = 16 }; // of a thread

// States of a byte of private memory.
enum { UNSET, SET, SET_UNDEFINED };

// stray is what a thread got that came from one that is not there.
struct stray {
	uint32_t site; // plus 1; 0: nothing
	int32_t lane;  // that it asked for
};

// check is the state of a checked dispatch, which runs on one thread.
struct check {
	const struct dispatch *dispatch;
	uint32_t group; // number of the threadgroup that runs
	uint32_t granule;
	uint8_t *memory; // of the threadgroup
	uint64_t memory_bytes;
	uint8_t **arguments; // threadgroup arguments
	uint8_t *written;    // which bytes of memory were
	size_t written_room;
	uint32_t device_barriers, threadgroup_barriers;
	uint32_t device_epoch[MAX_SIMDGROUPS], threadgroup_epoch[MAX_SIMDGROUPS];
	struct pages threadgroup_cells;
	struct check_space spaces[SLOTS];
	size_t space_count;
	struct finding findings[MAX_FINDINGS];
	uint32_t count;
	uint64_t dropped;
	uint8_t starved; // there was no memory for a table: not everything was seen
	struct doubt doubt;
	struct touched last, before; // the last access, and the one before
	// What the threads bring to a site, and get there: bits of the elements that are undefined, of each operand.
	uint8_t left[MAX_THREADS][3], taken[MAX_THREADS];
	struct stray strays[MAX_THREADS];
	struct own own[MAX_THREADS][MAX_OWN];
	uint8_t own_count[MAX_THREADS];
};

extern _Thread_local struct check *checking;

void check_begin(struct check *, const struct dispatch *);
void check_end(struct check *);
// check_group begins a threadgroup that has so many bytes of memory.
void check_group(struct check *, uint32_t group, size_t memory);
// check_barrier is told that the threads of a simdgroup, or all, have passed a barrier.
void check_barrier(struct check *, const struct site *, uint32_t simdgroup);
// check_exchange is told that threads of a simdgroup exchange.
void check_exchange(struct check *, int site, const struct exchange *, uint32_t active, int count, int simdgroup);
// check_values follows undefined values from thread to thread there (undefined.c).
void check_values(struct check *, uint32_t site, const struct exchange *, uint32_t active, int count, int simdgroup);
// check_use reports that a value which is undefined is used at a place: stored to memory that was touched, or in
// another way.
void check_use(struct check *, uint32_t place, uint32_t thread, const struct touched *);
void check_report(struct check *, enum finding_kind, uint32_t place, uint32_t thread, uint32_t other_place, uint32_t other_thread);

#endif
