#include <metal_stdlib>
using namespace metal;

// One row of n floats is normalised by 256 threads.
kernel void my_rms(device const float* x [[buffer(0)]], device const float* w [[buffer(1)]], device float* y [[buffer(2)]],
                   constant uint& n [[buffer(3)]], constant float& eps [[buffer(4)]], uint tid [[thread_position_in_threadgroup]],
                   uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float part[8];
  float s = 0;
  for (uint i = tid; i < n; i += 256) s += x[i] * x[i];
  s = simd_sum(s);
  if (lane == 0) part[sg] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float t = 0;
  for (uint i = 0; i < 8; i++) t += part[i];
  float r = rsqrt(t / float(n) + eps);
  for (uint i = tid; i < n; i += 256) y[i] = w[i] * x[i] * r;
}

struct MVArgs {
  uint n, k;
};

// A simdgroup computes one row of a matrix × vector product.
kernel void my_mv(device const half* w [[buffer(0)]], device const float* x [[buffer(1)]], device float* y [[buffer(2)]],
                  constant MVArgs& a [[buffer(3)]], uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float s = 0;
  for (uint i = lane; i < a.k; i += 32) s += float(w[row * a.k + i]) * x[i];
  s = simd_sum(s);
  if (lane == 0) y[row] = s;
}

kernel void my_silu_mul(device const float* g [[buffer(0)]], device const float* u [[buffer(1)]], device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] = g[i] / (1 + exp(-g[i])) * u[i];
}

kernel void my_add(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] = a[i] + b[i];
}

struct MeanArgs {
  uint width, rows;
};

// The mean of the rows that the cache has: what attends to all that came before.
kernel void my_mean(device const float* cache [[buffer(0)]], device float* y [[buffer(1)]], constant MeanArgs& a [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float s = 0;
  for (uint r = 0; r < a.rows; r++) s += cache[r * a.width + i];
  y[i] = s / float(a.rows);
}
