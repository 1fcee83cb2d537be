// Products with matrices of affine codes in the forms that quantized.metal has none of: with a matrix that is not
// transposed, with batches of matrices, with matrices that indices pick from a stack, of a few long rows in parts, and of
// short or ragged ones. Codes are taken one by one, and each result is one sum.
//
// Operations of MLX take them ([record.MLX]); those of a session take the tuned kernels of quantized.metal, which fusion
// knows.
//
// Names and arguments are MLX's. The matrix of qmm_n and qvm is [K, N], with groups along N, and that of qmm_t and qmv
// is [N, K], with groups along K. qmm is for many rows of x, and its weights are rounded to the type first.

#include "codes.h"

// Coded is a matrix of affine codes.
template <typename T>
struct Coded {
  const device uchar* w;
  const device T* scales;
  const device T* biases;
};

// weight is element i of a matrix in the order of its rows.
template <int g, int b, typename T>
inline float weight(const thread Coded<T>& m, size_t i) {
  return float(m.scales[i / g]) * float(code<b>(m.w, i)) + float(m.biases[i / g]);
}

// Vectors are M rows of x of K elements each, `pitch` elements apart, from element `from` on. If they are not there, their
// products are NaN, and nothing is read. Rows of a transposed matrix have the same pitch.
template <typename T>
struct Vectors {
  const device T* x;
  int M;
  int K;
  int pitch;
  bool is_there;
  int from = 0;
};

// multiply_column makes column n of `rows` rows of x·w, from row m0 on, each as one sum in the order of k.
template <int g, int b, bool transposed, bool rounded, int rows, typename T, typename Y>
inline void multiply_column(const thread Coded<T>& m, const thread Vectors<T>& v, device Y* y, int N, int m0, int n) {
  if (n >= N) {
    return;
  }
  float sum[rows];
#pragma unroll
  for (int r = 0; r < rows; r++) {
    sum[r] = 0;
  }
  for (int k = 0; v.is_there && k < v.K; k++) {
    float e = weight<g, b>(m, transposed ? size_t(n) * v.pitch + v.from + k : size_t(k) * N + n);
    e = rounded ? float(T(e)) : e;
#pragma unroll
    for (int r = 0; r < rows; r++) {
      sum[r] += float(v.x[size_t(min(m0 + r, v.M - 1)) * v.pitch + v.from + k]) * e;
    }
  }
#pragma unroll
  for (int r = 0; r < rows; r++) {
    if (m0 + r < v.M) {
      y[size_t(m0 + r) * N + n] = stored(Y(v.is_there ? sum[r] : NAN));
    }
  }
}

// A threadgroup of two simdgroups makes 64 results of a row, a lane each.
template <int g, int b, typename T>
inline void multiply_row(const thread Coded<T>& m, const thread Vectors<T>& v, device T* y, int N, uint3 group, uint simdgroup, uint lane) {
  multiply_column<g, b, false, false, 1>(m, v, y, N, int(group.x), int(64 * group.y + 32 * simdgroup + lane));
}

// A threadgroup of four simdgroups makes 32 × 32 results, a lane those of 8 rows in one column.
template <int g, int b, bool transposed, typename T, typename Y>
inline void multiply_tile(const thread Coded<T>& m, const thread Vectors<T>& v, device Y* y, int N, uint3 group, uint simdgroup, uint lane) {
  multiply_column<g, b, transposed, true, 8>(m, v, y, N, int(32 * group.y + 8 * simdgroup), int(32 * group.x + lane));
}

// A threadgroup of two simdgroups makes 8 results of some rows with a transposed matrix. Lanes of a simdgroup share each
// sum: one takes every 32nd element.
template <int g, int b, typename T>
inline void multiply_lanes(const thread Coded<T>& m, const thread Vectors<T>& v, device T* y, int N, int m0, int rows, uint3 group, uint simdgroup, uint lane) {
  const int first = int(8 * group.y + 4 * simdgroup);
  for (int n = first; n < min(N, first + 4); n++) {
    for (int r = m0; r < m0 + rows; r++) {
      float sum = 0;
      for (int k = int(lane); k < v.K; k += 32) {
        sum += float(v.x[size_t(r) * v.pitch + k]) * weight<g, b>(m, size_t(n) * v.K + k);
      }
      sum = simd_sum(sum);
      if (lane == 0) {
        y[size_t(r) * N + n] = stored(T(sum));
      }
    }
  }
}

// step returns the offset, in elements, of number i of a batch, and count how many it has.
inline long step(uint i, constant int* shape, constant long* strides, int ndims) {
  long at = 0;
  for (int d = ndims - 1; d >= 0; d--) {
    at += long(i % uint(shape[d])) * strides[d];
    i /= uint(shape[d]);
  }
  return at;
}
inline uint count(constant int* shape, int ndims) {
  uint n = 1;
  for (int d = 0; d < ndims; d++) {
    n *= uint(shape[d]);
  }
  return n;
}

// The arguments of a matrix, of batches of x and of matrices, and of indices that pick them; and where a thread is.
#define CODED const device uint *w [[buffer(0)]], const device T *scales [[buffer(1)]], const device T *biases [[buffer(2)]]
#define BATCHES(a, b, c, d, e, f, g, h)       \
  constant int& x_batch_ndims [[buffer(a)]],  \
  constant int* x_shape [[buffer(b)]],        \
  constant long* x_strides [[buffer(c)]],     \
  constant int& w_batch_ndims [[buffer(d)]],  \
  constant int* w_shape [[buffer(e)]],        \
  constant long* w_strides [[buffer(f)]],     \
  constant long* s_strides [[buffer(g)]],     \
  constant long* b_strides [[buffer(h)]]
#define INDICES const device uint *lhs_indices [[buffer(4)]], const device uint *rhs_indices [[buffer(5)]]
#define INDEXED(a, b, c, d)                   \
  constant int& batch_ndims [[buffer(a)]],    \
  constant int* batch_shape [[buffer(b)]],    \
  constant long* lhs_strides [[buffer(c)]],   \
  constant long* rhs_strides [[buffer(d)]]
#define HERE                                          \
  uint3 group [[threadgroup_position_in_grid]],       \
  uint simdgroup [[simdgroup_index_in_threadgroup]],  \
  uint lane [[thread_index_in_simdgroup]]

// MATRIX is number i of a stack of matrices, and X that of x. SIDE is the index of product group.z on a side.
#define MATRIX(i)                                                         \
  {(const device uchar*)(w + step(i, w_shape, w_strides, w_batch_ndims)), \
   scales + step(i, w_shape, s_strides, w_batch_ndims),                   \
   biases + step(i, w_shape, b_strides, w_batch_ndims)}
#define X(i) (x + step(i, x_shape, x_strides, x_batch_ndims))
#define SIDE(side) side##_indices[step(group.z, batch_shape, side##_strides, batch_ndims)]
#define THERE(l, r) (l < count(x_shape, x_batch_ndims) && r < count(w_shape, w_batch_ndims))

// What declarations share. A matrix [R, C]; matrices of a stack, which may lie apart; the arguments that say how batches
// lie; sizes; and the sums. Their classes: ordered, in the order of k by one thread; lanes, by the lanes of a simdgroup.
//
// @lines flat(R; C)
// @arg   w              device u32 as u{b}[{R}, {C}] read
// @arg   scales         device {T}[{R}, {C}/g] read
// @arg   biases         device {T}[{R}, {C}/g] read
// @end
// @lines stack(R; C)
// @arg   w              device u32 as u{b}[w_shape[0], {R}, {C} : w_strides[0]*32/b, {C}, 1] read
// @arg   scales         device {T}[w_shape[0], {R}, {C}/g : s_strides[0], {C}/g, 1] read
// @arg   biases         device {T}[w_shape[0], {R}, {C}/g : b_strides[0], {C}/g, 1] read
// @end
// @lines unbatched()
// @arg   x_batch_ndims  constant i32 unused
// @arg   x_shape        constant i32 unused
// @arg   x_strides      constant i64 unused
// @arg   w_batch_ndims  constant i32 unused
// @arg   w_shape        constant i32 unused
// @arg   w_strides      constant i64 unused
// @arg   s_strides      constant i64 unused
// @arg   b_strides      constant i64 unused
// @end
// @lines batched()
// @arg   x_batch_ndims  constant i32
// @arg   x_shape        constant i32[4]
// @arg   x_strides      constant i64[4]
// @arg   w_batch_ndims  constant i32
// @arg   w_shape        constant i32[4]
// @arg   w_strides      constant i64[4]
// @arg   s_strides      constant i64[4]
// @arg   b_strides      constant i64[4]
// @end
// @lines one_batch()
// @require x_batch_ndims == 1 && w_batch_ndims == 1 && w_shape[0] == x_shape[0]
// @require w_strides[0]*32 % b == 0
// @end
// @lines vector_sizes()
// @arg   in_vec_size    constant i32
// @arg   out_vec_size   constant i32
// @end
// @lines matrix_sizes()
// @arg   K              constant i32
// @arg   N              constant i32
// @arg   M              constant i32
// @end
// @text  weight(r; c) = (scales[{r},{c}/g] * f32(w[{r},{c}]) + biases[{r},{c}/g])
// @text  qvm(K; x; r) = sum[ordered](k < {K}, {x} * {weight({r}; n)})
// @text  qmm_n(K; x; r) = sum[ordered](k < {K}, {x} * round({T}, {weight({r}; n)}))
// @text  column(K; x; r) = sum[ordered](k < {K}, {x} * {weight({r}; k)})
// @text  qmm_t(K; x; r) = sum[ordered](k < {K}, {x} * round({T}, {weight({r}; k)}))
// @text  qmv(K; x; r) = sum[lanes](k < {K}, {x} * {weight({r}; k)})

// Few rows with one matrix.
//
// @kernel  affine_qvm_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_0
// @mlx     unlisted
// @use     flat(in_vec_size; out_vec_size)
// @arg     x              device {T}[M, in_vec_size] read
// @arg     y              device {T}[M, out_vec_size] write
// @use     vector_sizes()
// @use     unbatched()
// @groups  M, ceil(out_vec_size/64), 1
// @group   32, 2, 1
// @require out_vec_size % g == 0
// @term    y[m,n] = round({T}, {qvm(in_vec_size; x[m,k]; k)})
template <typename T, int g, int b>
[[kernel]] void qvm(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    BATCHES(7, 8, 9, 10, 11, 12, 13, 14),
    HERE) {
  const Coded<T> m = {(const device uchar*)w, scales, biases};
  const Vectors<T> v = {x, int(group.x) + 1, in_vec_size, in_vec_size, true};
  multiply_row<g, b>(m, v, y, out_vec_size, group, simdgroup, lane);
}

// Few rows with a matrix of their own for each batch.
//
// @lines   of_batch(K; N; width; simdgroups)
// @arg     x              device {T}[x_shape[0], x_shape[1], {K} : x_strides[0], {K}, 1] read
// @arg     y              device {T}[x_shape[0], x_shape[1], {N}] write
// @use     vector_sizes()
// @use     batched()
// @groups  x_shape[1], ceil({N}/{width}), x_shape[0]
// @group   32, {simdgroups}, 1
// @use     one_batch()
// @end
//
// @kernel  affine_qvm_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_1
// @mlx     unlisted
// @use     stack(in_vec_size; out_vec_size)
// @use     of_batch(in_vec_size; out_vec_size; 64; 2)
// @require out_vec_size % g == 0
// @term    y[i,m,n] = round({T}, {qvm(in_vec_size; x[i,m,k]; i,k)})
//
// @kernel  affine_qmv_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_1_pr_0_hgs_0_r_4
// @mlx     unlisted
// @use     stack(out_vec_size; in_vec_size)
// @use     of_batch(in_vec_size; out_vec_size; 8; 2)
// @require in_vec_size % g == 0
// @term    y[i,m,n] = round({T}, {qmv(in_vec_size; x[i,m,k]; i,n)})
//
// MLX's qmv_fast takes whole steps of K, and where pr is 0 whole blocks of N.
//
// @kernel  affine_qmv_fast_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_1_pr_{pr:0|1}_hgs_0_r_4
// @mlx     unlisted
// @use     stack(out_vec_size; in_vec_size)
// @use     of_batch(in_vec_size; out_vec_size; 8; 2)
// @require in_vec_size % (512 - b/6*256) == 0
// @require pr == 1 || out_vec_size % 8 == 0
// @term    y[i,m,n] = round({T}, {qmv(in_vec_size; x[i,m,k]; i,n)})
template <typename T, int g, int b, bool transposed>
[[kernel]] void qvm_batch(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    BATCHES(7, 8, 9, 10, 11, 12, 13, 14),
    HERE) {
  const int M = x_shape[x_batch_ndims];
  const Coded<T> m = MATRIX(group.z);
  const Vectors<T> v = {X(group.z), M, in_vec_size, in_vec_size, true};
  y += size_t(group.z) * M * out_vec_size;
  if (transposed) {
    multiply_lanes<g, b>(m, v, y, out_vec_size, int(group.x), 1, group, simdgroup, lane);
  } else {
    multiply_row<g, b>(m, v, y, out_vec_size, group, simdgroup, lane);
  }
}

// Few rows with one matrix, of whole steps of K and any N.
//
// @kernel  affine_qmv_fast_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_0_pr_1_hgs_0_r_4
// @mlx     unlisted
// @use     flat(out_vec_size; in_vec_size)
// @arg     x              device {T}[M, in_vec_size] read
// @arg     y              device {T}[M, out_vec_size] write
// @use     vector_sizes()
// @use     unbatched()
// @groups  M, ceil(out_vec_size/8), 1
// @group   32, 2, 1
// @require in_vec_size % (512 - b/6*256) == 0
// @term    y[m,n] = round({T}, {qmv(in_vec_size; x[m,k]; n)})
template <typename T, int g, int b>
[[kernel]] void qmv_ragged(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    BATCHES(7, 8, 9, 10, 11, 12, 13, 14),
    HERE) {
  const Coded<T> m = {(const device uchar*)w, scales, biases};
  const Vectors<T> v = {x, int(group.x) + 1, in_vec_size, in_vec_size, true};
  multiply_lanes<g, b>(m, v, y, out_vec_size, int(group.x), 1, group, simdgroup, lane);
}

// Rows of 64 or 128 elements: a threadgroup of one simdgroup makes 64 results of a row, a lane two.
template <int g, int b, typename T>
inline void multiply_short(const thread Coded<T>& m, const thread Vectors<T>& v, device T* y, int N, uint3 group, uint lane) {
#pragma unroll
  for (int i = 0; i < 64; i += 32) {
    multiply_column<g, b, true, false, 1>(m, v, y, N, int(group.x), int(64 * group.y + lane) + i);
  }
}

// @lines   quad()
// @use     flat(out_vec_size; in_vec_size)
// @arg     x              device {T}[M, in_vec_size] read
// @arg     y              device {T}[M, out_vec_size] write
// @use     vector_sizes()
// @use     unbatched()
// @groups  M, ceil(out_vec_size/64), 1
// @group   32, 1, 1
// @require in_vec_size == d
// @term    y[m,n] = round({T}, {column(in_vec_size; x[m,k]; n)})
// @end
// @kernel  affine_qmv_quad_{T:{types()}}_gs_{g:32|64}_b_{b:2|4|8}_d_{d:64|128}_batch_0
// @mlx     unlisted
// @use     quad()
// @kernel  affine_qmv_quad_{T:{types()}}_gs_{g:128}_b_{b:2|4|8}_d_{d:128}_batch_0
// @mlx     unlisted
// @use     quad()
template <typename T, int g, int b>
[[kernel]] void qmv_quad(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    BATCHES(7, 8, 9, 10, 11, 12, 13, 14),
    HERE) {
  const Coded<T> m = {(const device uchar*)w, scales, biases};
  const Vectors<T> v = {x, int(group.x) + 1, in_vec_size, in_vec_size, true};
  multiply_short<g, b>(m, v, y, out_vec_size, group, lane);
}

// @lines   quad_of_batch()
// @use     stack(out_vec_size; in_vec_size)
// @use     of_batch(in_vec_size; out_vec_size; 64; 1)
// @require in_vec_size == d
// @term    y[i,m,n] = round({T}, {column(in_vec_size; x[i,m,k]; i,n)})
// @end
// @kernel  affine_qmv_quad_{T:{types()}}_gs_{g:32|64}_b_{b:2|4|8}_d_{d:64|128}_batch_1
// @mlx     unlisted
// @use     quad_of_batch()
// @kernel  affine_qmv_quad_{T:{types()}}_gs_{g:128}_b_{b:2|4|8}_d_{d:128}_batch_1
// @mlx     unlisted
// @use     quad_of_batch()
template <typename T, int g, int b>
[[kernel]] void qmv_quad_batch(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    BATCHES(7, 8, 9, 10, 11, 12, 13, 14),
    HERE) {
  const int M = x_shape[x_batch_ndims];
  const Coded<T> m = MATRIX(group.z);
  const Vectors<T> v = {X(group.z), M, in_vec_size, in_vec_size, true};
  multiply_short<g, b>(m, v, y + size_t(group.z) * M * out_vec_size, out_vec_size, group, lane);
}

// A few rows, of which a threadgroup makes up to five: 8 results of each.
//
// @kernel  affine_qmv_wide_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_nv_{nv:2|3|4|5}_kl_8_batch_0
// @mlx     unlisted
// @use     flat(out_vec_size; in_vec_size)
// @arg     x              device {T}[M, in_vec_size] read
// @arg     y              device {T}[M, out_vec_size] write
// @use     vector_sizes()
// @arg     M              constant i32
// @use     unbatched()
// @groups  ceil(M/nv), ceil(out_vec_size/8), 1
// @group   32, 2, 1
// @require in_vec_size % g == 0
// @term    y[m,n] = round({T}, {qmv(in_vec_size; x[m,k]; n)})
template <typename T, int g, int b, int nv>
[[kernel]] void qmv_wide(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    constant int& M [[buffer(7)]],
    BATCHES(8, 9, 10, 11, 12, 13, 14, 15),
    HERE) {
  const Coded<T> m = {(const device uchar*)w, scales, biases};
  const Vectors<T> v = {x, M, in_vec_size, in_vec_size, true};
  const int m0 = nv * int(group.x);
  multiply_lanes<g, b>(m, v, y, out_vec_size, m0, min(nv, M - m0), group, simdgroup, lane);
}

// @kernel  affine_qmv_wide_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_nv_{nv:2|3|4|5}_kl_8_batch_1
// @mlx     unlisted
// @use     stack(out_vec_size; in_vec_size)
// @arg     x              device {T}[x_shape[0], M, in_vec_size : x_strides[0], in_vec_size, 1] read
// @arg     y              device {T}[x_shape[0], M, out_vec_size] write
// @use     vector_sizes()
// @arg     M              constant i32
// @use     batched()
// @groups  ceil(M/nv), ceil(out_vec_size/8), x_shape[0]
// @group   32, 2, 1
// @use     one_batch()
// @require in_vec_size % g == 0
// @term    y[i,m,n] = round({T}, {qmv(in_vec_size; x[i,m,k]; i,n)})
template <typename T, int g, int b, int nv>
[[kernel]] void qmv_wide_batch(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    constant int& M [[buffer(7)]],
    BATCHES(8, 9, 10, 11, 12, 13, 14, 15),
    HERE) {
  const Coded<T> m = MATRIX(group.z);
  const Vectors<T> v = {X(group.z), M, in_vec_size, in_vec_size, true};
  const int m0 = nv * int(group.x);
  multiply_lanes<g, b>(m, v, y + size_t(group.z) * M * out_vec_size, out_vec_size, m0, min(nv, M - m0), group, simdgroup, lane);
}

// Few rows with one long matrix, in parts of K side by side, which another kernel adds up. The host says how parts lie as
// it says of batches. The last part may be shorter.
//
// @kernel  affine_qvm_split_k_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_spk_{parts:8|32}
// @mlx     unlisted
// @let     K = (parts - 1)*in_vec_size + final_block_size
// @use     flat(K; out_vec_size)
// @arg     x                 device {T}[x_shape[1], K] read
// @arg     y                 device {T}[parts, x_shape[1], out_vec_size] write
// @use     vector_sizes()
// @use     batched()
// @arg     final_block_size  constant i32
// @groups  x_shape[1], ceil(out_vec_size/64), parts
// @group   32, 2, 1
// @require out_vec_size % g == 0
// @require final_block_size <= in_vec_size && x_batch_ndims == 1 && w_batch_ndims == 1 && x_shape[0] == parts && w_shape[0] == parts
// @require x_strides[0] == in_vec_size && w_strides[0] == in_vec_size*(out_vec_size*b/32)
// @require s_strides[0] == in_vec_size*(out_vec_size/g) && b_strides[0] == s_strides[0]
// @term    y[p,m,n] = round({T}, sum[ordered](k < in_vec_size + p/(parts - 1)*(final_block_size - in_vec_size), \
//              x[m,p*in_vec_size + k] * {weight(p*in_vec_size + k; n)}))
//
// With a matrix of their own for each batch, whose parts lie side by side too.
//
// @kernel  affine_qvm_split_k_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_spk_{parts:8|32}
// @mlx     unlisted
// @let     K = (parts - 1)*in_vec_size + final_block_size
// @use     stack(K; out_vec_size)
// @arg     x                 device {T}[x_shape[0], x_shape[2], K : x_strides[0], K, 1] read
// @arg     y                 device {T}[x_shape[0], parts, x_shape[2], out_vec_size] write
// @use     vector_sizes()
// @use     batched()
// @arg     final_block_size  constant i32
// @groups  x_shape[2], ceil(out_vec_size/64), x_shape[0]*parts
// @group   32, 2, 1
// @require out_vec_size % g == 0
// @require final_block_size <= in_vec_size && x_batch_ndims == 2 && w_batch_ndims == 2 && w_shape[0] == x_shape[0]
// @let     apart = w_strides[0]*32
// @require x_shape[1] == parts && w_shape[1] == parts
// @require apart % b == 0
// @require x_strides[1] == in_vec_size && w_strides[1] == in_vec_size*(out_vec_size*b/32)
// @require s_strides[1] == in_vec_size*(out_vec_size/g) && b_strides[1] == s_strides[1]
// @term    y[i,p,m,n] = round({T}, sum[ordered](k < in_vec_size + p/(parts - 1)*(final_block_size - in_vec_size), \
//              x[i,m,p*in_vec_size + k] * {weight(i,p*in_vec_size + k; n)}))
template <typename T, int g, int b, int parts>
[[kernel]] void qvm_split(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    BATCHES(7, 8, 9, 10, 11, 12, 13, 14),
    constant int& final_block_size [[buffer(15)]],
    HERE) {
  const int M = x_shape[x_batch_ndims];
  const Coded<T> m = MATRIX(group.z);
  const int K = group.z % parts == parts - 1 ? final_block_size : in_vec_size;
  const Vectors<T> v = {X(group.z), M, K, (parts - 1) * in_vec_size + final_block_size, true};
  multiply_row<g, b>(m, v, y + size_t(group.z) * M * out_vec_size, out_vec_size, group, simdgroup, lane);
}

// Many rows.
//
// @kernel  affine_qmm_n_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_0
// @mlx     unlisted
// @use     flat(K; N)
// @arg     x              device {T}[M, K] read
// @arg     y              device {T}[M, N] write
// @use     matrix_sizes()
// @use     unbatched()
// @groups  ceil(N/32), ceil(M/32), 1
// @group   32, 2, 2
// @require N % g == 0
// @term    y[m,n] = round({T}, {qmm_n(K; x[m,k]; k)})
template <typename T, int g, int b>
[[kernel]] void qmm_n(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& K [[buffer(5)]],
    constant int& N [[buffer(6)]],
    constant int& M [[buffer(7)]],
    BATCHES(8, 9, 10, 11, 12, 13, 14, 15),
    HERE) {
  const Coded<T> m = {(const device uchar*)w, scales, biases};
  const Vectors<T> v = {x, M, K, K, true};
  multiply_tile<g, b, false>(m, v, y, N, group, simdgroup, lane);
}

// A product of rows in parts of K side by side, whose sums in f32 another kernel adds up.
//
// @kernel  affine_qmm_t_splitk_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_alN_{aligned:true|false}
// @mlx     unlisted
// @use     flat(N; K)
// @arg     x                 device {T}[M, K] read
// @arg     y                 device f32[parts, M, N] write
// @use     matrix_sizes()
// @arg     k_partition_size  constant i32
// @arg     split_k_partition_stride  constant i32
// @groups  ceil(N/32), ceil(M/32), parts
// @group   32, 2, 2
// @require k_partition_size % g == 0 && K == parts*k_partition_size && split_k_partition_stride == M*N
// @require aligned == 0 || N % 32 == 0
// @term    y[p,m,n] = round(f32, sum[ordered](k < k_partition_size, \
//              x[m,p*k_partition_size + k] * round({T}, {weight(n; (p*k_partition_size + k))})))
template <typename T, int g, int b>
[[kernel]] void qmm_t_splitk(
    CODED,
    const device T* x [[buffer(3)]],
    device float* y [[buffer(4)]],
    constant int& K [[buffer(5)]],
    constant int& N [[buffer(6)]],
    constant int& M [[buffer(7)]],
    constant int& k_partition_size [[buffer(8)]],
    constant int& split_k_partition_stride [[buffer(9)]],
    HERE) {
  const Coded<T> m = {(const device uchar*)w, scales, biases};
  const Vectors<T> v = {x, M, k_partition_size, K, true, int(group.z) * k_partition_size};
  multiply_tile<g, b, true>(m, v, y + size_t(group.z) * split_k_partition_stride, N, group, simdgroup, lane);
}

// What adds up parts of a product.
//
// @kernel  steel_gemm_splitk_accum_{T:{floats()}}_float32
// @mlx     unlisted
// @arg     C_split           device f32[k_partitions, M, N : partition_stride, ldd, 1] read
// @arg     D                 device {T}[M, N : ldd, 1] write
// @arg     k_partitions      constant i32
// @arg     partition_stride  constant i32
// @arg     ldd               constant i32
// @threads N, M, 1
// @group   _, _, _
// @require ldd >= N
// @term    D[m,n] = round({T}, sum[ordered](p < k_partitions, C_split[p,m,n]))
template <typename T>
[[kernel]] void splitk_accum(
    const device float* C_split [[buffer(0)]],
    device T* D [[buffer(1)]],
    constant int& k_partitions [[buffer(2)]],
    constant int& partition_stride [[buffer(3)]],
    constant int& ldd [[buffer(4)]],
    uint2 at [[thread_position_in_grid]]) {
  const size_t i = size_t(at.y) * ldd + at.x;
  float sum = 0;
  for (int p = 0; p < k_partitions; p++) {
    sum += C_split[size_t(p) * partition_stride + i];
  }
  D[i] = stored(T(sum));
}

// Many rows with a matrix of their own for each batch.
//
// @lines   of_batches()
// @arg     x              device {T}[x_shape[0], M, K : x_strides[0], K, 1] read
// @arg     y              device {T}[x_shape[0], M, N] write
// @use     matrix_sizes()
// @use     batched()
// @groups  ceil(N/32), ceil(M/32), x_shape[0]
// @group   32, 2, 2
// @use     one_batch()
// @end
//
// @kernel  affine_qmm_n_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_batch_1
// @mlx     unlisted
// @use     stack(K; N)
// @use     of_batches()
// @require N % g == 0
// @term    y[i,m,n] = round({T}, {qmm_n(K; x[i,m,k]; i,k)})
//
// @kernel  affine_qmm_t_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_alN_{aligned:true|false}_batch_1
// @mlx     unlisted
// @use     stack(N; K)
// @use     of_batches()
// @require K % g == 0
// @require aligned == 0 || N % 32 == 0
// @term    y[i,m,n] = round({T}, {qmm_t(K; x[i,m,k]; i,n)})
template <typename T, int g, int b, bool transposed>
[[kernel]] void qmm_batch(
    CODED,
    const device T* x [[buffer(3)]],
    device T* y [[buffer(4)]],
    constant int& K [[buffer(5)]],
    constant int& N [[buffer(6)]],
    constant int& M [[buffer(7)]],
    BATCHES(8, 9, 10, 11, 12, 13, 14, 15),
    HERE) {
  const Coded<T> m = MATRIX(group.z);
  const Vectors<T> v = {X(group.z), M, K, K, true};
  multiply_tile<g, b, transposed>(m, v, y + size_t(group.z) * M * N, N, group, simdgroup, lane);
}

// Products with matrices that indices pick: number i of the batch is of matrix rhs_indices[i] and of the vectors
// lhs_indices[i]. An index outside its stack makes NaN, and nothing outside is read; MLX's kernels do not look. Kernels
// take batches of any dimensions; declared are stacks of one, and indices of one or two, for which the arrays have room.
//
// @text    picked(at) = round({T}, select(lhs_indices[{at}] < x_shape[0] && rhs_indices[{at}] < w_shape[0], \
//              dot[rhs_indices[{at}],lhs_indices[{at}],m,n], inf - inf))
// @text    products(and) = {each d = {dims}; batch_shape[{d}]; {and}}
// @lines   of_indices(K; M; N)
// @arg     x              device {T}[x_shape[0], {M}, {K} : x_strides[0], {K}, 1] read
// @each    side = lhs rhs
// @arg     {side}_indices device u32[{products(,)} : {each d = {dims}; {side}_strides[{d}]; ,}] read
// @end
// @arg     y              device {T}[{products(,)}, {M}, {N}] write
// @end
// @lines   indexed()
// @use     batched()
// @arg     batch_ndims    constant i32
// @arg     batch_shape    constant i32[2]
// @arg     lhs_strides    constant i64[2]
// @arg     rhs_strides    constant i64[2]
// @require x_batch_ndims == 1 && w_batch_ndims == 1
// @require w_strides[0]*32 % b == 0
// @if      dims == 0
// @require batch_ndims == 1
// @term    y[i,m,n] = {picked(i)}
// @else
// @require batch_ndims == 2
// @term    y[i,j,m,n] = {picked(i,j)}
// @end
// @end
//
// @kernel  affine_gather_qvm_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}{dims:=0|=0 1}
// @mlx     unlisted
// @use     stack(in_vec_size; out_vec_size)
// @use     of_indices(in_vec_size; x_shape[1]; out_vec_size)
// @use     vector_sizes()
// @use     indexed()
// @groups  x_shape[1], ceil(out_vec_size/64), {products(*)}
// @group   32, 2, 1
// @require out_vec_size % g == 0
// @where   dot[e,r,m,n] = {qvm(in_vec_size; x[r,m,k]; e,k)}
template <typename T, int g, int b>
[[kernel]] void gather_qvm(
    CODED,
    const device T* x [[buffer(3)]],
    INDICES,
    device T* y [[buffer(6)]],
    constant int& in_vec_size [[buffer(7)]],
    constant int& out_vec_size [[buffer(8)]],
    BATCHES(9, 10, 11, 12, 13, 14, 15, 16),
    INDEXED(17, 18, 19, 20),
    HERE) {
  const int M = x_shape[x_batch_ndims];
  const uint left = SIDE(lhs);
  const uint right = SIDE(rhs);
  const Coded<T> m = MATRIX(right);
  const Vectors<T> v = {X(left), M, in_vec_size, in_vec_size, THERE(left, right)};
  y += size_t(group.z) * M * out_vec_size;
  multiply_row<g, b>(m, v, y, out_vec_size, group, simdgroup, lane);
}

// @kernel  affine_gather_qmm_n_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}{dims:=0|=0 1}
// @mlx     unlisted
// @use     stack(K; N)
// @use     of_indices(K; M; N)
// @use     matrix_sizes()
// @use     indexed()
// @groups  ceil(N/32), ceil(M/32), {products(*)}
// @group   32, 2, 2
// @require N % g == 0
// @where   dot[e,r,m,n] = {qmm_n(K; x[r,m,k]; e,k)}
//
// @kernel  affine_gather_qmm_t_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_alN_{aligned:true|false}{dims:=0|=0 1}
// @mlx     unlisted
// @use     stack(N; K)
// @use     of_indices(K; M; N)
// @use     matrix_sizes()
// @use     indexed()
// @groups  ceil(N/32), ceil(M/32), {products(*)}
// @group   32, 2, 2
// @require K % g == 0
// @require aligned == 0 || N % 32 == 0
// @where   dot[e,r,m,n] = {qmm_t(K; x[r,m,k]; e,n)}
template <typename T, int g, int b, bool transposed>
[[kernel]] void gather_qmm(
    CODED,
    const device T* x [[buffer(3)]],
    INDICES,
    device T* y [[buffer(6)]],
    constant int& K [[buffer(7)]],
    constant int& N [[buffer(8)]],
    constant int& M [[buffer(9)]],
    BATCHES(10, 11, 12, 13, 14, 15, 16, 17),
    INDEXED(18, 19, 20, 21),
    HERE) {
  const uint left = SIDE(lhs);
  const uint right = SIDE(rhs);
  const Coded<T> m = MATRIX(right);
  const Vectors<T> v = {X(left), M, K, K, THERE(left, right)};
  multiply_tile<g, b, transposed>(m, v, y + size_t(group.z) * M * N, N, group, simdgroup, lane);
}

// Rows whose matrices are in ascending order, each with its own: the first of these says where the rows of each matrix
// begin. It makes the least place from which on an index is not below g, and so the number of those below if they ascend.
//
// @kernel  gather_mm_offsets
// @mlx     unlisted
// @arg 0   indices     device u32[M] read
// @arg 1   offsets     device i32[groups] write
// @arg 2   M           constant i32
// @threads groups, 1, 1
// @group   _, _, _
// @term    offsets[g] = i32(argmax(k < M + 1, select(k < M && indices[k] < g, 0.0, 1.0)))
template <typename I>
[[kernel]] void offsets_of(
    const device I* indices [[buffer(0)]],
    device int* offsets [[buffer(1)]],
    constant int& M [[buffer(2)]],
    uint g [[thread_position_in_grid]]) {
  int k = 0;
  while (k < M && indices[k] < g) {
    k++;
  }
  offsets[g] = k;
}

// Row m is of the last matrix whose rows begin at m or before, and of the first one if there is none. Offsets that are
// no ascending numbers from 0 on are what no host makes; MLX's kernel leaves some rows out then.
//
// @text    sorted_at() = argmax(i < num_groups, select(offsets[i] <= m, f32(i), 0.0))
// @lines   of_sorted()
// @arg     offsets     device i32[num_groups] read
// @arg     y           device {T}[M, N] write
// @arg     M           constant i32
// @arg     N           constant i32
// @arg     K           constant i32
// @arg     num_groups  constant i32
// @constant 201 align_N bool
// @constant 202 align_K bool
// @groups  ceil(N/32), min(M, ceil(M/16) + num_groups - 1), 1
// @group   32, 2, 1
// @require num_groups >= 1
// @end
// @lines   stacked(R; C)
// @arg     x           device {T}[M, K] read
// @arg     w           device u32 as u{b}[num_groups, {R}, {C}] read
// @arg     scales      device {T}[num_groups, {R}, {C}/g] read
// @arg     biases      device {T}[num_groups, {R}, {C}/g] read
// @end
//
// @kernel  affine_gather_qmm_rhs_nt_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_bm_16_bn_32_bk_32_wm_1_wn_2
// @mlx     unlisted
// @use     stacked(N; K)
// @use     of_sorted()
// @require K % g == 0
// @require align_N == 0 || N % 32 == 0
// @where   of[m] = {sorted_at()}
// @term    y[m,n] = round({T}, {qmm_t(K; x[m,k]; of[m],n)})
//
// @kernel  affine_gather_qmm_rhs_nn_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}_bm_16_bn_32_bk_32_wm_1_wn_2
// @mlx     unlisted
// @use     stacked(K; N)
// @use     of_sorted()
// @require N % g == 0
// @require align_K == 0 || K % 32 == 0
// @where   of[m] = {sorted_at()}
// @term    y[m,n] = round({T}, {qmm_n(K; x[m,k]; of[m],k)})
constant bool align_N [[function_constant(201)]];
constant bool align_K [[function_constant(202)]];
template <typename T, int g, int b, bool transposed>
[[kernel]] void gather_qmm_rhs(
    const device T* x [[buffer(0)]],
    const device uint* w [[buffer(1)]],
    const device T* scales [[buffer(2)]],
    const device T* biases [[buffer(3)]],
    const device int* offsets [[buffer(4)]],
    device T* y [[buffer(5)]],
    constant int& M [[buffer(6)]],
    constant int& N [[buffer(7)]],
    constant int& K [[buffer(8)]],
    constant int& num_groups [[buffer(9)]],
    HERE) {
  const size_t elements = size_t(N) * K;
  const int first = int(16 * group.y + 8 * simdgroup);
  for (int row = first; row < min(M, first + 8); row++) {
    int e = 0;
    for (int i = 1; i < num_groups; i++) {
      e = offsets[i] <= row ? i : e;
    }
    const Coded<T> m = {(const device uchar*)w + e * (elements / 8 * b), scales + e * (elements / g), biases + e * (elements / g)};
    const Vectors<T> v = {x, M, K, K, true};
    multiply_column<g, b, transposed, true, 1>(m, v, y, N, row, int(32 * group.x + lane));
  }
}

#define WITH_ONE(kernel, name, T, g, b)                                                   \
  template [[host_name("affine_" #kernel "_" #name "_gs_" #g "_b_" #b "_batch_0")]]       \
  [[kernel]] decltype(kernel<T, g, b>) kernel<T, g, b>;
#define OF_FORM(kernel, form, tail, last, name, T, g, b)                                  \
  template [[host_name("affine_" #form "_" #name "_gs_" #g "_b_" #b tail)]]               \
  [[kernel]] decltype(kernel<T, g, b, last>) kernel<T, g, b, last>;
#define OF_BOTH(kernel, form, tail, name, T, g, b)                                        \
  template [[host_name("affine_" #form "_" #name "_gs_" #g "_b_" #b tail)]]               \
  [[kernel]] decltype(kernel<T, g, b>) kernel<T, g, b>;
#define OF_WIDE(nv, name, T, g, b)                                                        \
  template [[host_name("affine_qmv_wide_" #name "_gs_" #g "_b_" #b "_nv_" #nv "_kl_8_batch_0")]]  \
  [[kernel]] decltype(qmv_wide<T, g, b, nv>) qmv_wide<T, g, b, nv>;                       \
  template [[host_name("affine_qmv_wide_" #name "_gs_" #g "_b_" #b "_nv_" #nv "_kl_8_batch_1")]]  \
  [[kernel]] decltype(qmv_wide_batch<T, g, b, nv>) qmv_wide_batch<T, g, b, nv>;
#define OF_QUAD(d, name, T, g, b)                                                         \
  OF_BOTH(qmv_quad, qmv_quad, "_d_" #d "_batch_0", name, T, g, b)                         \
  OF_BOTH(qmv_quad_batch, qmv_quad, "_d_" #d "_batch_1", name, T, g, b)
#define INSTANTIATE_QUADS(name, T)                                                        \
  OF_QUAD(64, name, T, 32, 2) OF_QUAD(64, name, T, 32, 4) OF_QUAD(64, name, T, 32, 8)     \
  OF_QUAD(64, name, T, 64, 2) OF_QUAD(64, name, T, 64, 4) OF_QUAD(64, name, T, 64, 8)     \
  OF_QUAD(128, name, T, 32, 2) OF_QUAD(128, name, T, 32, 4) OF_QUAD(128, name, T, 32, 8)  \
  OF_QUAD(128, name, T, 64, 2) OF_QUAD(128, name, T, 64, 4) OF_QUAD(128, name, T, 64, 8)  \
  OF_QUAD(128, name, T, 128, 2) OF_QUAD(128, name, T, 128, 4) OF_QUAD(128, name, T, 128, 8)
#define INSTANTIATE_ACCUM(name, T)                                                        \
  template [[host_name("steel_gemm_splitk_accum_" #name "_float32")]]                     \
  [[kernel]] decltype(splitk_accum<T>) splitk_accum<T>;
#define INSTANTIATE_PRODUCTS(name, T, g, b)                                               \
  WITH_ONE(qvm, name, T, g, b)                                                            \
  WITH_ONE(qmm_n, name, T, g, b)                                                          \
  template [[host_name("affine_gather_qvm_" #name "_gs_" #g "_b_" #b)]]                   \
  [[kernel]] decltype(gather_qvm<T, g, b>) gather_qvm<T, g, b>;                           \
  OF_FORM(qvm_batch, qvm, "_batch_1", false, name, T, g, b)                               \
  OF_FORM(qvm_batch, qmv, "_batch_1_pr_0_hgs_0_r_4", true, name, T, g, b)                 \
  OF_FORM(qvm_split, qvm_split_k, "_spk_8", 8, name, T, g, b)                             \
  OF_FORM(qvm_split, qvm_split_k, "_spk_32", 32, name, T, g, b)                           \
  OF_FORM(qmm_batch, qmm_n, "_batch_1", false, name, T, g, b)                             \
  OF_FORM(qmm_batch, qmm_t, "_alN_true_batch_1", true, name, T, g, b)                     \
  OF_FORM(qmm_batch, qmm_t, "_alN_false_batch_1", true, name, T, g, b)                    \
  OF_FORM(gather_qmm, gather_qmm_n, "", false, name, T, g, b)                             \
  OF_FORM(gather_qmm, gather_qmm_t, "_alN_true", true, name, T, g, b)                     \
  OF_FORM(gather_qmm, gather_qmm_t, "_alN_false", true, name, T, g, b)
#define INSTANTIATE_MORE(name, T, g, b)                                                   \
  OF_WIDE(2, name, T, g, b)                                                               \
  OF_WIDE(3, name, T, g, b)                                                               \
  OF_WIDE(4, name, T, g, b)                                                               \
  OF_WIDE(5, name, T, g, b)                                                               \
  OF_FORM(qvm_batch, qmv_fast, "_batch_1_pr_0_hgs_0_r_4", true, name, T, g, b)            \
  OF_FORM(qvm_batch, qmv_fast, "_batch_1_pr_1_hgs_0_r_4", true, name, T, g, b)            \
  OF_BOTH(qmv_ragged, qmv_fast, "_batch_0_pr_1_hgs_0_r_4", name, T, g, b)                 \
  OF_BOTH(qmm_t_splitk, qmm_t_splitk, "_alN_true", name, T, g, b)                         \
  OF_BOTH(qmm_t_splitk, qmm_t_splitk, "_alN_false", name, T, g, b)                        \
  OF_FORM(gather_qmm_rhs, gather_qmm_rhs_nt, "_bm_16_bn_32_bk_32_wm_1_wn_2", true, name, T, g, b)  \
  OF_FORM(gather_qmm_rhs, gather_qmm_rhs_nn, "_bm_16_bn_32_bk_32_wm_1_wn_2", false, name, T, g, b)

EACH_TYPE(INSTANTIATE_PRODUCTS)
EACH_TYPE(INSTANTIATE_MORE)
EACH_FLOAT(INSTANTIATE_ACCUM)
template [[host_name("gather_mm_offsets")]] [[kernel]] decltype(offsets_of<uint>) offsets_of<uint>;
INSTANTIATE_QUADS(float, float)
INSTANTIATE_QUADS(float16_t, half)
INSTANTIATE_QUADS(bfloat16_t, bfloat)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness affine_qvm_*_batch_0 ; in_vec_size=96 out_vec_size=128 ; groups 2 2 1 / 32 2 1 ; ok
// @witness affine_qvm_*_gs_32_*_batch_0 ; in_vec_size=9 out_vec_size=96 ; groups 2 2 1 / 32 2 1 ; ok
// @witness affine_qvm_*_gs_32_*_batch_0 ; in_vec_size=9 out_vec_size=4160 ; groups 2 65 1 / 32 2 1 ; ok
// @witness affine_qvm_*_batch_0 ; in_vec_size=96 out_vec_size=128 ; groups 2 2 2 / 32 2 1 ; refused
// @witness affine_qvm_*_batch_0 ; in_vec_size=96 out_vec_size=128 ; groups 2 2 1 / 64 1 1 ; refused
// @witness affine_qvm_*_batch_1 ; in_vec_size=96 out_vec_size=128 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=384 b_strides=384 ; groups 2 2 3 / 32 2 1 ; ok
// @witness affine_qvm_*_gs_32_*_batch_1 ; in_vec_size=9 out_vec_size=96 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=384 b_strides=384 ; groups 2 2 3 / 32 2 1 ; ok
// @witness affine_qvm_*_gs_32_*_batch_1 ; in_vec_size=9 out_vec_size=4160 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=3 w_strides=46080 s_strides=1170 b_strides=1170 ; groups 2 65 3 / 32 2 1 ; ok
// @witness affine_qvm_*_batch_1 ; in_vec_size=96 out_vec_size=128 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=384 b_strides=384 ; groups 2 2 3 / 64 1 1 ; refused
// @witness affine_gather_qvm_* ; in_vec_size=96 out_vec_size=128 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 2 6 / 32 2 1 ; ok
// @witness affine_gather_qvm_*_gs_32_* ; in_vec_size=9 out_vec_size=96 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 2 6 / 32 2 1 ; ok
// @witness affine_gather_qvm_*_gs_32_* ; in_vec_size=9 out_vec_size=4160 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=46080 s_strides=1170 b_strides=1170 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 65 6 / 32 2 1 ; ok
// @witness affine_gather_qvm_* ; in_vec_size=96 out_vec_size=128 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 2 6 / 64 1 1 ; refused
// @witness affine_gather_qvm_* ; in_vec_size=96 out_vec_size=128 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 2 6 / 32 2 1 ; ok
// @witness affine_gather_qvm_*_gs_32_* ; in_vec_size=9 out_vec_size=96 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 2 6 / 32 2 1 ; ok
// @witness affine_gather_qvm_*_gs_32_* ; in_vec_size=9 out_vec_size=4160 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=46080 s_strides=1170 b_strides=1170 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 65 6 / 32 2 1 ; ok
// @witness affine_gather_qvm_* ; in_vec_size=96 out_vec_size=128 x_batch_ndims=1 x_shape=3,2 x_strides=192 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 2 6 / 64 1 1 ; refused
// @witness affine_qmv_{|b}float*_batch_1_* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 2 8 3 / 32 2 1 ; ok
// @witness affine_qmv_{|b}float*_batch_1_* ; in_vec_size=128 out_vec_size=72 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=288 b_strides=288 ; groups 2 9 3 / 32 2 1 ; ok
// @witness affine_qmv_{|b}float*_batch_1_* ; in_vec_size=128 out_vec_size=60 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 2 8 3 / 64 1 1 ; refused
// @witness affine_qmm_n_*_batch_0 ; K=96 N=128 M=65 ; groups 4 3 1 / 32 2 2 ; ok
// @witness affine_qmm_n_*_gs_32_*_batch_0 ; K=9 N=1056 M=1056 ; groups 33 33 1 / 32 2 2 ; ok
// @witness affine_qmm_n_*_batch_0 ; K=96 N=128 M=65 ; groups 4 3 2 / 32 2 2 ; refused
// @witness affine_qmm_n_*_batch_0 ; K=96 N=128 M=65 ; groups 4 3 1 / 64 2 1 ; refused
// @witness affine_qmm_n_*_batch_1 ; K=96 N=128 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=3168 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=384 b_strides=384 ; groups 4 2 3 / 32 2 2 ; ok
// @witness affine_qmm_n_*_gs_32_*_batch_1 ; K=1 N=1056 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=1056 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=384 b_strides=384 ; groups 33 33 3 / 32 2 2 ; ok
// @witness affine_qmm_n_*_batch_1 ; K=96 N=128 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=3168 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=384 b_strides=384 ; groups 4 2 3 / 64 2 1 ; refused
// @witness affine_gather_qmm_n_* ; K=96 N=128 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=3168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 4 2 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_n_*_gs_32_* ; K=1 N=1056 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=1056 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 33 33 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_n_* ; K=96 N=128 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=3168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 4 2 6 / 64 2 1 ; refused
// @witness affine_gather_qmm_n_* ; K=96 N=128 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=3168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 4 2 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_n_*_gs_32_* ; K=1 N=1056 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=1056 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 33 33 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_n_* ; K=96 N=128 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=3168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=384 b_strides=384 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 4 2 6 / 64 2 1 ; refused
// @witness affine_qmm_t_*_alN_false_batch_1 ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 2 2 3 / 32 2 2 ; ok
// @witness affine_qmm_t_*_alN_true_batch_1 ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 2 2 3 / 32 2 2 ; refused
// @witness affine_qmm_t_*_alN_*_batch_1 ; K=128 N=1056 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=3 w_strides=46080 s_strides=4224 b_strides=4224 ; groups 33 2 3 / 32 2 2 ; ok
// @witness affine_qmm_t_*_alN_false_batch_1 ; K=128 N=6 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=135168 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 1 33 3 / 32 2 2 ; ok
// @witness affine_qmm_t_*_alN_true_batch_1 ; K=128 N=6 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=135168 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 1 33 3 / 32 2 2 ; refused
// @witness affine_qmm_t_*_alN_*_batch_1 ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 2 2 3 / 64 2 1 ; refused
// @witness affine_gather_qmm_t_*_alN_false ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 2 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_t_*_alN_true ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 2 6 / 32 2 2 ; refused
// @witness affine_gather_qmm_t_*_alN_* ; K=128 N=1056 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=46080 s_strides=4224 b_strides=4224 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 33 2 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_t_*_alN_false ; K=128 N=6 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=135168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 33 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_t_*_alN_true ; K=128 N=6 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=135168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 1 33 6 / 32 2 2 ; refused
// @witness affine_gather_qmm_t_*_alN_* ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=1 batch_shape=6 lhs_strides=1 rhs_strides=1 ; groups 2 2 6 / 64 2 1 ; refused
// @witness affine_gather_qmm_t_*_alN_false ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 2 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_t_*_alN_true ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 2 6 / 32 2 2 ; refused
// @witness affine_gather_qmm_t_*_alN_* ; K=128 N=1056 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=46080 s_strides=4224 b_strides=4224 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 33 2 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_t_*_alN_false ; K=128 N=6 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=135168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 33 6 / 32 2 2 ; ok
// @witness affine_gather_qmm_t_*_alN_true ; K=128 N=6 M=1056 x_batch_ndims=1 x_shape=3,1056 x_strides=135168 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 1 33 6 / 32 2 2 ; refused
// @witness affine_gather_qmm_t_*_alN_* ; K=128 N=60 M=33 x_batch_ndims=1 x_shape=3,33 x_strides=4224 w_batch_ndims=1 w_shape=8 w_strides=15360 s_strides=240 b_strides=240 batch_ndims=2 batch_shape=3,2 lhs_strides=1,0 rhs_strides=2,1 ; groups 2 2 6 / 64 2 1 ; refused
// @witness affine_qmv_{|b}float*_gs_32_*_batch_1_* ; in_vec_size=32 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=32 w_batch_ndims=1 w_shape=3 w_strides=15 s_strides=1 b_strides=1 inplace=y,{scales|biases} ; groups 1 1 3 / 32 2 1 ; refused
// @witness affine_qmm_t_*_gs_32_*_batch_1 ; K=32 N=1 M=1 x_batch_ndims=1 x_shape=3,1 x_strides=32 w_batch_ndims=1 w_shape=3 w_strides=15 s_strides=1 b_strides=1 inplace=y,{scales|biases} ; groups 1 1 3 / 32 2 2 ; refused
// @witness affine_qvm_split_k_*_spk_8 ; in_vec_size=0 out_vec_size=128 final_block_size=0 x_batch_ndims=1 x_shape=8,2 w_batch_ndims=1 w_shape=8,129 ; groups 2 2 8 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_spk_32 ; in_vec_size=0 out_vec_size=128 final_block_size=0 x_batch_ndims=1 x_shape=32,2 w_batch_ndims=1 w_shape=32,129 ; groups 2 2 32 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=2064 s_strides=516 b_strides=516 ; groups 2 2 8 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_128_b_2_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=1032 s_strides=129 b_strides=129 ; groups 2 2 8 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_64_b_3_spk_32 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=1 x_shape=32,2 x_strides=129 w_batch_ndims=1 w_shape=32,129 w_strides=1548 s_strides=258 b_strides=258 ; groups 2 2 32 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=96 final_block_size=121 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=1548 s_strides=387 b_strides=387 ; groups 2 2 8 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=4160 final_block_size=121 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=67080 s_strides=16770 b_strides=16770 ; groups 2 65 8 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=129 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=2064 s_strides=516 b_strides=516 ; groups 2 2 8 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=130 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=2064 s_strides=516 b_strides=516 ; groups 2 2 8 / 32 2 1 ; refused
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=2064 s_strides=516 b_strides=516 ; groups 2 2 8 / 64 1 1 ; refused
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=1 x_shape=8,2 x_strides=129 w_batch_ndims=1 w_shape=8,129 w_strides=2064 s_strides=516 b_strides=516 ; groups 2 2 7 / 32 2 1 ; refused
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=2 x_shape=3,8,2 x_strides=2048,129 w_batch_ndims=2 w_shape=3,8,129 w_strides=16384,2064 s_strides=4096,516 b_strides=4096,516 ; groups 2 2 24 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_128_b_2_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=2 x_shape=3,8,2 x_strides=2048,129 w_batch_ndims=2 w_shape=3,8,129 w_strides=8192,1032 s_strides=1024,129 b_strides=1024,129 ; groups 2 2 24 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_64_b_3_spk_32 ; in_vec_size=129 out_vec_size=128 final_block_size=121 x_batch_ndims=2 x_shape=3,32,2 x_strides=8240,129 w_batch_ndims=2 w_shape=3,32,129 w_strides=49440,1548 s_strides=8240,258 b_strides=8240,258 ; groups 2 2 96 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=128 final_block_size={129|130} x_batch_ndims=2 x_shape=3,8,2 x_strides=2064,129 w_batch_ndims=2 w_shape=3,8,129 w_strides=16512,2064 s_strides=4128,516 b_strides=4128,516 ; groups 2 2 24 / 64 1 1 ; refused
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=96 final_block_size=129 x_batch_ndims=2 x_shape=3,8,2 x_strides=2064,129 w_batch_ndims=2 w_shape=3,8,129 w_strides=12384,1548 s_strides=3096,387 b_strides=3096,387 ; groups 2 2 24 / 32 2 1 ; ok
// @witness affine_qvm_split_k_*_gs_32_b_4_spk_8 ; in_vec_size=129 out_vec_size=4160 final_block_size=129 x_batch_ndims=2 x_shape=3,8,2 x_strides=2064,129 w_batch_ndims=2 w_shape=3,8,129 w_strides=536640,67080 s_strides=134160,16770 b_strides=134160,16770 ; groups 2 65 24 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_batch_1_pr_0_* ; in_vec_size=512 out_vec_size=72 x_batch_ndims=1 x_shape=3,2 x_strides=1024 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=1152 b_strides=1152 ; groups 2 9 3 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_batch_1_pr_0_* ; in_vec_size=512 out_vec_size=72 x_batch_ndims=1 x_shape=3,2 x_strides=1024 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=1152 b_strides=1152 ; groups 2 9 3 / 64 1 1 ; refused
// @witness affine_qmv_fast_*_b_{6|8}_batch_1_pr_0_* ; in_vec_size=256 out_vec_size=72 x_batch_ndims=1 x_shape=3,2 x_strides=512 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=576 b_strides=576 ; groups 2 9 3 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_b_{2|3|4|5}_batch_1_pr_0_* ; in_vec_size=256 out_vec_size=72 x_batch_ndims=1 x_shape=3,2 x_strides=512 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=576 b_strides=576 ; groups 2 9 3 / 32 2 1 ; refused
// @witness affine_qmv_fast_*_batch_1_pr_1_* ; in_vec_size=512 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=1024 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=1120 b_strides=1120 ; groups 2 9 3 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_batch_1_pr_1_* ; in_vec_size=512 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=1024 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=1120 b_strides=1120 ; groups 2 9 3 / 64 1 1 ; refused
// @witness affine_qmv_fast_*_b_{6|8}_batch_1_pr_1_* ; in_vec_size=256 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=512 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=560 b_strides=560 ; groups 2 9 3 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_b_{2|3|4|5}_batch_1_pr_1_* ; in_vec_size=256 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=512 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=560 b_strides=560 ; groups 2 9 3 / 32 2 1 ; refused
// @witness affine_qmv_fast_*_batch_1_pr_0_* ; in_vec_size=512 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=1024 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=1120 b_strides=1120 ; groups 2 9 3 / 32 2 1 ; refused
// @witness affine_qmv_fast_*_batch_1_pr_0_* ; in_vec_size=512 out_vec_size=8 x_batch_ndims=1 x_shape=3,2 x_strides=1024 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=128 b_strides=128 ; groups 2 1 3 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_gs_32_*_batch_1_pr_1_* ; in_vec_size=512 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=16 b_strides=16 inplace=y,{scales|biases} ; groups 1 1 3 / 32 2 1 ; refused
// @witness affine_qmv_fast_*_batch_0_pr_1_* ; in_vec_size=512 out_vec_size=70 ; groups 2 9 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_batch_0_pr_1_* ; in_vec_size=512 out_vec_size=70 ; groups 2 9 2 / 32 2 1 ; refused
// @witness affine_qmv_fast_*_batch_0_pr_1_* ; in_vec_size=512 out_vec_size=70 ; groups 2 9 1 / 64 1 1 ; refused
// @witness affine_qmv_fast_*_b_{6|8}_batch_0_pr_1_* ; in_vec_size=256 out_vec_size=70 ; groups 2 9 1 / 32 2 1 ; ok
// @witness affine_qmv_fast_*_b_{2|3|4|5}_batch_0_pr_1_* ; in_vec_size=256 out_vec_size=70 ; groups 2 9 1 / 32 2 1 ; refused
// @witness affine_qmv_quad_*_d_64_batch_0 ; in_vec_size=64 out_vec_size=70 ; groups 2 2 1 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_64_batch_0 ; in_vec_size=64 out_vec_size=4160 ; groups 2 65 1 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_64_batch_0 ; in_vec_size=64 out_vec_size=70 ; groups 2 2 2 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_d_64_batch_0 ; in_vec_size=64 out_vec_size=70 ; groups 2 2 1 / 32 2 1 ; refused
// @witness affine_qmv_quad_*_d_64_batch_0 ; in_vec_size=192 out_vec_size=70 ; groups 2 2 1 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_d_64_batch_1 ; in_vec_size=64 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=128 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=140 b_strides=140 ; groups 2 2 3 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_64_batch_1 ; in_vec_size=64 out_vec_size=4160 x_batch_ndims=1 x_shape=3,2 x_strides=128 w_batch_ndims=1 w_shape=3 w_strides=245760 s_strides=8320 b_strides=8320 ; groups 2 65 3 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_64_batch_1 ; in_vec_size=64 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=128 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=140 b_strides=140 ; groups 2 2 3 / 32 2 1 ; refused
// @witness affine_qmv_quad_*_d_64_batch_1 ; in_vec_size=192 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=384 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=420 b_strides=420 ; groups 2 2 3 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_gs_64_*_d_64_batch_1 ; in_vec_size=64 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=64 w_batch_ndims=1 w_shape=3 w_strides=15 s_strides=1 b_strides=1 inplace=y,{scales|biases} ; groups 1 1 3 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_gs_128_*_d_128_batch_1 ; in_vec_size=128 out_vec_size=1 x_batch_ndims=1 x_shape=3,1 x_strides=128 w_batch_ndims=1 w_shape=3 w_strides=30 s_strides=1 b_strides=1 inplace=y,{scales|biases} ; groups 1 1 3 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_d_128_batch_0 ; in_vec_size=128 out_vec_size=70 ; groups 2 2 1 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_128_batch_0 ; in_vec_size=128 out_vec_size=4160 ; groups 2 65 1 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_128_batch_0 ; in_vec_size=128 out_vec_size=70 ; groups 2 2 2 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_d_128_batch_0 ; in_vec_size=128 out_vec_size=70 ; groups 2 2 1 / 32 2 1 ; refused
// @witness affine_qmv_quad_*_d_128_batch_0 ; in_vec_size=192 out_vec_size=70 ; groups 2 2 1 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_d_128_batch_1 ; in_vec_size=128 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=280 b_strides=280 ; groups 2 2 3 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_128_batch_1 ; in_vec_size=128 out_vec_size=4160 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=3 w_strides=245760 s_strides=16640 b_strides=16640 ; groups 2 65 3 / 32 1 1 ; ok
// @witness affine_qmv_quad_*_d_128_batch_1 ; in_vec_size=128 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=280 b_strides=280 ; groups 2 2 3 / 32 2 1 ; refused
// @witness affine_qmv_quad_*_d_128_batch_1 ; in_vec_size=192 out_vec_size=70 x_batch_ndims=1 x_shape=3,2 x_strides=384 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=420 b_strides=420 ; groups 2 2 3 / 32 1 1 ; refused
// @witness affine_qmv_wide_*_nv_2_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=5 ; groups 3 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_2_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=4 ; groups 2 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_2_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=4 ; groups 3 8 1 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_2_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=5 ; groups 3 8 2 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_2_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=5 ; groups 3 8 1 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_nv_2_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=5 x_batch_ndims=1 x_shape=3,5 x_strides=640 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_2_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=5 x_batch_ndims=1 x_shape=3,5 x_strides=640 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_nv_3_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=7 ; groups 3 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_3_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=6 ; groups 2 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_3_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=6 ; groups 3 8 1 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_3_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=7 ; groups 3 8 2 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_3_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=7 ; groups 3 8 1 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_nv_3_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=7 x_batch_ndims=1 x_shape=3,7 x_strides=896 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_3_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=7 x_batch_ndims=1 x_shape=3,7 x_strides=896 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_nv_4_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=9 ; groups 3 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_4_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=8 ; groups 2 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_4_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=8 ; groups 3 8 1 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_4_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=9 ; groups 3 8 2 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_4_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=9 ; groups 3 8 1 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_nv_4_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=9 x_batch_ndims=1 x_shape=3,9 x_strides=1152 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_4_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=9 x_batch_ndims=1 x_shape=3,9 x_strides=1152 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_nv_5_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=11 ; groups 3 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_5_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=10 ; groups 2 8 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_5_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=10 ; groups 3 8 1 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_5_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=11 ; groups 3 8 2 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_nv_5_kl_8_batch_0 ; in_vec_size=128 out_vec_size=60 M=11 ; groups 3 8 1 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_nv_5_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=11 x_batch_ndims=1 x_shape=3,11 x_strides=1408 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_nv_5_kl_8_batch_1 ; in_vec_size=128 out_vec_size=60 M=11 x_batch_ndims=1 x_shape=3,11 x_strides=1408 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=240 b_strides=240 ; groups 3 8 3 / 64 1 1 ; refused
// @witness affine_qmv_wide_*_batch_0 ; in_vec_size=128 out_vec_size=520 M=2 ; groups 1 65 1 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_batch_1 ; in_vec_size=128 out_vec_size=520 M=2 x_batch_ndims=1 x_shape=3,2 x_strides=256 w_batch_ndims=1 w_shape=3 w_strides=15360 s_strides=2080 b_strides=2080 ; groups 1 65 3 / 32 2 1 ; ok
// @witness affine_qmv_wide_*_gs_32_*_batch_1 ; in_vec_size=32 out_vec_size=1 M=1 x_batch_ndims=1 x_shape=3,1 x_strides=32 w_batch_ndims=1 w_shape=3 w_strides=15 s_strides=1 b_strides=1 inplace=y,{scales|biases} ; groups 1 1 3 / 32 2 1 ; refused
// @witness affine_qmm_t_splitk_*_alN_false ; K=512 N=60 M=33 k_partition_size=128 split_k_partition_stride=1980 ; groups 2 2 4 / 32 2 2 ; ok
// @witness affine_qmm_t_splitk_*_alN_true ; K=512 N=60 M=33 k_partition_size=128 split_k_partition_stride=1980 ; groups 2 2 4 / 32 2 2 ; refused
// @witness affine_qmm_t_splitk_*_alN_* ; K=512 N=64 M=33 k_partition_size=128 split_k_partition_stride=2112 ; groups 2 2 4 / 32 2 2 ; ok
// @witness affine_qmm_t_splitk_*_alN_* ; K=512 N=64 M=33 k_partition_size=128 split_k_partition_stride=2112 ; groups 2 2 3 / 32 2 2 ; refused
// @witness affine_qmm_t_splitk_*_alN_* ; K=512 N=64 M=33 k_partition_size=128 split_k_partition_stride=2113 ; groups 2 2 4 / 32 2 2 ; refused
// @witness affine_qmm_t_splitk_*_alN_* ; K=512 N=64 M=33 k_partition_size=128 split_k_partition_stride=2112 ; groups 2 2 4 / 64 2 1 ; refused
// @witness affine_qmm_t_splitk_*_alN_* ; K=256 N=1056 M=1056 k_partition_size=128 split_k_partition_stride=1115136 ; groups 33 33 2 / 32 2 2 ; ok
// @witness affine_qmm_t_splitk_*_gs_32_*_alN_* ; K=64 N=32 M=1 k_partition_size=32 split_k_partition_stride=32 ; groups 1 1 2 / 32 2 2 ; ok
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=0 align_K@202=0 M=40 N=128 K=128 num_groups=3 ; groups 4 5 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 5 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=3 N=128 K=128 num_groups=8 ; groups 4 3 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 6 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 4 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 5 2 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 5 1 / 64 1 1 ; refused
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=1 ; groups 4 3 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=0 ; groups 4 2 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=0 align_K@202=1 M=40 N=60 K=128 num_groups=3 ; groups 2 5 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=1 align_K@202=1 M=40 N=60 K=128 num_groups=3 ; groups 2 5 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=0 align_K@202=0 M=40 N=64 K=144 num_groups=3 ; groups 2 5 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=0 align_K@202=0 M=40 N=128 K=128 num_groups=3 ; groups 4 5 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 5 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=3 N=128 K=128 num_groups=8 ; groups 4 3 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 6 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 4 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 5 2 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=3 ; groups 4 5 1 / 64 1 1 ; refused
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=1 ; groups 4 3 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=128 num_groups=0 ; groups 4 2 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=0 M=40 N=128 K=60 num_groups=3 ; groups 4 5 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=1 M=40 N=128 K=60 num_groups=3 ; groups 4 5 1 / 32 2 1 ; refused
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=0 align_K@202=0 M=40 N=144 K=64 num_groups=3 ; groups 5 5 1 / 32 2 1 ; refused
// @witness affine_qmv_fast_*_batch_1_pr_{0|1}_* ; in_vec_size=512 out_vec_size=512 x_batch_ndims=1 x_shape=3,1 x_strides=512 w_batch_ndims=1 w_shape=3 w_strides=76800 s_strides=8192 b_strides=8192 inplace=y,x ; groups 1 64 3 / 32 2 1 ; refused
// @witness affine_qmv_wide_*_gs_32_*_batch_0 ; in_vec_size=32 out_vec_size=1 M=1 inplace=y,{scales|biases} ; groups 1 1 1 / 32 2 1 ; refused
// @witness affine_qmv_quad_*_gs_64_*_d_64_batch_0 ; in_vec_size=64 out_vec_size=1 inplace=y,{scales|biases} ; groups 1 1 1 / 32 1 1 ; refused
// @witness affine_qmv_quad_*_gs_128_*_d_128_batch_0 ; in_vec_size=128 out_vec_size=1 inplace=y,{scales|biases} ; groups 1 1 1 / 32 1 1 ; refused
// @witness affine_gather_qmm_rhs_nt_* ; align_N@201=0 align_K@202=1 M=49 N=33 K=128 num_groups=3 ; groups 2 6 1 / 32 2 1 ; ok
// @witness affine_gather_qmm_rhs_nn_* ; align_N@201=1 align_K@202=0 M=49 N=1152 K=9 num_groups=3 ; groups 36 6 1 / 32 2 1 ; ok
// @witness affine_qmm_t_splitk_*_alN_* ; K=256 N=64 M=112 k_partition_size=128 split_k_partition_stride=7168 ; groups 2 4 2 / 32 2 2 ; ok
// @witness gather_mm_offsets ; M=40 ; threads 8 1 1 / 8 1 1 ; ok
// @witness gather_mm_offsets ; M=0 ; threads 8 1 1 / 8 1 1 ; ok
// @witness gather_mm_offsets ; M=40 ; threads 8 2 1 / 8 1 1 ; refused
// @witness gather_mm_offsets ; M=40 ; threads 8 1 2 / 8 1 1 ; refused
// @witness steel_gemm_splitk_accum_* ; k_partitions=4 partition_stride=1980 ldd=60 ; threads 60 33 1 / 32 32 1 ; ok
// @witness steel_gemm_splitk_accum_* ; k_partitions=4 partition_stride=2112 ldd=64 ; threads 60 33 1 / 32 32 1 ; ok
// @witness steel_gemm_splitk_accum_* ; k_partitions=4 partition_stride=1980 ldd=59 ; threads 60 33 1 / 32 32 1 ; refused
// @witness steel_gemm_splitk_accum_* ; k_partitions=4 partition_stride=1980 ldd=60 ; threads 60 33 2 / 32 32 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent affine_qmv_quad_*_gs_128_*_d_128_batch_1#0 ; stride: {scales|biases}[2] 1 * ; a row has one group
// @equivalent affine_*_batch_1* ; require: {drop w_strides*|32 -> 33} ; other strides are no whole bytes
// @equivalent affine_gather_{qvm|qmm_n|qmm_t}_* ; require: {drop w_strides*|32 -> 33} ; likewise
// @equivalent affine_gather_qmm_rhs_nn_* ; groups: * ceil(N / 32) -> rounded down ; N is a multiple of 32
// @equivalent affine_qmv_wide_*_batch_1* ; slot: x_shape exchanged with w_shape ; of both the kernel needs the number of the batch
// @equivalent gather_mm_offsets* ; constant: offsets: {1 -> 2|1.0 -> 3.0} ; place M is as great as any
// @equivalent gather_mm_offsets* ; bound: offsets: * -> argmax(k < M + 1 + 1, * ; likewise
// @equivalent affine_*qvm_* ; inplace: allow y {scales|biases} ; rows of N and of N/g elements are alike for N = 0 alone
// @equivalent affine_*qmm_n_* ; inplace: allow y {scales|biases} ; likewise
// @equivalent affine_*qmm_n_* ; groups: * ceil(N / 32) -> rounded down ; N is a multiple of 32
// @equivalent affine_*_batch_1* ; slot: x_batch_ndims exchanged with w_batch_ndims ; both are 1
// @equivalent affine_qmm_*_batch_1* ; slot: x_shape exchanged with w_shape ; of both the kernel needs the number of the batch
// @equivalent affine_qvm_split_k_* ; slot: x_batch_ndims exchanged with w_batch_ndims ; both are 1
// @equivalent affine_qvm_split_k_*#0 ; slot: s_strides exchanged with b_strides ; they are equal
// @equivalent affine_qvm_split_k_*#1 ; require: drop apart* ; other strides are no whole bytes
// @equivalent affine_gather_* ; slot: x_batch_ndims exchanged with w_batch_ndims ; both are 1
// @equivalent affine_gather_*#0 ; slot: ?_batch_ndims exchanged with batch_ndims ; all three are 1
