/* mlxrec.h writes a log of what a program dispatches to Metal (.mlxtrace), of which `mlxc import` makes graphs.
 *
 * One file of C99 without dependencies: include it where it is used, and in one file of the program behind
 * #define MLXREC_IMPLEMENTATION. It needs neither Metal nor a Mac. docs/capture.md has the format and an example.
 *
 *   mlxrec *r = mlxrec_open("engine.mlxtrace", "my engine");
 *   uint64_t lib = mlxrec_source(r, "engine.metal", text, strlen(text), NULL);
 *   uint64_t add = mlxrec_kernel(r, lib, "add", NULL, 0);
 *   uint64_t x = mlxrec_buffer(r, 4096, "x", "input", NULL), y = mlxrec_buffer(r, 4096, "y", "output", NULL);
 *   mlxrec_step(r, "double", MLXREC_SERIAL);
 *   mlxrec_use(r, add); mlxrec_bind(r, 0, x, 0); mlxrec_bind(r, 1, x, 0); mlxrec_bind(r, 2, y, 0);
 *   mlxrec_threads(r, 1024, 1, 1, 256, 1, 1);
 *   mlxrec_end(r);
 *   if (mlxrec_close(r)) { perror("engine.mlxtrace"); }
 *
 * A step that is logged again with other numbers (offsets, grids, inline integers) becomes one graph with params, whose values
 * mlxrec_param gives. Calls are for one thread at a time. An error is kept, and mlxrec_close returns it (an errno). */
#ifndef MLXREC_H
#define MLXREC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mlxrec mlxrec;

/* A function constant: its index, its type as Metal numbers it (MTLDataType: bool 53, int 29, uint 33, float 3), and its bits. */
typedef struct {
  uint32_t index, type;
  uint64_t bits;
} mlxrec_constant;

/* The commands of a step run one after another (serial), or at once but for barriers (concurrent). */
enum { MLXREC_SERIAL = 0, MLXREC_CONCURRENT = 1 };

mlxrec *mlxrec_open(const char *path, const char *program); /* NULL: errno says why */
int mlxrec_close(mlxrec *r);

/* Libraries: Metal source, whose options are lines "-DNAME=VALUE" and "fast-math" or NULL, or a compiled .metallib. */
uint64_t mlxrec_source(mlxrec *r, const char *name, const char *text, size_t bytes, const char *options);
uint64_t mlxrec_metallib(mlxrec *r, const char *name, const void *data, size_t bytes);
uint64_t mlxrec_kernel(mlxrec *r, uint64_t library, const char *function, const mlxrec_constant *constants, size_t count);

/* Memory. role is "weight", "input", "output", "state", "scratch", or NULL: that follows from who uses it. contents are what it
 * holds at first, or NULL. mlxrec_part is a part of a buffer that is a buffer by itself. */
uint64_t mlxrec_buffer(mlxrec *r, uint64_t bytes, const char *name, const char *role, const void *contents);
uint64_t mlxrec_part(mlxrec *r, uint64_t buffer, uint64_t offset, uint64_t bytes);
void mlxrec_write(mlxrec *r, uint64_t buffer, uint64_t offset, const void *data, size_t bytes);
void mlxrec_free(mlxrec *r, uint64_t buffer);

/* A step is one run of the graph of that name, up to mlxrec_end. */
void mlxrec_step(mlxrec *r, const char *name, int concurrent);
void mlxrec_param(mlxrec *r, const char *name, uint32_t value);
void mlxrec_end(mlxrec *r);

/* Commands of a step. Bindings stay until they are replaced, as in an encoder. */
void mlxrec_use(mlxrec *r, uint64_t kernel);
void mlxrec_bind(mlxrec *r, unsigned slot, uint64_t buffer, uint64_t offset);
void mlxrec_bytes(mlxrec *r, unsigned slot, const void *data, size_t bytes);
void mlxrec_threadgroup(mlxrec *r, unsigned slot, uint32_t bytes);
/* What the next dispatch touches of a slot, where the engine knows; must: it certainly writes all of it. */
void mlxrec_reads(mlxrec *r, unsigned slot, uint64_t offset, uint64_t bytes);
void mlxrec_writes(mlxrec *r, unsigned slot, uint64_t offset, uint64_t bytes, int must);
void mlxrec_threads(mlxrec *r, uint32_t x, uint32_t y, uint32_t z, uint32_t gx, uint32_t gy, uint32_t gz);
void mlxrec_threadgroups(mlxrec *r, uint32_t x, uint32_t y, uint32_t z, uint32_t gx, uint32_t gy, uint32_t gz);
void mlxrec_barrier(mlxrec *r);
void mlxrec_copy(mlxrec *r, uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset, uint64_t bytes);
void mlxrec_fill(mlxrec *r, uint64_t buffer, uint64_t offset, uint64_t bytes, uint8_t value);
void mlxrec_push(mlxrec *r, const char *label);
void mlxrec_pop(mlxrec *r);

#ifdef __cplusplus
}
#endif
#endif /* MLXREC_H */

#ifdef MLXREC_IMPLEMENTATION
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The events of a log, their codes and fields, as frontend/trace lists them. */
enum {
  mlxrec_PROGRAM = 1,
  mlxrec_LIBRARY = 2,
  mlxrec_PIPELINE = 3,
  mlxrec_BUFFER = 4,
  mlxrec_FREE = 5,
  mlxrec_CONTENTS = 6,
  mlxrec_ZEROS = 7,
  mlxrec_NAME = 8,
  mlxrec_STEP = 9,
  mlxrec_PARAM = 10,
  mlxrec_COMMANDS = 11,
  mlxrec_ENQUEUE = 12,
  mlxrec_COMMIT = 13,
  mlxrec_WAIT = 14,
  mlxrec_ENCODER = 15,
  mlxrec_END = 16,
  mlxrec_USE = 17,
  mlxrec_BIND = 18,
  mlxrec_BYTES = 19,
  mlxrec_THREADGROUP = 20,
  mlxrec_READS = 21,
  mlxrec_WRITES = 22,
  mlxrec_DISPATCH = 23,
  mlxrec_BARRIER = 24,
  mlxrec_FENCE_UPDATE = 25,
  mlxrec_FENCE_WAIT = 26,
  mlxrec_SIGNAL = 27,
  mlxrec_AWAIT = 28,
  mlxrec_COPY = 29,
  mlxrec_FILL = 30,
  mlxrec_PUSH = 31,
  mlxrec_POP = 32,
  mlxrec_UNKNOWN = 33,
  mlxrec_ENDED = 34,
  mlxrec_HOLDS = 35,
};
static const char mlxrec_events[] =
    "1 program name:s writer:s\n"
    "2 library library:n kind:s name:s code:b options:s\n"
    "3 pipeline pipeline:n library:n function:s constants:b label:s\n"
    "4 buffer buffer:n bytes:n storage:n untracked:n label:s parent:n offset:n\n"
    "5 free buffer:n\n"
    "6 contents buffer:n offset:n data:b\n"
    "7 zeros buffer:n offset:n bytes:n\n"
    "8 name buffer:n name:s role:s\n"
    "9 step name:s\n"
    "10 param name:s value:n\n"
    "11 commands commands:n queue:n label:s\n"
    "12 enqueue commands:n\n"
    "13 commit commands:n\n"
    "14 wait commands:n\n"
    "15 encoder encoder:n commands:n kind:s concurrent:n label:s\n"
    "16 end encoder:n\n"
    "17 use encoder:n pipeline:n\n"
    "18 bind encoder:n slot:n buffer:n offset:n\n"
    "19 bytes encoder:n slot:n data:b\n"
    "20 threadgroup encoder:n slot:n bytes:n\n"
    "21 reads encoder:n slot:n offset:n bytes:n\n"
    "22 writes encoder:n slot:n offset:n bytes:n must:n\n"
    "23 dispatch encoder:n threads:n x:n y:n z:n gx:n gy:n gz:n label:s\n"
    "24 barrier encoder:n\n"
    "25 fence-update encoder:n fence:n\n"
    "26 fence-wait encoder:n fence:n\n"
    "27 signal commands:n event:n value:n\n"
    "28 await commands:n event:n value:n\n"
    "29 copy encoder:n from:n from_offset:n to:n to_offset:n bytes:n\n"
    "30 fill encoder:n buffer:n offset:n bytes:n value:n\n"
    "31 push encoder:n label:s\n"
    "32 pop encoder:n\n"
    "33 unknown what:s\n"
    "34 ended commands:n\n"
    "35 holds buffer:n offset:n data:b\n";

struct mlxrec {
  FILE *file;
  int error;
  int blit, concurrent; /* of the encoder that is open */
  uint64_t last, commands, encoder; /* the number that was given last, and the objects that are open */
  uint64_t kernel;
  struct { int kind; uint64_t buffer, offset; size_t bytes; unsigned char data[4096]; } slots[31];
  uint32_t threadgroup[31];
};

static void mlxrec_put32(unsigned char *to, uint32_t v) {
  to[0] = (unsigned char)v, to[1] = (unsigned char)(v >> 8), to[2] = (unsigned char)(v >> 16), to[3] = (unsigned char)(v >> 24);
}

static void mlxrec_put64(unsigned char *to, uint64_t v) { mlxrec_put32(to, (uint32_t)v), mlxrec_put32(to + 4, (uint32_t)(v >> 32)); }

/* mlxrec_event writes an event. Of what fields has each letter: n is a uint64_t, s a const char * (or NULL), b a const void * and a
 * size_t behind it. */
#include <stdarg.h>
static void mlxrec_event(mlxrec *r, uint32_t code, const char *fields, ...) {
  unsigned char room[512]; /* small events, which are nearly all, are written at once */
  size_t at = 0;
  uint64_t size = 0;
  va_list list;
  if (!r || r->error) return;
  for (int write = 0; write < 2; write++) {
    va_start(list, fields);
    if (write) {
      if (size > 0xffffffffu) { r->error = EFBIG; va_end(list); return; }
      mlxrec_put32(room, (uint32_t)size), mlxrec_put32(room + 4, code), at = 8;
    }
    for (const char *f = fields; *f; f++) {
      const void *data = NULL;
      uint64_t n, width = 4;
      if (*f == 'n') {
        n = va_arg(list, uint64_t), width = 8;
      } else if (*f == 's') {
        data = va_arg(list, const char *), n = data ? strlen((const char *)data) : 0;
      } else {
        data = va_arg(list, const void *), n = va_arg(list, size_t);
      }
      if (!write) { size += width + (width == 4 ? n : 0); continue; }
      if (at + 16 > sizeof room) fwrite(room, 1, at, r->file), at = 0;
      mlxrec_put64(room + at, n), at += width;
      if (width == 8 || !n) continue;
      if (n > sizeof room - 16 - at) {
        fwrite(room, 1, at, r->file), at = 0;
        fwrite(data, 1, n, r->file);
      } else {
        memcpy(room + at, data, n), at += n;
      }
    }
    va_end(list);
  }
  for (; size % 8; size++) room[at++] = 0;
  fwrite(room, 1, at, r->file);
  if (ferror(r->file)) r->error = errno ? errno : EIO;
}

mlxrec *mlxrec_open(const char *path, const char *program) {
  static const unsigned char head[16] = {'M', 'L', 'X', 'T', 'R', 'A', 'C', 'E', 1};
  mlxrec *r = (mlxrec *)calloc(1, sizeof *r);
  if (!r) return NULL;
  if (!(r->file = fopen(path, "wb"))) { free(r); return NULL; }
  fwrite(head, 1, 16, r->file);
  {
    unsigned char raw[8] = {0};
    uint32_t n = (uint32_t)(sizeof mlxrec_events - 1);
    for (int i = 0; i < 4; i++) raw[i] = (unsigned char)(n >> 8 * i);
    fwrite(raw, 1, 8, r->file);
    fwrite(mlxrec_events, 1, n, r->file);
    fwrite("\0\0\0\0\0\0\0", 1, (8 - n % 8) % 8, r->file);
  }
  mlxrec_event(r, mlxrec_PROGRAM, "ss", program, "mlxrec.h 1");
  fflush(r->file);
  return r;
}

int mlxrec_close(mlxrec *r) {
  int error;
  if (!r) return EINVAL;
  if (r->commands) mlxrec_end(r);
  error = r->error;
  if (fclose(r->file) && !error) error = errno;
  free(r);
  errno = error;
  return error;
}

uint64_t mlxrec_source(mlxrec *r, const char *name, const char *text, size_t bytes, const char *options) {
  if (!r) return 0;
  mlxrec_event(r, mlxrec_LIBRARY, "nssbs", ++r->last, "source", name, (const void *)text, bytes, options);
  return r->last;
}

uint64_t mlxrec_metallib(mlxrec *r, const char *name, const void *data, size_t bytes) {
  if (!r) return 0;
  mlxrec_event(r, mlxrec_LIBRARY, "nssbs", ++r->last, "metallib", name, data, bytes, (const char *)NULL);
  return r->last;
}

uint64_t mlxrec_kernel(mlxrec *r, uint64_t library, const char *function, const mlxrec_constant *constants, size_t count) {
  unsigned char raw[16 * 256];
  if (!r) return 0;
  if (count > 256) { r->error = r->error ? r->error : EINVAL; return 0; }
  for (size_t c = 0; c < count; c++) {
    for (int i = 0; i < 4; i++) {
      raw[16 * c + i] = (unsigned char)(constants[c].index >> 8 * i);
      raw[16 * c + 4 + i] = (unsigned char)(constants[c].type >> 8 * i);
    }
    for (int i = 0; i < 8; i++) raw[16 * c + 8 + i] = (unsigned char)(constants[c].bits >> 8 * i);
  }
  mlxrec_event(r, mlxrec_PIPELINE, "nnsbs", ++r->last, library, function, (const void *)raw, 16 * count, (const char *)NULL);
  return r->last;
}

void mlxrec_write(mlxrec *r, uint64_t buffer, uint64_t offset, const void *data, size_t bytes) {
  const size_t most = 1u << 30; /* bytes of an event */
  for (size_t at = 0; at < bytes; at += most) {
    size_t n = bytes - at < most ? bytes - at : most;
    mlxrec_event(r, mlxrec_CONTENTS, "nnb", buffer, offset + at, (const void *)((const char *)data + at), n);
  }
}

uint64_t mlxrec_buffer(mlxrec *r, uint64_t bytes, const char *name, const char *role, const void *contents) {
  uint64_t id;
  if (!r) return 0;
  id = ++r->last;
  mlxrec_event(r, mlxrec_BUFFER, "nnnnsnn", id, bytes, (uint64_t)0, (uint64_t)0, (const char *)NULL, (uint64_t)0, (uint64_t)0);
  if (name || role) mlxrec_event(r, mlxrec_NAME, "nss", id, name, role);
  if (contents) mlxrec_write(r, id, 0, contents, (size_t)bytes);
  return id;
}

uint64_t mlxrec_part(mlxrec *r, uint64_t buffer, uint64_t offset, uint64_t bytes) {
  if (!r) return 0;
  mlxrec_event(r, mlxrec_BUFFER, "nnnnsnn", ++r->last, bytes, (uint64_t)0, (uint64_t)0, (const char *)NULL, buffer, offset);
  return r->last;
}

void mlxrec_free(mlxrec *r, uint64_t buffer) { mlxrec_event(r, mlxrec_FREE, "n", buffer); }

/* mlxrec_encoder opens an encoder of a kind unless one is open, with what was bound in the one before. */
static void mlxrec_encoder(mlxrec *r, int blit) {
  if (!r || (r->encoder && r->blit == blit)) return;
  if (r->encoder) mlxrec_event(r, mlxrec_END, "n", r->encoder);
  r->encoder = ++r->last, r->blit = blit;
  mlxrec_event(r, mlxrec_ENCODER, "nnsns", r->encoder, r->commands, blit ? "blit" : "compute", (uint64_t)(!blit && r->concurrent), (const char *)NULL);
  if (blit) return;
  if (r->kernel) mlxrec_event(r, mlxrec_USE, "nn", r->encoder, r->kernel);
  for (unsigned i = 0; i < 31; i++) {
    if (r->slots[i].kind == 1) mlxrec_event(r, mlxrec_BIND, "nnnn", r->encoder, (uint64_t)i, r->slots[i].buffer, r->slots[i].offset);
    if (r->slots[i].kind == 2) mlxrec_event(r, mlxrec_BYTES, "nnb", r->encoder, (uint64_t)i, (const void *)r->slots[i].data, r->slots[i].bytes);
    if (r->threadgroup[i]) mlxrec_event(r, mlxrec_THREADGROUP, "nnn", r->encoder, (uint64_t)i, (uint64_t)r->threadgroup[i]);
  }
}

void mlxrec_step(mlxrec *r, const char *name, int concurrent) {
  if (!r) return;
  if (r->commands) mlxrec_end(r);
  r->concurrent = concurrent, r->kernel = 0;
  for (unsigned i = 0; i < 31; i++) r->slots[i].kind = 0, r->threadgroup[i] = 0;
  mlxrec_event(r, mlxrec_STEP, "s", name);
  r->commands = ++r->last;
  mlxrec_event(r, mlxrec_COMMANDS, "nns", r->commands, (uint64_t)1, (const char *)NULL);
  mlxrec_encoder(r, 0);
}

void mlxrec_param(mlxrec *r, const char *name, uint32_t value) { mlxrec_event(r, mlxrec_PARAM, "sn", name, (uint64_t)value); }

void mlxrec_end(mlxrec *r) {
  if (!r || !r->commands) return;
  mlxrec_event(r, mlxrec_END, "n", r->encoder);
  mlxrec_event(r, mlxrec_COMMIT, "n", r->commands);
  mlxrec_event(r, mlxrec_WAIT, "n", r->commands);
  mlxrec_event(r, mlxrec_STEP, "s", (const char *)NULL);
  r->commands = r->encoder = 0;
  if (fflush(r->file) && !r->error) r->error = errno; /* what a program that dies has ended is in the log */
}

void mlxrec_use(mlxrec *r, uint64_t kernel) {
  mlxrec_encoder(r, 0);
  if (r) r->kernel = kernel;
  if (r) mlxrec_event(r, mlxrec_USE, "nn", r->encoder, kernel);
}

void mlxrec_bind(mlxrec *r, unsigned slot, uint64_t buffer, uint64_t offset) {
  mlxrec_encoder(r, 0);
  if (r && slot < 31) r->slots[slot].kind = 1, r->slots[slot].buffer = buffer, r->slots[slot].offset = offset;
  if (r) mlxrec_event(r, mlxrec_BIND, "nnnn", r->encoder, (uint64_t)slot, buffer, offset);
}

void mlxrec_bytes(mlxrec *r, unsigned slot, const void *data, size_t bytes) {
  mlxrec_encoder(r, 0);
  if (r && slot < 31 && bytes <= 4096) r->slots[slot].kind = 2, r->slots[slot].bytes = bytes, memcpy(r->slots[slot].data, data, bytes);
  if (r) mlxrec_event(r, mlxrec_BYTES, "nnb", r->encoder, (uint64_t)slot, data, bytes);
}

void mlxrec_threadgroup(mlxrec *r, unsigned slot, uint32_t bytes) {
  mlxrec_encoder(r, 0);
  if (r && slot < 31) r->threadgroup[slot] = bytes;
  if (r) mlxrec_event(r, mlxrec_THREADGROUP, "nnn", r->encoder, (uint64_t)slot, (uint64_t)bytes);
}

void mlxrec_reads(mlxrec *r, unsigned slot, uint64_t offset, uint64_t bytes) {
  if (r) mlxrec_event(r, mlxrec_READS, "nnnn", r->encoder, (uint64_t)slot, offset, bytes);
}

void mlxrec_writes(mlxrec *r, unsigned slot, uint64_t offset, uint64_t bytes, int must) {
  if (r) mlxrec_event(r, mlxrec_WRITES, "nnnnn", r->encoder, (uint64_t)slot, offset, bytes, (uint64_t)(must != 0));
}

static void mlxrec_grid(mlxrec *r, uint64_t threads, uint32_t x, uint32_t y, uint32_t z, uint32_t gx, uint32_t gy, uint32_t gz) {
  mlxrec_encoder(r, 0);
  if (r) mlxrec_event(r, mlxrec_DISPATCH, "nnnnnnnns", r->encoder, threads, (uint64_t)x, (uint64_t)y, (uint64_t)z, (uint64_t)gx, (uint64_t)gy, (uint64_t)gz, (const char *)NULL);
}

void mlxrec_threads(mlxrec *r, uint32_t x, uint32_t y, uint32_t z, uint32_t gx, uint32_t gy, uint32_t gz) { mlxrec_grid(r, 1, x, y, z, gx, gy, gz); }

void mlxrec_threadgroups(mlxrec *r, uint32_t x, uint32_t y, uint32_t z, uint32_t gx, uint32_t gy, uint32_t gz) { mlxrec_grid(r, 0, x, y, z, gx, gy, gz); }

void mlxrec_barrier(mlxrec *r) {
  if (r) mlxrec_event(r, mlxrec_BARRIER, "n", r->encoder);
}

void mlxrec_copy(mlxrec *r, uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset, uint64_t bytes) {
  mlxrec_encoder(r, 1);
  if (r) mlxrec_event(r, mlxrec_COPY, "nnnnnn", r->encoder, from, from_offset, to, to_offset, bytes);
}

void mlxrec_fill(mlxrec *r, uint64_t buffer, uint64_t offset, uint64_t bytes, uint8_t value) {
  mlxrec_encoder(r, 1);
  if (r) mlxrec_event(r, mlxrec_FILL, "nnnnn", r->encoder, buffer, offset, bytes, (uint64_t)value);
}

void mlxrec_push(mlxrec *r, const char *label) {
  mlxrec_encoder(r, 0);
  if (r) mlxrec_event(r, mlxrec_PUSH, "ns", r->encoder, label);
}

void mlxrec_pop(mlxrec *r) {
  if (r) mlxrec_event(r, mlxrec_POP, "n", r->encoder);
}
#endif /* MLXREC_IMPLEMENTATION */
