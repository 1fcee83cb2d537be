// Exchanges of values of several sizes one after another, in a loop and in branches.
#include <metal_stdlib>
using namespace metal;

kernel void mixed(device ulong* out [[buffer(0)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uchar a = lane;
  ushort b = 100 + lane;
  uint c = 1000 + lane;
  ulong d = 10000 + lane;
  float4 e = float4(lane) + float4(0.25f, 0.5f, 0.75f, 0);
  ulong votes = 0;
  for (uint by = 1; by < 32; by *= 2) {
    a = simd_shuffle_xor(a, by);
    d = ulong(simd_shuffle_xor(uint2(uint(d), uint(d >> 32)), by).x);
    b = simd_shuffle_xor(b, by);
    e = simd_shuffle_xor(e, by);
    c = simd_shuffle_xor(c, by);
    votes += simd_any(lane == by);
  }
  // Some wait with a small value while the others exchange a large one.
  uint f = lane;
  if (lane % 2 == 0) {
    e = simd_shuffle_xor(e, 2);
    f = uint(e.x * 4);
  }
  f = simd_shuffle_xor(f, 1);
  device ulong* to = out + 8 * i;
  to[0] = a;
  to[1] = b;
  to[2] = c;
  to[3] = d;
  to[4] = ulong(e.x * 4);
  to[5] = ulong(e.z * 4);
  to[6] = f;
  to[7] = votes;
}
