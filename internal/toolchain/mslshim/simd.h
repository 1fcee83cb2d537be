// Barriers, and exchange between the threads of a simdgroup or quadgroup.
#pragma once
#pragma clang system_header
#include "math.h"

// MSL_AIR_GROUP declares a function of AIR that exchanges between threads.
#define MSL_AIR_GROUP(R, NAME, ARGS, AIR) \
  extern "C" R NAME ARGS __asm__("air." AIR) __attribute__((convergent, nothrow));

namespace msl {
MSL_AIR_GROUP(void, msl_wg_barrier, (int, int), "wg.barrier")
MSL_AIR_GROUP(void, msl_simdgroup_barrier, (int, int), "simdgroup.barrier")
// What stands behind a call of this one stays behind it (docs/kernels.md).
extern "C" void msl_wait_for_dispatches() __asm__("air.wait_for_dispatches") __attribute__((nothrow));
extern "C" void msl_will_read(const void*) __asm__("air.will_read") __attribute__((nothrow));
// Whether arithmetic takes subnormal numbers for what they are (docs/kernels.md).
extern "C" bool msl_subnormals_known() __asm__("air.subnormals_known") __attribute__((nothrow, const));
MSL_AIR_GROUP(bool, msl_simd_all, (bool), "simd_all")
MSL_AIR_GROUP(bool, msl_simd_any, (bool), "simd_any")
MSL_AIR_GROUP(ulong, msl_simd_ballot, (bool), "simd_ballot.i64")
MSL_AIR_GROUP(ulong, msl_simd_active, (), "simd_active_threads_mask.i64")
MSL_AIR_GROUP(bool, msl_simd_is_first, (), "simd_is_first")
MSL_AIR(short, msl_simdgroup_size, (), "get_simdgroup_size.i16")
MSL_AIR(short, msl_simd_lane, (), "get_thread_index_in_simdgroup.i16")

#define MSL_GROUP1(T, S, NAME)                                                          \
  MSL_AIR_GROUP(T, msl_##NAME##_##T, (T), #NAME "." S)                                  \
  MSL_INLINE T NAME(T x) { return msl_##NAME##_##T(x); }
#define MSL_GROUP2(T, S, NAME)                                                          \
  MSL_AIR_GROUP(T, msl_##NAME##_##T, (T, ushort), #NAME "." S)                          \
  MSL_INLINE T NAME(T x, ushort i) { return msl_##NAME##_##T(x, i); }
#define MSL_GROUP4(T, S, NAME)                                                          \
  MSL_AIR_GROUP(T, msl_##NAME##_##T, (T, T, ushort, ushort), #NAME "." S)               \
  MSL_INLINE T NAME(T x, T y, ushort i, ushort n) { return msl_##NAME##_##T(x, y, i, n); }
#define MSL_GROUPS(T, S)                                                                \
  MSL_GROUP1(T, S, simd_sum) MSL_GROUP1(T, S, simd_product) MSL_GROUP1(T, S, simd_max)  \
  MSL_GROUP1(T, S, simd_min) MSL_GROUP1(T, S, simd_prefix_inclusive_sum)                \
  MSL_GROUP1(T, S, simd_prefix_exclusive_sum) MSL_GROUP1(T, S, simd_prefix_inclusive_product) \
  MSL_GROUP1(T, S, simd_prefix_exclusive_product) MSL_GROUP1(T, S, simd_broadcast_first) \
  MSL_GROUP1(T, S, quad_sum) MSL_GROUP1(T, S, quad_product) MSL_GROUP1(T, S, quad_max)  \
  MSL_GROUP1(T, S, quad_min) MSL_GROUP2(T, S, simd_shuffle) MSL_GROUP2(T, S, simd_shuffle_xor) \
  MSL_GROUP2(T, S, simd_shuffle_up) MSL_GROUP2(T, S, simd_shuffle_down)                 \
  MSL_GROUP2(T, S, simd_shuffle_rotate_up) MSL_GROUP2(T, S, simd_shuffle_rotate_down)   \
  MSL_GROUP2(T, S, quad_shuffle) MSL_GROUP2(T, S, quad_shuffle_xor)                     \
  MSL_GROUP4(T, S, simd_shuffle_and_fill_up) MSL_GROUP4(T, S, simd_shuffle_and_fill_down) \
  /* A broadcast is a shuffle from the same lane for all. */                            \
  MSL_INLINE T simd_broadcast(T x, ushort i) { return simd_shuffle(x, i); }             \
  MSL_INLINE T quad_broadcast(T x, ushort i) { return quad_shuffle(x, i); }
#define MSL_BITWISE(T, S) \
  MSL_GROUP1(T, S, simd_and) MSL_GROUP1(T, S, simd_or) MSL_GROUP1(T, S, simd_xor)
MSL_GROUPS(char, "s.i8")
MSL_GROUPS(uchar, "u.i8")
MSL_GROUPS(short, "s.i16")
MSL_GROUPS(ushort, "u.i16")
MSL_GROUPS(int, "s.i32")
MSL_GROUPS(uint, "u.i32")
MSL_GROUPS(half, "f16")
MSL_GROUPS(float, "f32")
MSL_BITWISE(char, "s.i8")
MSL_BITWISE(uchar, "u.i8")
MSL_BITWISE(short, "s.i16")
MSL_BITWISE(ushort, "u.i16")
MSL_BITWISE(int, "s.i32")
MSL_BITWISE(uint, "u.i32")
MSL_GROUP1(float, "f32", simd_xor) // MLX names it, and never calls it
} // namespace msl

// Sources that define these functions themselves, for Apple's compiler, do it unless __MLXC__ is defined.
MSL_INLINE void wait_for_dispatches() { ::msl::msl_wait_for_dispatches(); }
MSL_INLINE void will_read(const void* p) { ::msl::msl_will_read(p); }
MSL_INLINE bool subnormals_known() { return ::msl::msl_subnormals_known(); }

namespace metal {
enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4, mem_threadgroup_imageblock = 8 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
enum thread_scope { thread_scope_thread, thread_scope_threadgroup, thread_scope_device, thread_scope_simdgroup = 4 };
MSL_INLINE void threadgroup_barrier(mem_flags f) { ::msl::msl_wg_barrier(int(f), 1); }
MSL_INLINE void simdgroup_barrier(mem_flags f) { ::msl::msl_simdgroup_barrier(int(f), 1); }

#define MSL_S1(T, NAME)                                   \
  MSL_INLINE T NAME(T x) { return ::msl::NAME(x); }       \
  template <int N>                                        \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x) {                \
    vec<T, N> r{};                                        \
    for (int i = 0; i < N; i++) r.v[i] = ::msl::NAME(T(x.v[i])); \
    return r;                                             \
  }
#define MSL_S2(T, NAME)                                   \
  MSL_INLINE T NAME(T x, ushort i) { return ::msl::NAME(x, i); } \
  template <int N>                                        \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, ushort lane) {   \
    vec<T, N> r{};                                        \
    for (int i = 0; i < N; i++) r.v[i] = ::msl::NAME(T(x.v[i]), lane); \
    return r;                                             \
  }
#define MSL_S4(T, NAME)                                                          \
  MSL_INLINE T NAME(T x, T y, ushort i, ushort n) { return ::msl::NAME(x, y, i, n); } \
  MSL_INLINE T NAME(T x, T y, ushort i) { return ::msl::NAME(x, y, i, ::msl::msl_simdgroup_size()); } \
  template <int N>                                                               \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y, ushort lane) {             \
    vec<T, N> r{};                                                               \
    for (int i = 0; i < N; i++) r.v[i] = NAME(T(x.v[i]), T(y.v[i]), lane);       \
    return r;                                                                    \
  }
#define MSL_MORE_SIMD(T)                                                                       \
  MSL_S1(T, simd_prefix_inclusive_product) MSL_S1(T, simd_prefix_exclusive_product)            \
  MSL_S1(T, quad_product) MSL_S4(T, simd_shuffle_and_fill_up) MSL_S4(T, simd_shuffle_and_fill_down)
#define MSL_WHOLE(M) M(char) M(uchar) M(short) M(ushort) M(int) M(uint)
#define MSL_EXCHANGED(M) MSL_WHOLE(M) MSL_SCALARS(M)
#define MSL_SIMD_BITS(T) MSL_S1(T, simd_and) MSL_S1(T, simd_or) MSL_S1(T, simd_xor)
MSL_EXCHANGED(MSL_SIMD)
MSL_EXCHANGED(MSL_MORE_SIMD)
MSL_WHOLE(MSL_SIMD_BITS)
// The elements of a vector of floats are reduced together.
#define MSL_TOGETHER(NAME, N)                                                                     \
  MSL_AIR_GROUP(float##N::msl_raw, msl_##NAME##_v##N, (float##N::msl_raw), #NAME ".v" #N "f32")     \
  MSL_INLINE float##N NAME(float##N x) { return float##N::msl_of(msl_##NAME##_v##N(x.v)); }
MSL_TOGETHER(simd_sum, 2) MSL_TOGETHER(simd_sum, 4) MSL_TOGETHER(simd_max, 2) MSL_TOGETHER(simd_max, 4)
MSL_TOGETHER(simd_min, 2) MSL_TOGETHER(simd_min, 4) MSL_TOGETHER(simd_product, 2) MSL_TOGETHER(simd_product, 4)
#undef MSL_TOGETHER
#undef MSL_S1
#undef MSL_S2

// A bfloat moves as its bits, and is reduced as a float. These are templates so that a source's
// own overloads of bfloat come first.
template <typename T>
using msl_if_bfloat = enable_if_t<__is_same(T, bfloat)>;
#define MSL_S1(NAME)                                                            \
  template <typename T, typename = msl_if_bfloat<T>>                            \
  MSL_INLINE T NAME(T x) {                                                      \
    return T(::msl::NAME(float(x)));                                            \
  }
#define MSL_S2(NAME)                                                            \
  template <typename T, typename = msl_if_bfloat<T>>                            \
  MSL_INLINE T NAME(T x, ushort i) {                                            \
    return as_type<T>(::msl::NAME(as_type<ushort>(x), i));                      \
  }
MSL_S1(simd_sum) MSL_S1(simd_product) MSL_S1(simd_max) MSL_S1(simd_min) MSL_S1(simd_prefix_inclusive_sum)
MSL_S1(simd_prefix_exclusive_sum) MSL_S1(simd_broadcast_first) MSL_S1(quad_sum) MSL_S1(quad_max) MSL_S1(quad_min)
MSL_S2(simd_broadcast) MSL_S2(simd_shuffle) MSL_S2(simd_shuffle_xor) MSL_S2(simd_shuffle_up)
MSL_S2(simd_shuffle_down) MSL_S2(simd_shuffle_rotate_up) MSL_S2(simd_shuffle_rotate_down)
MSL_S2(quad_broadcast) MSL_S2(quad_shuffle) MSL_S2(quad_shuffle_xor)
#undef MSL_S1
#undef MSL_S2

MSL_INLINE bool simd_all(bool p) { return ::msl::msl_simd_all(p); }
MSL_INLINE bool simd_any(bool p) { return ::msl::msl_simd_any(p); }
MSL_INLINE bool simd_is_first() { return ::msl::msl_simd_is_first(); }
// A value that is the same for all threads.
template <typename T>
using uniform = T;
template <typename T>
MSL_MEMBER T make_uniform(T x) { return x; }
struct simd_vote {
  typedef ulong vote_t;
  vote_t bits;
  simd_vote() = default;
  MSL_MEMBER explicit simd_vote(vote_t v) : bits(v) {}
  MSL_MEMBER explicit operator vote_t() const { return bits; }
  MSL_INLINE bool any() const { return bits != 0; }
  MSL_INLINE bool all() const { return bits == ::msl::msl_simd_active(); }
};
MSL_INLINE simd_vote simd_ballot(bool p) { return simd_vote(::msl::msl_simd_ballot(p)); }
MSL_INLINE simd_vote simd_active_threads_mask() { return simd_vote(::msl::msl_simd_active()); }
} // namespace metal
