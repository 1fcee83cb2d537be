// What the code that package air generates and the executor that runs it both know. The
// offsets stand in abi.go too; the assertions here hold the two together.
#ifndef MLXC_AIR_ABI_H
#define MLXC_AIR_ABI_H
#include <stddef.h>
#include <stdint.h>

enum { SIMD_WIDTH = 32 };

// group is what the threads of a threadgroup share.
struct group {
	void *const *buffers;      // by index, of device and constant space
	void *const *threadgroups; // by index, arguments of threadgroup space
	char *memory;              // the kernel's own threadgroup variables
	uint32_t threadgroup_position_in_grid[3];
	uint32_t threads_per_threadgroup[3]; // of this group, which may stand at the edge of the grid
	uint32_t threadgroups_per_grid[3];
	uint32_t threads_per_grid[3];
	uint32_t dispatch_threads_per_threadgroup[3];
	uint32_t simdgroups_per_threadgroup;
	uint32_t dispatch_simdgroups_per_threadgroup;
};

// exchange is where the threads of a simdgroup leave operands and find results. Values of one
// operand stand side by side: that of lane i begins at i times the size of its type.
struct exchange {
	_Alignas(64) uint8_t a[SIMD_WIDTH * 32];
	uint8_t b[SIMD_WIDTH * 32];
	uint8_t c[SIMD_WIDTH * 32];
	uint32_t argument[SIMD_WIDTH];
	int32_t site[SIMD_WIDTH]; // where each waits: an index of the kernel's sites, or FINISHED
};

enum { FINISHED = -1 };

// lane is a thread.
struct lane {
	struct exchange *exchange;
	uint32_t thread_position_in_grid[3];
	uint32_t thread_position_in_threadgroup[3];
	uint32_t thread_index_in_simdgroup;
	uint32_t simdgroup_index_in_threadgroup;
	uint32_t thread_index_in_threadgroup;
	uint32_t reserved;
};

// Operations of sites.
enum operation {
	THREADGROUP_BARRIER,
	SIMDGROUP_BARRIER,
	SUM,
	PRODUCT,
	MIN,
	MAX,
	AND,
	OR,
	XOR,
	PREFIX_INCLUSIVE_SUM,
	PREFIX_EXCLUSIVE_SUM,
	PREFIX_INCLUSIVE_PRODUCT,
	PREFIX_EXCLUSIVE_PRODUCT,
	SHUFFLE,
	SHUFFLE_UP,
	SHUFFLE_DOWN,
	SHUFFLE_XOR,
	SHUFFLE_ROTATE_UP,
	SHUFFLE_ROTATE_DOWN,
	SHUFFLE_AND_FILL_UP,
	SHUFFLE_AND_FILL_DOWN,
	BROADCAST_FIRST,
	ANY,
	ALL,
	BALLOT,
	IS_FIRST,
	ACTIVE_THREADS,
	MULTIPLY_ACCUMULATE,
	JOIN, // nothing: threads that went round a loop wait for those that have not
	TOGETHER, // nothing: of checked kernels, where all threads of a simdgroup have to come
};

// Types of the elements that an operation computes with.
enum element { F32, F16, BF16, S8, S16, S32, S64, U8, U16, U32, U64 };

// site is a place of a kernel at which threads exchange. Sites are in an order in which a
// thread that waits at a lower one may still come to a higher one, and in which those of a loop
// stand before those behind it; the way back in the loop leads to lower ones.
struct site {
	uint8_t operation, element;
	uint8_t count; // elements of a value
	uint8_t width; // threads that exchange: 32, or the 4 of a quadgroup
	uint32_t flags; // of a barrier: the memory that it orders
	uint32_t line;  // of the source, 0 if unknown
	uint32_t stride; // bytes from a lane's operand to the next lane's, of all sites of the kernel
};

// Memory that a barrier orders, as Metal's mem_flags have it.
enum { MEM_DEVICE = 1, MEM_THREADGROUP = 2 };

// access is a place of a checked kernel at which it touches memory.
struct access {
	uint8_t kind;   // LOAD…
	uint8_t space;  // by AIR's numbers: SPACE_GENERIC…
	uint8_t origin; // where the address comes from: ORIGIN_NONE if that is not known
	uint8_t index;  // the argument's slot, the variable's, private or constant array's number
	uint32_t bytes; // 0: varies
	uint32_t line;  // of the source, 0 if unknown
	uint32_t align; // what the address is a multiple of, as Metal asks; 0 or 1: it does not
};

// ATOMIC reads and writes, COPIED reads what goes elsewhere as it is, or is part of a vector. The last three are no accesses but places at
// which a value must not be undefined: where it is stored, decides where to go, or what to touch. Their index has
// bits that say where such a value may come from, and their bytes are a line of the source from which.
enum { LOAD, STORE, ATOMIC, ATOMIC_LOAD, ATOMIC_STORE, COPIED, VALUE, BRANCH, ADDRESS };
enum { FROM_UNSET = 1, FROM_EXCHANGE = 2, IS_UNSET = 4 }; // IS_UNSET: it is what nothing has set, and nothing else
enum { SPACE_GENERIC, SPACE_DEVICE, SPACE_CONSTANT, SPACE_THREADGROUP };
enum { ORIGIN_NONE, ORIGIN_ARGUMENT, ORIGIN_VARIABLE, ORIGIN_PRIVATE, ORIGIN_TABLE };

// variable is a piece of the kernel's own threadgroup memory.
struct variable {
	uint32_t offset, bytes;
};

// kernel is what a shared object exports, as mlxc_kernel. It has start, or row.
struct kernel {
	// start begins the coroutine of a thread in frame, and runs it to its first site. It
	// returns frame. Without a frame it returns how many bytes one has. What it returns begins
	// with the function that resumes it.
	void *(*start)(void *frame, const struct group *, struct lane *);
	// row runs all threads of a threadgroup that differ in x only.
	void (*row)(const struct group *, uint32_t y, uint32_t z);
	const struct site *sites;
	uint32_t site_count;
	uint32_t memory; // bytes of the kernel's own threadgroup variables
	// Of a checked kernel.
	const struct access *accesses;
	const struct variable *variables;
	uint32_t access_count, variable_count;
};

#define AT(type, member, offset) _Static_assert(offsetof(struct type, member) == (offset), #member)
AT(group, threadgroups, 8);
AT(group, memory, 16);
AT(group, threadgroup_position_in_grid, 24);
AT(group, threads_per_threadgroup, 36);
AT(group, threadgroups_per_grid, 48);
AT(group, threads_per_grid, 60);
AT(group, dispatch_threads_per_threadgroup, 72);
AT(group, simdgroups_per_threadgroup, 84);
AT(group, dispatch_simdgroups_per_threadgroup, 88);
AT(exchange, b, 1024);
AT(exchange, c, 2048);
AT(exchange, argument, 3072);
AT(exchange, site, 3200);
AT(lane, thread_position_in_grid, 8);
AT(lane, thread_position_in_threadgroup, 20);
AT(lane, thread_index_in_simdgroup, 32);
AT(lane, simdgroup_index_in_threadgroup, 36);
AT(lane, thread_index_in_threadgroup, 40);
AT(kernel, memory, 28);
AT(kernel, variable_count, 52);
AT(site, line, 8);
AT(access, align, 12);
#undef AT
#endif
