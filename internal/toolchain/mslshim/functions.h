// The functions of Metal's library by name, for each element type. Who includes this defines
// MSL_F1 to MSL_F3 (functions of one to three arguments of the same type, which they return),
// MSL_IS (a test of one argument), and MSL_S1 and MSL_S2 (exchange between the threads of a
// simdgroup, without and with a lane).
#pragma once
#pragma clang system_header

// Overloads, not templates: a half beside a float is ambiguous in Metal too.
#define MSL_SCALARS(M) M(half) M(float)
#define MSL_INTEGERS(M) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong)
#define MSL_SHUFFLED(M) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(half) M(float) M(bfloat)

#define MSL_MATH(T)                                                                                                   \
  MSL_F1(T, acos) MSL_F1(T, acosh) MSL_F1(T, asin) MSL_F1(T, asinh) MSL_F1(T, atan) MSL_F1(T, atanh) MSL_F1(T, ceil)  \
  MSL_F1(T, cos) MSL_F1(T, cosh) MSL_F1(T, cospi) MSL_F1(T, exp) MSL_F1(T, exp10) MSL_F1(T, exp2) MSL_F1(T, floor)    \
  MSL_F1(T, fract) MSL_F1(T, log) MSL_F1(T, log10) MSL_F1(T, log2) MSL_F1(T, rint) MSL_F1(T, round) MSL_F1(T, rsqrt)  \
  MSL_F1(T, saturate) MSL_F1(T, sign) MSL_F1(T, sin) MSL_F1(T, sinh) MSL_F1(T, sinpi) MSL_F1(T, sqrt) MSL_F1(T, tan)  \
  MSL_F1(T, tanh) MSL_F1(T, tanpi) MSL_F1(T, trunc) MSL_F2(T, atan2) MSL_F2(T, copysign) MSL_F2(T, fdim)              \
  MSL_F2(T, fmod) MSL_F2(T, pow) MSL_F2(T, powr) MSL_F2(T, step) MSL_F3(T, fma) MSL_F3(T, mix)                        \
  MSL_F3(T, smoothstep)
#define MSL_COMPARE(T)                                                                                          \
  MSL_F1(T, abs) MSL_F1(T, fabs) MSL_F2(T, fmax) MSL_F2(T, fmin) MSL_F2(T, max) MSL_F2(T, min) MSL_F3(T, clamp) \
  MSL_IS(T, isfinite) MSL_IS(T, isinf) MSL_IS(T, isnan) MSL_IS(T, isnormal) MSL_IS(T, signbit)
#define MSL_INTEGER(T)                                                                                      \
  MSL_F1(T, abs) MSL_F1(T, clz) MSL_F1(T, ctz) MSL_F1(T, popcount) MSL_F2(T, max) MSL_F2(T, min)            \
  MSL_F3(T, clamp) MSL_F2(T, mulhi) MSL_F2(T, rotate) MSL_F2(T, absdiff) MSL_F2(T, addsat) MSL_F2(T, subsat)
#define MSL_SIMD(T)                                                                                          \
  MSL_S1(T, simd_sum) MSL_S1(T, simd_product) MSL_S1(T, simd_max) MSL_S1(T, simd_min)                        \
  MSL_S1(T, simd_prefix_inclusive_sum) MSL_S1(T, simd_prefix_exclusive_sum) MSL_S1(T, simd_broadcast_first)  \
  MSL_S2(T, simd_broadcast) MSL_S2(T, simd_shuffle) MSL_S2(T, simd_shuffle_xor) MSL_S2(T, simd_shuffle_up)   \
  MSL_S2(T, simd_shuffle_down) MSL_S2(T, simd_shuffle_rotate_up) MSL_S2(T, simd_shuffle_rotate_down)         \
  MSL_S1(T, quad_sum) MSL_S1(T, quad_max) MSL_S1(T, quad_min) MSL_S2(T, quad_broadcast)                      \
  MSL_S2(T, quad_shuffle) MSL_S2(T, quad_shuffle_xor)
