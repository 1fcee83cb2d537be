// What depends on params is found by the GPU itself: the first launch of a replay follows rules, each of
// which has a number written, and then counts the params on for the next replay.
#include <metal_stdlib>
using namespace metal;

// The number is (begin + Σ coefficient·param) / divide, rounded up, times `times`; its width bytes are
// written to `to` of the memory.
struct Rule {
  long begin;
  ulong to;
  uint first, count;  // terms
  uint divide, times;
  uint width, unused;
};

struct Term {
  long coefficient;
  uint param, unused;
};

// One threadgroup. Params that are counted on are so when all rules have been followed.
kernel void mlxc_advance(
    const device Rule* rules [[buffer(0)]], const device Term* terms [[buffer(1)]], device uint* params [[buffer(2)]],
    const device uint* steps [[buffer(3)]], device uchar* memory [[buffer(4)]], constant uint2& counts [[buffer(5)]],
    uint thread_index [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  for (uint i = thread_index; i < counts[0]; i += threads) {
    long v = rules[i].begin;
    for (uint k = 0; k < rules[i].count; k++) {
      device const Term& t = terms[rules[i].first + k];
      v += t.coefficient * long(params[t.param]);
    }
    ulong n = ulong(v);
    if (rules[i].divide > 1)
      n = (n + rules[i].divide - 1) / rules[i].divide;
    n *= rules[i].times;
    device uchar* to = memory + rules[i].to;
    switch (rules[i].width) {
    case 1:
      *to = uchar(n);
      break;
    case 2:
      *(device ushort*)to = ushort(n);
      break;
    case 4:
      *(device uint*)to = uint(n);
      break;
    default:
      *(device ulong*)to = n;
    }
  }
  threadgroup_barrier(mem_flags::mem_device);
  for (uint i = thread_index; i < counts[1]; i += threads)
    params[i] += steps[i];
}
