// Kernels with one defect each. A line `// run GRID/THREADGROUP ARGUMENT...` says how the next kernel
// is dispatched (defects_test.go has the arguments). A comment `want: KIND [ARGUMENT]` stands on
// the line that the checker has to name; several are separated by `;`. A comment `right: TEXT`
// stands on a line that is TEXT in the repaired twin, in which nothing is found.
#include <metal_stdlib>
using namespace metal;
#define POSITIONS uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]
#define IN(T, n) device const T* x [[buffer(n)]]
#define OUT(T, n) device T* y [[buffer(n)]]

// Out of bounds: device memory.

// run 64/32 in:256 out:256
kernel void off_by_one(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i + 1]; // want: out of bounds x // right: y[i] = x[i];
}
// run 64/32 in:256 out:256
kernel void negative(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[int(i) - 1]; // want: out of bounds x // right: y[i] = x[max(int(i) - 1, 0)];
}
// run 64/32 in:256 out:256
kernel void store_behind(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i + 2] = x[i]; // want: out of bounds y // right: y[i] = x[i];
}
// run 16/16 in:252 out:256
kernel void vector_across_the_end(device const float4* x [[buffer(0)]], device float4* y [[buffer(1)]], POSITIONS) {
  y[i] = x[i]; // want: out of bounds x // right: y[i] = i < 15 ? x[i] : float4(0);
}
// run 64/32 in:256 out:256
static float second(device const float* p) {
  return p[32]; // want: out of bounds x // right: return p[32];
}
kernel void pointer_in_a_function(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = second(x + i); // right: y[i] = second(x + i % 32);
}
// run 32/32 ints:128 in:128 out:128
kernel void index_from_data(device const int* n [[buffer(0)]], IN(float, 1), OUT(float, 2), POSITIONS) {
  y[i] = x[n[i] + 1]; // want: out of bounds x // right: y[i] = x[n[i]];
}
// run 32/32 in:128 out:128 u64:1073741824
kernel void wide_stride(IN(float, 0), OUT(float, 1), constant const ulong& stride [[buffer(2)]], POSITIONS) {
  y[i] = x[ulong(i) * stride]; // want: out of bounds x // right: y[i] = x[i];
}
// run 32/32 in:128 in:128 out:128
kernel void selected(IN(float, 0), device const float* z [[buffer(1)]], OUT(float, 2), POSITIONS) {
  device const float* p = (i & 1) ? x : z;
  y[i] = p[i + 1]; // want: out of bounds // right: y[i] = p[i];
}
struct Pair { device const float* p; device float* q; };
// run 32/32 in:128 out:128
kernel void in_a_struct(IN(float, 0), OUT(float, 1), POSITIONS) {
  Pair pair = {x, y};
  pair.q[i] = pair.p[i + 1]; // want: out of bounds x // right: pair.q[i] = pair.p[i];
}
// run 21/32 in:252 out:252
kernel void three_parts(device const packed_float3* x [[buffer(0)]], device packed_float3* y [[buffer(1)]], POSITIONS) {
  y[i] = x[i + 1]; // want: out of bounds x // right: y[i] = x[i];
}
// run 50/32 in:100 out:100
kernel void halves(IN(half, 0), OUT(half, 1), POSITIONS) {
  y[i] = x[i + 1]; // want: out of bounds x // right: y[i] = x[i];
}
// run 40/32 in:128 out:160
kernel void ragged_edge(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i]; // want: out of bounds x // right: y[i] = x[t];
}
struct Four { float a, b, c, d; };
// run 16/16 in:240 out:256
kernel void copied_struct(device const Four* x [[buffer(0)]], device Four* y [[buffer(1)]], POSITIONS) {
  y[i] = x[i]; // want: out of bounds x // right: y[i] = x[i % 15];
}
// run 32/32 in:256 out:256
kernel void matrix_load(IN(float, 0), OUT(float, 1), POSITIONS) {
  simdgroup_float8x8 m;
  simdgroup_load(m, x, 9); // want: out of bounds x // right: simdgroup_load(m, x, 8);
  simdgroup_store(m, y, 8);
}

// Out of bounds: constant, threadgroup and private memory.

constant float table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
// run 32/32 out:128
kernel void constant_array(OUT(float, 0), POSITIONS) {
  y[i] = table[i]; // want: out of bounds // right: y[i] = table[i & 7];
}
// run 32/32 in:64 out:128
kernel void constant_buffer(constant const float* x [[buffer(0)]], OUT(float, 1), POSITIONS) {
  y[i] = x[i]; // want: out of bounds x // right: y[i] = x[i & 15];
}
// run 32/32 bytes:16 out:128
kernel void inline_bytes(constant const int* x [[buffer(0)]], OUT(int, 1), POSITIONS) {
  y[i] = x[i >> 2]; // want: out of bounds x // right: y[i] = x[i >> 3];
}
// run 32/32 in:128 out:128
kernel void threadgroup_variable(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[32];
  tile[t + 1] = x[i]; // want: out of bounds threadgroup // right: tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t > 0) y[i] = tile[t];
}
// run 32/32 in:128 out:128
kernel void neighbouring_variables(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float first[32];
  threadgroup float other[32];
  first[t] = x[i];
  other[t] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = first[t + 36] + other[t]; // want: out of bounds threadgroup // right: y[i] = first[t] + other[t];
}
// run 32/32 in:128 out:128 tg:128
kernel void threadgroup_argument(IN(float, 0), OUT(float, 1), threadgroup float* tile [[threadgroup(0)]], POSITIONS) {
  tile[2 * t] = x[i]; // want: out of bounds threadgroup argument 0 // right: tile[t] = x[i];
}
// run 32/32 in:128 out:128
kernel void private_below(IN(float, 0), OUT(float, 1), POSITIONS) {
  float a[8];
  for (int k = 0; k < 8; k++) a[k] = x[i];
  y[i] = a[int(i & 7) - 1]; // want: out of bounds private // right: y[i] = a[i & 7];
}
// run 32/32 in:128 out:128
kernel void private_above(IN(float, 0), OUT(float, 1), POSITIONS) {
  float a[8];
  for (int k = 0; k < 8; k++) a[k] = x[i];
  a[i & 15] = 2; // want: out of bounds private // right: a[i & 7] = 2;
  y[i] = a[(i + 1) & 7];
}
// run 32/32 ints:128 out:128
kernel void private_dynamic(device const int* n [[buffer(0)]], OUT(int, 1), POSITIONS) {
  int a[16];
  for (int k = 0; k < 16; k++) a[k] = n[k] + n[i];
  y[i] = a[n[i]]; // want: out of bounds private // right: y[i] = a[n[i] & 15];
}

// Races: device memory.

// run 64/32 in:256 out:256
kernel void write_write(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[t] = x[i]; // want: race y // right: y[i] = x[i];
}
// run 64/32 in:256 out:4
kernel void one_result(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[0] = x[i]; // want: race y // right: if (i == 0) y[0] = x[i];
}
// run 64/32 state:256
kernel void in_place_stencil(device float* y [[buffer(0)]], POSITIONS) {
  float a = y[i], b = y[(i + 1) & 63]; // want: race y // right: float a = y[i], b = 0;
  y[i] = a + b; // want: race y // right: y[i] = a + b;
}
// run 64/64 state:256
kernel void missing_device_barrier(device float* y [[buffer(0)]], POSITIONS) {
  y[t] = float(t); // want: race y // right: y[t] = float(t);
  // right: threadgroup_barrier(mem_flags::mem_device);
  float b = y[t ^ 32]; // want: race y
  threadgroup_barrier(mem_flags::mem_device);
  y[t] = b; // right: y[t] = b;
}
// run 64/64 state:256
kernel void device_barrier_names_threadgroup(device float* y [[buffer(0)]], POSITIONS) {
  y[t] = float(t);
  threadgroup_barrier(mem_flags::mem_threadgroup); // right: threadgroup_barrier(mem_flags::mem_device);
  float b = y[63 - t]; // want: race y
  threadgroup_barrier(mem_flags::mem_device);
  y[t] = b;
}
// run 64/32 in:256 state:256
kernel void across_threadgroups(IN(float, 0), device float* y [[buffer(1)]], POSITIONS) {
  y[i] = x[i];
  threadgroup_barrier(mem_flags::mem_device);
  if (g == 1) y[i] = y[t] + 1; // want: race y // right: if (g == 1) y[i] = y[i] + 1;
}
// run 64/32 state:4
kernel void atomic_and_plain(device atomic_uint* n [[buffer(0)]], POSITIONS) {
  if (i == 40) {
    *(device uint*)n = 7; // want: race n // right: atomic_store_explicit(n, 7u, memory_order_relaxed);
  } else {
    atomic_fetch_add_explicit(n, 1u, memory_order_relaxed); // want: race n // right: atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);
  }
}
// run 32/32 in:128 out:128
kernel void bytes_of_a_word(IN(uchar, 0), OUT(uchar, 1), POSITIONS) {
  y[i / 2] = x[i]; // want: race y // right: y[i] = x[i];
}
// run 64/32 state:260 as:0+4
kernel void one_buffer_twice(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], POSITIONS) {
  y[i] = x[i]; // want: race // right: y[i] = 1;
}
// run 64/64 state:256
kernel void simdgroup_barrier_is_too_little(device float* y [[buffer(0)]], POSITIONS) {
  y[t] = float(t);
  simdgroup_barrier(mem_flags::mem_device); // right: threadgroup_barrier(mem_flags::mem_device);
  float b = y[63 - t]; // want: race y
  threadgroup_barrier(mem_flags::mem_device);
  y[t] = b;
}

// Races: threadgroup memory.

// run 64/64 in:256 out:256
kernel void missing_barrier(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  tile[t] = x[i]; // want: race threadgroup // right: tile[t] = x[i];
  // right: threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - t]; // want: race threadgroup; undefined read threadgroup // right: y[i] = tile[63 - t];
}
// run 64/64 in:256 out:256
kernel void barrier_names_nothing(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_none); // right: threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - t]; // want: race threadgroup
}
// run 64/64 in:256 out:256
kernel void barrier_names_device(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_device); // right: threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - t]; // want: race threadgroup
}
// run 64/64 in:256 out:256
kernel void simdgroup_barrier_for_all(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  tile[t] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup); // right: threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - t]; // want: race threadgroup
}
// run 64/64 in:256 out:256
kernel void lanes_without_barrier(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  tile[t] = x[i];
  simd_sum(x[i]); // right: simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[t ^ 1]; // want: race threadgroup // right: y[i] = tile[t ^ 1];
}
// run 64/64 in:256 out:256
kernel void buffer_reused(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  float sum = 0;
  for (int k = 0; k < 3; k++) {
    tile[t] = x[i] + k; // want: race threadgroup // right: tile[t] = x[i] + k;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += tile[63 - t]; // want: race threadgroup // right: sum += tile[63 - t];
    // right: threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = sum;
}
// run 64/64 out:4
kernel void threadgroup_counter(OUT(uint, 0), POSITIONS) {
  threadgroup atomic_uint n;
  if (t == 0) atomic_store_explicit(&n, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  *(threadgroup uint*)&n += 1; // want: race threadgroup; race threadgroup // right: atomic_fetch_add_explicit(&n, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) y[0] = atomic_load_explicit(&n, memory_order_relaxed);
}
// run 64/64 in:256 out:256
kernel void matrix_store(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(float(sg));
  simdgroup_store(m, tile, 8); // want: race threadgroup // right: if (sg == 0) simdgroup_store(m, tile, 8);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[t] + x[i];
}

// Divergence.

// run 64/64 in:256 out:256
kernel void barrier_in_a_branch(IN(float, 0), OUT(float, 1), POSITIONS) {
  if (t < 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup); // want: divergent barrier // right: simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = x[i];
}
// run 64/64 in:256 out:256
kernel void early_return(IN(float, 0), OUT(float, 1), POSITIONS) {
  if (t > 50) return; // right: ;
  threadgroup_barrier(mem_flags::mem_threadgroup); // want: divergent barrier // right: threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = x[i];
}
// run 64/64 ints:256 out:256
kernel void trip_counts(device const int* n [[buffer(0)]], OUT(int, 1), POSITIONS) {
  int sum = 0;
  for (int k = 0; k <= n[i] / 32; k++) { // right: for (int k = 0; k < 2; k++) {
    threadgroup_barrier(mem_flags::mem_threadgroup); // want: divergent barrier // right: threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += k;
  }
  y[i] = sum;
}
// run 64/64 in:256 out:256
kernel void two_barriers(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = x[i];
  if (t < 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup); // want: divergent barrier // right: v += 2;
    v += 1;
  } else {
    threadgroup_barrier(mem_flags::mem_device); // right: v += 3;
    v += 2;
  }
  y[i] = v;
}
// run 32/32 in:256 out:256
kernel void part_of_a_product(IN(float, 0), OUT(float, 1), POSITIONS) {
  simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(a, x, 8);
  simdgroup_load(b, x, 8);
  if (lane > 5) // right: if (x[0] < 100)
    simdgroup_multiply_accumulate(c, a, b, c); // want: divergent matrix product // right: simdgroup_multiply_accumulate(c, a, b, c);
  simdgroup_store(c, y, 8);
}

// Undefined reads.

// run 32/32 out:128
kernel void undefined_threadgroup(OUT(float, 0), POSITIONS) {
  threadgroup float tile[32];
  if (t < 31) tile[t] = 1; // right: tile[t] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[31 - t]; // want: undefined read threadgroup // right: y[i] = tile[31 - t];
}
// run 32/32 in:128 out:128
kernel void undefined_private(IN(float, 0), OUT(float, 1), POSITIONS) {
  float a[8];
  for (uint k = 0; k < (i & 7); k++) a[k] = x[k]; // right: for (uint k = 0; k < 8; k++) a[k] = x[k];
  y[i] = a[(i * 5) & 7]; // want: undefined read private // right: y[i] = a[(i * 5) & 7];
}
// run 32/32 scratch:128 out:128
kernel void undefined_scratch(device float* s [[buffer(0)]], OUT(float, 1), POSITIONS) {
  if (i != 5) s[i] = 1; // right: s[i] = 1;
  y[i] = s[i]; // want: undefined read s // right: y[i] = s[i];
}
// run 32/32 in:128 out:128
kernel void output_as_input(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] += x[i]; // want: undefined read y // right: y[i] = x[i];
}

// Declarations.

// run 32/32 in:128 out:128
kernel void const_cast_away(IN(float, 0), OUT(float, 1), POSITIONS) {
  ((device float*)x)[i] = 2; // want: write to read-only x // right: ;
  y[i] = 1;
}
// run 32/32 in:128 out:128 reads=0:0:64 writes=1:0:128
kernel void reads_more(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i]; // want: undeclared read x // right: y[i] = x[i & 15];
}
// run 32/32 in:128 out:128 reads=0:0:128 writes=1:64:64
kernel void writes_more(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i]; // want: undeclared write y // right: if (i >= 16) y[i] = x[i];
}

// Results.

// run 32/32 in:128 out:128
kernel void log_of_negative(IN(float, 0), OUT(float, 1), POSITIONS) { // want: non-finite result y // right: kernel void log_of_negative(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = log(x[i] - 10); // right: y[i] = log(abs(x[i]) + 1);
}
// run 32/32 in:128 out:128
kernel void zero_by_zero(IN(float, 0), OUT(float, 1), POSITIONS) { // want: non-finite result y // right: kernel void zero_by_zero(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = (x[i] - x[i]) / (x[i] - x[i]); // right: y[i] = 1;
}
// run 32/32 in:64 out:64
kernel void overflow(IN(half, 0), OUT(half, 1), POSITIONS) { // want: non-finite result y // right: kernel void overflow(IN(half, 0), OUT(half, 1), POSITIONS) {
  y[i] = half(60000) * (half(2) + abs(x[i])); // right: y[i] = x[i];
}

// Limits.

// run 2048/2048 in:8192 out:8192 // right: // run 2048/1024 in:8192 out:8192
kernel void too_many_threads(IN(float, 0), OUT(float, 1), POSITIONS) { // want: limit // right: kernel void too_many_threads(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i];
}
// run 128/128 in:512 out:512 // right: // run 128/64 in:512 out:512
[[max_total_threads_per_threadgroup(64)]] kernel void more_than_promised(IN(float, 0), OUT(float, 1), POSITIONS) { // want: limit // right: [[max_total_threads_per_threadgroup(64)]] kernel void more_than_promised(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i];
}
// run 32/32 in:128 out:128 tg:32784 // right: // run 32/32 in:128 out:128 tg:32768
kernel void too_much_threadgroup_memory(IN(float, 0), OUT(float, 1), threadgroup float* tile [[threadgroup(0)]], POSITIONS) { // want: limit // right: kernel void too_much_threadgroup_memory(IN(float, 0), OUT(float, 1), threadgroup float* tile [[threadgroup(0)]], POSITIONS) {
  tile[t] = x[i];
  y[i] = tile[t];
}
// run 32/32 bytes:4100 out:128 // right: // run 32/32 bytes:4096 out:128
kernel void too_many_bytes(constant const int* x [[buffer(0)]], OUT(int, 1), POSITIONS) { // want: limit // right: kernel void too_many_bytes(constant const int* x [[buffer(0)]], OUT(int, 1), POSITIONS) {
  y[i] = x[i];
}
// run 32/32 in:128 out:128 // right: // run 32/32 in:128 out:128 tg:128
kernel void no_length(IN(float, 0), OUT(float, 1), threadgroup float* tile [[threadgroup(0)]], POSITIONS) { // want: limit // right: kernel void no_length(IN(float, 0), OUT(float, 1), threadgroup float* tile [[threadgroup(0)]], POSITIONS) {
  tile[t] = x[i]; // want: out of bounds threadgroup argument 0 // right: tile[t] = x[i];
  y[i] = tile[t];
}

// What is no defect, in neither twin: the same value from several threads, atomics on both sides, lanes that a simdgroup_barrier orders,
// what one thread does alone, and different bytes of one word.

// run 64/32 state:4
kernel void fine_atomics(device atomic_uint* n [[buffer(0)]], POSITIONS) {
  atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);
  if (i == 3) atomic_store_explicit(n, 9u, memory_order_relaxed);
}
// run 64/64 in:256 out:256
kernel void fine_lanes(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  tile[t] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  float v = tile[t ^ 1];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  tile[t] = v;
  y[i] = tile[t];
}
// run 64/32 state:256
kernel void fine_alone(device float* y [[buffer(0)]], POSITIONS) {
  y[i] = y[i] + 1;
  y[i] = y[i] * 2;
}
// run 64/32 in:256 out:4
kernel void fine_same_value(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[0] = x[7];
}
// run 37/32 in:37 out:37
kernel void fine_bytes(IN(uchar, 0), OUT(uchar, 1), POSITIONS) {
  y[i] = x[i];
}
// run 32/32 in:128 as:0
kernel void fine_in_place(device const float* x [[buffer(0)]], device float* y [[buffer(1)]], POSITIONS) {
  y[i] = 2 * x[i];
}
