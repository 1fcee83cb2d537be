// The checker: see check.c.
#ifndef MLXC_CHECK_H
#define MLXC_CHECK_H
#include "executor.h"

enum { MAX_FINDINGS = 256 };

// Bytes before and behind threadgroup memory that are nobody's, as much as a GPU has: what misses it by less is known for that.
enum { THREADGROUP_GUARD = 32 << 10 };

// Stands for an argument where an address lies in no buffer that is bound (-1), or where one in threadgroup memory lies in none of its
// variables and arguments.
enum { NOBODYS = -2 };

// Bits of the state of a byte of device memory, which is one byte. States lie in shared memory; the host process sets
// DEFINED for what a replay begins with, and MAY_READ and MAY_WRITE before each dispatch.
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
	DIVERGENT_BARRIER,  // some threads have returned, and others wait at a barrier
	DIFFERENT_BARRIERS, // threads wait at different barriers
	PARTIAL_BARRIER,    // threads of a simdgroup that have not returned do not come to its barrier
	PARTIAL_MATRIX,     // not all threads of a simdgroup multiply matrices
	PARTIAL_ACCESS,     // the same of a load or store of a matrix
	MISALIGNED,
	UNDEFINED_VALUE,    // a value that depends on an unset variable is used
	INACTIVE_LANE,      // a value that was taken from an inactive lane is used
};

// finding is a finding in the layout in which the host process reads it.
struct finding {
	uint32_t kind;
	uint32_t access, other_access; // index in the kernel's accesses, or in its sites for barriers; 0xffff: none
	int32_t argument;              // -1, NOBODYS, or slot; 1000 + slot of threadgroup arguments; 2000 + variable; 3000 + private array; 4000 + constant array
	int64_t offset;                // bytes from its beginning
	uint32_t group, thread, other_group, other_thread;
	uint64_t times;
	uint32_t line, other_line; // of the source, 0 if unknown
	uint32_t bytes;            // of the access, 0 if that varies
	int32_t lane;              // lane that was asked for a value; for MISALIGNED the required alignment
};

// pages holds the cells of a memory, allocated in pages when they are needed.
struct pages {
	struct cell **page;
	uint64_t count;
};

struct check_space {
	uint64_t id;
	struct pages *cells;
};

// mover is a thread that makes an access, and how many barriers it has passed by then.
struct mover {
	uint32_t group; // index of the threadgroup, plus 1; 0: none
	uint16_t thread;
	uint16_t access;
	uint16_t epoch;      // threadgroup barriers passed that order the memory
	uint16_t simd_epoch; // the same of barriers of its simdgroup
};

// doubt is a pending store to bytes that another thread has written. It is a race only if it changes them: several
// threads may write the same value, as those of MLX's kernels do where they compute the last rows of a matrix twice.
struct doubt {
	const uint8_t *at; // NULL: there is none
	uint32_t bytes;
	int32_t argument;
	int64_t offset;
	struct mover by, before;
	uint8_t old[64];
};

// touched describes an access, for the calls about its value that follow it.
struct touched {
	uint8_t *state;  // state of each byte of private memory; NULL: none
	uint64_t n;
	int32_t argument; // as of a finding
	int64_t offset;
	uint8_t private;
	uint8_t parts; // a copy, for which not all bytes need be set
	uint8_t set;   // all bytes were set
};

// own is a private variable of a thread that may be accessed through generic pointers.
struct own {
	uint8_t *at;
	uint64_t bytes;
	uint8_t *state; // or NULL
	uint32_t number;
};

enum { MAX_OWN = 16 }; // for each thread

// States of a byte of private memory.
enum { UNSET, SET, SET_UNDEFINED };

// stray says from which inactive lane a thread took a value.
struct stray {
	uint32_t site; // index of the kernel's site, plus 1; 0: there is no such value
	int32_t lane;  // the lane that was asked for
};

// check is the state of the checker during a dispatch, which then runs on one thread.
struct check {
	const struct dispatch *dispatch;
	uint32_t group; // index of the running threadgroup
	uint32_t granule;
	uint8_t *memory; // threadgroup memory
	uint64_t memory_bytes;
	uint8_t **arguments; // threadgroup arguments
	uint8_t *written;    // for each byte of memory: whether it was written
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
	// Masks of undefined vector elements: of the operands that a thread brings to a site, and of the result it gets.
	uint8_t left[MAX_THREADS][3], taken[MAX_THREADS];
	struct stray strays[MAX_THREADS];
	struct own own[MAX_THREADS][MAX_OWN];
	uint8_t own_count[MAX_THREADS];
};

extern _Thread_local struct check *checking;

void check_begin(struct check *, const struct dispatch *);
void check_end(struct check *);
// check_group begins a threadgroup that has memory bytes of threadgroup memory.
void check_group(struct check *, uint32_t group, size_t memory);
// check_barrier notes that the threads of a simdgroup, or of the whole threadgroup, have passed a barrier.
void check_barrier(struct check *, const struct site *, uint32_t simdgroup);
// check_exchange checks that the right threads of a simdgroup take part in an operation, and calls check_values.
void check_exchange(struct check *, int site, const struct exchange *, uint32_t active, int count, int simdgroup);
// check_values propagates undefined values between threads in a simdgroup operation (undefined.c).
void check_values(struct check *, uint32_t site, const struct exchange *, uint32_t active, int count, int simdgroup);
// check_use reports that an undefined value is used at a place: stored to the memory touched, or used otherwise if
// that is NULL.
void check_use(struct check *, uint32_t place, uint32_t thread, const struct touched *);
void check_report(struct check *, enum finding_kind, uint32_t place, uint32_t thread, uint32_t other_place, uint32_t other_thread);

#endif
