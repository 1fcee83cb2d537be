// What Metal's headers declare, for compiling: a source becomes C++17 without address spaces, and
// every function of Metal's library that is no arithmetic becomes a call of a function of AIR.
#pragma once
#pragma clang system_header
#include "atomic.h"
#include "builtins.h"
#include "math.h"
#include "matrix.h"
#include "simd.h"

namespace msl {
// Of a kernel of type F: the type of parameter I.
template <typename F, int I>
struct parameter;
template <typename A, typename... B>
struct parameter<void(A, B...), 0> {
  typedef A type;
};
template <typename A, typename... B, int I>
struct parameter<void(A, B...), I> : parameter<void(B...), I - 1> {};

// What a kernel's parameter is in LLVM IR: a pointer into an address space, or a plain value.
template <typename T>
struct passed {
  typedef T value;
  static MSL_INLINE T take(T x) { return x; }
};
template <typename T, int N>
struct passed<metal::vec<T, N>> {
  typedef typename metal::vec<T, N>::msl_raw value;
  static MSL_INLINE metal::vec<T, N> take(value x) { return metal::vec<T, N>::msl_of(x); }
};
#define MSL_MEMORY(T)                                   \
  typedef T element;                                    \
  typedef __attribute__((address_space(1))) T* device;  \
  typedef __attribute__((address_space(2))) T* constant; \
  typedef __attribute__((address_space(3))) T* threadgroup;
template <typename T>
struct passed<T*> {
  MSL_MEMORY(T)
  template <typename P>
  static MSL_INLINE T* take(P p) {
    return (T*)p;
  }
};
template <typename T>
struct passed<T&> {
  MSL_MEMORY(T)
  template <typename P>
  static MSL_INLINE T& take(P p) {
    return *(T*)p;
  }
};
template <typename F, int I>
using pass = passed<metal::remove_const_t<typename parameter<F, I>::type>>;

// The description of an argument, read from the module.
struct argument {
  const char* type; // ends in [T = TYPE]
  unsigned long size, align;
};
template <typename T>
constexpr const char* spelling() {
  return __PRETTY_FUNCTION__;
}
template <typename T>
constexpr argument of() {
  if constexpr (__is_void(T)) return argument{spelling<void>(), 1, 1};
  else return argument{spelling<metal::remove_cv_t<T>>(), sizeof(T), alignof(T)};
}
template <typename F, int I>
constexpr argument memory() {
  return of<typename pass<F, I>::element>();
}
template <typename F, int I>
constexpr argument value() {
  return of<typename parameter<F, I>::type>();
}
} // namespace msl
