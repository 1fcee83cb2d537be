// A token drawn from a row of logits, by temperature, top-p and seed.

#include "common.h"

constexpr constant uint LANES = 32;
constexpr constant uint DIGITS = 8;  // a code has 27 bits, nine digits of three
constexpr constant uint NONE = 0xffffffff;

// code says how unlikely an element is beside the greatest: −log2 of the quotient of the two, in units of
// 2^−20, rounded down; NONE if that is 40 or more, or no number. All that computes it is rounded as IEEE 754
// has it, and so the same everywhere.
inline uint code(float x, float top, float temp) {
  const float y = (top - x) / temp * 1.44269504f;
  return y < 40.0f ? uint(y * 1048576.0f) : NONE;
}

// weight is the probability of a code, up to a factor that all share: 2^40 · 2^(−code / 2^20), in integers.
// Sums of weights are exact, in whatever order. NONE weighs nothing. The polynomial is the one of degree 7
// that meets 2^−f in the zeros of Chebyshev's over [0, 1]: within 3 · 2^−31 of it, and never growing.
inline ulong weight(uint c) {
  if (c == NONE) {
    return 0;
  }
  const ulong f = ulong(c) << 12 & 0xffffffff;
  ulong m = 0x5ac7;
  m = 0x4d353 - (f * m >> 32);
  m = 0x2b8258 - (f * m >> 32);
  m = 0x13b1537 - (f * m >> 32);
  m = 0x71abccb - (f * m >> 32);
  m = 0x1ebfbd53 - (f * m >> 32);
  m = 0x58b90bf4 - (f * m >> 32);
  m = 0x80000000 - (f * m >> 32);
  return m << 9 >> (c >> 20);
}

// random is 64 bits that belong to a place and a seed: the first two words of Philox4x32-10 (Salmon, Moraes,
// Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, 2011) of the counter (position, row, 0, 0).
inline ulong random(uint position, uint row, uint low, uint high) {
  uint4 c = uint4(position, row, 0, 0);
  uint2 key = uint2(low, high);
  for (uint i = 0; i < 10; i++) {
    const ulong a = ulong(0xD2511F53u) * c.x;
    const ulong b = ulong(0xCD9E8D57u) * c.z;
    c = uint4(uint(b >> 32) ^ c.y ^ key.x, uint(b), uint(a >> 32) ^ c.w ^ key.y, uint(a));
    key += uint2(0x9E3779B9u, 0xBB67AE85u);
  }
  return ulong(c.y) << 32 | c.x;
}

// above is the upper half of a product of 128 bits.
inline ulong above(ulong a, ulong b) {
  const ulong low = (a & 0xffffffff) * (b & 0xffffffff);
  const ulong one = (a >> 32) * (b & 0xffffffff) + (low >> 32);
  const ulong two = (a & 0xffffffff) * (b >> 32) + (one & 0xffffffff);
  return (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32);
}

// part is ⌊sum · p⌋ with p cut to 24 bits behind the point, at least 1.
inline ulong part(ulong sum, float p) {
  const ulong q = p > 0.0f ? ulong(p * 16777216.0f) : 0;
  const ulong n = (sum >> 24) * q + ((sum & 0xffffff) * q >> 24);
  return n > 0 ? n : 1;
}

// total is the sum of a simdgroup's numbers.
inline ulong total(ulong x) {
  for (ushort d = LANES / 2; d > 0; d /= 2) {
    const uint low = simd_shuffle_xor(uint(x), d);
    const uint high = simd_shuffle_xor(uint(x >> 32), d);
    x += ulong(high) << 32 | low;
  }
  return x;
}

// preceding is the sum of the numbers of the lanes before.
inline ulong preceding(ulong x, uint lane) {
  const ulong own = x;
  for (ushort d = 1; d < LANES; d *= 2) {
    const uint low = simd_shuffle_up(uint(x), d);
    const uint high = simd_shuffle_up(uint(x >> 32), d);
    x += lane >= d ? ulong(high) << 32 | low : 0;
  }
  return x - own;
}

// One threadgroup a row. With a temperature of less than 10^−30, 0 among them, it is the least index of the
// greatest element, as argmax has it; also where the greatest is infinite. (With a greater one it does not
// matter whether a GPU takes denormals for 0.) Else elements are put in order, the
// likeliest first (by code), of equal ones the one with the least index. Kept are the first of them, as few
// as have part(Σ weights, top_p) together; all, if top_p is not less than 1. Of the kept ones, now in
// the order of their indices, it is the one at place ⌊random · Σ weights / 2^64⌋.
//
// Where the order ends is found digit by digit: each time the weights of eight ranges of codes are added.
//
// @kernel   sample_{T:{floats()}}
// @effects  integers decide, and terms have no sums of them; backend/cpu/sample_test.go has the definition
// @arg 0 in         device {T}[rows, axis_size] read
// @arg 1 out        device u32[rows] write
// @arg 2 temp       constant f32
// @arg 3 top_p      constant f32
// @arg 4 seed_low   constant u32
// @arg 5 seed_high  constant u32
// @arg 6 position   constant u32
// @arg 7 axis_size  constant u32
// @groups   rows, 1, 1
// @group    min(1024, 32*ceil(axis_size/32)), 1, 1
// @require  axis_size >= 1
// @require  axis_size <= 4194304
template <typename T>
[[kernel]] void sample(
    const device T* in [[buffer(0)]],
    device uint* out [[buffer(1)]],
    constant float& temp [[buffer(2)]],
    constant float& top_p [[buffer(3)]],
    constant uint& seed_low [[buffer(4)]],
    constant uint& seed_high [[buffer(5)]],
    constant uint& position [[buffer(6)]],
    constant uint& axis_size [[buffer(7)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float values[LANES];
  threadgroup uint indices[LANES];
  threadgroup ulong parts[2][DIGITS][LANES]; // of simdgroups; levels take turns
  threadgroup ulong sums[LANES];
  threadgroup uint counts[LANES];

  in += size_t(row) * axis_size;
  float value = -INFINITY;
  uint index = 0;
  for (uint i = thread_id; i < axis_size; i += threads) {
    const float v = float(in[i]);
    if (v > value) {
      value = v;
      index = i;
    }
  }
  float top = simd_max(value);
  index = simd_min(value == top ? index : NONE);
  if (lane == 0) {
    values[simdgroup] = top;
    indices[simdgroup] = index;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool filled = lane < threads / LANES; // there is a simdgroup of this number
  value = filled ? values[lane] : -INFINITY;
  top = simd_max(value);
  index = simd_min(filled && value == top ? indices[lane] : NONE);
  if (!(temp >= 1e-30f) || !(abs(top) < INFINITY)) {
    if (thread_id == 0) {
      out[row] = index;
    }
    return;
  }

  // Kept is what has a code less than cut, and of those that have this code the first ones, so many.
  uint cut = NONE;
  uint ties = 0;
  if (top_p < 1.0f) {
    uint prefix = 0;
    ulong before = 0; // weights of the codes that begin with less than the prefix
    ulong wanted = 0;
    for (uint level = 0; level < 9; level++) {
      const uint shift = 24 - 3 * level;
      ulong own[DIGITS] = {};
      for (uint i = thread_id; i < axis_size; i += threads) {
        const uint c = code(float(in[i]), top, temp);
        if (c == NONE || c >> (shift + 3) != prefix) {
          continue;
        }
        const ulong w = weight(c);
        const uint digit = c >> shift & (DIGITS - 1);
#pragma unroll
        for (uint d = 0; d < DIGITS; d++) {
          own[d] += d == digit ? w : 0;
        }
      }
#pragma unroll
      for (uint d = 0; d < DIGITS; d++) {
        own[d] = total(own[d]);
        if (lane == 0) {
          parts[level & 1][d][simdgroup] = own[d];
        }
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      ulong all = 0;
#pragma unroll
      for (uint d = 0; d < DIGITS; d++) {
        own[d] = total(filled ? parts[level & 1][d][lane] : 0);
        all += own[d];
      }
      if (level == 0) {
        wanted = part(all, top_p);
      }
      // Together they reach what is wanted, and so one of them does.
      uint digit = DIGITS;
      ulong s = before;
#pragma unroll
      for (uint d = 0; d < DIGITS; d++) {
        if (digit == DIGITS) {
          if (s + own[d] >= wanted) {
            digit = d;
          } else {
            s += own[d];
          }
        }
      }
      before = s;
      prefix = prefix << 3 | digit;
    }
    cut = prefix;
    const ulong w = weight(cut);
    ties = uint((wanted - before + w - 1) / w);
  }

  // Of what is kept the weights by thread: each has a stretch of the indices.
  const ulong tie = weight(cut);
  const uint stretch = (axis_size + threads - 1) / threads;
  const uint first = min(thread_id * stretch, axis_size);
  const uint last = min(first + stretch, axis_size);
  ulong sum = 0;
  uint same = 0;
  for (uint i = first; i < last; i++) {
    const uint c = code(float(in[i]), top, temp);
    sum += c < cut ? weight(c) : 0;
    same += c == cut && c != NONE ? 1 : 0;
  }
  const ulong sumBefore = preceding(sum, lane);
  const uint sameBefore = uint(preceding(same, lane));
  if (lane == LANES - 1) {
    sums[simdgroup] = sumBefore + sum;
    counts[simdgroup] = sameBefore + same;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  ulong at = 0;
  uint equals = 0;
  ulong whole = 0;
  uint wholeCount = 0;
  for (uint i = 0; i < threads / LANES; i++) {
    at += i < simdgroup ? sums[i] : 0;
    equals += i < simdgroup ? counts[i] : 0;
    whole += sums[i];
    wholeCount += counts[i];
  }
  const ulong draw = above(random(position, row, seed_low, seed_high), whole + min(wholeCount, ties) * tie);
  equals += sameBefore;
  at += sumBefore + min(equals, ties) * tie;
  const ulong mine = sum + (min(equals + same, ties) - min(equals, ties)) * tie;
  if (draw < at || draw - at >= mine) {
    return;
  }
  uint n = equals;
  for (uint i = first; i < last; i++) {
    const uint c = code(float(in[i]), top, temp);
    const bool is = c == cut && c != NONE;
    const ulong w = c < cut ? weight(c) : is && n < ties ? tie : 0;
    n += is ? 1 : 0;
    at += w;
    if (draw < at) {
      out[row] = i;
      return;
    }
  }
}

#define INSTANTIATE_SAMPLE(name, T) template [[host_name("sample_" #name)]] [[kernel]] decltype(sample<T>) sample<T>;

EACH_FLOAT(INSTANTIATE_SAMPLE)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness sample_* ; axis_size=128 ; groups 5 1 1 / 128 1 1 ; ok
// @witness sample_* ; axis_size=128 ; threads 640 1 1 / 128 1 1 ; ok
// @witness sample_* ; axis_size=33 ; groups 5 1 1 / 64 1 1 ; ok
// @witness sample_* ; axis_size={1025|4194304} ; groups 2 1 1 / 1024 1 1 ; ok
// @witness sample_* ; axis_size=1 ; groups 5 1 1 / 32 1 1 ; ok
// @witness sample_* ; axis_size=0 ; groups 5 1 1 / 0 1 1 ; refused
// @witness sample_* ; axis_size=4194305 ; groups 2 1 1 / 1024 1 1 ; refused
// @equivalent sample_*#0 ; shape: in[1] exchanged with the one before ; the bytes are the same, and no term says which are of a row: a golden does
// @equivalent sample_*#0 ; slot: temp exchanged with top_p ; no term says what the constants mean: a golden does
// @equivalent sample_*#0 ; slot: seed_* exchanged with seed_high ; no term says what the constants mean: a golden does
// @equivalent sample_*#0 ; slot: seed_* exchanged with position ; no term says what the constants mean: a golden does
