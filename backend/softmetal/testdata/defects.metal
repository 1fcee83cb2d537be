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
// run 64/64 in:256 out:256 tg:256
kernel void pointers_past_threadgroup_memory(IN(float, 0), OUT(float, 1), threadgroup float* tile [[threadgroup(0)]], POSITIONS) {
  threadgroup float* halves[2] = {tile, tile + 32};
  halves[sg & 1][lane] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = halves[1 - (sg & 1)][lane + (sg == 0 ? 32 : 0)]; // want: out of bounds threadgroup memory that is no argument's // right: y[i] = halves[1 - (sg & 1)][lane];
}
// run 32/32 in:128 out:128 tg:128 tg:64
kernel void pointers_past_threadgroup_argument(IN(float, 0), OUT(float, 1), threadgroup float4* a [[threadgroup(0)]], threadgroup float* b [[threadgroup(1)]], POSITIONS) {
  threadgroup float* both[2] = {(threadgroup float*)a, b};
  both[t & 1][t / 2] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  packed_float4 v = ((threadgroup packed_float4*)(both[t & 1] + (t & 1 ? 13 : 0)))[0]; // want: out of bounds threadgroup memory that is no argument's // right: packed_float4 v = ((threadgroup packed_float4*)(both[t & 1]))[0];
  y[i] = v.x + v.w;
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

// run 64/64 in:256 out:256 tg:256
kernel void race_through_pointers(IN(float, 0), OUT(float, 1), threadgroup float* tile [[threadgroup(0)]], POSITIONS) {
  threadgroup float* halves[2] = {tile, tile + 32};
  halves[sg & 1][lane] = x[i]; // want: race threadgroup argument 0 (tile) // right: halves[sg & 1][lane] = x[i];
  // right: threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = halves[1 - (sg & 1)][lane]; // want: race threadgroup argument 0; undefined read threadgroup argument 0 // right: y[i] = halves[1 - (sg & 1)][lane];
}

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

// run 64/64 in:256 out:256
kernel void part_of_a_simdgroup_barrier(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = x[i];
  if (lane < 16) { // right: {
    simdgroup_barrier(mem_flags::mem_threadgroup); // want: divergent barrier // right: simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  y[i] = simd_sum(v);
}
// run 64/64 ints:256 out:256
kernel void simdgroup_trip_counts(device const int* n [[buffer(0)]], OUT(int, 1), POSITIONS) {
  int sum = 0;
  for (int k = 0; k <= (n[i] & 3); k++) { // right: for (int k = 0; k < 3; k++) {
    simdgroup_barrier(mem_flags::mem_device); // want: divergent barrier // right: simdgroup_barrier(mem_flags::mem_device);
    sum += k;
  }
  y[i] = simd_sum(sum);
}
// run 64/64 in:256 out:256
kernel void part_of_a_load(IN(float, 0), OUT(float, 1), POSITIONS) {
  simdgroup_float8x8 a = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  if (lane < 30) // right: if (sg < 5)
    simdgroup_load(a, x, 8); // want: divergent matrix access // right: simdgroup_load(a, x, 8);
  if (sg == 0) simdgroup_store(a, y, 8);
}
// run 32/32 in:256 out:256
kernel void part_of_a_store(IN(float, 0), OUT(float, 1), POSITIONS) {
  simdgroup_float8x8 a;
  simdgroup_load(a, x, 8);
  if (x[lane] < 0) // right: if (x[0] < 0)
    simdgroup_store(a, y, 8); // want: divergent matrix access // right: simdgroup_store(a, y, 8);
}
// run 24/24 in:256 out:256 // right: // run 32/32 in:256 out:256
kernel void too_few_for_a_matrix(IN(float, 0), OUT(float, 1), POSITIONS) {
  simdgroup_float8x8 a;
  simdgroup_load(a, x, 8); // want: divergent matrix access // right: simdgroup_load(a, x, 8);
  simdgroup_store(a, y, 8); // want: divergent matrix access // right: simdgroup_store(a, y, 8);
}

// Values of threads that are not there.

// run 40/40 in:160 out:160
kernel void beyond_the_last(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = simd_shuffle_down(x[i], 8);
  y[i] = v; // want: inactive lane y // right: if (t < 32) y[i] = v;
}
// run 64/64 in:256 out:256
kernel void half_of_a_butterfly(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = x[i];
  if (lane < 16) // right: if (lane < 99)
    v += simd_shuffle_xor(v, 16);
  y[i] = v; // want: inactive lane y // right: y[i] = v;
}
// run 32/32 in:128 out:128
kernel void lane_32(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = simd_shuffle(x[i], lane + 1); // right: float v = simd_shuffle(x[i], (lane + 1) & 31);
  y[i] = 2 * v; // want: inactive lane y // right: y[i] = 2 * v;
}
// run 32/32 in:128 out:128
kernel void broadcast_of_nobody(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = simd_broadcast(x[i], 40); // right: float v = simd_broadcast(x[i], 4);
  y[i] = v; // want: inactive lane y // right: y[i] = v;
}
// run 30/30 in:120 out:120
kernel void quad_of_two(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = quad_shuffle_xor(x[i], 2);
  if (i < 30) y[i] = v; // want: inactive lane y // right: if (i < 28) y[i] = v;
}
// run 40/40 in:160 out:8
kernel void sum_of_too_few(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = x[i];
  for (ushort k = 16; k > 0; k /= 2) // right: for (ushort k = 4; k > 0; k /= 2)
    v += simd_shuffle_down(v, k);
  if (lane == 0) y[sg] = v; // want: inactive lane y // right: if (lane == 0) y[sg] = v;
}
// run 40/40 in:160 out:160
kernel void spread_by_a_sum(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = simd_sum(simd_shuffle_xor(x[i], 8)); // right: float v = simd_sum(simd_shuffle_xor(x[i], 4));
  y[i] = v; // want: inactive lane y // right: y[i] = v;
}
// run 40/40 in:160 out:160
kernel void decided_by_nobody(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = simd_shuffle_down(x[i], 8); // right: float v = simd_shuffle_up(x[i], 8);
  if (v > 0) // want: inactive lane // right: if (v > 0)
    y[i] = x[i];
}
// run 40/40 ints:160 out:160
kernel void index_of_nobody(device const uint* n [[buffer(0)]], OUT(uint, 1), POSITIONS) {
  uint k = simd_shuffle_xor(n[i], 16) & 31; // right: uint k = simd_shuffle_xor(n[i], 4) & 31;
  y[i] = n[k]; // want: inactive lane // right: y[i] = n[k];
}
// run 64/64 in:256 out:256
kernel void kept_for_later(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[64];
  float v = x[i];
  if (lane >= 4) v = simd_shuffle_up(v, 4); // right: v = simd_shuffle_up(v, 4);
  tile[t] = v; // want: inactive lane threadgroup // right: tile[t] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[63 - t];
}

// Misaligned accesses.

// run 8/8 in:160 out:128
kernel void vector_between(IN(float, 0), device float4* y [[buffer(1)]], POSITIONS) {
  y[i] = *(device const float4*)(x + 4 * i + 1); // want: misaligned access x // right: y[i] = *(device const packed_float4*)(x + 4 * i + 1);
}
// run 8/8 in:64 out:72
kernel void halves_between(device const half4* x [[buffer(0)]], OUT(half, 1), POSITIONS) {
  *(device half4*)(y + 4 * i + 2) = x[i]; // want: misaligned access y // right: *(device half4*)(y + 4 * i + 4) = x[i];
}
// run 8/8 in:64 out:32
kernel void bytes_as_a_word(IN(uchar, 0), OUT(uint, 1), POSITIONS) {
  y[i] = *(device const uint*)(x + 4 * i + 2); // want: misaligned access x // right: y[i] = *(device const uint*)(x + 4 * i + 4);
}
// run 32/32 in:128 out:64
kernel void vector_in_a_tile(IN(float, 0), device float2* y [[buffer(1)]], POSITIONS) {
  threadgroup float tile[36];
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 8) y[t] = *(threadgroup float2*)(tile + 3 * t); // want: misaligned access threadgroup // right: if (t < 8) y[t] = *(threadgroup float2*)(tile + 2 * t);
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

// run 32/32 in:128 out:128
kernel void unset_scalar(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v;
  if (i & 1) v = x[i]; // right: v = x[i];
  y[i] = v + 1; // want: undefined value y // right: y[i] = v + 1;
}
// run 32/32 in:128 out:128
kernel void never_set(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v; // right: float v = 0;
  y[i] = x[i] * v; // want: undefined value y // right: y[i] = x[i] * v;
}
// run 32/32 in:128 out:128
kernel void set_in_the_last_round(IN(float, 0), OUT(float, 1), POSITIONS) {
  float sum = 0;
  for (int k = 0; k < 4; k++) {
    float v; // right: float v = 0;
    if (k != 2) v = x[(i + k) & 31];
    sum += v;
  }
  y[i] = sum; // want: undefined value y // right: y[i] = sum;
}
// run 32/32 in:128 out:512
kernel void three_of_four(IN(float, 0), device float4* y [[buffer(1)]], POSITIONS) {
  float4 v;
  v.xyz = float3(x[i]);
  if (i > 3) v.w = 0; // right: v.w = 0;
  y[i] = v; // want: undefined value y // right: y[i] = v;
}
struct Flagged { float a; bool b; };
// run 32/32 in:128 out:128
kernel void member_of_one_byte(IN(float, 0), OUT(float, 1), POSITIONS) {
  Flagged f;
  f.a = x[i];
  if (x[i] > 0) f.b = true; // right: f.b = x[i] > 0;
  y[i] = f.b ? f.a : 1; // want: undefined value y // right: y[i] = f.b ? f.a : 1;
}
// run 32/32 in:128 out:128
kernel void large_array(IN(float, 0), OUT(float, 1), POSITIONS) {
  float a[512];
  for (uint k = 0; k < 511; k++) a[k] = x[i]; // right: for (uint k = 0; k < 512; k++) a[k] = x[i];
  y[i] = a[480 + i]; // want: undefined read private // right: y[i] = a[480 + i];
}
struct Part { float a; int n; half c; };
// run 32/32 in:128 out:384
kernel void member_of_a_struct(IN(float, 0), device Part* y [[buffer(1)]], POSITIONS) {
  Part p;
  p.a = x[i];
  if (x[i] > 0) p.n = 1; // right: p.n = 1;
  p.c = 3;
  y[i] = p; // want: undefined value y // right: y[i] = p;
}
// run 32/32 in:128 out:128
kernel void struct_in_an_array(IN(float, 0), OUT(float, 1), POSITIONS) {
  Part p[8];
  for (int k = 0; k < 8; k++) {
    p[k].a = x[k];
    if (k != 3) p[k].c = 1; // right: p[k].c = 1;
  }
  y[i] = float(p[i & 7].c); // want: undefined read private // right: y[i] = float(p[i & 7].c);
}
// run 32/32 in:128 out:128
kernel void through_an_array(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v, a[8];
  if (i > 4) v = x[i]; // right: v = x[i];
  for (int k = 0; k < 8; k++) a[(k + i) & 7] = v;
  y[i] = a[(i * 3) & 7]; // want: undefined value y // right: y[i] = a[(i * 3) & 7];
}
// run 32/32 in:128 out:128
kernel void decided_by_nothing(IN(float, 0), OUT(float, 1), POSITIONS) {
  bool found; // right: bool found = false;
  for (uint k = 0; k < i; k++) found = x[k] > 0;
  if (found) // want: undefined value // right: if (found)
    y[i] = x[i];
}
// run 32/32 in:128 out:128
kernel void index_of_nothing(IN(float, 0), OUT(float, 1), POSITIONS) {
  uint k;
  if (x[i] > 0) k = i; // right: k = i;
  y[i] = x[k & 31]; // want: undefined value // right: y[i] = x[k & 31];
}
// run 32/32 in:128 out:128
kernel void to_threadgroup_memory(IN(float, 0), OUT(float, 1), POSITIONS) {
  threadgroup float tile[32];
  float v;
  if (t != 7) v = x[i]; // right: v = x[i];
  tile[t] = v; // want: undefined value threadgroup // right: tile[t] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = tile[31 - t];
}
// run 32/32 in:256 out:256
kernel void unset_matrix(IN(float, 0), OUT(float, 1), POSITIONS) {
  simdgroup_float8x8 a, c; // right: simdgroup_float8x8 a, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(a, x, 8);
  simdgroup_multiply_accumulate(c, a, a, c);
  simdgroup_store(c, y, 8); // want: undefined value y // right: simdgroup_store(c, y, 8);
}
// run 32/32 in:256 out:256
kernel void unset_element_of_a_matrix(IN(float, 0), OUT(float, 1), POSITIONS) {
  simdgroup_float8x8 a, b, c = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(b, x, 8);
  a.thread_elements()[0] = x[lane];
  if (lane != 9) a.thread_elements()[1] = 1; // right: a.thread_elements()[1] = 1;
  simdgroup_multiply_accumulate(c, a, b, c);
  simdgroup_store(c, y, 8); // want: undefined value y // right: simdgroup_store(c, y, 8);
}
// run 32/32 in:128 out:128
kernel void unset_in_a_sum(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v;
  if (lane != 3) v = x[i]; // right: v = x[i];
  y[i] = simd_sum(v); // want: undefined value y // right: y[i] = simd_sum(v);
}
// run 32/32 state:4
kernel void unset_in_an_atomic(device atomic_uint* n [[buffer(0)]], POSITIONS) {
  uint k;
  if (i > 2) k = i; // right: k = i;
  atomic_fetch_add_explicit(n, k, memory_order_relaxed); // want: undefined value // right: atomic_fetch_add_explicit(n, k, memory_order_relaxed);
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

// run 32/32 in:128 out:128 reads=0:0:128 writes=1:0:128
kernel void one_left_out(IN(float, 0), OUT(float, 1), POSITIONS) { // want: not written y // right: kernel void one_left_out(IN(float, 0), OUT(float, 1), POSITIONS) {
  if (i != 5) y[i] = x[i]; // right: y[i] = x[i];
}
// run 32/32 state:128 reads=0:0:128 writes=0:0:128
kernel void left_as_it_was(device float* y [[buffer(0)]], POSITIONS) { // want: not written y // right: kernel void left_as_it_was(device float* y [[buffer(0)]], POSITIONS) {
  if (y[i] > 0) y[i] = 0; // right: y[i] = max(y[i], 0.0f);
}
// run 31/31 in:128 out:128 reads=0:0:128 writes=1:0:128 // right: // run 32/32 in:128 out:128 reads=0:0:128 writes=1:0:128
kernel void too_small_a_grid(IN(float, 0), OUT(float, 1), POSITIONS) { // want: not written y // right: kernel void too_small_a_grid(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i];
}
// run 0/32 in:128 out:128 writes=1:0:128 // right: // run 32/32 in:128 out:128 reads=0:0:128 writes=1:0:128
kernel void no_grid(IN(float, 0), OUT(float, 1), POSITIONS) { // want: not written y // right: kernel void no_grid(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = x[i];
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
// Nor what is undefined and not used, gaps between members, and what functions of the simdgroup define.

// run 40/40 in:160 out:160
kernel void fine_not_used(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v, w = simd_shuffle_down(x[i], 16);
  if (i > 3) v = x[i];
  if (i > 3 && v > 0) y[i] = v;
  if (t < 16) y[i] = w;
}
// run 64/64 in:256 out:256
kernel void fine_fillings(IN(float, 0), OUT(float, 1), POSITIONS) {
  float v = simd_shuffle_down(x[i], 3) + simd_shuffle_up(x[i], 5) + simd_shuffle_rotate_down(x[i], 40);
  v += simd_shuffle_and_fill_down(x[i], x[0], 4) + simd_shuffle_and_fill_up(x[i], x[1], 2, 8) + quad_broadcast(x[i], 3);
  y[i] = v + simd_prefix_exclusive_sum(x[i]) + simd_broadcast_first(x[i]);
}
// run 10/32 in:128 out:128
kernel void fine_short_prefix(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[i] = simd_prefix_inclusive_sum(x[i]) + simd_max(x[i]) + (simd_all(x[i] > 1) ? 1 : 0);
}
struct Gaps { char a; float3 v; uchar b; };
// run 32/32 in:128 out:1536
kernel void fine_gaps(IN(float, 0), device Gaps* y [[buffer(1)]], POSITIONS) {
  Gaps s, all[4];
  s.a = 1;
  s.v = float3(x[i]);
  s.b = 2;
  all[i & 3] = s;
  y[i] = all[i & 3];
}
// run 32/32 in:128 out:512
kernel void fine_three(IN(float, 0), device float3* y [[buffer(1)]], POSITIONS) {
  float3 v;
  v.x = x[i];
  v.yz = float2(1, 2);
  y[i] = v;
}
// run 32/32 in:128 out:128
kernel void fine_late(IN(float, 0), OUT(float, 1), POSITIONS) {
  float a[4], sum = 0;
  int n;
  for (int k = 0; k < 9; k++) {
    if (k == 0) n = 3;
    a[(k + i) & 3] = x[i];
    if (k >= n) sum += a[(k * 3) & 3];
  }
  y[i] = sum;
}
// run 8/8 in:128 out:128
kernel void fine_packed(device const packed_float4* x [[buffer(0)]], device packed_float4* y [[buffer(1)]], POSITIONS) {
  y[i] = x[i];
}
// run 32/32 in:128 out:128 writes=1:0:128 reads=0:0:128
kernel void fine_all_written(IN(float, 0), OUT(float, 1), POSITIONS) {
  y[31 - i] = x[i];
}
// run 64/64 in:256 out:256
kernel void fine_returned(IN(float, 0), OUT(float, 1), POSITIONS) {
  if (lane > 20) return;
  simdgroup_barrier(mem_flags::mem_device);
  y[i] = x[i];
}
