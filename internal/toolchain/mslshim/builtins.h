// The compiler's builtins that Metal's own headers call. Sources that define functions of bfloat
// beside those of the library use them.
#pragma once
#pragma clang system_header
#include "simd.h"

#define __METAL_PRECISE_MATH__ 0
#define __METAL_FAST_MATH__ 1
#ifdef MSL_FAST_MATH
#define __METAL_MAYBE_FAST_MATH__ __METAL_FAST_MATH__
#else
#define __METAL_MAYBE_FAST_MATH__ __METAL_PRECISE_MATH__
#endif

// The last argument says whether the fast twin will do.
#define MSL_BUILTIN1(NAME) \
  MSL_INLINE float __metal_##NAME(float x, bool fast) { return fast ? ::msl::msl_quick_##NAME(x) : ::msl::NAME(x); }
#define MSL_BUILTIN2(NAME) \
  MSL_INLINE float __metal_##NAME(float x, float y, bool) { return ::msl::NAME(x, y); }
#define MSL_BUILTIN3(NAME) \
  MSL_INLINE float __metal_##NAME(float x, float y, float z, bool) { return ::metal::NAME(x, y, z); }
MSL_BUILTIN1(acos) MSL_BUILTIN1(acosh) MSL_BUILTIN1(asin) MSL_BUILTIN1(asinh) MSL_BUILTIN1(atan) MSL_BUILTIN1(atanh)
MSL_BUILTIN1(ceil) MSL_BUILTIN1(cos) MSL_BUILTIN1(cosh) MSL_BUILTIN1(cospi) MSL_BUILTIN1(exp) MSL_BUILTIN1(exp10)
MSL_BUILTIN1(exp2) MSL_BUILTIN1(fabs) MSL_BUILTIN1(floor) MSL_BUILTIN1(fract) MSL_BUILTIN1(log) MSL_BUILTIN1(log10)
MSL_BUILTIN1(log2) MSL_BUILTIN1(rint) MSL_BUILTIN1(round) MSL_BUILTIN1(rsqrt) MSL_BUILTIN1(sin) MSL_BUILTIN1(sinh)
MSL_BUILTIN1(sinpi) MSL_BUILTIN1(sqrt) MSL_BUILTIN1(tan) MSL_BUILTIN1(tanh) MSL_BUILTIN1(tanpi) MSL_BUILTIN1(trunc)
MSL_BUILTIN2(atan2) MSL_BUILTIN2(fmax) MSL_BUILTIN2(fmin) MSL_BUILTIN2(fmod) MSL_BUILTIN2(pow) MSL_BUILTIN2(powr)
MSL_BUILTIN3(fmax3) MSL_BUILTIN3(fmin3)
MSL_INLINE float __metal_fmedian3(float x, float y, float z, bool) { return ::metal::fmedian3(x, y, z); }
MSL_INLINE float __metal_divide(float x, float y, bool) { return x / y; }
MSL_INLINE float __metal_fma(float x, float y, float z) { return ::msl::fma(x, y, z); }
MSL_INLINE float __metal_ldexp(float x, int e, bool) { return ::msl::ldexp(x, e); }
MSL_INLINE float __metal_frexp(float x, int& e, bool) { return ::metal::frexp(x, e); }
MSL_INLINE float __metal_frexp(float x, int* e) { return ::metal::frexp(x, *e); }
MSL_INLINE float __metal_nextafter(float x, float y) { return ::metal::nextafter(x, y); }

#define MSL_BUILTIN_GROUP(NAME)                  \
  template <typename... A>                       \
  MSL_INLINE auto __metal_##NAME(A... a) {       \
    return ::msl::NAME(a...);                    \
  }
MSL_BUILTIN_GROUP(simd_broadcast) MSL_BUILTIN_GROUP(simd_broadcast_first) MSL_BUILTIN_GROUP(simd_max)
MSL_BUILTIN_GROUP(simd_min) MSL_BUILTIN_GROUP(simd_prefix_exclusive_product) MSL_BUILTIN_GROUP(simd_prefix_exclusive_sum)
MSL_BUILTIN_GROUP(simd_prefix_inclusive_product) MSL_BUILTIN_GROUP(simd_prefix_inclusive_sum) MSL_BUILTIN_GROUP(simd_product)
MSL_BUILTIN_GROUP(simd_shuffle) MSL_BUILTIN_GROUP(simd_shuffle_and_fill_down) MSL_BUILTIN_GROUP(simd_shuffle_and_fill_up)
MSL_BUILTIN_GROUP(simd_shuffle_down) MSL_BUILTIN_GROUP(simd_shuffle_rotate_down) MSL_BUILTIN_GROUP(simd_shuffle_rotate_up)
MSL_BUILTIN_GROUP(simd_shuffle_up) MSL_BUILTIN_GROUP(simd_shuffle_xor) MSL_BUILTIN_GROUP(simd_sum)
MSL_BUILTIN_GROUP(simd_xor)
MSL_INLINE ushort __metal_get_simdgroup_size(ushort) { return ushort(::msl::msl_simdgroup_size()); }
MSL_INLINE ushort __metal_get_thread_index_in_simdgroup(ushort) { return ushort(::msl::msl_simd_lane()); }
