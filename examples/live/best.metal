#include <metal_stdlib>
using namespace metal;

// The place of the greatest of n numbers, the first of equal ones: each of 256 threads looks at
// every 256th number, each simdgroup finds the best of its threads, and the first thread the best
// of the simdgroups.
kernel void best(
    const device float* x [[buffer(0)]],
    device uint* place [[buffer(1)]],
    constant uint& n [[buffer(2)]],
    uint thread_index [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float values[8];
  threadgroup uint places[8];
  float value = -INFINITY;
  uint at = 0;
  for (uint i = thread_index; i < n; i += 256) {
    if (x[i] > value) {
      value = x[i];
      at = i;
    }
  }
  float greatest = simd_max(value);
  at = simd_min(value == greatest ? at : n);
  if (lane == 0) {
    values[simdgroup] = greatest;
    places[simdgroup] = at;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_index == 0) {
    for (uint i = 1; i < 8; i++) {
      if (values[i] > greatest || (values[i] == greatest && places[i] < at)) {
        greatest = values[i];
        at = places[i];
      }
    }
    *place = at;
  }
}
