// Metal's arithmetic functions, each one a call of the function of AIR that Apple's compiler calls,
// or plain arithmetic. Functions of vectors call those of scalars lane by lane.
//
// MSL_FAST_MATH makes the functions that have a fast twin call it, as -ffast-math does in Metal.
#pragma once
#pragma clang system_header
#include "functions.h"
#include "vector.h"

// MSL_AIR declares a function of AIR: its result, a name for C++, its arguments, its name.
#define MSL_AIR(R, NAME, ARGS, AIR) extern "C" R NAME ARGS __asm__("air." AIR) __attribute__((const));

namespace msl {
#define MSL_AIR1(NAME)                                              \
  MSL_AIR(float, msl_##NAME##_f32, (float), #NAME ".f32")           \
  MSL_AIR(half, msl_##NAME##_f16, (half), #NAME ".f16")             \
  MSL_INLINE float NAME(float x) { return msl_##NAME##_f32(x); }    \
  MSL_INLINE half NAME(half x) { return msl_##NAME##_f16(x); }
#define MSL_AIR2(NAME)                                                             \
  MSL_AIR(float, msl_##NAME##_f32, (float, float), #NAME ".f32")                   \
  MSL_AIR(half, msl_##NAME##_f16, (half, half), #NAME ".f16")                      \
  MSL_INLINE float NAME(float x, float y) { return msl_##NAME##_f32(x, y); }       \
  MSL_INLINE half NAME(half x, half y) { return msl_##NAME##_f16(x, y); }
MSL_AIR1(acos) MSL_AIR1(acosh) MSL_AIR1(asin) MSL_AIR1(asinh) MSL_AIR1(atan) MSL_AIR1(atanh) MSL_AIR1(ceil)
MSL_AIR1(cos) MSL_AIR1(cosh) MSL_AIR1(cospi) MSL_AIR1(exp) MSL_AIR1(exp10) MSL_AIR1(exp2) MSL_AIR1(fabs)
MSL_AIR1(floor) MSL_AIR1(log) MSL_AIR1(log10) MSL_AIR1(log2) MSL_AIR1(rint) MSL_AIR1(round) MSL_AIR1(rsqrt)
MSL_AIR1(sin) MSL_AIR1(sinh) MSL_AIR1(sinpi) MSL_AIR1(sqrt) MSL_AIR1(tan) MSL_AIR1(tanh) MSL_AIR1(tanpi)
MSL_AIR1(trunc) MSL_AIR1(fast_exp) MSL_AIR1(fast_exp2) MSL_AIR1(fast_log) MSL_AIR1(fast_sin) MSL_AIR1(fast_cos)
MSL_AIR2(atan2) MSL_AIR2(fmax) MSL_AIR2(fmin) MSL_AIR2(fmod) MSL_AIR2(pow) MSL_AIR2(powr)
MSL_AIR(float, msl_fma_f32, (float, float, float), "fma.f32")
MSL_AIR(half, msl_fma_f16, (half, half, half), "fma.f16")
MSL_AIR(float, msl_nextafter_f32, (float, float), "nextafter.f32")
MSL_AIR(half, msl_nextafter_f16, (half, half), "nextafter.f16")
MSL_INLINE float nextafter(float x, float y) { return msl_nextafter_f32(x, y); }
MSL_INLINE half nextafter(half x, half y) { return msl_nextafter_f16(x, y); }
MSL_AIR(float, msl_ldexp_f32, (float, int), "ldexp.f32")
MSL_AIR(half, msl_ldexp_f16, (half, int), "ldexp.f16")
MSL_INLINE float fma(float a, float b, float c) { return msl_fma_f32(a, b, c); }
MSL_INLINE half fma(half a, half b, half c) { return msl_fma_f16(a, b, c); }
MSL_INLINE float ldexp(float x, int e) { return msl_ldexp_f32(x, e); }
MSL_INLINE half ldexp(half x, int e) { return msl_ldexp_f16(x, e); }

// What follows is arithmetic on those, by the formulas of the Metal Shading Language Specification
// (common and math functions).
#define MSL_FLOATS(T, ONE_BELOW_1)                                                             \
  MSL_INLINE T abs(T x) { return fabs(x); }                                                    \
  MSL_INLINE T max(T x, T y) { return fmax(x, y); }                                            \
  MSL_INLINE T min(T x, T y) { return fmin(x, y); }                                            \
  MSL_INLINE T clamp(T x, T low, T high) { return fmin(fmax(x, low), high); }                  \
  MSL_INLINE T saturate(T x) { return clamp(x, T(0), T(1)); }                                  \
  MSL_INLINE T sign(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x == T(0) ? x : T(0); } \
  MSL_INLINE T fract(T x) { return fmin(x - floor(x), T(ONE_BELOW_1)); }                       \
  MSL_INLINE T fdim(T x, T y) { return x <= y ? T(0) : x - y; }                                \
  MSL_INLINE T step(T edge, T x) { return x < edge ? T(0) : T(1); }                            \
  MSL_INLINE T mix(T x, T y, T a) { return x + (y - x) * a; }                                  \
  MSL_INLINE T smoothstep(T a, T b, T x) {                                                     \
    T t = saturate((x - a) / (b - a));                                                         \
    return t * t * (T(3) - T(2) * t);                                                          \
  }                                                                                            \
  MSL_INLINE bool isnan(T x) { return x != x; }                                                \
  MSL_INLINE bool isinf(T x) { return fabs(x) == T(__builtin_inff()); }                        \
  MSL_INLINE bool isfinite(T x) { return fabs(x) < T(__builtin_inff()); }
MSL_FLOATS(float, 0x1.fffffep-1f)
MSL_FLOATS(half, 0x1.ffcp-1f)
MSL_INLINE float copysign(float x, float y) { return __builtin_copysignf(x, y); }
MSL_INLINE half copysign(half x, half y) { return __builtin_copysignf16(x, y); }
MSL_INLINE bool signbit(float x) { return __builtin_bit_cast(int, x) < 0; }
MSL_INLINE bool signbit(half x) { return __builtin_bit_cast(short, x) < 0; }
MSL_INLINE bool isnormal(float x) { return isfinite(x) && fabs(x) >= FLT_MIN; }
MSL_INLINE bool isnormal(half x) { return isfinite(x) && fabs(x) >= HALF_MIN; }

// x = m * 2^e with 0.5 <= |m| < 1.
MSL_INLINE float frexp(float x, int& e) {
  e = 0;
  if (x == 0 || !isfinite(x)) return x;
  int shift = 0;
  if (fabs(x) < FLT_MIN) {
    x *= 0x1p24f;
    shift = -24;
  }
  uint b = __builtin_bit_cast(uint, x);
  e = int(b >> 23 & 255) - 126 + shift;
  return __builtin_bit_cast(float, (b & 0x807fffffu) | 0x3f000000u);
}

#define MSL_INTEGER_AIR(T, S)                                              \
  MSL_AIR(T, msl_max_##T, (T, T), "max." S)                                \
  MSL_AIR(T, msl_min_##T, (T, T), "min." S)                                \
  MSL_AIR(T, msl_clamp_##T, (T, T, T), "clamp." S)                         \
  MSL_INLINE T max(T x, T y) { return msl_max_##T(x, y); }                 \
  MSL_INLINE T min(T x, T y) { return msl_min_##T(x, y); }                 \
  MSL_INLINE T clamp(T x, T y, T z) { return msl_clamp_##T(x, y, z); }
MSL_INTEGER_AIR(char, "s.i8")
MSL_INTEGER_AIR(uchar, "u.i8")
MSL_INTEGER_AIR(short, "s.i16")
MSL_INTEGER_AIR(ushort, "u.i16")
MSL_INTEGER_AIR(int, "s.i32")
MSL_INTEGER_AIR(uint, "u.i32")
MSL_INTEGER_AIR(long, "s.i64")
MSL_INTEGER_AIR(ulong, "u.i64")
MSL_AIR(char, msl_abs_i8, (char), "abs.s.i8")
MSL_AIR(short, msl_abs_i16, (short), "abs.s.i16")
MSL_AIR(int, msl_abs_i32, (int), "abs.s.i32")
MSL_AIR(long, msl_abs_i64, (long), "abs.s.i64")
MSL_INLINE char abs(char x) { return msl_abs_i8(x); }
MSL_INLINE short abs(short x) { return msl_abs_i16(x); }
MSL_INLINE int abs(int x) { return msl_abs_i32(x); }
MSL_INLINE long abs(long x) { return msl_abs_i64(x); }
MSL_INLINE uchar abs(uchar x) { return x; }
MSL_INLINE ushort abs(ushort x) { return x; }
MSL_INLINE uint abs(uint x) { return x; }
MSL_INLINE ulong abs(ulong x) { return x; }

MSL_INLINE uchar mulhi(uchar x, uchar y) { return uchar(uint(x) * y >> 8); }
MSL_INLINE ushort mulhi(ushort x, ushort y) { return ushort(uint(x) * y >> 16); }
MSL_INLINE uint mulhi(uint x, uint y) { return uint(ulong(x) * y >> 32); }
MSL_INLINE ulong mulhi(ulong x, ulong y) { return ulong((unsigned __int128)x * y >> 64); }
MSL_INLINE char mulhi(char x, char y) { return char(int(x) * y >> 8); }
MSL_INLINE short mulhi(short x, short y) { return short(int(x) * y >> 16); }
MSL_INLINE int mulhi(int x, int y) { return int(long(x) * y >> 32); }
MSL_INLINE long mulhi(long x, long y) { return long((__int128)x * y >> 64); }
template <typename T>
MSL_INLINE T clz(T x) {
  return T(__builtin_clzg(metal::make_unsigned_t<T>(x), int(8 * sizeof(T))));
}
template <typename T>
MSL_INLINE T ctz(T x) {
  return T(__builtin_ctzg(metal::make_unsigned_t<T>(x), int(8 * sizeof(T))));
}
template <typename T>
MSL_INLINE T popcount(T x) {
  return T(__builtin_popcountg(metal::make_unsigned_t<T>(x)));
}
template <typename T>
MSL_INLINE T rotate(T x, T by) {
  typedef metal::make_unsigned_t<T> U;
  constexpr U mask = 8 * sizeof(T) - 1;
  return T(U(U(x) << (U(by) & mask)) | U(U(x) >> (U(-U(by)) & mask)));
}
template <typename T>
MSL_INLINE T absdiff(T x, T y) {
  typedef metal::make_unsigned_t<T> U;
  return T(x > y ? U(U(x) - U(y)) : U(U(y) - U(x)));
}
template <typename T>
MSL_INLINE T addsat(T x, T y) {
  return __builtin_elementwise_add_sat(x, y);
}
template <typename T>
MSL_INLINE T subsat(T x, T y) {
  return __builtin_elementwise_sub_sat(x, y);
}
template <typename T>
MSL_INLINE T select(T a, T b, bool c) {
  return c ? b : a;
}
template <typename T>
MSL_INLINE T reverse_bits(T x) {
  if constexpr (sizeof(T) == 1) return T(__builtin_bitreverse8(x));
  else if constexpr (sizeof(T) == 2) return T(__builtin_bitreverse16(x));
  else if constexpr (sizeof(T) == 4) return T(__builtin_bitreverse32(x));
  else return T(__builtin_bitreverse64(x));
}
} // namespace msl

namespace metal {
// A scalar beside a vector becomes a vector, so that max(v, 0.0f) is one of the overloads.
#define MSL_F1(T, NAME)                                             \
  MSL_INLINE T NAME(T x) { return ::msl::MSL_TWIN(NAME)(x); }       \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x) {                          \
    vec<T, N> r{};                                                  \
    for (int i = 0; i < N; i++) r.v[i] = NAME(T(x.v[i]));           \
    return r;                                                       \
  }
#define MSL_F2(T, NAME)                                             \
  MSL_INLINE T NAME(T x, T y) { return ::msl::NAME(x, y); }         \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y) {             \
    vec<T, N> r{};                                                  \
    for (int i = 0; i < N; i++) r.v[i] = NAME(T(x.v[i]), T(y.v[i])); \
    return r;                                                       \
  }                                                                 \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, T y) {                     \
    return NAME(x, vec<T, N>(y));                                   \
  }                                                                 \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> NAME(T x, vec<T, N> y) {                     \
    return NAME(vec<T, N>(x), y);                                   \
  }
#define MSL_F3(T, NAME)                                             \
  MSL_INLINE T NAME(T x, T y, T z) { return ::msl::NAME(x, y, z); } \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y, vec<T, N> z) { \
    vec<T, N> r{};                                                  \
    for (int i = 0; i < N; i++) r.v[i] = NAME(T(x.v[i]), T(y.v[i]), T(z.v[i])); \
    return r;                                                       \
  }                                                                 \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, vec<T, N> y, T z) {        \
    return NAME(x, y, vec<T, N>(z));                                \
  }                                                                 \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> NAME(vec<T, N> x, T y, T z) {                \
    return NAME(x, vec<T, N>(y), vec<T, N>(z));                     \
  }
#define MSL_IS(T, NAME)                                             \
  MSL_INLINE bool NAME(T x) { return ::msl::NAME(x); }              \
  template <int N>                                                  \
  MSL_INLINE vec<bool, N> NAME(vec<T, N> x) {                       \
    vec<bool, N> r{};                                               \
    for (int i = 0; i < N; i++) r.v[i] = NAME(T(x.v[i]));           \
    return r;                                                       \
  }
#define MSL_SELECT(T)                                               \
  MSL_INLINE T select(T a, T b, bool c) { return c ? b : a; }       \
  template <int N>                                                  \
  MSL_INLINE vec<T, N> select(vec<T, N> a, vec<T, N> b, vec<bool, N> c) { \
    for (int i = 0; i < N; i++) a.v[i] = c.v[i] ? b.v[i] : a.v[i];  \
    return a;                                                       \
  }
// The functions of one argument that have a fast twin, by its name.
#define MSL_PRECISE(NAME) NAME
#define MSL_QUICK(NAME) MSL_JOIN(msl_quick_, NAME)
#define MSL_JOIN(A, B) MSL_JOIN2(A, B)
#define MSL_JOIN2(A, B) A##B

#define MSL_TWIN MSL_PRECISE
MSL_MATH(half)
MSL_COMPARE(half)
MSL_INTEGERS(MSL_INTEGER)
MSL_SCALARS(MSL_SELECT)
MSL_INTEGERS(MSL_SELECT)
MSL_COMPARE(float)
namespace precise {
MSL_MATH(float)
MSL_COMPARE(float)
} // namespace precise
#ifndef MSL_FAST_MATH
MSL_MATH(float)
#endif
} // namespace metal

namespace msl {
#define MSL_SLOW(NAME) \
  MSL_INLINE float msl_quick_##NAME(float x) { return NAME(x); }
#define MSL_FAST(NAME) \
  MSL_INLINE float msl_quick_##NAME(float x) { return fast_##NAME(x); }
MSL_FAST(exp) MSL_FAST(exp2) MSL_FAST(log) MSL_FAST(sin) MSL_FAST(cos)
MSL_SLOW(acos) MSL_SLOW(acosh) MSL_SLOW(asin) MSL_SLOW(asinh) MSL_SLOW(atan) MSL_SLOW(atanh) MSL_SLOW(ceil)
MSL_SLOW(cosh) MSL_SLOW(cospi) MSL_SLOW(exp10) MSL_SLOW(floor) MSL_SLOW(fract) MSL_SLOW(log10) MSL_SLOW(log2)
MSL_SLOW(rint) MSL_SLOW(round) MSL_SLOW(rsqrt) MSL_SLOW(saturate) MSL_SLOW(sign) MSL_SLOW(sinh) MSL_SLOW(sinpi)
MSL_SLOW(sqrt) MSL_SLOW(tan) MSL_SLOW(tanh) MSL_SLOW(tanpi) MSL_SLOW(trunc) MSL_SLOW(abs) MSL_SLOW(fabs)
} // namespace msl

namespace metal {
#undef MSL_TWIN
#define MSL_TWIN MSL_QUICK
namespace fast {
MSL_MATH(float)
MSL_COMPARE(float)
} // namespace fast
#ifdef MSL_FAST_MATH
MSL_MATH(float)
#endif
#undef MSL_F1
#undef MSL_F2
#undef MSL_F3
#undef MSL_IS

MSL_INLINE float ldexp(float x, int e) { return ::msl::ldexp(x, e); }
MSL_INLINE half ldexp(half x, int e) { return ::msl::ldexp(x, e); }
MSL_INLINE float nextafter(float x, float y) { return ::msl::nextafter(x, y); }
MSL_INLINE half nextafter(half x, half y) { return ::msl::nextafter(x, y); }
MSL_INLINE float frexp(float x, int& e) { return ::msl::frexp(x, e); }
template <typename T>
MSL_INLINE T fmedian3(T a, T b, T c) { return fmax(fmin(a, b), fmin(fmax(a, b), c)); }
template <typename T>
MSL_INLINE T divide(T x, T y) { return x / y; }
template <typename T>
MSL_INLINE T reverse_bits(T x) { return ::msl::reverse_bits(x); }
template <typename T>
MSL_INLINE T min3(T a, T b, T c) { return min(a, min(b, c)); }
template <typename T>
MSL_INLINE T max3(T a, T b, T c) { return max(a, max(b, c)); }
template <typename T>
MSL_INLINE T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <typename T>
MSL_INLINE T fmin3(T a, T b, T c) { return fmin(a, fmin(b, c)); }
template <typename T>
MSL_INLINE T fmax3(T a, T b, T c) { return fmax(a, fmax(b, c)); }
template <typename T>
MSL_INLINE T mul24(T a, T b) { return a * b; }
template <typename T>
MSL_INLINE T mad24(T a, T b, T c) { return a * b + c; }
// madhi is mulhi plus c, hadd and rhadd are means that do not overflow.
template <typename T>
MSL_INLINE T madhi(T a, T b, T c) { return mulhi(a, b) + c; }
template <typename T>
MSL_INLINE T hadd(T a, T b) { return (a & b) + ((a ^ b) >> 1); }
template <typename T>
MSL_INLINE T rhadd(T a, T b) { return (a | b) - ((a ^ b) >> 1); }

MSL_AIR(float, msl_dot2f32, (float2::msl_raw, float2::msl_raw), "dot.v2f32")
MSL_AIR(float, msl_dot3f32, (float3::msl_raw, float3::msl_raw), "dot.v3f32")
MSL_AIR(float, msl_dot4f32, (float4::msl_raw, float4::msl_raw), "dot.v4f32")
MSL_AIR(half, msl_dot2f16, (half2::msl_raw, half2::msl_raw), "dot.v2f16")
MSL_AIR(half, msl_dot3f16, (half3::msl_raw, half3::msl_raw), "dot.v3f16")
MSL_AIR(half, msl_dot4f16, (half4::msl_raw, half4::msl_raw), "dot.v4f16")
MSL_INLINE float dot(float2 a, float2 b) { return msl_dot2f32(a.v, b.v); }
MSL_INLINE float dot(float3 a, float3 b) { return msl_dot3f32(a.v, b.v); }
MSL_INLINE float dot(float4 a, float4 b) { return msl_dot4f32(a.v, b.v); }
MSL_INLINE half dot(half2 a, half2 b) { return msl_dot2f16(a.v, b.v); }
MSL_INLINE half dot(half3 a, half3 b) { return msl_dot3f16(a.v, b.v); }
MSL_INLINE half dot(half4 a, half4 b) { return msl_dot4f16(a.v, b.v); }
template <typename T, int N>
MSL_INLINE T length_squared(vec<T, N> a) { return dot(a, a); }
template <typename T, int N>
MSL_INLINE T length(vec<T, N> a) { return sqrt(dot(a, a)); }
template <typename T, int N>
MSL_INLINE T distance(vec<T, N> a, vec<T, N> b) { return length(a - b); }
template <typename T, int N>
MSL_INLINE vec<T, N> normalize(vec<T, N> a) { return a * rsqrt(dot(a, a)); }
template <typename T>
MSL_INLINE vec<T, 3> cross(vec<T, 3> a, vec<T, 3> b) {
  return vec<T, 3>(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
template <int N>
MSL_INLINE bool any(vec<bool, N> a) {
  bool r = false;
  for (int i = 0; i < N; i++) r |= a.v[i] != 0;
  return r;
}
template <int N>
MSL_INLINE bool all(vec<bool, N> a) {
  bool r = true;
  for (int i = 0; i < N; i++) r &= a.v[i] != 0;
  return r;
}
} // namespace metal
