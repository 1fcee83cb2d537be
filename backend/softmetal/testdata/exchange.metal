// What the threads of a simdgroup, or of a quadgroup, exchange: every function with every type.
// Each function writes a plane of n elements, of which each active thread writes its own.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;


#define WHERE                                                                                   \
  uint3 place [[thread_position_in_grid]], uint3 grid [[threads_per_grid]],                     \
      uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],    \
      uint3 group [[threadgroup_position_in_grid]],                                             \
      uint simds [[dispatch_simdgroups_per_threadgroup]]
#define ACTIVE (masks[group.x * simds + simd] >> lane & 1)

template <typename T>
[[kernel]] void reduce(const device T* in [[buffer(0)]], const device uint* masks [[buffer(1)]], device T* out [[buffer(2)]], WHERE) {
  const uint n = grid.x, i = place.x;
  const T x = in[i];
  if (ACTIVE) {
    out[0 * n + i] = simd_sum(x);
    out[1 * n + i] = simd_product(x);
    out[2 * n + i] = simd_min(x);
    out[3 * n + i] = simd_max(x);
    out[4 * n + i] = simd_prefix_inclusive_sum(x);
    out[5 * n + i] = simd_prefix_exclusive_sum(x);
    out[6 * n + i] = simd_broadcast_first(x);
    out[7 * n + i] = quad_sum(x);
    out[8 * n + i] = quad_min(x);
    out[9 * n + i] = quad_max(x);
  }
}

template <typename T>
[[kernel]] void more(const device T* in [[buffer(0)]], const device uint* masks [[buffer(1)]], device T* out [[buffer(2)]], WHERE) {
  const uint n = grid.x, i = place.x;
  const T x = in[i];
  if (ACTIVE) {
    out[0 * n + i] = simd_prefix_inclusive_product(x);
    out[1 * n + i] = simd_prefix_exclusive_product(x);
    out[2 * n + i] = quad_product(x);
  }
}

template <typename T>
[[kernel]] void bits(const device T* in [[buffer(0)]], const device uint* masks [[buffer(1)]], device T* out [[buffer(2)]], WHERE) {
  const uint n = grid.x, i = place.x;
  const T x = in[i];
  if (ACTIVE) {
    out[0 * n + i] = simd_and(x);
    out[1 * n + i] = simd_or(x);
    out[2 * n + i] = simd_xor(x);
  }
}

// The lane, or distance, stands in `by`.
template <typename T>
[[kernel]] void shuffle(
    const device T* in [[buffer(0)]], const device uint* masks [[buffer(1)]], device T* out [[buffer(2)]], const constant uint& by [[buffer(3)]], WHERE) {
  const uint n = grid.x, i = place.x;
  const T x = in[i];
  if (ACTIVE) {
    out[0 * n + i] = simd_shuffle(x, ushort((lane * 7 + by) & 31));
    out[1 * n + i] = simd_shuffle_up(x, ushort(by));
    out[2 * n + i] = simd_shuffle_down(x, ushort(by));
    out[3 * n + i] = simd_shuffle_xor(x, ushort(by));
    out[4 * n + i] = simd_shuffle_rotate_up(x, ushort(by));
    out[5 * n + i] = simd_shuffle_rotate_down(x, ushort(by));
    out[6 * n + i] = simd_broadcast(x, ushort(by));
    out[7 * n + i] = quad_shuffle(x, ushort((lane + by) & 3));
    out[8 * n + i] = quad_shuffle_xor(x, ushort(by & 3));
    out[9 * n + i] = quad_broadcast(x, ushort(by & 3));
  }
}

template <typename T>
[[kernel]] void fill(
    const device T* in [[buffer(0)]], const device uint* masks [[buffer(1)]], device T* out [[buffer(2)]], const constant uint& by [[buffer(3)]],
    const constant uint& modulo [[buffer(4)]], WHERE) {
  const uint n = grid.x, i = place.x;
  const T x = in[i], y = T(in[i] + T(64));
  if (ACTIVE) {
    out[0 * n + i] = simd_shuffle_and_fill_up(x, y, ushort(by));
    out[1 * n + i] = simd_shuffle_and_fill_down(x, y, ushort(by));
    out[2 * n + i] = simd_shuffle_and_fill_up(x, y, ushort(by), ushort(modulo));
    out[3 * n + i] = simd_shuffle_and_fill_down(x, y, ushort(by), ushort(modulo));
  }
}

[[kernel]] void vote(const device int* in [[buffer(0)]], const device uint* masks [[buffer(1)]], device uint* out [[buffer(2)]], WHERE) {
  const uint n = grid.x, i = place.x;
  const bool x = in[i] > 0;
  const uint before = uint(ulong(simd_active_threads_mask()));
  if (ACTIVE) {
    out[0 * n + i] = simd_any(x);
    out[1 * n + i] = simd_all(x);
    out[2 * n + i] = uint(ulong(simd_ballot(x)));
    out[3 * n + i] = uint(ulong(simd_active_threads_mask()));
    out[4 * n + i] = simd_is_first();
    out[5 * n + i] = simd_ballot(x).any();
    out[6 * n + i] = simd_ballot(x).all();
    out[7 * n + i] = before;
  }
}

#define ALL(T)                                                                      \
  template [[host_name("reduce_" #T)]] [[kernel]] decltype(reduce<T>) reduce<T>;    \
  template [[host_name("shuffle_" #T)]] [[kernel]] decltype(shuffle<T>) shuffle<T>;
#define MORE(T)                                                                     \
  ALL(T)                                                                            \
  template [[host_name("more_" #T)]] [[kernel]] decltype(more<T>) more<T>;          \
  template [[host_name("fill_" #T)]] [[kernel]] decltype(fill<T>) fill<T>;
#define WHOLE(T)                                                                    \
  MORE(T)                                                                           \
  template [[host_name("bits_" #T)]] [[kernel]] decltype(bits<T>) bits<T>;
MORE(float)
MORE(half)
ALL(bfloat)
WHOLE(char)
WHOLE(uchar)
WHOLE(short)
WHOLE(ushort)
WHOLE(int)
WHOLE(uint)
