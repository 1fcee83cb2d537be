// Copies and fills of n elements of 1, 4 or 16 bytes, and guards of counts (plan.Copy, plan.Fill,
// plan.Guard).
#include <metal_stdlib>
using namespace metal;

#define MOVES(BYTES, T)                                                                      \
  kernel void mlxc_copy_##BYTES(                                                             \
      const device T* from [[buffer(0)]], device T* to [[buffer(1)]], constant uint& n [[buffer(2)]], \
      uint i [[thread_position_in_grid]]) {                                                  \
    if (i < n)                                                                               \
      to[i] = from[i];                                                                       \
  }                                                                                          \
  kernel void mlxc_fill_##BYTES(                                                             \
      device T* to [[buffer(0)]], constant T& element [[buffer(1)]], constant uint& n [[buffer(2)]], \
      uint i [[thread_position_in_grid]]) {                                                  \
    if (i < n)                                                                               \
      to[i] = element;                                                                       \
  }

MOVES(1, uchar)
MOVES(4, uint)
MOVES(16, uint4)

kernel void mlxc_guard(
    const device uint* counts [[buffer(0)]], device uint* to [[buffer(1)]], constant packed_uint3& most [[buffer(2)]]) {
  uint wrong = counts[0] > most[0] ? 1 : counts[1] > most[1] ? 2 : counts[2] > most[2] ? 3 : 0;
  for (uint i = 0; i < 3; i++)
    to[i] = wrong ? 0 : counts[i];
  to[3] = wrong;
  if (wrong) {
    to[4] = counts[wrong - 1];
    to[5] = most[wrong - 1];
  }
}
