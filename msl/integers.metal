// Arithmetic, comparisons and bits of two arrays of integers under strides, what a condition selects of them, and numbers of
// one type as another: one element a thread.

#include "common.h"

struct IntegerAdd {
  uint operator()(uint a, uint b) const { return a + b; }
  int operator()(int a, int b) const { return as_type<int>(as_type<uint>(a) + as_type<uint>(b)); }
};

struct IntegerSubtract {
  uint operator()(uint a, uint b) const { return a - b; }
  int operator()(int a, int b) const { return as_type<int>(as_type<uint>(a) - as_type<uint>(b)); }
};

struct IntegerMultiply {
  uint operator()(uint a, uint b) const { return a * b; }
  int operator()(int a, int b) const { return as_type<int>(as_type<uint>(a) * as_type<uint>(b)); }
};

struct IntegerMaximum {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

struct IntegerMinimum {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};

struct BitwiseAnd {
  template <typename T>
  T operator()(T a, T b) const {
    return a & b;
  }
};

struct BitwiseOr {
  template <typename T>
  T operator()(T a, T b) const {
    return a | b;
  }
};

struct BitwiseXor {
  template <typename T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

// Shifts are by the low five bits.
struct LeftShift {
  template <typename T>
  T operator()(T a, T b) const {
    return as_type<T>(as_type<uint>(a) << (as_type<uint>(b) & 31u));
  }
};

struct RightShift {
  template <typename T>
  T operator()(T a, T b) const {
    return a >> T(as_type<uint>(b) & 31u);
  }
};

struct Less {
  template <typename T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};

struct GreaterEqual {
  template <typename T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};

struct Equal {
  template <typename T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};

struct NotEqual {
  template <typename T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};

// @kernel   g2_{op:Add|Subtract|Multiply|Maximum|Minimum}{T:int32=i32|uint32=u32}
// @mlx
// @arg 0 a          device {T}[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device {T}[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
// @if       op == Add
// @term     c[i,j] = {T}(a[i,j] + b[i,j])
// @end
// @if       op == Subtract
// @term     c[i,j] = {T}(a[i,j] - b[i,j])
// @end
// @if       op == Multiply
// @term     c[i,j] = {T}(a[i,j] * b[i,j])
// @end
// @if       op == Maximum
// @term     c[i,j] = {T}(max(a[i,j], b[i,j]))
// @end
// @if       op == Minimum
// @term     c[i,j] = {T}(min(a[i,j], b[i,j]))
// @end
//
// @kernel   g2_{op:BitwiseAnd|BitwiseOr|BitwiseXor|LeftShift|RightShift}{T:int32=i32|uint32=u32}
// @mlx
// @effects  terms have no bits; testdata/kernels/integers.txtar has NumPy's results
// @arg 0 a          device {T}[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device {T}[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @inplace  c a
// @inplace  c b
//
// @kernel   g2_{op:Less|GreaterEqual|Equal|NotEqual}{T:uint32=u32}
// @mlx
// @arg 0 a          device {T}[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device bool[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @if       op == Less
// @term     c[i,j] = bool(max(0, b[i,j] - a[i,j]))
// @end
// @if       op == GreaterEqual
// @term     c[i,j] = bool(max(0, a[i,j] - b[i,j] + 1))
// @end
// @if       op == Equal
// @term     c[i,j] = bool(max(0, 1 - max(a[i,j] - b[i,j], b[i,j] - a[i,j])))
// @end
// @if       op == NotEqual
// @term     c[i,j] = bool(a[i,j] - b[i,j])
// @end
//
// Of i32 the other one stands in elementwise.metal.
//
// @kernel   g2_{op:Less|Equal|NotEqual}{T:int32=i32}
// @mlx
// @arg 0 a          device {T}[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device bool[d0, d1] write
// @arg 3 a_strides  constant i64[2]
// @arg 4 b_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @if       op == Less
// @term     c[i,j] = bool(max(0, b[i,j] - a[i,j]))
// @end
// @if       op == Equal
// @term     c[i,j] = bool(max(0, 1 - max(a[i,j] - b[i,j], b[i,j] - a[i,j])))
// @end
// @if       op == NotEqual
// @term     c[i,j] = bool(a[i,j] - b[i,j])
// @end
template <typename T, typename R, typename Op>
[[kernel]] void integers_g2(
    const device T* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    device R* c [[buffer(2)]],
    constant long a_strides[2] [[buffer(3)]],
    constant long b_strides[2] [[buffer(4)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = at.y;
  const long j = at.x;
  c[i * long(grid.x) + j] = Op()(a[i * a_strides[0] + j * a_strides[1]], b[i * b_strides[0] + j * b_strides[1]]);
}

// @kernel   g2_Select{T:int32=i32|uint32=u32}
// @mlx
// @effects  terms select floats; testdata/kernels/integers.txtar has NumPy's results
// @arg 0 a          device bool[d0, d1 : a_strides[0], a_strides[1]] read
// @arg 1 b          device {T}[d0, d1 : b_strides[0], b_strides[1]] read
// @arg 2 c          device {T}[d0, d1 : c_strides[0], c_strides[1]] read
// @arg 3 d          device {T}[d0, d1] write
// @arg 4 a_strides  constant i64[2]
// @arg 5 b_strides  constant i64[2]
// @arg 6 c_strides  constant i64[2]
// @threads  d1, d0, 1
// @group    _, _, _
// @inplace  d b
// @inplace  d c
template <typename T>
[[kernel]] void select_integers_g2(
    const device bool* a [[buffer(0)]],
    const device T* b [[buffer(1)]],
    const device T* c [[buffer(2)]],
    device T* d [[buffer(3)]],
    constant long a_strides[2] [[buffer(4)]],
    constant long b_strides[2] [[buffer(5)]],
    constant long c_strides[2] [[buffer(6)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  const long i = at.y;
  const long j = at.x;
  const T first = b[i * b_strides[0] + j * b_strides[1]];
  const T second = c[i * c_strides[0] + j * c_strides[1]];
  d[i * long(grid.x) + j] = a[i * a_strides[0] + j * a_strides[1]] ? first : second;
}

// @kernel   v_copy{T:int32float32=i32|uint32float32=u32}
// @mlx
// @arg 0 src   device {T}[n] read
// @arg 1 dst   device f32[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  dst src
// @term     dst[i] = round(f32, f32(src[i]))
template <typename T>
[[kernel]] void float_of(
    const device T* src [[buffer(0)]], device float* dst [[buffer(1)]], constant uint& size [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  dst[i] = float(src[i]);
}

// What is behind the point is left out. Numbers beyond the type become its least or greatest one, and NaN becomes 0.
//
// @kernel   v_copy{T:float32int32=i32|float32uint32=u32}
// @mlx
// @effects  terms do not round to integers; testdata/kernels/integers.txtar has NumPy's results
// @arg 0 src   device f32[n] read
// @arg 1 dst   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  dst src
inline int integer_of(float v, int) {
  return is_nan(v) ? 0 : v >= 2147483648.0f ? 2147483647 : v <= -2147483648.0f ? -2147483647 - 1 : int(v);
}
inline uint integer_of(float v, uint) { return is_nan(v) || v <= 0.0f ? 0u : v >= 4294967296.0f ? 4294967295u : uint(v); }
template <typename T>
[[kernel]] void integers_of(
    const device float* src [[buffer(0)]], device T* dst [[buffer(1)]], constant uint& size [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  dst[i] = integer_of(src[i], T(0));
}

// Rows of a table, picked by indices; one below zero counts from the end. An index outside the table takes its first or last
// row. A thread takes an element, or two of a long row of 16 bits.
//
// @kernel   gather_front{T:float32=f32|uint32=u32}_{I:int32=i32|uint32=u32}_int_1
// @mlx      unlisted
// @arg 0 src      device {T}[size, stride] read
// @arg 1 indices  device {I}[n] read
// @arg 2 out      device {T}[n, stride] write
// @arg 3 stride   constant i64
// @arg 4 size     constant i32
// @threads  stride, n, 1
// @group    _, _, _
// @require  size >= 1
// @term     out[t,k] = src[max(0, min(size - 1, indices[t] + size * max(0, min(1, -indices[t])))),k]
//
// @kernel   gather_front{T:float16=f16|bfloat16=bf16}_{I:int32=i32|uint32=u32}_int_{each:1|2}
// @mlx      unlisted
// @arg 0 src      device {T}[size, stride] read
// @arg 1 indices  device {I}[n] read
// @arg 2 out      device {T}[n, stride] write
// @arg 3 stride   constant i64
// @arg 4 size     constant i32
// @threads  ceil(stride/each), n, 1
// @group    _, _, _
// @require  size >= 1
// @term     out[t,k] = src[max(0, min(size - 1, indices[t] + size * max(0, min(1, -indices[t])))),k]
template <typename T, typename I, int each>
[[kernel]] void gather_front(
    const device T* src [[buffer(0)]],
    const device I* indices [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant long& stride [[buffer(3)]],
    constant int& size [[buffer(4)]],
    uint2 at [[thread_position_in_grid]]) {
  long row = indices[at.y];
  row = clamp(row < 0 ? row + size : row, 0l, long(size) - 1);
  const long end = min(long(at.x + 1) * each, stride);
  for (long k = long(at.x) * each; k < end; k++) {
    out[long(at.y) * stride + k] = src[row * stride + k];
  }
}

#define INSTANTIATE_INTEGERS(op, type, T, R, Op) \
  template [[host_name("g2_" #op #type)]] [[kernel]] decltype(integers_g2<T, R, Op>) integers_g2<T, R, Op>;
#define INSTANTIATE_INTEGER(type, T)                             \
  INSTANTIATE_INTEGERS(Add, type, T, T, IntegerAdd)              \
  INSTANTIATE_INTEGERS(Subtract, type, T, T, IntegerSubtract)    \
  INSTANTIATE_INTEGERS(Multiply, type, T, T, IntegerMultiply)    \
  INSTANTIATE_INTEGERS(Maximum, type, T, T, IntegerMaximum)      \
  INSTANTIATE_INTEGERS(Minimum, type, T, T, IntegerMinimum)      \
  INSTANTIATE_INTEGERS(BitwiseAnd, type, T, T, BitwiseAnd)       \
  INSTANTIATE_INTEGERS(BitwiseOr, type, T, T, BitwiseOr)         \
  INSTANTIATE_INTEGERS(BitwiseXor, type, T, T, BitwiseXor)       \
  INSTANTIATE_INTEGERS(LeftShift, type, T, T, LeftShift)         \
  INSTANTIATE_INTEGERS(RightShift, type, T, T, RightShift)       \
  INSTANTIATE_INTEGERS(Less, type, T, bool, Less)                \
  INSTANTIATE_INTEGERS(Equal, type, T, bool, Equal)              \
  INSTANTIATE_INTEGERS(NotEqual, type, T, bool, NotEqual)        \
  template [[host_name("g2_Select" #type)]] [[kernel]] decltype(select_integers_g2<T>) select_integers_g2<T>; \
  template [[host_name("v_copy" #type "float32")]] [[kernel]] decltype(float_of<T>) float_of<T>;              \
  template [[host_name("v_copyfloat32" #type)]] [[kernel]] decltype(integers_of<T>) integers_of<T>;

INSTANTIATE_INTEGER(int32, int)
INSTANTIATE_INTEGER(uint32, uint)
INSTANTIATE_INTEGERS(GreaterEqual, uint32, uint, bool, GreaterEqual)

#define INSTANTIATE_GATHER(type, T, index, I, each)                                 \
  template [[host_name("gather_front" #type "_" #index "_int_" #each)]]                 \
  [[kernel]] decltype(gather_front<T, I, each>) gather_front<T, I, each>;
#define INSTANTIATE_GATHERS(type, T, each)        \
  INSTANTIATE_GATHER(type, T, int32, int, each)    \
  INSTANTIATE_GATHER(type, T, uint32, uint, each)

INSTANTIATE_GATHERS(float32, float, 1)
INSTANTIATE_GATHERS(uint32, uint, 1)
INSTANTIATE_GATHERS(float16, half, 1)
INSTANTIATE_GATHERS(float16, half, 2)
INSTANTIATE_GATHERS(bfloat16, bfloat, 1)
INSTANTIATE_GATHERS(bfloat16, bfloat, 2)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness g2_{Add|Subtract|Multiply|Maximum|Minimum|Bitwise*|LeftShift|RightShift}* ; a_strides=576,1 b_strides=0,1 ; threads 576 5 1 / 256 1 1 ; ok
// @witness g2_{Add|Subtract|Multiply|Maximum|Minimum|Bitwise*|LeftShift|RightShift}* ; a_strides=576,1 b_strides=0,1 inplace=c,a ; threads 576 5 1 / 256 1 1 ; ok
// @witness g2_{Add|Subtract|Multiply|Maximum|Minimum|Bitwise*|LeftShift|RightShift}* ; a_strides=0,1 b_strides=576,1 inplace=c,b ; threads 576 5 1 / 256 1 1 ; ok
// @witness g2_{Add|Subtract|Multiply|Maximum|Minimum|Bitwise*|LeftShift|RightShift}* ; a_strides=1,5 b_strides=0,1 inplace=c,a ; threads 576 5 1 / 256 1 1 ; refused
// @witness g2_{Add|Subtract|Multiply|Maximum|Minimum|Bitwise*|LeftShift|RightShift}* ; a_strides=576,1 b_strides=0,1 ; threads 576 5 2 / 256 1 1 ; refused
// @witness g2_{Less|GreaterEqual|Equal|NotEqual}* ; a_strides=1,0 b_strides=0,1 ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_{Less|GreaterEqual|Equal|NotEqual}* ; a_strides=1,0 b_strides=0,1 ; threads 40 33 2 / 32 32 1 ; refused
// @witness g2_Select* ; a_strides=40,1 b_strides=40,1 c_strides=0,0 ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_Select* ; a_strides=0,1 b_strides=40,1 c_strides=0,0 inplace=d,b ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_Select* ; a_strides=0,1 b_strides=0,0 c_strides=40,1 inplace=d,c ; threads 40 33 1 / 32 32 1 ; ok
// @witness g2_Select* ; a_strides=40,1 b_strides=40,1 c_strides=0,0 ; threads 40 33 2 / 32 32 1 ; refused
// @witness v_copy* ;  ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_copy* ; inplace=dst,src ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_copy* ;  ; threads 3072 2 1 / 1024 1 1 ; refused
// @witness v_copy* ;  ; threads 3072 1 2 / 1024 1 1 ; refused
// @witness gather_front*_1 ; stride=575 size=100 ; threads 575 7 1 / 256 1 1 ; ok
// @witness gather_front*_2 ; stride=575 size=100 ; threads 288 7 1 / 256 1 1 ; ok
// @witness gather_front*_2 ; stride=575 size=100 ; threads 287 7 1 / 256 1 1 ; refused
// @witness gather_front* ; stride=576 size=100 ; threads 575 7 1 / 256 1 1 ; refused
// @witness gather_front*_1 ; stride=575 size=100 ; threads 575 7 2 / 256 1 1 ; refused
// @witness gather_front*_2 ; stride=575 size=100 ; threads 288 7 2 / 256 1 1 ; refused
// @witness gather_front*_1 ; stride=575 size={0|-1} ; threads 575 7 1 / 256 1 1 ; refused
// @witness gather_front*_2 ; stride=575 size={0|-1} ; threads 288 7 1 / 256 1 1 ; refused
// @witness gather_front* ; stride=1 size=1 ; threads 1 7 1 / 1 1 1 ; ok

// Corruptions of these declarations that are no lies.
//
// @equivalent g2_Bitwise*#0 ; shape: c[1] exchanged with the one before ; all of c is written either way, and no term says which elements are of a row
// @equivalent g2_Select* ; shape: d[1] exchanged with the one before ; all of d is written either way, and no term says which elements are of a row
