// Declarations that the files of the stand-in share: requests to the Go half, faults, options and classes.
#pragma once
#include "objc.h"

#include <pthread.h>

// An MTLSize. The arm64 ABI passes structures of more than 16 bytes as a pointer to a copy, which the
// called function may change. On amd64, whose ABI passes them on the stack, our callers pass such a
// pointer too.
typedef struct { uint64_t x, y, z; } size3;
#ifdef __aarch64__
typedef size3 size_argument;
#define TAKE(s, sel) (s)
#else
typedef size3 *size_argument;
size3 take_size(size3 *, sel);
#define TAKE(s, sel) take_size(s, sel)
#endif

// --- options.c: the options of a test's device, and the faults that it injects ---

struct options {
	long seed;        // chooses the order in which commands run; 0: the order of commits
	long lazy;        // nothing runs before somebody waits
	long late;        // max microseconds between a command buffer's end and its completion
	long patience;    // milliseconds without progress after which a wait is a deadlock
	long threads;     // maxTotalThreadsPerThreadgroup
	long buffer;      // maxBufferLength
	long working_set; // recommendedMaxWorkingSetSize
	long family;      // the highest MTLGPUFamilyApple
	long width;       // threadExecutionWidth
	long constants;   // alignment of offsets of constant arguments
	long residency;   // buffers that indirect commands use must be resident
	long dispatches;  // counters can be sampled between dispatches
	long capture;     // captures are possible
	long most;        // max dispatches of a command buffer: with more it fails for interactivity; 0: any number
	long walls;       // setBarrier of an indirect command orders all later commands too
	long cold;        // indirect commands do not run if no encoder has dispatched their pipeline
	long ignored;     // set of enum order: orders that are not kept, though they should be
	long range;       // max indirect commands that one message executes
	long samples;     // max samples of a sample buffer
	long reach;       // the first offset that is too large for indirect commands
	long lacks;       // set of enum lack: features that the device lacks
	long idle;        // command buffers complete only when nothing else is left to run
	long in_order;    // command buffers of a queue complete in the order in which they were enqueued
	long anywhere;    // buffers without a copy may begin and end anywhere; only blits use such ones
	long full;        // asking a full queue for a command buffer is a mistake, since it would block
};
enum order { TRACKING = 1, FENCES = 2, BARRIERS = 4, EVENTS = 8, SERIAL = 16, INDIRECT_BARRIERS = 32 };
enum lack { PARTIAL_CHANGES = 1, INDIRECT_THREADGROUPS = 2, ARCHIVE_HITS = 4, TIMES = 8 };
extern struct options options;

enum operation { ALLOCATION, COMPILATION, PIPELINE, QUEUE, EVENT, COMMAND_BUFFER, CAPTURE, ARCHIVE, RESIDENCY, COUNTERS, OPERATIONS };
struct fault { int operation; long nth, code; char text[200]; };
// faulty counts an operation, and returns the fault with which it is to fail, NULL for none.
const struct fault *faulty(enum operation o);
extern _Atomic bool faults_shown; // some operation has failed by a fault
extern _Atomic bool lost;         // the device was lost

// fail_with stores an NSError in *slot, unless slot is NULL, and returns NULL.
void *fail_with(object **slot, const char *domain, long code, const char *text);

// --- channel.c: requests to the Go half ---

enum request { ASK_ALLOCATE = 1, ASK_FREE, ASK_SOURCE, ASK_OPEN, ASK_FUNCTION, ASK_PIPELINE, ASK_RUN };
struct message { char *bytes; size_t n, room; };
void put(struct message *, const void *bytes, size_t n);
void put32(struct message *, uint32_t);
void put64(struct message *, uint64_t);
void put_text(struct message *, const char *);
struct answer { uint32_t status; char *bytes; size_t n, at; };
// ask sends a request, which it frees, and waits for the answer. If the status is not 0 the answer
// is the text of an error. The caller frees answer.bytes, which end with a zero byte.
void ask(enum request, struct message *, struct answer *);
uint32_t get32(struct answer *);
uint64_t get64(struct answer *);
const char *get_text(struct answer *); // freed with the answer
bool connected(void);
extern _Atomic long connection; // counts the connections; it is the number of the current one

// --- buffer.c ---

struct node; // of schedule.c
void unref_node(struct node *);


// access is a use of a resource by a dispatch that had not run when it was last looked at.
struct access { struct node *n; struct queue *q; bool writes; };

// resource is the memory of a buffer; commands in flight keep it beyond the buffer's end.
struct resource {
	long refs;
	uint64_t handle;       // the Go half's number of the memory
	long connection;       // the connection of that number; when it ends the memory is gone
	char *address;         // the address of the memory
	uint64_t offset;       // of its first byte in the memory of the handle
	uint64_t length;
	bool tracked;
	bool read_only;        // host memory that is mapped read-only
	bool freed;            // its buffer was freed
	struct access *accesses;
	size_t n, room;
	long flights;          // number of command buffers in flight that use it
	long within;             // number of resources that lie in its memory
	struct resource *inside; // the resource in whose memory it lies; NULL: it has its own
	char *behind;            // guard bytes after it, which nobody may write; NULL: there are none
	char *host;              // the host's memory that it shares (no copy); NULL: none
};
void unref(struct resource *);
struct resource *resource_of(object *buffer);
void set_heap(object *buffer, object *heap);
extern class MTLBuffer, MTLResource;

// --- collections.c ---

// with_macros returns a source behind a #define for each key of a dictionary, in the order of the keys. The caller frees it.
char *with_macros(object *dictionary, const char *source);

// --- library.c, pipeline.c, archive.c ---

struct constant { uint32_t index, type; uint64_t bits; bool given; };
struct function { object base; object *library; uint32_t number; char *name; struct constant *constants; size_t n; };
extern class MTLFunction, MTLLibrary;
extern class MTLBinaryArchive, MTLComputePipelineDescriptor;

enum { SLOTS = 31 };
enum space { DEVICE = 1, CONSTANT = 2, THREADGROUP = 3 };
struct argument {
	uint32_t space, slot;
	bool reads, writes, used, needed; // used by the kernel; needed: it must be bound
	uint64_t size;  // bytes of a reference argument; 0: not known
	uint64_t align; // alignment of an element, in bytes
	char name[64];
};
struct pipeline {
	object base;
	uint32_t number;
	long max_threads, own_memory;
	bool indirect;
	bool warm; // an encoder has dispatched it
	struct argument *arguments;
	size_t n;
};
extern class MTLComputePipelineState;
object *new_pipeline(object *device, sel s, object *descriptor, uintptr_t options, void *reflection, object **error);
char *archive_key(struct function *f, bool indirect); // identifies a pipeline in archives
bool archived(object *archive, const char *key);

// --- queue.c, commandbuffer.c, encoder.c, indirect.c ---

struct list { void **at; size_t n, room; };
void add_to(struct list *, void *);

struct queue {
	object base;
	long max, uncompleted;
	struct list order; // command buffers that were enqueued and not scheduled yet
	object **sets;     // MTLResidencySets
	size_t n;
};
extern class MTLCommandQueue, MTLCommandBuffer, MTLCommandEncoder, MTLComputeCommandEncoder, MTLBlitCommandEncoder;
void end_blits(SELF);

// bindings are the pipeline and arguments that are set in an encoder or an indirect command.
struct binding { object *buffer; uint64_t offset; uint32_t length; char *bytes; };
struct bindings {
	object *pipeline;
	struct binding buffers[SLOTS];
	uint32_t threadgroup[SLOTS];
};
// grid is the size of a dispatch; indirect: a buffer with the counts, at byte at.
struct grid { bool threads; size3 grid, group; object *indirect; uint64_t at; };

// launch is a checked dispatch that is ready to run.
struct use { struct resource *r; bool reads, writes; };
struct launch {
	struct message request; // the request that runs it; its grid is at byte grid_at
	size_t grid_at;
	struct resource *counts; // the buffer with the counts, of an indirect dispatch
	uint64_t counts_at;
	struct use uses[SLOTS + 1];
	size_t n;
	struct blit *blit; // it copies or fills memory, and runs no kernel
};
// launch_of checks a dispatch; if it breaks a rule of Metal, that is noted and NULL is returned.
struct launch *launch_of(const struct bindings *, const struct grid *, sel s);
void free_launch(struct launch *);

// --- blit.c ---
struct blit { char *to; const char *from; uint64_t length; int value; }; // from: NULL fills
void run_blit(const struct blit *);

// --- overlap.c ---
struct image;
bool conflict(const struct launch *, const struct launch *); // both use a buffer that one of them writes
struct image *remember(const struct launch *);               // saves the buffers that it may write; NULL if they are too large
void take_back(struct image *);
void put_together(struct image *);

struct declared { object *o; bool reads, writes; }; // declared by useResource
enum command_kind { DISPATCH, BARRIER, EXECUTE, SAMPLE };
struct command {
	enum command_kind kind;
	struct launch *launch;
	object *o; // indirect command buffer, or counter sample buffer
	uint64_t from, count;
	size_t declared; // number of resources that were declared before it
	bool barrier;
	struct bindings *inherited;
};
// pass is the commands that one encoder has encoded.
struct pass {
	bool concurrent, begun;
	struct list commands;  // struct command
	struct list waits, updates; // fences
	struct list declared;  // struct declared
	object *samples;
	uint64_t first_sample, last_sample;
	double begin, end;
};

enum item_kind { PASS, SIGNAL, WAIT };
struct item { enum item_kind kind; struct pass *pass; object *event; uint64_t value; };
enum status { NOT_ENQUEUED, ENQUEUED, COMMITTED, SCHEDULED, COMPLETED, ERROR };
struct command_buffer {
	object base;
	struct queue *queue;
	bool references; // it retains what it uses
	enum status status;
	object *error;
	struct list kept;      // objects that it retains
	struct list borrowed;  // struct borrowed: objects that it uses without retaining them
	struct list resources; // struct resource that it uses
	struct list indirects; // indirect command buffers that it executes
	struct list items;
	object *open;          // the encoder that has not ended
	long groups;           // open debug groups
	long pending;          // number of nodes that have not run
	struct list nodes;     // its nodes, until all have run
	bool scheduled, failed;
	long code;
	char text[256];
	long stop_after;       // number of dispatches after which it fails; −1: never
	double begin, end;
	uint64_t due;
	struct list handlers;  // blocks, to be called when it has completed
	bool handled;          // they have returned
};
struct borrowed { object *o; class *k; };
// keep makes the command buffer retain an object. If it is one without references, the object is only
// noted, and the caller must keep it alive until the command buffer has completed.
void keep(struct command_buffer *, object *);
void check_borrowed(struct command_buffer *, const char *when);
void call_handlers(struct command_buffer *); // called without gpu
void has_completed(void); // counts a committed command buffer as completed; gpu is held
void fly(struct command_buffer *, struct resource *); // notes that the command buffer uses a resource

struct launch *indirect_launch(object *icb, uint64_t i, const struct bindings *inherited, bool *barrier, sel s);
uint64_t indirect_size(object *icb);
void indirect_fly(object *icb, long by);
extern class MTLIndirectCommandBuffer;

// --- schedule.c, gpu.c ---

extern pthread_mutex_t gpu;        // guards the state of the GPU; "gpu held": the caller has locked it
extern pthread_cond_t gpu_changed; // signalled when something has run, or was committed
void schedule(struct queue *q);    // builds the nodes of all command buffers that may run, gpu held
void demand(long by);              // adds to the number of waiting threads, gpu held
bool stuck(double since);          // whether nothing has run for options.patience, gpu held
void give_up(struct command_buffer *, const char *why); // fails it and those that wait for events, gpu held
void wake_gpu(void);               // called when the value of an event has changed, gpu held
double now(void);                  // seconds of CLOCK_MONOTONIC
void gpu_begin(void);
void gpu_end(void);
bool wait_changed(long milliseconds); // waits for gpu_changed, gpu held
long drain(void); // waits until nothing is in flight; returns how many command buffers were given up

// --- event.c ---
struct event { object base; uint64_t value; bool shared; };
struct fence { object base; struct node *update; struct queue *queue; };
extern class MTLEvent, MTLFence, MTLSharedEvent;

// --- residency.c, counters.c ---
bool resident(struct queue *q, struct resource *r); // whether a residency set of the queue has it
extern class MTLResidencySet, MTLCounterSampleBuffer;
void sample(object *samples, uint64_t index, double seconds);
uint64_t sample_count(object *samples);
enum { NO_SAMPLE = -1 };
uint64_t ticks_of(double seconds);

// --- labels.c ---
void note_label(const char *what, object *text);
void forget_labels(void);

// --- device.c ---
extern class MTLDevice;
extern object *the_device;
void capture_command_buffer(struct command_buffer *); // counts it, if a capture is being made
void end_capture(void);
void metal_begins_anew(void);
void metal_starts(void); // reads the environment, once
