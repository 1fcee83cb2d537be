// What Metal's headers declare, as far as sources here use it, for stock clang
// (C++14 and up). Functions are declared only: nothing is linked or run.
// MSL_SPACES makes the address spaces true ones.
#pragma once
#pragma clang system_header

#ifdef MSL_SPACES
#define MSL_DEVICE __attribute__((address_space(1)))
#define MSL_CONSTANT const __attribute__((address_space(2)))
#define MSL_THREADGROUP __attribute__((address_space(3)))
#else
#define MSL_DEVICE
#define MSL_CONSTANT const
#define MSL_THREADGROUP
#endif
#define MSL_THREAD

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef _Float16 half;
typedef __bf16 bfloat;

#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define MAXFLOAT 3.402823466e+38f
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define HALF_MAX ((half)65504.0f)
#define MAXHALF HALF_MAX
#define M_PI_F 3.14159265358979323846f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LN2_F 0.69314718055994530942f
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u

namespace metal {
template <typename T, int N>
using vec = T __attribute__((ext_vector_type(N)));
}

#define MSL_VECTORS(T)           \
  typedef metal::vec<T, 2> T##2; \
  typedef metal::vec<T, 3> T##3; \
  typedef metal::vec<T, 4> T##4;
MSL_VECTORS(bool)
MSL_VECTORS(char)
MSL_VECTORS(uchar)
MSL_VECTORS(short)
MSL_VECTORS(ushort)
MSL_VECTORS(int)
MSL_VECTORS(uint)
MSL_VECTORS(long)
MSL_VECTORS(ulong)
MSL_VECTORS(half)
MSL_VECTORS(float)
MSL_VECTORS(bfloat)

// Vector constructors: the rewriter writes make<float4>(…) for float4(…).
namespace msl {
template <typename V>
struct lanes;
template <typename T, int N>
struct lanes<metal::vec<T, N>> {
  typedef T type;
  static constexpr int count = N;
};

template <typename T>
struct width {
  static constexpr int value = 1;
};
template <typename T, int N>
struct width<metal::vec<T, N>> {
  static constexpr int value = N;
};

template <typename... A>
struct total {
  static constexpr int value = 0;
};
template <typename A, typename... B>
struct total<A, B...> {
  static constexpr int value = width<A>::value + total<B...>::value;
};

template <typename V, typename S>
void put(V& v, int& i, S s) {
  v[i++] = (typename lanes<V>::type)s;
}
template <typename V, typename T, int N>
void put(V& v, int& i, metal::vec<T, N> s) {
  for (int j = 0; j < N; j++) {
    v[i++] = (typename lanes<V>::type)s[j];
  }
}

template <typename V, typename... A>
V make(A... a) {
  static_assert(
      total<A...>::value == lanes<V>::count || (sizeof...(A) == 1 && total<A...>::value == 1),
      "a vector's constructor takes as many components as it has, or one");
  V v{};
  int i = 0;
  int order[] = {(put(v, i, a), 0)...};
  (void)order;
  for (; i < lanes<V>::count; i++) {
    v[i] = v[0];
  }
  return v;
}
} // namespace msl

template <typename T, typename U>
T as_type(U u) {
  static_assert(sizeof(T) == sizeof(U), "as_type keeps the size");
  return __builtin_bit_cast(T, u);
}

namespace metal {
// Overloads, not templates: a half beside a float is ambiguous in Metal too.
#define MSL_SCALARS(M) M(half) M(float)
#define MSL_INTEGERS(M) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong)
#define MSL_SHUFFLED(M) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(half) M(float) M(bfloat)

#define MSL_F1(T, name) \
  T name(T);            \
  template <int N>      \
  vec<T, N> name(vec<T, N>);
#define MSL_F2(T, name) \
  T name(T, T);         \
  template <int N>      \
  vec<T, N> name(vec<T, N>, vec<T, N>);
#define MSL_F3(T, name) \
  T name(T, T, T);      \
  template <int N>      \
  vec<T, N> name(vec<T, N>, vec<T, N>, vec<T, N>);
#define MSL_IS(T, name) \
  bool name(T);         \
  template <int N>      \
  vec<bool, N> name(vec<T, N>);

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
#define MSL_SELECT(T)    \
  T select(T, T, bool);  \
  template <int N>       \
  vec<T, N> select(vec<T, N>, vec<T, N>, vec<bool, N>);

MSL_SCALARS(MSL_MATH)
MSL_SCALARS(MSL_COMPARE)
MSL_INTEGERS(MSL_INTEGER)
MSL_SCALARS(MSL_SELECT)
MSL_INTEGERS(MSL_SELECT)
namespace precise {
MSL_MATH(float)
MSL_COMPARE(float)
} // namespace precise
namespace fast {
MSL_MATH(float)
MSL_COMPARE(float)
} // namespace fast

template <typename T, int N>
T dot(vec<T, N>, vec<T, N>);
template <int N>
bool any(vec<bool, N>);
template <int N>
bool all(vec<bool, N>);

// Synchronisation and exchange between the threads of a group.
enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
void threadgroup_barrier(mem_flags) __attribute__((convergent));
void simdgroup_barrier(mem_flags) __attribute__((convergent));

#define MSL_S1(T, name)                        \
  T name(T) __attribute__((convergent));       \
  template <int N>                             \
  vec<T, N> name(vec<T, N>) __attribute__((convergent));
#define MSL_S2(T, name)                        \
  T name(T, ushort) __attribute__((convergent)); \
  template <int N>                             \
  vec<T, N> name(vec<T, N>, ushort) __attribute__((convergent));
#define MSL_SIMD(T)                                                                                          \
  MSL_S1(T, simd_sum) MSL_S1(T, simd_product) MSL_S1(T, simd_max) MSL_S1(T, simd_min)                        \
  MSL_S1(T, simd_prefix_inclusive_sum) MSL_S1(T, simd_prefix_exclusive_sum) MSL_S1(T, simd_broadcast_first)  \
  MSL_S2(T, simd_broadcast) MSL_S2(T, simd_shuffle) MSL_S2(T, simd_shuffle_xor) MSL_S2(T, simd_shuffle_up)   \
  MSL_S2(T, simd_shuffle_down) MSL_S2(T, simd_shuffle_rotate_up) MSL_S2(T, simd_shuffle_rotate_down)         \
  MSL_S1(T, quad_sum) MSL_S1(T, quad_max) MSL_S1(T, quad_min) MSL_S2(T, quad_broadcast)                      \
  MSL_S2(T, quad_shuffle) MSL_S2(T, quad_shuffle_xor)
MSL_SHUFFLED(MSL_SIMD)
bool simd_all(bool) __attribute__((convergent));
bool simd_any(bool) __attribute__((convergent));
bool simd_is_first() __attribute__((convergent));

template <typename T, int Cols, int Rows = Cols>
struct simdgroup_matrix {
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T diagonal);
  vec<T, 2>& thread_elements();
  T element[2];
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <typename T, int Cols, int Rows>
simdgroup_matrix<T, Cols, Rows> make_filled_simdgroup_matrix(T);
#define MSL_MATRIX_MEMORY(SPACE)                                                                                   \
  template <typename T, int C, int R>                                                                              \
  void simdgroup_load(simdgroup_matrix<T, C, R>&, const SPACE T*, ulong = C, ulong2 = ulong2{0, 0}, bool = false); \
  template <typename T, int C, int R>                                                                              \
  void simdgroup_store(simdgroup_matrix<T, C, R>, SPACE T*, ulong = C, ulong2 = ulong2{0, 0}, bool = false);
MSL_MATRIX_MEMORY(MSL_DEVICE)
#ifdef MSL_SPACES
MSL_MATRIX_MEMORY(MSL_THREADGROUP)
#endif
template <typename D, typename A, typename B, typename S, int C, int R>
void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, C, R>&, simdgroup_matrix<A, C, R>, simdgroup_matrix<B, C, R>, simdgroup_matrix<S, C, R>);
template <typename D, typename A, typename B, int C, int R>
void simdgroup_multiply(simdgroup_matrix<D, C, R>&, simdgroup_matrix<A, C, R>, simdgroup_matrix<B, C, R>);

template <typename T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr float infinity() { return INFINITY; }
  static constexpr float quiet_NaN() { return NAN; }
  static constexpr float max() { return FLT_MAX; }
  static constexpr float min() { return FLT_MIN; }
  static constexpr float lowest() { return -FLT_MAX; }
};
template <>
struct numeric_limits<half> {
  static constexpr half infinity() { return half(INFINITY); }
  static constexpr half quiet_NaN() { return half(NAN); }
  static constexpr half max() { return HALF_MAX; }
  static constexpr half lowest() { return -HALF_MAX; }
};
template <>
struct numeric_limits<int> {
  static constexpr int max() { return INT_MAX; }
  static constexpr int min() { return INT_MIN; }
};
template <>
struct numeric_limits<uint> {
  static constexpr uint max() { return UINT_MAX; }
  static constexpr uint min() { return 0; }
};

template <typename A, typename B>
constexpr bool is_same_v = __is_same(A, B);
template <bool B, typename T, typename F>
struct conditional {
  typedef T type;
};
template <typename T, typename F>
struct conditional<false, T, F> {
  typedef F type;
};
template <bool B, typename T, typename F>
using conditional_t = typename conditional<B, T, F>::type;
} // namespace metal
