//go:build ignore

/* A library that logs what the program that loads it sends to Metal (.mlxtrace), for programs that know nothing of it.
 *
 * It needs no header of Apple's: functions of the Objective-C runtime and of Metal are found by dlsym. Methods of the concrete
 * classes of device, queue, command buffer, encoders, libraries and heaps are replaced by ones that log and call what was there. An object's number is
 * given once, when it is made; only buffers are retained, while command buffers in flight use them. What is encoded, which is most of what
 * a program sends, takes no lock: Metal has an encoder be used by one thread at a time, so its events wait in memory of its own until it ends. Contents of buffers are logged before the commit that may read them: at first whole, later
 * what has changed, by digests of pieces, unless the GPU may have changed it meanwhile.
 *
 *   DYLD_INSERT_LIBRARIES=mlxcapture.dylib MLXC_CAPTURE=log.mlxtrace program    from the start
 *   mlxcapture_start("log.mlxtrace", device), mlxcapture_step("decode"), mlxcapture_stop()    by a program that loads it
 *
 * Build: zig cc -target aarch64-macos -shared shim.c -o mlxcapture.dylib */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#define MLXREC_IMPLEMENTATION
#include "mlxrec.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#define N(x) ((uint64_t)(x))
#define PUBLIC __attribute__((visibility("default")))

typedef void *id;
typedef const char *SEL; /* compared as a pointer */
typedef struct { uint64_t x, y, z; } size3;
typedef struct { uint64_t location, length; } range;

/* An MTLSize is 24 bytes, which arm64 passes by reference, as C does there. What stands in for Metal on other machines does so too. */
#ifdef __aarch64__
typedef size3 size3_arg;
#define SIZE(x) (x)
#else
typedef const size3 *size3_arg;
#define SIZE(x) (*(x))
#endif

static id (*send)(id, SEL, ...);
static SEL (*selector)(const char *);
static id (*class_of)(id);
static id (*method_of)(id, SEL);
static id (*super_of)(id);
static void *(*set_code)(id, void *), *(*code_of)(id);
static const char *(*types_of)(id);
static bool (*add_method)(id, SEL, void *, const char *);
static id (*retain)(id);
static void (*release)(id);
static void *(*push_pool)(void);
static void (*pop_pool)(void *);

#ifdef PTHREAD_RECURSIVE_MUTEX_INITIALIZER /* recursive, since what is released may call back */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER;
#else
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
#endif
static mlxrec *log_;     /* NULL: nothing is logged */
static uint32_t session; /* how many logs were begun */

#define READ(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define PUBLISH(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)

/* --- what is known of objects, by their addresses --- */

enum { NONE, BUFFER, LIBRARY, FUNCTION, VALUES, DESCRIPTOR, PIPELINE, QUEUE, COMMANDS, ENCODER, FENCE, EVENT };

typedef struct info {
  struct info *next; /* these stay as they are: other threads look for other objects meanwhile */
  id object;
  int kind;
  uint32_t session; /* the log that it belongs to; begins what make() clears */
  uint64_t number, size;      /* of a buffer; of an event: the command buffer that signals it last; of that: the program has a handler */
  uint64_t library;           /* of a function: its number; of an event: the value that was signalled last */
  struct info *commands;      /* of an encoder: its command buffer */
  char *name;                 /* of a function or library */
  mlxrec_constant *constants; /* of values, functions */
  size_t n_constants;
  struct info *function;      /* of a descriptor */
  uint64_t *pieces;           /* of a buffer: digests of its pieces, once its contents are logged */
  uint64_t busy;              /* of a buffer: command buffers that use it and have not ended */
  uint64_t seen;              /* of a buffer: the command buffer that lists it, if it is the last one that does */
  size_t n_used, n_events;
  struct info *slots[31];     /* of an encoder: the buffers that are bound, for setBufferOffset */
  /* This memory is not freed when a log ends: a thread may be about to use it. */
  struct info **used;         /* of a command buffer: buffers */
  unsigned char *events;      /* of an encoder: what is not in the log yet */
  size_t room, events_room; /* room of used is for as many buffers, of events for as many bytes */
} info;

static info *table[1 << 14];
static uint64_t last_number;

static size_t bucket(id o) { return ((uintptr_t)o >> 4) * 0x9e3779b97f4a7c15u >> 50; }

static info *entry(id o, int kind) {
  if (!o) return NULL;
  for (info *i = READ(table[bucket(o)]); i; i = i->next)
    if (i->object == o && i->kind == kind) return i;
  return NULL;
}

static info *find(id o, int kind) {
  info *i = entry(o, kind);
  return i && i->session == READ(session) ? i : NULL;
}

static void clear(info *i) {
  free(i->constants), free(i->name), free(i->pieces);
  memset(&i->session, 0, offsetof(info, used) - offsetof(info, session));
}

/* make returns a new entry for an object. One of the same kind at its address is of an object that was freed. */
static info *make(id o, int kind) {
  info *i = entry(o, kind);
  if (i) {
    if (i->kind == BUFFER && i->session == session) mlxrec_event(log_, mlxrec_FREE, "n", i->number);
    clear(i);
  } else if ((i = calloc(1, sizeof *i))) {
    i->object = o, i->kind = kind, i->next = table[bucket(o)];
    PUBLISH(table[bucket(o)], i);
  } else {
    abort();
  }
  i->session = session, i->number = ++last_number;
  return i;
}

static uint64_t number(id o, int kind) {
  info *i = find(o, kind);
  return i ? i->number : 0;
}

static void unknown(const char *what) {
  static const char *said[64];
  for (int i = 0; i < 64; i++) {
    if (said[i] == what) return;
    if (!said[i]) {
      said[i] = what;
      mlxrec_event(log_, mlxrec_UNKNOWN, "s", what);
      return;
    }
  }
}

/* --- methods that are replaced --- */

static struct hook { id class; SEL name; void *was; } hooks[1 << 12]; /* a hash table: a place is taken once its class is set */
static int n_hooks;

/* hook returns the place of a method, or the free one where it would be. */
static struct hook *hook(id class, SEL name) {
  size_t i = (((uintptr_t)class >> 3) * 31 + (uintptr_t)name) * (uintptr_t)0x9e3779b97f4a7c15u >> 20;
  for (;; i++) {
    struct hook *h = &hooks[i % (sizeof hooks / sizeof *hooks)];
    id c = READ(h->class);
    if (!c || (c == class && h->name == name)) return h;
  }
}

/* replaced returns the place of a method that is replaced, in the class or in one that it inherits from. */
static struct hook *replaced(id class, SEL s) {
  for (id c = class; c; c = super_of(c)) {
    struct hook *h = hook(c, s);
    if (READ(h->class)) return h;
  }
  abort();
}

static void *was(id self, SEL s) { return replaced(class_of(self), s)->was; }

/* was_here is the same for a function that stands for one method, whose place it has found last. */
static void *was_here(struct hook **last, id self, SEL s) {
  struct hook *h = READ(*last);
  id class = class_of(self);
  if (!h || h->class != class) PUBLISH(*last, h = replaced(class, s));
  return h->was;
}

/* replace gives a class a method in place of its own. What it inherits stays as it is for other classes: kinds of encoders have methods in common. */
static void replace(id class, const char *name, void *code) {
  SEL s = selector(name);
  struct hook *h = hook(class, s);
  id m;
  if (h->class || !(m = method_of(class, s)) || n_hooks >= (int)(sizeof hooks / sizeof *hooks / 2)) return;
  n_hooks++, h->name = s, h->was = code_of(m);
  PUBLISH(h->class, class); /* before other threads can come to the code */
  if (!add_method(class, s, code, types_of(m))) set_code(m, code);
}

typedef struct { const char *name; void *code; } replacement;

/* replace_all replaces methods of a class, the first time that it is asked: a place in the table, with the list for a name, remembers that. */
static void replace_all(id class, const replacement *methods, size_t n) {
  struct hook *h = hook(class, (SEL)(const void *)methods);
  if (h->class) return;
  for (size_t k = 0; k < n; k++) replace(class, methods[k].name, methods[k].code);
  h = hook(class, (SEL)(const void *)methods);
  n_hooks++, h->name = (SEL)(const void *)methods;
  PUBLISH(h->class, class);
}
#define REPLACE_ALL(class, methods) replace_all(class, methods, sizeof methods / sizeof *methods)

#define CALL(type) ((type)was(self, s))
#define CALL_HERE(type) ((type)was_here(&here, self, s))
#define LOG(...) (pthread_mutex_lock(&lock), log_ ? (void)(__VA_ARGS__) : (void)0, pthread_mutex_unlock(&lock))
#define EVENT_(code, ...) mlxrec_event(log_, mlxrec_##code, __VA_ARGS__)

static const char *text_of(id string) { return string ? ((const char *(*)(id, SEL))send)(string, selector("UTF8String")) : ""; }

static void *contents_of(id buffer) {
  static SEL contents; /* with the lock held */
  if (!contents) contents = selector("contents");
  return ((void *(*)(id, SEL))send)(buffer, contents);
}

/* --- contents of buffers --- */

enum { PIECE = 1 << 14, SMALL = 64 };

static uint64_t mixed(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

/* digest tells what a program changes, not what somebody forges. Four sums at a time: each waits for its own multiplication only. */
static uint64_t digest(const unsigned char *p, size_t n) {
  uint64_t h[4] = {1, 2, 3, 4}, w[4];
  for (; n >= sizeof w; p += sizeof w, n -= sizeof w) {
    memcpy(w, p, sizeof w);
    for (int i = 0; i < 4; i++) h[i] = mixed(h[i], w[i]);
  }
  for (; n; p++, n--) h[0] = mixed(h[0], *p);
  return mixed(mixed(mixed(h[0], h[1]), h[2]), h[3]);
}

/* look logs what a buffer holds that is not logged yet, or with quiet set only remembers it. Of a small buffer that the GPU may have written
 * it says what it holds in any case: the host may have written the same again. */
static void look(info *b, bool quiet) {
  const unsigned char *p = contents_of(b->object);
#ifdef MLXCAPTURE_WITHOUT_CONTENTS /* to measure what the rest costs; such a log cannot be replayed */
  return;
#endif
  size_t n = (size_t)((b->size + PIECE - 1) / PIECE), from = 0, bytes = 0;
  bool first = !b->pieces, any = false;
  if (!p) return; /* private memory */
  if (first && !(b->pieces = calloc(n, sizeof *b->pieces))) return;
  for (size_t i = 0; i < n; i++) {
    size_t at = i * PIECE, k = b->size - at < PIECE ? (size_t)(b->size - at) : PIECE;
    uint64_t d = digest(p + at, k);
    bool changed = first || b->pieces[i] != d;
    b->pieces[i] = d;
    any = any || changed;
    if (changed && !quiet) {
      if (!bytes) from = at;
      bytes = at + k - from;
    }
    if (bytes && (!changed || i + 1 == n)) mlxrec_write(log_, b->number, from, p + from, bytes), bytes = 0;
  }
  if (!any && !quiet && b->size <= SMALL) mlxrec_event(log_, mlxrec_HOLDS, "nnb", b->number, N(0), (const void *)p, (size_t)b->size);
}

static void use_buffer(info *encoder, info *b) {
  info *c = encoder ? encoder->commands : NULL;
  if (!c || !b || __atomic_load_n(&b->seen, __ATOMIC_RELAXED) == c->number) return; /* who encodes at the same time may list it twice */
  __atomic_store_n(&b->seen, c->number, __ATOMIC_RELAXED);
  if (c->n_used == c->room) {
    info **more = realloc(c->used, (c->room = c->room ? 2 * c->room : 64) * sizeof *more);
    if (!more) abort();
    c->used = more;
  }
  c->used[c->n_used++] = b;
}

/* --- encoders --- */

enum { SPILL = 1 << 20, ROOM = 1 << 16, SPARE = 8 }; /* bytes of events that an encoder keeps at most, and at first; and memory that no encoder has */

static unsigned char *spare[SPARE]; /* of ROOM bytes each: programs have few encoders at a time, and many one after another */
static int n_spare;

/* spill puts what an encoder has kept into the log, with the lock held. */
static info *spill(info *e) {
  if (e && e->n_events && !log_->error && fwrite(e->events, 1, e->n_events, log_->file) != e->n_events) log_->error = errno ? errno : EIO;
  if (e) e->n_events = 0;
  return e;
}

/* leave takes the memory of an encoder that has ended. */
static void leave(info *e) {
  if (!e->events) return;
  if (e->events_room == ROOM && n_spare < SPARE) spare[n_spare++] = e->events;
  else free(e->events);
  e->events = NULL, e->events_room = 0;
}

/* spilled does that for what comes next of an encoder, and returns its number; 0: it is not known. */
static uint64_t spilled(id self) {
  info *e = spill(find(self, ENCODER));
  return e ? e->number : 0;
}

/* encoder_of returns an encoder if its events are logged. Without the lock: the log may end meanwhile, and then they are dropped. */
static info *encoder_of(id self) { return READ(log_) ? find(self, ENCODER) : NULL; }

/* event adds an event to those that an encoder keeps, and returns where its fields go, which take size bytes. */
static unsigned char *event(info *e, uint32_t code, size_t size) {
  size_t whole = 8 + ((size + 7) & ~(size_t)7);
  unsigned char *p;
  if (e->events_room - e->n_events < whole) {
    if (e->n_events > SPILL) {
      pthread_mutex_lock(&lock);
      if (log_ && e->session == session) spill(e);
      e->n_events = 0;
      pthread_mutex_unlock(&lock);
    }
    if (!e->events) {
      pthread_mutex_lock(&lock);
      if (n_spare) e->events = spare[--n_spare], e->events_room = ROOM;
      pthread_mutex_unlock(&lock);
    }
    size_t room = e->events_room ? e->events_room : ROOM;
    while (room - e->n_events < whole) room *= 2;
    if (room != e->events_room) {
      if (!(p = realloc(e->events, room))) abort();
      e->events = p, e->events_room = room;
    }
  }
  p = e->events + e->n_events;
  e->n_events += whole;
  mlxrec_put64(p + whole - 8, 0); /* what behind the fields fills eight bytes */
  mlxrec_put64(p, (uint64_t)code << 32 | size);
  return p + 8;
}

static void enc_use(id self, SEL s, id p) {
  static struct hook *here;
  info *e = encoder_of(self);
  if (e) {
    unsigned char *to = event(e, mlxrec_USE, 16);
    mlxrec_put64(to, e->number), mlxrec_put64(to + 8, number(p, PIPELINE));
  }
  CALL_HERE(void (*)(id, SEL, id))(self, s, p);
}

static void bind(info *e, info *i, uint64_t offset, uint64_t slot) {
  unsigned char *to = event(e, mlxrec_BIND, 32);
  mlxrec_put64(to, e->number), mlxrec_put64(to + 8, slot), mlxrec_put64(to + 16, i ? i->number : 0), mlxrec_put64(to + 24, i ? offset : 0);
  use_buffer(e, i);
  if (slot < 31) e->slots[slot] = i;
}

static info *known(id b) {
  info *i = find(b, BUFFER);
  if (b && !i) LOG(unknown("a buffer is bound that was not made by a method that is logged"));
  return i;
}

static void enc_buffer(id self, SEL s, id b, uint64_t offset, uint64_t slot) {
  static struct hook *here;
  info *e = encoder_of(self);
  if (e) bind(e, known(b), offset, slot);
  CALL_HERE(void (*)(id, SEL, id, uint64_t, uint64_t))(self, s, b, offset, slot);
}

static void enc_buffers(id self, SEL s, const id *b, const uint64_t *offsets, range r) {
  static struct hook *here;
  info *e = encoder_of(self);
  for (uint64_t i = 0; e && i < r.length; i++) bind(e, known(b[i]), offsets[i], r.location + i);
  CALL_HERE(void (*)(id, SEL, const id *, const uint64_t *, range))(self, s, b, offsets, r);
}

static void enc_offset(id self, SEL s, uint64_t offset, uint64_t slot) {
  static struct hook *here;
  info *e = encoder_of(self);
  if (e) bind(e, slot < 31 ? e->slots[slot] : NULL, offset, slot);
  CALL_HERE(void (*)(id, SEL, uint64_t, uint64_t))(self, s, offset, slot);
}

static void enc_bytes(id self, SEL s, const void *data, uint64_t n, uint64_t slot) {
  static struct hook *here;
  info *e = encoder_of(self);
  if (e) {
    unsigned char *to = event(e, mlxrec_BYTES, 20 + n);
    mlxrec_put64(to, e->number), mlxrec_put64(to + 8, slot), mlxrec_put32(to + 16, (uint32_t)n), memcpy(to + 20, data, n);
  }
  CALL_HERE(void (*)(id, SEL, const void *, uint64_t, uint64_t))(self, s, data, n, slot);
}

static void enc_threadgroup(id self, SEL s, uint64_t n, uint64_t slot) {
  static struct hook *here;
  info *e = encoder_of(self);
  if (e) {
    unsigned char *to = event(e, mlxrec_THREADGROUP, 24);
    mlxrec_put64(to, e->number), mlxrec_put64(to + 8, slot), mlxrec_put64(to + 16, n);
  }
  CALL_HERE(void (*)(id, SEL, uint64_t, uint64_t))(self, s, n, slot);
}

static void dispatch(id self, uint64_t threads, size3 g, size3 t) {
  info *e = encoder_of(self);
  if (!e) return;
  unsigned char *to = event(e, mlxrec_DISPATCH, 68); /* the last field, a label, is empty */
  const uint64_t fields[] = {e->number, threads, g.x, g.y, g.z, t.x, t.y, t.z};
  for (int i = 0; i < 8; i++) mlxrec_put64(to + 8 * i, fields[i]);
}

static void enc_groups(id self, SEL s, size3_arg g, size3_arg t) {
  static struct hook *here;
  dispatch(self, 0, SIZE(g), SIZE(t));
  CALL_HERE(void (*)(id, SEL, size3_arg, size3_arg))(self, s, g, t);
}

static void enc_threads(id self, SEL s, size3_arg g, size3_arg t) {
  static struct hook *here;
  dispatch(self, 1, SIZE(g), SIZE(t));
  CALL_HERE(void (*)(id, SEL, size3_arg, size3_arg))(self, s, g, t);
}

static void enc_indirect(id self, SEL s, id b, uint64_t offset, size3_arg t) {
  LOG(unknown("a dispatch takes its grid from a buffer"));
  CALL(void (*)(id, SEL, id, uint64_t, size3_arg))(self, s, b, offset, t);
}

static void enc_execute(id self, SEL s, id b, range r) {
  LOG(unknown("commands of an indirect command buffer are executed"));
  CALL(void (*)(id, SEL, id, range))(self, s, b, r);
}

static void barrier(id self) {
  info *e = encoder_of(self);
  if (e) mlxrec_put64(event(e, mlxrec_BARRIER, 8), e->number);
}

static void enc_barrier(id self, SEL s, uint64_t scope) {
  static struct hook *here;
  barrier(self);
  CALL_HERE(void (*)(id, SEL, uint64_t))(self, s, scope);
}

static void enc_barrier_of(id self, SEL s, const id *what, uint64_t n) {
  static struct hook *here;
  barrier(self);
  CALL_HERE(void (*)(id, SEL, const id *, uint64_t))(self, s, what, n);
}

static uint64_t fence(id f) {
  info *i = find(f, FENCE);
  return (i ? i : make(f, FENCE))->number;
}

static void enc_update(id self, SEL s, id f) {
  uint64_t e;
  LOG((e = spilled(self)) ? EVENT_(FENCE_UPDATE, "nn", e, fence(f)) : (void)0);
  CALL(void (*)(id, SEL, id))(self, s, f);
}

static void enc_wait(id self, SEL s, id f) {
  uint64_t e;
  LOG((e = spilled(self)) ? EVENT_(FENCE_WAIT, "nn", e, fence(f)) : (void)0);
  CALL(void (*)(id, SEL, id))(self, s, f);
}

static void enc_push(id self, SEL s, id label) {
  uint64_t e;
  LOG((e = spilled(self)) ? EVENT_(PUSH, "ns", e, text_of(label)) : (void)0);
  CALL(void (*)(id, SEL, id))(self, s, label);
}

static void enc_pop(id self, SEL s) {
  uint64_t e;
  LOG((e = spilled(self)) ? EVENT_(POP, "n", e) : (void)0);
  CALL(void (*)(id, SEL))(self, s);
}

static void enc_end(id self, SEL s) {
  uint64_t e;
  LOG((e = spilled(self)) ? EVENT_(END, "n", e), leave(find(self, ENCODER)) : (void)0);
  CALL(void (*)(id, SEL))(self, s);
}

static void copy(id self, id a, uint64_t at, id b, uint64_t to, uint64_t n) {
  info *e = spill(find(self, ENCODER)), *x = find(a, BUFFER), *y = find(b, BUFFER);
  use_buffer(e, x), use_buffer(e, y);
  if (e && x && y) EVENT_(COPY, "nnnnnn", e->number, x->number, at, y->number, to, n);
  else unknown("a copy of buffers that were not made by a method that is logged");
}

static void blit_copy(id self, SEL s, id a, uint64_t at, id b, uint64_t to, uint64_t n) {
  LOG(copy(self, a, at, b, to, n));
  CALL(void (*)(id, SEL, id, uint64_t, id, uint64_t, uint64_t))(self, s, a, at, b, to, n);
}

static void fill(id self, id b, range r, uint8_t value) {
  info *e = spill(find(self, ENCODER)), *y = find(b, BUFFER);
  use_buffer(e, y);
  if (e && y) EVENT_(FILL, "nnnnn", e->number, y->number, r.location, r.length, N(value));
}

static void blit_fill(id self, SEL s, id b, range r, uint8_t value) {
  LOG(fill(self, b, r, value));
  CALL(void (*)(id, SEL, id, range, uint8_t))(self, s, b, r, value);
}

/* --- command buffers and queues --- */

static id encoder(id commands, id e, const char *kind, uint64_t concurrent) {
  static const replacement methods[] = {
      {"setComputePipelineState:", (void *)enc_use}, {"setBuffer:offset:atIndex:", (void *)enc_buffer}, {"setBuffers:offsets:withRange:", (void *)enc_buffers},
      {"setBufferOffset:atIndex:", (void *)enc_offset}, {"setBytes:length:atIndex:", (void *)enc_bytes}, {"setThreadgroupMemoryLength:atIndex:", (void *)enc_threadgroup},
      {"dispatchThreadgroups:threadsPerThreadgroup:", (void *)enc_groups}, {"dispatchThreads:threadsPerThreadgroup:", (void *)enc_threads},
      {"dispatchThreadgroupsWithIndirectBuffer:indirectBufferOffset:threadsPerThreadgroup:", (void *)enc_indirect}, {"executeCommandsInBuffer:withRange:", (void *)enc_execute},
      {"memoryBarrierWithScope:", (void *)enc_barrier}, {"memoryBarrierWithResources:count:", (void *)enc_barrier_of},
  }, both[] = {
      {"updateFence:", (void *)enc_update}, {"waitForFence:", (void *)enc_wait}, {"pushDebugGroup:", (void *)enc_push}, {"popDebugGroup", (void *)enc_pop}, {"endEncoding", (void *)enc_end},
  }, blits[] = {
      {"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", (void *)blit_copy}, {"fillBuffer:range:value:", (void *)blit_fill},
  };
  info *c;
  if (!e) return e;
  pthread_mutex_lock(&lock);
  if (log_ && (c = find(commands, COMMANDS))) {
    info *i = make(e, ENCODER);
    i->commands = c;
    EVENT_(ENCODER, "nnsns", i->number, c->number, kind, concurrent, (const char *)NULL);
    if (*kind == 'c') REPLACE_ALL(class_of(e), methods);
    else REPLACE_ALL(class_of(e), blits);
    REPLACE_ALL(class_of(e), both);
  }
  pthread_mutex_unlock(&lock);
  return e;
}

static id cb_encoder(id self, SEL s) { return encoder(self, CALL(id (*)(id, SEL))(self, s), "compute", 0); }

static id cb_encoder_of(id self, SEL s, uint64_t type) { return encoder(self, CALL(id (*)(id, SEL, uint64_t))(self, s, type), "compute", type); }

static id cb_encoder_by(id self, SEL s, id d) {
  uint64_t type = log_ ? (uint64_t)(uintptr_t)((id(*)(id, SEL))send)(d, selector("dispatchType")) : 0;
  return encoder(self, CALL(id (*)(id, SEL, id))(self, s, d), "compute", type);
}

static id cb_blit(id self, SEL s) { return encoder(self, CALL(id (*)(id, SEL))(self, s), "blit", 0); }

static void cb_enqueue(id self, SEL s) {
  LOG(EVENT_(ENQUEUE, "n", number(self, COMMANDS)));
  CALL(void (*)(id, SEL))(self, s);
}

/* flight is a command buffer that was committed and has not ended, as far as the program has waited. */
static struct flight { struct flight *next; uint64_t number; size_t n; info **used; } *flights;

static void committed(id self) {
  info *c = find(self, COMMANDS);
  struct flight *f;
  if (!c) return;
  for (size_t i = 0; i < c->n_used; i++)
    if (!c->used[i]->busy) look(c->used[i], false);
  if (!(f = malloc(sizeof *f))) abort();
  *f = (struct flight){flights, c->number, c->n_used, c->used};
  c->used = NULL, c->n_used = c->room = 0;
  flights = f;
  for (size_t i = 0; i < f->n; i++) {
    if (!f->used[i]->busy) retain(f->used[i]->object); /* the program may release it now, and its contents are looked at when the command buffer has ended */
    f->used[i]->busy = f->number; /* until then, what changes is the GPU's */
  }
  EVENT_(COMMIT, "n", c->number);
  if (fflush(log_->file) && !log_->error) log_->error = errno;
}

static void cb_commit(id self, SEL s) {
  LOG(committed(self));
  CALL(void (*)(id, SEL))(self, s);
}

/* not_busy notes that a command buffer has ended, and those that were committed before it. What is released may call back. */
static void not_busy(uint64_t number) {
  for (struct flight **at = &flights, *f; (f = *at);) {
    if (f->number > number) {
      at = &f->next;
      continue;
    }
    *at = f->next;
    for (size_t i = 0; i < f->n; i++) {
      info *b = f->used[i];
      if (b->busy && b->busy <= number) b->busy = 0, look(b, true), release(b->object);
    }
    free(f->used), free(f);
    at = &flights;
  }
}

/* ended notes that the program has waited for that. */
static void ended(uint64_t number) {
  if (!number) return;
  not_busy(number);
  EVENT_(WAIT, "n", number);
}

/* Completion handlers. A handler of ours comes first on every command buffer, so that it is known which buffers the GPU still uses in
 * programs that never wait by a message. It is a block without variables, as a compiler would lay it out. */
static struct block { void *isa; int32_t flags, reserved; void (*invoke)(void *, id); const void *descriptor; } when_ended;

static void has_ended(void *block, id commands) {
  (void)block;
  info *c;
  pthread_mutex_lock(&lock);
  if (log_ && (c = find(commands, COMMANDS))) {
    not_busy(c->number);
    if (c->size) EVENT_(ENDED, "n", c->number);
  }
  pthread_mutex_unlock(&lock);
}

static void tell_end(id commands) {
  static const struct { unsigned long reserved, size; } descriptor = {0, sizeof when_ended};
  static SEL s;
  static id able; /* the class that is known to have the method */
  id class = class_of(commands);
  pthread_mutex_lock(&lock);
  if (!s) {
    void *isa = dlsym(RTLD_DEFAULT, "_NSConcreteGlobalBlock");
    s = selector("addCompletedHandler:");
    if (isa) when_ended = (struct block){isa, 1 << 28, 0, has_ended, &descriptor}; /* a global block */
  }
  if (able != class && when_ended.isa && method_of(class, s)) able = class;
  pthread_mutex_unlock(&lock);
  if (able == class) ((void (*)(id, SEL, id))(void *)send)(commands, s, &when_ended);
}

static void cb_handler(id self, SEL s, id block) {
  if (block != (id)&when_ended) LOG(find(self, COMMANDS) ? (void)(find(self, COMMANDS)->size = 1) : (void)0);
  CALL(void (*)(id, SEL, id))(self, s, block);
}

static void wait_ended(id self) { ended(number(self, COMMANDS)); }

static void cb_wait(id self, SEL s) {
  CALL(void (*)(id, SEL))(self, s);
  LOG(wait_ended(self));
}

static bool event_wait(id self, SEL s, uint64_t value, uint64_t ms) {
  bool reached = CALL(bool (*)(id, SEL, uint64_t, uint64_t))(self, s, value, ms);
  if (reached) LOG(ended(find(self, EVENT) ? find(self, EVENT)->size : 0));
  return reached;
}

/* event_value: a program that sees the value knows what has ended, and waits no more. */
static uint64_t event_value(id self, SEL s) {
  uint64_t value = CALL(uint64_t (*)(id, SEL))(self, s);
  info *i;
  pthread_mutex_lock(&lock);
  if (log_ && (i = find(self, EVENT)) && i->size && value >= i->library) ended(i->size), i->size = 0;
  pthread_mutex_unlock(&lock);
  return value;
}

/* signals notes which command buffer signals an event last. */
static void signals(id self, id event, uint64_t value) {
  info *i = find(event, EVENT);
  if (!i) i = make(event, EVENT);
  i->size = number(self, COMMANDS), i->library = value;
  replace(class_of(event), "signaledValue", (void *)event_value);
  replace(class_of(event), "waitUntilSignaledValue:timeoutMS:", (void *)event_wait);
  EVENT_(SIGNAL, "nnn", number(self, COMMANDS), i->number, value);
}

static void cb_signal(id self, SEL s, id event, uint64_t value) {
  LOG(signals(self, event, value));
  CALL(void (*)(id, SEL, id, uint64_t))(self, s, event, value);
}

static void cb_await(id self, SEL s, id event, uint64_t value) {
  LOG(EVENT_(AWAIT, "nnn", number(self, COMMANDS), find(event, EVENT) ? find(event, EVENT)->number : 0, value));
  CALL(void (*)(id, SEL, id, uint64_t))(self, s, event, value);
}

static id commands(id queue, id c) {
  static const replacement methods[] = {
      {"computeCommandEncoder", (void *)cb_encoder}, {"computeCommandEncoderWithDispatchType:", (void *)cb_encoder_of}, {"computeCommandEncoderWithDescriptor:", (void *)cb_encoder_by},
      {"blitCommandEncoder", (void *)cb_blit}, {"enqueue", (void *)cb_enqueue}, {"commit", (void *)cb_commit}, {"waitUntilCompleted", (void *)cb_wait}, {"addCompletedHandler:", (void *)cb_handler},
      {"encodeSignalEvent:value:", (void *)cb_signal}, {"encodeWaitForEvent:value:", (void *)cb_await},
  };
  if (!c) return c;
  pthread_mutex_lock(&lock);
  if (log_) {
    EVENT_(COMMANDS, "nns", make(c, COMMANDS)->number, number(queue, QUEUE), (const char *)NULL);
    REPLACE_ALL(class_of(c), methods);
  }
  pthread_mutex_unlock(&lock);
  if (log_) tell_end(c);
  return c;
}

static id queue_commands(id self, SEL s) { return commands(self, CALL(id (*)(id, SEL))(self, s)); }
static id queue_commands_by(id self, SEL s, id d) { return commands(self, CALL(id (*)(id, SEL, id))(self, s, d)); }

static id queue(id q) {
  if (!q) return q;
  pthread_mutex_lock(&lock);
  if (log_) {
    make(q, QUEUE);
    replace(class_of(q), "commandBuffer", (void *)queue_commands);
    replace(class_of(q), "commandBufferWithUnretainedReferences", (void *)queue_commands);
    replace(class_of(q), "commandBufferWithDescriptor:", (void *)queue_commands_by);
  }
  pthread_mutex_unlock(&lock);
  return q;
}

static id dev_queue(id self, SEL s) { return queue(CALL(id (*)(id, SEL))(self, s)); }
static id dev_queue_of(id self, SEL s, uint64_t n) { return queue(CALL(id (*)(id, SEL, uint64_t))(self, s, n)); }

/* --- libraries, functions, pipelines --- */

static void function(id library, id f, id name, id values) {
  info *l = find(library, LIBRARY), *i, *v = find(values, VALUES);
  if (!f || !l) return;
  i = make(f, FUNCTION);
  i->library = l->number, i->name = strdup(text_of(name));
  if (v && v->n_constants && (i->constants = malloc(v->n_constants * sizeof *i->constants)))
    memcpy(i->constants, v->constants, v->n_constants * sizeof *i->constants), i->n_constants = v->n_constants;
}

static id lib_function(id self, SEL s, id name) {
  id f = CALL(id (*)(id, SEL, id))(self, s, name);
  LOG(function(self, f, name, NULL));
  return f;
}

static id lib_function_of(id self, SEL s, id name, id values, id *error) {
  id f = CALL(id (*)(id, SEL, id, id, id *))(self, s, name, values, error);
  LOG(function(self, f, name, values));
  return f;
}

static id lib_function_by(id self, SEL s, id d, id *error) {
  id f = CALL(id (*)(id, SEL, id, id *))(self, s, d, error);
  if (f && d) LOG(function(self, f, ((id(*)(id, SEL))send)(d, selector("name")), ((id(*)(id, SEL))send)(d, selector("constantValues"))));
  return f;
}

static void constant(id self, const void *value, uint64_t type, uint64_t index) {
  /* bytes of a scalar of a type: 8-bit and bool, 16-bit, 64-bit, else 32 */
  size_t n = type == 45 || type == 49 || type == 53 ? 1 : type == 16 || type == 37 || type == 41 || type == 121 ? 2 : type == 81 || type == 85 ? 8 : 4;
  info *v = find(self, VALUES);
  mlxrec_constant *more;
  if (!v) v = make(self, VALUES);
  for (size_t i = 0; i < v->n_constants; i++)
    if (v->constants[i].index == index) {
      v->constants[i].type = (uint32_t)type, v->constants[i].bits = 0;
      memcpy(&v->constants[i].bits, value, n);
      return;
    }
  if (!(more = realloc(v->constants, (v->n_constants + 1) * sizeof *more))) abort();
  v->constants = more;
  more[v->n_constants] = (mlxrec_constant){(uint32_t)index, (uint32_t)type, 0};
  memcpy(&more[v->n_constants++].bits, value, n);
}

static void val_set(id self, SEL s, const void *value, uint64_t type, uint64_t index) {
  LOG(constant(self, value, type, index));
  CALL(void (*)(id, SEL, const void *, uint64_t, uint64_t))(self, s, value, type, index);
}

static void val_named(id self, SEL s, const void *value, uint64_t type, id name) {
  LOG(unknown("a function constant is given by its name"));
  CALL(void (*)(id, SEL, const void *, uint64_t, id))(self, s, value, type, name);
}

static void desc_function(id self, SEL s, id f) {
  LOG(make(self, DESCRIPTOR)->function = find(f, FUNCTION));
  CALL(void (*)(id, SEL, id))(self, s, f);
}

static id pipeline(id p, info *f) {
  info *i;
  if (!p) return p;
  i = make(p, PIPELINE);
  if (f && f->name && f->library) {
    uint64_t before = log_->last;
    log_->last = i->number - 1; /* mlxrec_kernel gives the next number */
    mlxrec_kernel(log_, f->library, f->name, f->constants, f->n_constants);
    log_->last = before;
  } else {
    unknown("a pipeline is made of a function that is not known");
  }
  return p;
}

static id dev_pipeline(id self, SEL s, id f, id *error) {
  id p = CALL(id (*)(id, SEL, id, id *))(self, s, f, error);
  LOG(pipeline(p, find(f, FUNCTION)));
  return p;
}

static id dev_pipeline_of(id self, SEL s, id f, uint64_t options, void *reflection, id *error) {
  id p = CALL(id (*)(id, SEL, id, uint64_t, void *, id *))(self, s, f, options, reflection, error);
  LOG(pipeline(p, find(f, FUNCTION)));
  return p;
}

static id dev_pipeline_by(id self, SEL s, id d, uint64_t options, void *reflection, id *error) {
  id p = CALL(id (*)(id, SEL, id, uint64_t, void *, id *))(self, s, d, options, reflection, error);
  LOG(pipeline(p, find(d, DESCRIPTOR) ? find(d, DESCRIPTOR)->function : NULL));
  return p;
}

static void library(id l, const char *kind, const char *name, const void *code, size_t n) {
  info *i;
  if (!l) return;
  i = make(l, LIBRARY);
  EVENT_(LIBRARY, "nssbs", i->number, kind, name, code, n, (const char *)NULL);
  replace(class_of(l), "newFunctionWithName:", (void *)lib_function);
  replace(class_of(l), "newFunctionWithName:constantValues:error:", (void *)lib_function_of);
  replace(class_of(l), "newFunctionWithDescriptor:error:", (void *)lib_function_by);
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* source logs a library, with the macros of its compile options as lines before its text. */
static void source(id l, id text, id options) {
  id macros = options ? ((id(*)(id, SEL))send)(options, selector("preprocessorMacros")) : NULL;
  id keys = macros ? ((id(*)(id, SEL))send)(macros, selector("allKeys")) : NULL;
  uint64_t n = keys ? (uint64_t)(uintptr_t)((id(*)(id, SEL))send)(keys, selector("count")) : 0;
  const char *code = text_of(text);
  char **lines = calloc(n + 1, sizeof *lines), *all = NULL, *at;
  size_t size = strlen(code) + 1;
  for (uint64_t i = 0; lines && i < n; i++) {
    id key = ((id(*)(id, SEL, uint64_t))send)(keys, selector("objectAtIndex:"), i), value = ((id(*)(id, SEL, id))send)(macros, selector("objectForKey:"), key);
    if (!((uintptr_t)((id(*)(id, SEL, SEL))send)(value, selector("respondsToSelector:"), selector("UTF8String")) & 0xff)) value = ((id(*)(id, SEL))send)(value, selector("stringValue"));
    size_t room = strlen(text_of(key)) + strlen(text_of(value)) + 11;
    if (!(lines[i] = malloc(room))) abort();
    snprintf(lines[i], room, "#define %s %s\n", text_of(key), text_of(value));
    size += room;
  }
  if (!lines || !(at = all = malloc(size))) abort();
  qsort(lines, n, sizeof *lines, by_text); /* a dictionary has no order */
  for (uint64_t i = 0; i < n; i++) at += strlen(strcpy(at, lines[i])), free(lines[i]);
  strcpy(at, code);
  library(l, "source", "program.metal", all, strlen(all));
  free(lines), free(all);
}

static id dev_source(id self, SEL s, id text, id options, id *error) {
  id l = CALL(id (*)(id, SEL, id, id, id *))(self, s, text, options, error);
  void *pool = push_pool();
  LOG(source(l, text, options));
  pop_pool(pool);
  return l;
}

/* from_file logs a library that the program has loaded from a file. */
static void from_file(id l, const char *path) {
  FILE *f = l ? fopen(path, "rb") : NULL;
  char *data = NULL;
  long n = 0;
  if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) > 0 && (data = malloc((size_t)n))) {
    rewind(f);
    if (fread(data, 1, (size_t)n, f) == (size_t)n) library(l, "metallib", path, data, (size_t)n);
  }
  if (l && !data) unknown("a library was loaded from a file that cannot be read");
  free(data);
  if (f) fclose(f);
}

static id dev_url(id self, SEL s, id url, id *error) {
  id l = CALL(id (*)(id, SEL, id, id *))(self, s, url, error);
  LOG(from_file(l, text_of(((id(*)(id, SEL))send)(url, selector("path")))));
  return l;
}

static id dev_file(id self, SEL s, id path, id *error) {
  id l = CALL(id (*)(id, SEL, id, id *))(self, s, path, error);
  LOG(from_file(l, text_of(path)));
  return l;
}

static id dev_default(id self, SEL s) {
  LOG(unknown("the program's default library is used"));
  return CALL(id (*)(id, SEL))(self, s);
}

/* --- memory --- */

static id made_buffer(id b, uint64_t n, uint64_t options) {
  pthread_mutex_lock(&lock);
  if (b && log_) {
    info *i = make(b, BUFFER);
    i->size = n;
    /* MTLResourceOptions: the storage mode in bits 4 to 7, hazard tracking in bits 8 and 9 (1: untracked) */
    EVENT_(BUFFER, "nnnnsnn", i->number, n, options >> 4 & 15, N((options >> 8 & 3) == 1), (const char *)NULL, N(0), N(0));
  }
  pthread_mutex_unlock(&lock);
  return b;
}

static id dev_buffer(id self, SEL s, uint64_t n, uint64_t options) { return made_buffer(CALL(id (*)(id, SEL, uint64_t, uint64_t))(self, s, n, options), n, options); }

static id dev_buffer_of(id self, SEL s, const void *data, uint64_t n, uint64_t options) {
  return made_buffer(CALL(id (*)(id, SEL, const void *, uint64_t, uint64_t))(self, s, data, n, options), n, options);
}

static id dev_no_copy(id self, SEL s, void *data, uint64_t n, uint64_t options, id deallocator) {
  return made_buffer(CALL(id (*)(id, SEL, void *, uint64_t, uint64_t, id))(self, s, data, n, options, deallocator), n, options);
}

static id heap_buffer_at(id self, SEL s, uint64_t n, uint64_t options, uint64_t offset) {
  return made_buffer(CALL(id (*)(id, SEL, uint64_t, uint64_t, uint64_t))(self, s, n, options, offset), n, options);
}

static id dev_heap(id self, SEL s, id d) {
  id h = CALL(id (*)(id, SEL, id))(self, s, d);
  if (h) LOG(replace(class_of(h), "newBufferWithLength:options:", (void *)dev_buffer), replace(class_of(h), "newBufferWithLength:options:offset:", (void *)heap_buffer_at));
  return h;
}

/* --- begin and end --- */

/* mlxcapture_start begins a log. device is the program's, or NULL: the system's default. It returns 0 or an errno. */
PUBLIC int mlxcapture_start(const char *path, id device) {
  static const replacement methods[] = {
      {"newLibraryWithSource:options:error:", (void *)dev_source}, {"newLibraryWithURL:error:", (void *)dev_url}, {"newLibraryWithFile:error:", (void *)dev_file}, {"newDefaultLibrary", (void *)dev_default},
      {"newBufferWithLength:options:", (void *)dev_buffer}, {"newBufferWithBytes:length:options:", (void *)dev_buffer_of}, {"newBufferWithBytesNoCopy:length:options:deallocator:", (void *)dev_no_copy},
      {"newComputePipelineStateWithFunction:error:", (void *)dev_pipeline}, {"newComputePipelineStateWithFunction:options:reflection:error:", (void *)dev_pipeline_of},
      {"newComputePipelineStateWithDescriptor:options:reflection:error:", (void *)dev_pipeline_by}, {"newCommandQueue", (void *)dev_queue},
      {"newCommandQueueWithMaxCommandBufferCount:", (void *)dev_queue_of}, {"newHeapWithDescriptor:", (void *)dev_heap},
  };
  id (*named)(const char *);
  id (*default_device)(void);
  int error = 0;
  mlxrec *begun;
  dlopen("/System/Library/Frameworks/Metal.framework/Metal", RTLD_NOW | RTLD_GLOBAL); /* the program may load it later */
  send = (id(*)(id, SEL, ...))dlsym(RTLD_DEFAULT, "objc_msgSend"), selector = (SEL(*)(const char *))dlsym(RTLD_DEFAULT, "sel_registerName");
  class_of = (id(*)(id))dlsym(RTLD_DEFAULT, "object_getClass"), method_of = (id(*)(id, SEL))dlsym(RTLD_DEFAULT, "class_getInstanceMethod");
  set_code = (void *(*)(id, void *))dlsym(RTLD_DEFAULT, "method_setImplementation"), named = (id(*)(const char *))dlsym(RTLD_DEFAULT, "objc_getClass");
  super_of = (id(*)(id))dlsym(RTLD_DEFAULT, "class_getSuperclass"), code_of = (void *(*)(id))dlsym(RTLD_DEFAULT, "method_getImplementation");
  types_of = (const char *(*)(id))dlsym(RTLD_DEFAULT, "method_getTypeEncoding"), add_method = (bool (*)(id, SEL, void *, const char *))dlsym(RTLD_DEFAULT, "class_addMethod");
  retain = (id(*)(id))dlsym(RTLD_DEFAULT, "objc_retain"), release = (void (*)(id))dlsym(RTLD_DEFAULT, "objc_release");
  push_pool = (void *(*)(void))dlsym(RTLD_DEFAULT, "objc_autoreleasePoolPush"), pop_pool = (void (*)(void *))dlsym(RTLD_DEFAULT, "objc_autoreleasePoolPop");
  default_device = (id(*)(void))dlsym(RTLD_DEFAULT, "MTLCreateSystemDefaultDevice");
  if (!send || !selector || !class_of || !method_of || !super_of || !code_of || !types_of || !add_method || !set_code || !named || !retain || !release || !push_pool || !pop_pool || (!device && !default_device)) return ENOSYS;
  if (!device) device = default_device(); /* its class is what matters; it lives as long as the program */
  if (!device) return ENODEV;
  pthread_mutex_lock(&lock);
  if (log_) {
    error = EBUSY;
  } else if (!(begun = mlxrec_open(path, "a program that was captured"))) {
    error = errno;
  } else {
    PUBLISH(session, session + 1);
    PUBLISH(log_, begun);
    REPLACE_ALL(class_of(device), methods);
    if (named("MTLComputePipelineDescriptor")) replace(named("MTLComputePipelineDescriptor"), "setComputeFunction:", (void *)desc_function);
    if (named("MTLFunctionConstantValues")) {
      replace(named("MTLFunctionConstantValues"), "setConstantValue:type:atIndex:", (void *)val_set);
      replace(named("MTLFunctionConstantValues"), "setConstantValue:type:withName:", (void *)val_named);
    }
  }
  pthread_mutex_unlock(&lock);
  return error;
}

/* mlxcapture_step marks a step, as mlxrec_step does; NULL ends it. mlxcapture_param gives a param of it. */
PUBLIC void mlxcapture_step(const char *name) { LOG(EVENT_(STEP, "s", name)); }
PUBLIC void mlxcapture_param(const char *name, uint32_t value) { LOG(EVENT_(PARAM, "sn", name, N(value))); }

/* mlxcapture_stop ends the log. It returns 0 or an errno. What is replaced stays so, and logs nothing. */
PUBLIC int mlxcapture_stop(void) {
  int error = EINVAL;
  pthread_mutex_lock(&lock);
  if (log_) {
    log_->commands = 0; /* mlxrec_close must end no step */
    mlxrec *ended = log_;
    for (struct flight *f; (f = flights);) {
      flights = f->next;
      for (size_t i = 0; i < f->n; i++)
        if (f->used[i]->busy) f->used[i]->busy = 0, release(f->used[i]->object);
      free(f->used), free(f);
    }
    PUBLISH(log_, (mlxrec *)NULL);
    error = mlxrec_close(ended);
    for (size_t b = 0; b < sizeof table / sizeof *table; b++)
      for (info *i = table[b]; i; i = i->next) clear(i);
  }
  pthread_mutex_unlock(&lock);
  return error;
}

__attribute__((constructor)) static void loaded(void) {
  const char *path = getenv("MLXC_CAPTURE");
  int error;
  if (!path || !*path) return;
  error = mlxcapture_start(path, NULL);
  if (!error) unsetenv("MLXC_CAPTURE"); /* the programs that it starts must not write to the same file */
  if (error && error != ENOSYS) fprintf(stderr, "mlxcapture: %s: %s\n", path, strerror(error)); /* a program without Metal, as a shell is, starts others */
}
