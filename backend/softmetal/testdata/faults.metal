// Kernels that do what they must not, and some that take their time.
#include <metal_stdlib>
using namespace metal;

[[kernel]] void store_at(
    device uint* out [[buffer(0)]], const constant long& at [[buffer(1)]], const device uint* in [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[at + i] = in[i];
}

[[kernel]] void load_at(
    const device uint* in [[buffer(0)]], const constant long& at [[buffer(1)]], device uint* out [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = in[at + i];
}

// Goes on until somebody writes to the memory, which nobody does.
[[kernel]] void endless(volatile device uint* flag [[buffer(0)]]) {
  while (flag[0] == 0) {
  }
}

// Takes some while in each of many threadgroups.
[[kernel]] void slow(volatile device uint* out [[buffer(0)]], const constant uint& rounds [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  for (uint k = 0; k < rounds; k++) {
    out[i] = out[i] + 1;
  }
}

[[kernel]] void increment(device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] += 1; }
