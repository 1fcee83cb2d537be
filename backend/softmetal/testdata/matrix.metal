// Simdgroup matrices: d = a · b + c of 8 by 8 elements, and how they are loaded and stored.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// a has rows of 8; b has rows of `row` and begins `at` rows and columns into its memory; c is read
// transposed; d is written to rows of `row`.
template <typename D, typename A, typename B>
[[kernel]] void multiply(
    const device A* a [[buffer(0)]], const device B* b [[buffer(1)]], const device D* c [[buffer(2)]], device D* d [[buffer(3)]],
    const constant uint& row [[buffer(4)]], const constant uint2& at [[buffer(5)]]) {
  simdgroup_matrix<A, 8, 8> x;
  simdgroup_matrix<B, 8, 8> y;
  simdgroup_matrix<D, 8, 8> z, w;
  simdgroup_load(x, a);
  simdgroup_load(y, b, row, ulong2(at.x, at.y));
  simdgroup_load(z, c, 8, ulong2(0), true);
  simdgroup_multiply_accumulate(w, x, y, z);
  simdgroup_store(w, d, row);
}

#define MULTIPLY(N, D, A, B) template [[host_name(N)]] [[kernel]] decltype(multiply<D, A, B>) multiply<D, A, B>;
MULTIPLY("float_float_float", float, float, float)
MULTIPLY("float_half_half", float, half, half)
MULTIPLY("half_half_half", half, half, half)
MULTIPLY("float_bfloat_bfloat", float, bfloat, bfloat)
MULTIPLY("bfloat_bfloat_bfloat", bfloat, bfloat, bfloat)

// The same by way of threadgroup memory, of each simdgroup its own; and what is filled or diagonal.
[[kernel]] void staged(
    const device float* a [[buffer(0)]], device float* d [[buffer(1)]], uint simd [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float own[4 * 80];
  threadgroup float* mine = own + 80 * simd;
  for (uint i = lane; i < 64; i += 32) {
    mine[i / 8 * 10 + i % 8] = a[64 * simd + i];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 x, y = simdgroup_float8x8(3.0f), w = make_filled_simdgroup_matrix<float, 8, 8>(2.0f);
  simdgroup_load(x, mine, 10);
  simdgroup_multiply_accumulate(w, x, y, w);
  x.thread_elements()[0] += 100;
  simdgroup_store(x, mine, 10, ulong2(0), true);
  simdgroup_store(w, d + 128 * simd);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = lane; i < 64; i += 32) {
    d[128 * simd + 64 + i] = mine[i / 8 * 10 + i % 8];
  }
}

// Which element of which thread is which of the matrix.
[[kernel]] void elements(const device float* a [[buffer(0)]], device float* out [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 x;
  simdgroup_load(x, a);
  out[2 * lane] = x.thread_elements()[0];
  out[2 * lane + 1] = x.thread_elements()[1];
}
