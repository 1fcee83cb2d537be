// Metal's vectors as classes over clang's vectors. Clang's own vectors will not do: a cast between
// them reinterprets bits where Metal converts, and bool vectors are packed bits.
//
// Swizzles are properties (-fdeclspec). MSL_SWIZZLES2 to 4 come from the rewriter, which declares
// only those that the source mentions.
#pragma once
#pragma clang system_header
#include "traits.h"

#ifndef MSL_SWIZZLES2
#define MSL_SWIZZLES2
#define MSL_SWIZZLES3
#define MSL_SWIZZLES4
#endif
#define MSL_INLINE inline __attribute__((always_inline))
#define MSL_MEMBER __attribute__((always_inline)) constexpr

namespace metal {
template <typename T, int N>
struct vec;
template <typename T, int N>
struct packed_vec;
} // namespace metal

namespace msl {
// The element of a vector in memory: a byte for bool.
template <typename T>
struct stored {
  typedef T type;
};
template <>
struct stored<bool> {
  typedef unsigned char type;
};
template <typename T>
struct lanes {
  static constexpr int count = 0;
};
template <typename T, int N>
struct lanes<metal::vec<T, N>> {
  static constexpr int count = N;
};
template <typename T, int N>
struct lanes<metal::packed_vec<T, N>> {
  static constexpr int count = N;
};
// cast is static_cast, and also converts between half and bfloat.
template <typename T, typename U>
MSL_MEMBER T cast(U&& u) {
  typedef metal::remove_cvref_t<U> V;
  constexpr bool narrow = __is_same(T, half) && __is_same(V, bfloat) || __is_same(T, bfloat) && __is_same(V, half);
  if constexpr (narrow) {
    return (T)(float)u;
  } else {
    return static_cast<T>(static_cast<U&&>(u));
  }
}
template <typename S>
using if_scalar = metal::enable_if_t<metal::is_arithmetic<S>::value || __is_enum(S)>;
} // namespace msl

// The lanes lie beside the vector by name, so that a lane can be passed by reference.
#define MSL_LANES(...)    \
  union {                 \
    msl_raw v;            \
    struct {              \
      T __VA_ARGS__;      \
    };                    \
    struct {              \
      T MSL_COLOURS;      \
    };                    \
  };

#define MSL_VEC(N, ...)                                                                     \
  typedef typename ::msl::stored<T>::type msl_element;                                   \
  typedef msl_element msl_raw __attribute__((ext_vector_type(N)));                       \
  typedef T value_type;                                                                  \
  MSL_LANES(__VA_ARGS__)                                                                 \
  vec() = default;                                                                       \
  MSL_MEMBER vec(T s) : v((msl_element)s) {}                                             \
  template <typename S, typename = ::msl::if_scalar<S>, typename = enable_if_t<!__is_same(S, T)>> \
  MSL_MEMBER vec(S s) : v((msl_element)(T)s) {}                                          \
  template <typename U>                                                                  \
  MSL_MEMBER explicit vec(vec<U, N> a) : v() {                                           \
    for (int i = 0; i < N; i++) v[i] = ::msl::cast<T>((U)a.v[i]);                        \
  }                                                                                      \
  MSL_MEMBER vec(const packed_vec<T, N>& a) : v() {                                      \
    for (int i = 0; i < N; i++) v[i] = a.d[i];                                           \
  }                                                                                      \
  template <typename U>                                                                  \
  MSL_MEMBER explicit vec(const packed_vec<U, N>& a) : v() {                             \
    for (int i = 0; i < N; i++) v[i] = ::msl::cast<T>((U)a.d[i]);                        \
  }                                                                                      \
  static MSL_MEMBER vec msl_of(msl_raw r) {                                              \
    vec a{};                                                                             \
    a.v = r;                                                                             \
    return a;                                                                            \
  }                                                                                      \
  MSL_INLINE T& operator[](int i) { return reinterpret_cast<T*>(&v)[i]; }                \
  MSL_MEMBER T operator[](int i) const { return v[i]; }

namespace metal {
template <typename T>
struct vec<T, 2> {
#define MSL_COLOURS r, g
  MSL_VEC(2, x, y)
#undef MSL_COLOURS
  MSL_MEMBER vec(T a, T b) : v{(msl_element)a, (msl_element)b} {}
  MSL_SWIZZLES2
};
template <typename T>
struct vec<T, 3> {
#define MSL_COLOURS r, g, b
  MSL_VEC(3, x, y, z)
#undef MSL_COLOURS
  // A list may be shorter than the vector, which ends in zeros then.
  MSL_MEMBER vec(T a, T b) : v{(msl_element)a, (msl_element)b, 0} {}
  MSL_MEMBER vec(T a, T b, T c) : v{(msl_element)a, (msl_element)b, (msl_element)c} {}
  MSL_MEMBER vec(vec<T, 2> a, T b) : v{a.v[0], a.v[1], (msl_element)b} {}
  MSL_MEMBER vec(T a, vec<T, 2> b) : v{(msl_element)a, b.v[0], b.v[1]} {}
  MSL_SWIZZLES3
};
template <typename T>
struct vec<T, 4> {
#define MSL_COLOURS r, g, b, a
  MSL_VEC(4, x, y, z, w)
#undef MSL_COLOURS
  MSL_MEMBER vec(T a, T b) : v{(msl_element)a, (msl_element)b, 0, 0} {}
  MSL_MEMBER vec(T a, T b, T c) : v{(msl_element)a, (msl_element)b, (msl_element)c, 0} {}
  MSL_MEMBER vec(T a, T b, T c, T d) : v{(msl_element)a, (msl_element)b, (msl_element)c, (msl_element)d} {}
  MSL_MEMBER vec(vec<T, 2> a, vec<T, 2> b) : v{a.v[0], a.v[1], b.v[0], b.v[1]} {}
  MSL_MEMBER vec(vec<T, 3> a, T b) : v{a.v[0], a.v[1], a.v[2], (msl_element)b} {}
  MSL_MEMBER vec(T a, vec<T, 3> b) : v{(msl_element)a, b.v[0], b.v[1], b.v[2]} {}
  MSL_MEMBER vec(vec<T, 2> a, T b, T c) : v{a.v[0], a.v[1], (msl_element)b, (msl_element)c} {}
  MSL_MEMBER vec(T a, vec<T, 2> b, T c) : v{(msl_element)a, b.v[0], b.v[1], (msl_element)c} {}
  MSL_MEMBER vec(T a, T b, vec<T, 2> c) : v{(msl_element)a, (msl_element)b, c.v[0], c.v[1]} {}
  MSL_SWIZZLES4
};

// A vector with the alignment of its element.
template <typename T, int N>
struct packed_vec {
  typedef T value_type;
  T d[N];
  packed_vec() = default;
  MSL_MEMBER packed_vec(vec<T, N> a) : d() {
    for (int i = 0; i < N; i++) d[i] = a.v[i];
  }
  MSL_MEMBER T& operator[](int i) { return d[i]; }
  MSL_MEMBER const T& operator[](int i) const { return d[i]; }
#define MSL_PACKED_LANE(NAME, I)                       \
  MSL_MEMBER T msl_get_##NAME() const { return d[I]; } \
  MSL_MEMBER void msl_put_##NAME(T s) { d[I] = s; }    \
  __declspec(property(get = msl_get_##NAME, put = msl_put_##NAME)) T NAME;
  MSL_PACKED_LANE(x, 0) MSL_PACKED_LANE(y, 1) MSL_PACKED_LANE(z, 2) MSL_PACKED_LANE(w, 3)
};

// Operators of two vectors, and of a vector and a scalar, which becomes a vector.
#define MSL_BINARY(OP)                                                                   \
  template <typename T, int N>                                                           \
  MSL_MEMBER vec<T, N> operator OP(vec<T, N> a, vec<T, N> b) {                           \
    return vec<T, N>::msl_of(a.v OP b.v);                                                \
  }                                                                                      \
  template <typename T, int N, typename S, typename = ::msl::if_scalar<S>>               \
  MSL_MEMBER vec<T, N> operator OP(vec<T, N> a, S b) {                                   \
    return a OP vec<T, N>((T)b);                                                         \
  }                                                                                      \
  template <typename T, int N, typename S, typename = ::msl::if_scalar<S>>               \
  MSL_MEMBER vec<T, N> operator OP(S a, vec<T, N> b) {                                   \
    return vec<T, N>((T)a) OP b;                                                         \
  }                                                                                      \
  template <typename T, int N>                                                           \
  MSL_MEMBER vec<T, N>& operator OP##=(vec<T, N>& a, vec<T, N> b) {                      \
    return a = a OP b;                                                                   \
  }                                                                                      \
  template <typename T, int N, typename S, typename = ::msl::if_scalar<S>>               \
  MSL_MEMBER vec<T, N>& operator OP##=(vec<T, N>& a, S b) {                              \
    return a = a OP vec<T, N>((T)b);                                                     \
  }
MSL_BINARY(+)
MSL_BINARY(-)
MSL_BINARY(*)
MSL_BINARY(/)
MSL_BINARY(%)
MSL_BINARY(&)
MSL_BINARY(|)
MSL_BINARY(^)
MSL_BINARY(<<)
MSL_BINARY(>>)

#define MSL_RELATION(OP)                                                                 \
  template <typename T, int N>                                                           \
  MSL_MEMBER vec<bool, N> operator OP(vec<T, N> a, vec<T, N> b) {                        \
    vec<bool, N> r{};                                                                    \
    for (int i = 0; i < N; i++) r.v[i] = a.v[i] OP b.v[i];                               \
    return r;                                                                            \
  }                                                                                      \
  template <typename T, int N, typename S, typename = ::msl::if_scalar<S>>               \
  MSL_MEMBER vec<bool, N> operator OP(vec<T, N> a, S b) {                                \
    return a OP vec<T, N>((T)b);                                                         \
  }                                                                                      \
  template <typename T, int N, typename S, typename = ::msl::if_scalar<S>>               \
  MSL_MEMBER vec<bool, N> operator OP(S a, vec<T, N> b) {                                \
    return vec<T, N>((T)a) OP b;                                                         \
  }
MSL_RELATION(==)
MSL_RELATION(!=)
MSL_RELATION(<)
MSL_RELATION(<=)
MSL_RELATION(>)
MSL_RELATION(>=)
MSL_RELATION(&&)
MSL_RELATION(||)

template <typename T, int N>
MSL_MEMBER vec<T, N> operator-(vec<T, N> a) {
  return vec<T, N>::msl_of(-a.v);
}
template <typename T, int N>
MSL_MEMBER vec<T, N> operator+(vec<T, N> a) {
  return a;
}
template <typename T, int N>
MSL_MEMBER vec<T, N> operator~(vec<T, N> a) {
  return vec<T, N>::msl_of(~a.v);
}
template <typename T, int N>
MSL_MEMBER vec<bool, N> operator!(vec<T, N> a) {
  vec<bool, N> r{};
  for (int i = 0; i < N; i++) r.v[i] = !a.v[i];
  return r;
}
template <typename T, int N>
MSL_MEMBER vec<T, N>& operator++(vec<T, N>& a) {
  return a = a + vec<T, N>((T)1);
}
template <typename T, int N>
MSL_MEMBER vec<T, N>& operator--(vec<T, N>& a) {
  return a = a - vec<T, N>((T)1);
}
template <typename T, int N>
MSL_MEMBER vec<T, N> operator++(vec<T, N>& a, int) {
  vec<T, N> b = a;
  ++a;
  return b;
}
template <typename T, int N>
MSL_MEMBER vec<T, N> operator--(vec<T, N>& a, int) {
  vec<T, N> b = a;
  --a;
  return b;
}

template <typename T, size_t N>
struct array {
  T d[N];
  MSL_MEMBER T& operator[](size_t i) { return d[i]; }
  MSL_MEMBER const T& operator[](size_t i) const { return d[i]; }
  static constexpr size_t size() { return N; }
};
} // namespace metal

#define MSL_VECTORS(T)                      \
  typedef metal::vec<T, 2> T##2;            \
  typedef metal::vec<T, 3> T##3;            \
  typedef metal::vec<T, 4> T##4;            \
  typedef metal::packed_vec<T, 2> packed_##T##2; \
  typedef metal::packed_vec<T, 3> packed_##T##3; \
  typedef metal::packed_vec<T, 4> packed_##T##4;
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

template <typename T, typename U>
MSL_MEMBER T as_type(U u) {
  static_assert(sizeof(T) == sizeof(U), "as_type keeps the size");
  return __builtin_bit_cast(T, u);
}
