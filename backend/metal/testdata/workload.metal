#include <metal_stdlib>
using namespace metal;

// Kernels whose results show everything that a dispatch is given.

constant uint factor [[function_constant(3)]];
constant bool flipped [[function_constant(5)]];

static uint shape(uint3 n, uint3 group) {
  return n.x + 10 * n.y + 100 * n.z + 1000 * group.x + 10000 * group.y + 100000 * group.z;
}

kernel void mixed(device const uint *a [[buffer(0)]], device const uint *b [[buffer(1)]],
                  device uint *out [[buffer(2)]], constant uint2 &k [[buffer(3)]],
                  uint3 i [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                  uint3 group [[dispatch_threads_per_threadgroup]]) {
  uint j = i.x + n.x * (i.y + n.y * i.z);
  out[j] = a[j] * k.x + b[j] * k.y + shape(n, group);
}

kernel void advanced(device uint *x [[buffer(0)]], constant uint &by [[buffer(1)]],
                     uint3 i [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                     uint3 group [[dispatch_threads_per_threadgroup]]) {
  uint j = i.x + n.x * (i.y + n.y * i.z);
  x[j] = x[j] * factor + (flipped ? ~by : by) + shape(n, group);
}

kernel void folded(device const uint *a [[buffer(0)]], device uint *s [[buffer(1)]],
                   constant uint4 &with [[buffer(2)]], uint3 i [[thread_position_in_grid]],
                   uint3 n [[threads_per_grid]], uint3 group [[dispatch_threads_per_threadgroup]]) {
  uint j = i.x + n.x * (i.y + n.y * i.z);
  s[j] = s[j] * 3 + a[j] * with.x + with.w + shape(n, group);
}

// Two threadgroup arguments, each of which is used to its end.
kernel void turned(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]],
                   threadgroup uint *first [[threadgroup(0)]], threadgroup uint *second [[threadgroup(1)]],
                   uint i [[thread_index_in_threadgroup]], uint3 at [[thread_position_in_grid]],
                   uint3 n [[threads_per_grid]], uint3 group [[dispatch_threads_per_threadgroup]]) {
  uint size = group.x * group.y * group.z;
  uint j = at.x + n.x * (at.y + n.y * at.z);
  first[i] = in[j];
  second[i] = in[j] + 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[j] = first[size - 1 - i] * 7 + second[(i + 1) % size] + shape(n, group);
}
