// simdgroup_matrix: 64 elements that a simdgroup holds together. Lane l holds row
// (l >> 2 & 4) | (l >> 1 & 3), columns ((l >> 2 & 2) | (l & 1)) * 2 and the next one, as elements
// 0 and 1 of its value, as in Apple's compiled libraries.
//
// Loads and stores name no address space here: the compiler's output is searched for the space that
// the pointer comes from, and gets AIR's name (p1 device, p3 threadgroup) then.
#pragma once
#pragma clang system_header
#include "simd.h"

namespace msl {
typedef float f64f __attribute__((ext_vector_type(64)));
typedef half f64h __attribute__((ext_vector_type(64)));
typedef bfloat f64b __attribute__((ext_vector_type(64)));
typedef long long2 __attribute__((ext_vector_type(2)));
#define MSL_MATRIX_TYPE(T, V, E)                                                                  \
  MSL_AIR_GROUP(V, msl_diagonal_##T, (T), "simdgroup_matrix_8x8_init_diag.v64" E "." E)           \
  MSL_AIR_GROUP(V, msl_filled_##T, (T), "simdgroup_matrix_8x8_init_filled.v64" E "." E)           \
  MSL_AIR_GROUP(V, msl_load_##T, (const T*, long, long2, bool), "simdgroup_matrix_8x8_load.v64" E ".p0" E) \
  MSL_AIR_GROUP(void, msl_store_##T, (V, T*, long, long2, bool), "simdgroup_matrix_8x8_store.v64" E ".p0" E) \
  MSL_INLINE V diagonal(T x) { return msl_diagonal_##T(x); }                                      \
  MSL_INLINE V filled(T x) { return msl_filled_##T(x); }                                          \
  MSL_INLINE V load(const T* p, long row, long2 o, bool t) { return msl_load_##T(p, row, o, t); } \
  MSL_INLINE void store(V m, T* p, long row, long2 o, bool t) { msl_store_##T(m, p, row, o, t); }
MSL_MATRIX_TYPE(float, f64f, "f32")
MSL_MATRIX_TYPE(half, f64h, "f16")
MSL_MATRIX_TYPE(bfloat, f64b, "bf16")
// Matrices of any types multiply; the result has the type of what it is added to.
#define MSL_MULTIPLY(D, A, B, E, EA, EB)                                                          \
  MSL_AIR_GROUP(D, msl_multiply_##D##A##B, (A, B, D), "simdgroup_matrix_8x8_multiply_accumulate.v64" E ".v64" EA ".v64" EB ".v64" E) \
  MSL_INLINE void multiply(D& d, A a, B b, D c) { d = msl_multiply_##D##A##B(a, b, c); }
#define MSL_MULTIPLY_BY(D, A, E, EA) \
  MSL_MULTIPLY(D, A, f64f, E, EA, "f32") MSL_MULTIPLY(D, A, f64h, E, EA, "f16") MSL_MULTIPLY(D, A, f64b, E, EA, "bf16")
#define MSL_MULTIPLY_TO(D, E) \
  MSL_MULTIPLY_BY(D, f64f, E, "f32") MSL_MULTIPLY_BY(D, f64h, E, "f16") MSL_MULTIPLY_BY(D, f64b, E, "bf16")
MSL_MULTIPLY_TO(f64f, "f32")
MSL_MULTIPLY_TO(f64h, "f16")
MSL_MULTIPLY_TO(f64b, "bf16")
template <typename T>
using elements = T __attribute__((ext_vector_type(64)));

// Ours, of factors that a kernel takes apart itself (docs/kernels.md): vectors here, since structures would be
// returned through memory.
typedef uint uint4v __attribute__((ext_vector_type(4)));
typedef float float4v __attribute__((ext_vector_type(4)));
extern "C" bool msl_parts_known() __asm__("air.simdgroup_parts_known") __attribute__((nothrow));
extern "C" uint4v msl_parts_of(float, float) __asm__("air.simdgroup_parts_of.f32") __attribute__((nothrow));
MSL_AIR_GROUP(float4v, msl_parts_multiply,
              (uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint, uint),
              "simdgroup_parts_multiply.f32")
} // namespace msl

namespace metal {
template <typename T, int Cols, int Rows = Cols>
struct simdgroup_matrix {
  static_assert(Cols == 8 && Rows == 8, "a simdgroup_matrix is 8 by 8");
  typedef T value_type;
  ::msl::elements<T> all;
  simdgroup_matrix() = default;
  MSL_INLINE explicit simdgroup_matrix(T diagonal) : all(::msl::diagonal(diagonal)) {}
  MSL_INLINE vec<T, 2>& thread_elements() { return *reinterpret_cast<vec<T, 2>*>(&all); }
  MSL_INLINE const vec<T, 2>& thread_elements() const { return *reinterpret_cast<const vec<T, 2>*>(&all); }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <typename T, int C, int R = C>
MSL_INLINE simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T x) {
  simdgroup_matrix<T, C, R> m;
  m.all = ::msl::filled(x);
  return m;
}
template <typename T, int C, int R, typename U>
MSL_INLINE void simdgroup_load(
    simdgroup_matrix<T, C, R>& m, const U* p, ulong row = C, ulong2 origin = ulong2(0), bool transpose = false) {
  static_assert(__is_same(remove_cv_t<U>, T), "a simdgroup_matrix is loaded from memory of its own type");
  m.all = ::msl::load(const_cast<const T*>(p), long(row), ::msl::long2{long(origin.x), long(origin.y)}, transpose);
}
template <typename T, int C, int R, typename U>
MSL_INLINE void simdgroup_store(
    simdgroup_matrix<T, C, R> m, U* p, ulong row = C, ulong2 origin = ulong2(0), bool transpose = false) {
  static_assert(__is_same(remove_cv_t<U>, T), "a simdgroup_matrix is stored to memory of its own type");
  ::msl::store(m.all, const_cast<T*>(p), long(row), ::msl::long2{long(origin.x), long(origin.y)}, transpose);
}
template <typename D, typename A, typename B, typename S, int C, int R>
MSL_INLINE void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, C, R>& d, simdgroup_matrix<A, C, R> a, simdgroup_matrix<B, C, R> b, simdgroup_matrix<S, C, R> c) {
  ::msl::multiply(d.all, a.all, b.all, c.all);
}
template <typename D, typename A, typename B, int C, int R>
MSL_INLINE void simdgroup_multiply(simdgroup_matrix<D, C, R>& d, simdgroup_matrix<A, C, R> a, simdgroup_matrix<B, C, R> b) {
  ::msl::elements<D> zero = 0;
  ::msl::multiply(d.all, a.all, b.all, zero);
}
template <typename T, int C, int R>
MSL_INLINE simdgroup_matrix<T, C, R> operator*(simdgroup_matrix<T, C, R> a, simdgroup_matrix<T, C, R> b) {
  simdgroup_matrix<T, C, R> d;
  simdgroup_multiply(d, a, b);
  return d;
}

// The matrices of one thread, in columns.
template <typename T, int C, int R>
struct matrix {
  typedef T value_type;
  vec<T, R> column[C];
  matrix() = default;
  MSL_INLINE explicit matrix(T diagonal) {
    for (int i = 0; i < C; i++) {
      column[i] = vec<T, R>(T(0));
      if (i < R) column[i][i] = diagonal;
    }
  }
  template <typename U>
  MSL_INLINE explicit matrix(const matrix<U, C, R>& m) {
    for (int i = 0; i < C; i++) column[i] = vec<T, R>(m.column[i]);
  }
  template <typename... V, typename = enable_if_t<sizeof...(V) + 1 == C && C != 1>>
  MSL_MEMBER matrix(vec<T, R> first, V... rest) : column{first, vec<T, R>(rest)...} {}
  MSL_INLINE vec<T, R>& operator[](int i) { return column[i]; }
  MSL_INLINE const vec<T, R>& operator[](int i) const { return column[i]; }
};
template <typename T, int C, int R>
MSL_INLINE vec<T, R> operator*(const matrix<T, C, R>& m, vec<T, C> v) {
  vec<T, R> r = m[0] * T(v.v[0]);
  for (int i = 1; i < C; i++) r += m[i] * T(v.v[i]);
  return r;
}
template <typename T, int C, int R>
MSL_INLINE vec<T, C> operator*(vec<T, R> v, const matrix<T, C, R>& m) {
  vec<T, C> r{};
  for (int i = 0; i < C; i++) r.v[i] = dot(v, m[i]);
  return r;
}
template <typename T, int K, int C, int R>
MSL_INLINE matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
  matrix<T, C, R> r;
  for (int i = 0; i < C; i++) r[i] = a * b[i];
  return r;
}
#define MSL_MATRIX_SCALAR(OP)                                             \
  template <typename T, int C, int R, typename S, typename = ::msl::if_scalar<S>> \
  MSL_INLINE matrix<T, C, R> operator OP(matrix<T, C, R> m, S s) {        \
    for (int i = 0; i < C; i++) m[i] OP##= T(s);                          \
    return m;                                                             \
  }                                                                       \
  template <typename T, int C, int R, typename S, typename = ::msl::if_scalar<S>> \
  MSL_INLINE matrix<T, C, R>& operator OP##=(matrix<T, C, R>& m, S s) {   \
    return m = m OP s;                                                    \
  }
MSL_MATRIX_SCALAR(*)
MSL_MATRIX_SCALAR(/)
template <typename T, int C, int R, typename S, typename = ::msl::if_scalar<S>>
MSL_INLINE matrix<T, C, R> operator*(S s, matrix<T, C, R> m) {
  return m * s;
}
#define MSL_MATRIX_SUM(OP)                                                \
  template <typename T, int C, int R>                                     \
  MSL_INLINE matrix<T, C, R> operator OP(matrix<T, C, R> a, const matrix<T, C, R>& b) { \
    for (int i = 0; i < C; i++) a[i] OP##= b[i];                          \
    return a;                                                             \
  }                                                                       \
  template <typename T, int C, int R>                                     \
  MSL_INLINE matrix<T, C, R>& operator OP##=(matrix<T, C, R>& a, const matrix<T, C, R>& b) { \
    return a = a OP b;                                                    \
  }
MSL_MATRIX_SUM(+)
MSL_MATRIX_SUM(-)
template <typename T, int C, int R>
MSL_INLINE matrix<T, R, C> transpose(const matrix<T, C, R>& m) {
  matrix<T, R, C> r;
  for (int i = 0; i < C; i++)
    for (int j = 0; j < R; j++) r[j][i] = m[i].v[j];
  return r;
}
} // namespace metal
#define MSL_MATRICES(T)                                                                                      \
  typedef metal::matrix<T, 2, 2> T##2x2; typedef metal::matrix<T, 2, 3> T##2x3; typedef metal::matrix<T, 2, 4> T##2x4; \
  typedef metal::matrix<T, 3, 2> T##3x2; typedef metal::matrix<T, 3, 3> T##3x3; typedef metal::matrix<T, 3, 4> T##3x4; \
  typedef metal::matrix<T, 4, 2> T##4x2; typedef metal::matrix<T, 4, 3> T##4x3; typedef metal::matrix<T, 4, 4> T##4x4;
MSL_MATRICES(float)
MSL_MATRICES(half)

// Sources that define these themselves, for Apple's compiler, do it unless __MLXC__ is defined.
MSL_INLINE bool parts_known() { return ::msl::msl_parts_known(); }
MSL_INLINE uint3 parts_of(float a, float b) {
  const ::msl::uint4v p = ::msl::msl_parts_of(a, b);
  return uint3(p[0], p[1], p[2]);
}
MSL_INLINE float4 multiply_parts(const uint4* a, const uint2* b) {
  const ::msl::float4v p = ::msl::msl_parts_multiply(
      a[0].x, a[1].x, a[2].x, a[0].y, a[1].y, a[2].y, b[0].x, b[1].x, b[2].x,
      a[0].z, a[1].z, a[2].z, a[0].w, a[1].w, a[2].w, b[0].y, b[1].y, b[2].y);
  return float4(p[0], p[1], p[2], p[3]);
}
