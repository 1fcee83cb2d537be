// What the files of Metal share: requests to the Go half, faults, options, and the classes.
#pragma once
#include "objc.h"

#include <pthread.h>

// An MTLSize. Apple's arm64 passes it as the ABI has structures of more than 16 bytes: by a pointer
// to a copy that is the called function's. On amd64, where the ABI would take it from the stack,
// the convention with our callers is the same.
typedef struct { uint64_t x, y, z; } size3;
#ifdef __aarch64__
typedef size3 size_argument;
#define TAKE(s, sel) (s)
#else
typedef size3 *size_argument;
size3 take_size(size3 *, sel);
#define TAKE(s, sel) take_size(s, sel)
#endif

// --- options.c: what a test asks for, and the faults that it injects ---

struct options {
	long seed;        // of the order in which commands run; 0: that of the list
	long lazy;        // nothing runs before somebody waits
	long late;        // the most microseconds between a command buffer's end and its completion
	long patience;    // milliseconds without progress until a wait is a deadlock
	long threads;     // maxTotalThreadsPerThreadgroup
	long buffer;      // maxBufferLength
	long working_set; // recommendedMaxWorkingSetSize
	long family;      // of Apple's GPUs
	long width;       // threadExecutionWidth
	long constants;   // what offsets of constant arguments are multiples of
	long residency;   // what an indirect command buffer reaches must be resident
	long dispatches;  // counters can be sampled between dispatches
	long capture;     // captures are possible
	long most;        // dispatches of a command buffer, beyond which it keeps the screen waiting; 0: any number
	long walls;       // barriers inside of indirect command buffers order what stands behind them
	long cold;        // commands of indirect command buffers do not run whose pipeline no encoder has dispatched
	long ignored;     // enum order: what orders nothing, though it should
	long range;       // commands that are executed by one message at most
	long samples;     // of a sample buffer
	long reach;       // what offsets in indirect commands are below: they have 32 bits
	long lacks;       // enum lack: what a device has not, though it should
	long idle;        // command buffers complete when nothing is left that can run
	long full;        // nobody may ask a queue for more command buffers than it holds: that blocks
};
enum order { TRACKING = 1, FENCES = 2, BARRIERS = 4, EVENTS = 8, SERIAL = 16, INDIRECT_BARRIERS = 32 };
enum lack { PARTIAL_CHANGES = 1, INDIRECT_THREADGROUPS = 2, ARCHIVE_HITS = 4, TIMES = 8 };
extern struct options options;

enum operation { ALLOCATION, COMPILATION, PIPELINE, QUEUE, EVENT, COMMAND_BUFFER, CAPTURE, ARCHIVE, RESIDENCY, COUNTERS, OPERATIONS };
struct fault { int operation; long nth, code; char text[200]; };
// faulty counts an operation and returns the fault that it is to have, NULL for none.
const struct fault *faulty(enum operation o);
extern _Atomic bool faults_shown; // one was
extern _Atomic bool lost;         // the device is

// fail_with puts an error where the caller wants it and returns NULL.
void *fail_with(object **slot, const char *domain, long code, const char *text);

// --- channel.c: requests to the Go half ---

enum request { ASK_ALLOCATE = 1, ASK_FREE, ASK_SOURCE, ASK_OPEN, ASK_FUNCTION, ASK_PIPELINE, ASK_RUN };
struct message { char *bytes; size_t n, room; };
void put(struct message *, const void *bytes, size_t n);
void put32(struct message *, uint32_t);
void put64(struct message *, uint64_t);
void put_text(struct message *, const char *);
struct answer { uint32_t status; char *bytes; size_t n, at; };
// ask sends a request, which it frees, and waits for the answer. The status is 0, or not and the
// answer a text that says why. The caller frees answer.bytes, which end with a zero.
void ask(enum request, struct message *, struct answer *);
uint32_t get32(struct answer *);
uint64_t get64(struct answer *);
const char *get_text(struct answer *); // freed with the answer
bool connected(void);
extern _Atomic long connection; // how many there were, with this one

// --- buffer.c ---

struct node; // of schedule.c
void unref_node(struct node *);


// access is that of a dispatch which has not run, or had not.
struct access { struct node *n; struct queue *q; bool writes; };

// resource is a buffer's memory, which commands in flight keep.
struct resource {
	long refs;
	uint64_t handle;       // of the Go half
	long connection;       // on which that stands: with it the memory is gone
	char *address;         // as the host sees it
	uint64_t offset;       // where it begins in the memory of the handle
	uint64_t length;
	bool tracked;
	bool read_only;        // memory of the host that is mapped so
	bool freed;            // its buffer was
	struct access *accesses;
	size_t n, room;
	long flights;          // of command buffers, with or without references
	struct resource *inside; // whose memory it lies in; NULL: it has its own
	char *behind;            // bytes behind it that nobody may write; NULL: there are none
	char *host;              // where memory of the host that is shared begins; NULL: it is not
};
void unref(struct resource *);
struct resource *resource_of(object *buffer);
extern class MTLBuffer, MTLResource;

// --- library.c, pipeline.c, archive.c ---

struct constant { uint32_t index, type; uint64_t bits; bool given; };
struct function { object base; object *library; uint32_t number; char *name; struct constant *constants; size_t n; };
extern class MTLFunction, MTLLibrary;
extern class MTLBinaryArchive, MTLComputePipelineDescriptor;

enum { SLOTS = 31 };
enum space { DEVICE = 1, CONSTANT = 2, THREADGROUP = 3 };
struct argument {
	uint32_t space, slot;
	bool reads, writes, used, needed; // needed: it must be bound
	uint64_t size;  // of a reference; 0: only the shape tells
	uint64_t align; // of an element
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
char *archive_key(struct function *f, bool indirect); // what an archive knows a pipeline by
bool archived(object *archive, const char *key);

// --- queue.c, commandbuffer.c, encoder.c, indirect.c ---

struct list { void **at; size_t n, room; };
void add_to(struct list *, void *);

struct queue {
	object base;
	long max, uncompleted;
	struct list order; // command buffers that were enqueued and are not scheduled
	object **sets;     // of residency
	size_t n;
};
extern class MTLCommandQueue, MTLCommandBuffer, MTLComputeCommandEncoder;

// bindings are what an encoder, or a command of an indirect command buffer, has set.
struct binding { object *buffer; uint64_t offset; uint32_t length; char *bytes; };
struct bindings {
	object *pipeline;
	struct binding buffers[SLOTS];
	uint32_t threadgroup[SLOTS];
};
// grid is what is dispatched.
struct grid { bool threads; size3 grid, group; object *indirect; uint64_t at; };

// launch is a dispatch, ready to run.
struct use { struct resource *r; bool reads, writes; };
struct launch {
	struct message request; // to run it; the grid stands at grid_at
	size_t grid_at;
	struct resource *counts; // of an indirect dispatch
	uint64_t counts_at;
	struct use uses[SLOTS + 1];
	size_t n;
};
// launch_of checks a dispatch and returns it, NULL if Metal would not take it.
struct launch *launch_of(const struct bindings *, const struct grid *, sel s);
void free_launch(struct launch *);

// --- overlap.c ---
struct image;
bool conflict(const struct launch *, const struct launch *); // they touch the same buffer
struct image *remember(const struct launch *);               // what it may write; NULL if that is too much
void take_back(struct image *);
void put_together(struct image *);

struct declared { object *o; bool reads, writes; }; // by useResource
enum command_kind { DISPATCH, BARRIER, EXECUTE, SAMPLE };
struct command {
	enum command_kind kind;
	struct launch *launch;
	object *o; // indirect command buffer, or counter sample buffer
	uint64_t from, count;
	size_t declared; // resources that were declared before
	bool barrier;
	struct bindings *inherited;
};
// pass is what one encoder has encoded.
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
	bool references; // it keeps what it uses
	enum status status;
	object *error;
	struct list kept;      // objects
	struct list borrowed;  // struct borrowed, of one that keeps nothing
	struct list resources; // struct resource in flight
	struct list indirects; // indirect command buffers in flight
	struct list items;
	object *open;          // the encoder that has not ended
	long groups;           // debug groups
	long pending;          // nodes that have not run
	struct list nodes;     // while it is scheduled
	bool scheduled, failed;
	long code;
	char text[256];
	long stop_after;       // dispatches, then it fails; −1: it does not
	double begin, end;
	uint64_t due;
};
struct borrowed { object *o; class *k; };
// keep has the command buffer hold an object, if it holds any; else somebody else has to, until the
// command buffer has completed.
void keep(struct command_buffer *, object *);
void check_borrowed(struct command_buffer *, const char *when);
void has_completed(void); // one that was committed, gpu held
void fly(struct command_buffer *, struct resource *); // the command buffer uses the memory

struct launch *indirect_launch(object *icb, uint64_t i, const struct bindings *inherited, bool *barrier, sel s);
uint64_t indirect_size(object *icb);
void indirect_fly(object *icb, long by);
extern class MTLIndirectCommandBuffer;

// --- schedule.c, gpu.c ---

extern pthread_mutex_t gpu;        // held by who reads or writes what follows
extern pthread_cond_t gpu_changed; // something ran, or was given
void schedule(struct queue *q);    // everything that may be, gpu held
void demand(long by);              // somebody waits, gpu held
bool stuck(double since);          // nothing has run for the patience of the options, gpu held
void give_up(struct command_buffer *, const char *why); // gpu held
void wake_gpu(void);               // an event has changed, gpu held
double now(void);                  // seconds
void gpu_begin(void);
void gpu_end(void);
bool wait_changed(long milliseconds); // gpu held
long drain(void); // waits until nothing is in flight, and returns how many command buffers remain

// --- event.c ---
struct event { object base; uint64_t value; bool shared; };
struct fence { object base; struct node *update; struct queue *queue; };
extern class MTLEvent, MTLFence, MTLSharedEvent;

// --- residency.c, counters.c ---
bool resident(struct queue *q, struct resource *r); // a residency set of the queue has it
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
void capture_command_buffer(struct command_buffer *); // a capture counts it
void end_capture(void);
void metal_begins_anew(void);
void metal_starts(void); // what it reads in the environment it reads now, once
