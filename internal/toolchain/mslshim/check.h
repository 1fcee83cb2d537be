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

#include "functions.h"
#include "types.h"

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
} // namespace metal

#include "traits.h"
