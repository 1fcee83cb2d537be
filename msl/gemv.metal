// Dense matrix times vector and dense matrix times transposed matrix.

#include "products.h"
#include "tiles.h"

// sum_of_lanes adds v over each run of n neighbouring lanes; all get the sum.
template <int n>
inline float sum_of_lanes(float v) {
  if (n == 32) {
    return simd_sum(v);
  }
  for (int d = n / 2; d > 0; d /= 2) {
    v += simd_shuffle_xor(v, ushort(d));
  }
  return v;
}

// widened makes floats of the elements in 16 bytes.
inline void widened(uint4 bits, half, thread float* e) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const half2 two = as_type<half2>(bits[i]);
    e[2 * i] = float(two.x);
    e[2 * i + 1] = float(two.y);
  }
}
inline void widened(uint4 bits, float, thread float* e) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    e[i] = as_type<float>(bits[i]);
  }
}

// row_products leaves in acc what one thread adds to TM outputs from row
// `first` on: it takes TN elements of a row at a time, `step` elements apart,
// beginning at column `col`. Rows past N are read as the last one: their sums
// are for the caller to drop.
//
// TN elements are 16 bytes or 32, of which 16 are read at once where rows lie so. Memory
// answers late and then with much: some of these are asked for ahead, the first
// ones before x is there if `wait` is asked for, and of x the next one.
template <typename W, int TM, int TN, bool wait = true>
inline void row_products(
    const device W* mat, const device float* x, int K, int N, size_t ld, int first, int col, int step, thread float* acc) {
#pragma unroll
  for (int i = 0; i < TM; i++) {
    acc[i] = 0;
  }
  int k = col;
  const bool wide = ((ulong(mat) | ulong(x) | ld * sizeof(W)) & 15) == 0;
  if (wide) {
    constexpr int parts = 3;
    constexpr int pieces = TN * int(sizeof(W)) / 16;
    constexpr int in_piece = TN / pieces;
    uint4 p[parts][TM][pieces];
#pragma unroll
    for (int d = 0; d < parts; d++) {
      if (k + d * step + TN <= K) {
#pragma unroll
        for (int i = 0; i < TM; i++) {
#pragma unroll
          for (int j = 0; j < pieces; j++) {
            p[d][i][j] = wide_load<uint4>(mat + size_t(min(first + i, N - 1)) * ld + k + d * step + j * in_piece);
          }
        }
      }
    }
    if (wait) {
      wait_for_dispatches();
    }
    for (; k + TN <= K; k += parts * step) {
      float v[parts][TN];
      take<TN>(x + k, v[0]);
#pragma unroll
      for (int d = 0; d < parts; d++) {
        if (d + 1 < parts && k + (d + 1) * step + TN <= K) {
          take<TN>(x + k + (d + 1) * step, v[(d + 1) % parts]);
        }
        if (d == 0 || k + d * step + TN <= K) {
#pragma unroll
          for (int i = 0; i < TM; i++) {
            float e[TN];
#pragma unroll
            for (int j = 0; j < pieces; j++) {
              widened(p[d][i][j], W(0), e + j * in_piece);
            }
#pragma unroll
            for (int j = 0; j < TN; j++) {
              acc[i] = fma(e[j], v[d][j], acc[i]);
            }
          }
          const int next = k + (parts + d) * step;
          if (next + TN <= K) {
#pragma unroll
            for (int i = 0; i < TM; i++) {
#pragma unroll
              for (int j = 0; j < pieces; j++) {
                p[d][i][j] = wide_load<uint4>(mat + size_t(min(first + i, N - 1)) * ld + next + j * in_piece);
              }
            }
          }
        }
      }
    }
    // What is left of this thread's is at most one piece, of fewer than TN elements.
    k = col + (K - col) / step * step;
    if (k + TN <= K) {
      return;
    }
  } else if (wait) {
    wait_for_dispatches();
  }
  for (; k < K; k += step) {
    const int count = min(TN, K - k);
    float v[TN];
#pragma unroll
    for (int j = 0; j < TN; j++) {
      v[j] = j < count ? x[k + j] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < TM; i++) {
      const device W* row = mat + size_t(min(first + i, N - 1)) * ld + k;
#pragma unroll
      for (int j = 0; j < TN; j++) {
        if (j < count) {
          acc[i] = fma(float(row[j]), v[j], acc[i]);
        }
      }
    }
  }
}

// A threadgroup of BM × BN simdgroups computes BM·SM·TM outputs: SM × SN lanes
// split a simdgroup into SM rows of threads, a thread has TM outputs, and BN
// simdgroups share the columns of the same outputs. marix_ld, the distance of
// two rows, is spelled so in MLX's library.
//
// @lines   gemv(rows; threads; C)
// @mlx
// @arg     mat                  device f32[B, out_vec_size, in_vec_size : matrix_batch_stride[0], marix_ld, 1] read
// @arg     in_vec               device f32[B, in_vec_size : vector_batch_stride[0], 1] read
// @arg     bias                 device f32 unused
// @arg     out_vec              device f32[B, out_vec_size] write
// @arg     in_vec_size          constant i32
// @arg     out_vec_size         constant i32
// @arg     marix_ld             constant i32
// @arg     alpha                constant f32 unused
// @arg     beta                 constant f32 unused
// @arg     batch_ndim           constant i32 unused
// @arg     batch_shape          constant i32 unused
// @arg     vector_batch_stride  constant i64[1]
// @arg     matrix_batch_stride  constant i64[1]
// @arg     bias_batch_stride    constant i64 unused
// @arg     bias_stride          constant i32 unused
// @groups  ceil(out_vec_size/{rows}), 1, B
// @group   {threads}
// @require in_vec_size >= 1 && out_vec_size >= 1
// @term    out_vec[z,n] = round(f32, sum[{C}](k < in_vec_size, mat[z,n,k] * in_vec[z,k]))
// @end
// @kernel  gemv_float32_bm{bm:4|8}_bn1_sm1_sn32_tm4_tn4_nc0_axpby0
// @use     gemv((4*bm); 32, 1, bm; gemv_bn1_sn32)
// @kernel  gemv_float32_bm4_bn1_sm1_sn32_tm1_tn4_nc0_axpby0
// @use     gemv(4; 32, 1, 4; gemv_bn1_sn32)
// @kernel  gemv_float32_bm1_bn8_sm1_sn32_tm{tm:1|4}_tn4_nc0_axpby0
// @use     gemv(tm; 32, 8, 1; gemv_bn8_sn32)
// @kernel  gemv_float32_bm1_bn1_sm8_sn4_tm{tm:1|4}_tn4_nc0_axpby0
// @use     gemv((8*tm); 32, 1, 1; gemv_bn1_sn4)
template <typename T, int BM, int BN, int SM, int SN, int TM, int TN>
[[kernel, max_total_threads_per_threadgroup(32 * BM * BN)]] void gemv(
    const device T* mat [[buffer(0)]],
    const device T* in_vec [[buffer(1)]],
    const device T* bias [[buffer(2)]],
    device T* out_vec [[buffer(3)]],
    constant int& in_vec_size [[buffer(4)]],
    constant int& out_vec_size [[buffer(5)]],
    constant int& marix_ld [[buffer(6)]],
    constant float& alpha [[buffer(7)]],
    constant float& beta [[buffer(8)]],
    constant int& batch_ndim [[buffer(9)]],
    constant int* batch_shape [[buffer(10)]],
    constant long* vector_batch_stride [[buffer(11)]],
    constant long* matrix_batch_stride [[buffer(12)]],
    constant long* bias_batch_stride [[buffer(13)]],
    constant int& bias_stride [[buffer(14)]],
    PLACE) {
  constexpr int pitch = BM * SM * TM + TM;
  threadgroup float partial[BN > 1 ? BN * pitch : 1];

  mat += long(group.z) * matrix_batch_stride[0];
  in_vec += long(group.z) * vector_batch_stride[0];
  out_vec += size_t(group.z) * out_vec_size;

  const int slice = int(simdgroup) % BN; // of the columns
  const int column = int(lane) % SN;
  const int first = ((int(group.x) * BM + int(simdgroup) / BN) * SM + int(lane) / SN) * TM;
  float acc[TM];
  row_products<T, TM, TN>(
      mat, in_vec, in_vec_size, out_vec_size, marix_ld, first, (slice * SN + column) * TN, BN * SN * TN, acc);
#pragma unroll
  for (int i = 0; i < TM; i++) {
    acc[i] = sum_of_lanes<SN>(acc[i]);
  }
  if (BN > 1) {
    if (column == 0) {
#pragma unroll
      for (int i = 0; i < TM; i++) {
        partial[slice * pitch + i] = acc[i];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (slice == 0 && column == 0) {
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
      for (int s = 1; s < BN; s++) {
        acc[i] += partial[s * pitch + i];
      }
      if (first + i < out_vec_size) {
        out_vec[first + i] = stored(acc[i]);
      }
    }
  }
}

#define INSTANTIATE_GEMV(bm, bn, sm, sn, tm)                                                                   \
  template [[host_name("gemv_float32_bm" #bm "_bn" #bn "_sm" #sm "_sn" #sn "_tm" #tm "_tn4_nc0_axpby0")]]      \
  [[kernel]] decltype(gemv<float, bm, bn, sm, sn, tm, 4>) gemv<float, bm, bn, sm, sn, tm, 4>;

INSTANTIATE_GEMV(4, 1, 1, 32, 4)
INSTANTIATE_GEMV(8, 1, 1, 32, 4)
INSTANTIATE_GEMV(4, 1, 1, 32, 1)
INSTANTIATE_GEMV(1, 8, 1, 32, 1)
INSTANTIATE_GEMV(1, 8, 1, 32, 4)
INSTANTIATE_GEMV(1, 1, 8, 4, 1)
INSTANTIATE_GEMV(1, 1, 8, 4, 4)

// dot_rows leaves in result[i] the product of x with row first + i of a matrix
// [N, K], computed by a simdgroup. Rows past the end are read as the last one.
template <typename W, bool wait = true>
inline void dot_rows(const device W* mat, const device float* x, int K, int N, int first, uint lane, thread float* result) {
  constexpr int TN = 8;
  row_products<W, ROWS, TN, wait>(mat, x, K, N, K, first, int(lane) * TN, 32 * TN, result);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    result[i] = simd_sum(result[i]);
  }
}

// matvec is a threadgroup's block of 2·ROWS outputs of one product.
template <typename W>
inline void matvec(const device W* mat, const device float* x, device float* y, int K, int N, int block, uint simdgroup, uint lane) {
  const int first = (block * 2 + int(simdgroup)) * ROWS;
  float result[ROWS];
  dot_rows(mat, x, K, N, first, lane, result);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    if (lane == 0 && first + i < N) {
      y[first + i] = stored(result[i]);
    }
  }
}

// Weights of another type than the vector; two simdgroups, each 4 outputs.
//
// @kernel   gemv_{W:float16=f16}_float32
// @arg 0 mat  device {W}[N, K] read
// @arg 1 x    device f32[K] read
// @arg 2 y    device f32[N] write
// @arg 3 K    constant i32
// @arg 4 N    constant i32
// @groups   ceil(N/8), 1, 1
// @group    32, 2, 1
// @require  K >= 1 && N >= 1
// @term     y[n] = round(f32, sum[gemv_f16](k < K, mat[n,k] * x[k]))
template <typename W>
[[kernel]] void gemv_mixed(
    const device W* mat [[buffer(0)]],
    const device float* x [[buffer(1)]],
    device float* y [[buffer(2)]],
    constant int& K [[buffer(3)]],
    constant int& N [[buffer(4)]],
    PLACE) {
  matvec(mat, x, y, K, N, int(group.x), simdgroup, lane);
}

// Two products of one input: their blocks follow each other in the grid.
//
// @kernel  gemv_{arms:x2=0 1|x3=0 1 2}_{W:float16=f16}_float32
// @each    i = {arms}
// @arg     w{i}  device {W}[n{i}, K] read
// @end
// @arg     x     device f32[K] read
// @each    i = {arms}
// @arg     y{i}  device f32[n{i}] write
// @term    y{i}[n] = round(f32, sum[gemv_f16](k < K, w{i}[n,k] * x[k]))
// @end
// @arg     K     constant i32
// @each    i = {arms}
// @arg     n{i}  constant i32
// @end
// @groups  {each i = {arms}; ceil(n{i}/8); +}, 1, 1
// @group   32, 2, 1
// @require K >= 1 && {each i = {arms}; n{i} >= 1; &&}
template <typename W>
[[kernel]] void gemv_x2(
    const device W* w0 [[buffer(0)]],
    const device W* w1 [[buffer(1)]],
    const device float* x [[buffer(2)]],
    device float* y0 [[buffer(3)]],
    device float* y1 [[buffer(4)]],
    constant int& K [[buffer(5)]],
    constant int& n0 [[buffer(6)]],
    constant int& n1 [[buffer(7)]],
    PLACE) {
  int block = int(group.x);
  const int blocks0 = (n0 + 2 * ROWS - 1) / (2 * ROWS);
  if (block < blocks0) {
    matvec(w0, x, y0, K, n0, block, simdgroup, lane);
    return;
  }
  block -= blocks0;
  matvec(w1, x, y1, K, n1, block, simdgroup, lane);
}

// Three products of one input: their blocks follow each other in the grid.
template <typename W>
[[kernel]] void gemv_x3(
    const device W* w0 [[buffer(0)]],
    const device W* w1 [[buffer(1)]],
    const device W* w2 [[buffer(2)]],
    const device float* x [[buffer(3)]],
    device float* y0 [[buffer(4)]],
    device float* y1 [[buffer(5)]],
    device float* y2 [[buffer(6)]],
    constant int& K [[buffer(7)]],
    constant int& n0 [[buffer(8)]],
    constant int& n1 [[buffer(9)]],
    constant int& n2 [[buffer(10)]],
    PLACE) {
  int block = int(group.x);
  const int blocks0 = (n0 + 2 * ROWS - 1) / (2 * ROWS);
  if (block < blocks0) {
    matvec(w0, x, y0, K, n0, block, simdgroup, lane);
    return;
  }
  block -= blocks0;
  const int blocks1 = (n1 + 2 * ROWS - 1) / (2 * ROWS);
  if (block < blocks1) {
    matvec(w1, x, y1, K, n1, block, simdgroup, lane);
    return;
  }
  block -= blocks1;
  matvec(w2, x, y2, K, n2, block, simdgroup, lane);
}

// A product and the residual that it is added to.
//
// @kernel   gemv_add_{W:float16=f16}_float32
// @arg 0 w  device {W}[N, K] read
// @arg 1 x  device f32[K] read
// @arg 2 r  device f32[N] read
// @arg 3 y  device f32[N] write
// @arg 4 K  constant i32
// @arg 5 N  constant i32
// @groups   ceil(N/8), 1, 1
// @group    32, 2, 1
// @require  K >= 1 && N >= 1
// @inplace  y r
// @term     y[n] = round(f32, r[n] + sum[gemv_f16](k < K, w[n,k] * x[k]))
template <typename W>
[[kernel]] void gemv_add(
    const device W* w [[buffer(0)]],
    const device float* x [[buffer(1)]],
    const device float* r [[buffer(2)]],
    device float* y [[buffer(3)]],
    constant int& K [[buffer(4)]],
    constant int& N [[buffer(5)]],
    PLACE) {
  const int first = (int(group.x) * 2 + int(simdgroup)) * ROWS;
  float result[ROWS];
  dot_rows(w, x, K, N, first, lane, result);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    if (lane == 0 && first + i < N) {
      y[first + i] = stored(r[first + i] + result[i]);
    }
  }
}

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @kernel  gemv_silu_mul_{W:float16=f16}_float32
// @each    i = gate up
// @arg     w_{i}  device {W}[N, K] read
// @where   {i}[n] = sum[gemv_f16](k < K, w_{i}[n,k] * x[k])
// @end
// @arg     x      device f32[K] read
// @arg     y      device f32[N] write
// @arg     K      constant i32
// @arg     N      constant i32
// @groups  ceil(N/8), 1, 1
// @group   32, 2, 1
// @require K >= 1 && N >= 1
// @term    y[n] = {silu_mul(n; f32)}
template <typename W>
[[kernel]] void gemv_silu_mul(
    const device W* w_gate [[buffer(0)]],
    const device W* w_up [[buffer(1)]],
    const device float* x [[buffer(2)]],
    device float* y [[buffer(3)]],
    constant int& K [[buffer(4)]],
    constant int& N [[buffer(5)]],
    PLACE) {
  const int first = (int(group.x) * 2 + int(simdgroup)) * ROWS;
  float gate[ROWS];
  float up[ROWS];
  dot_rows(w_gate, x, K, N, first, lane, gate);
  dot_rows<W, false>(w_up, x, K, N, first, lane, up);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    if (lane == 0 && first + i < N) {
      y[first + i] = stored(silu_mul(gate[i], up[i]));
    }
  }
}

template [[host_name("gemv_float16_float32")]] [[kernel]] decltype(gemv_mixed<half>) gemv_mixed<half>;
template [[host_name("gemv_x2_float16_float32")]] [[kernel]] decltype(gemv_x2<half>) gemv_x2<half>;
template [[host_name("gemv_x3_float16_float32")]] [[kernel]] decltype(gemv_x3<half>) gemv_x3<half>;
template [[host_name("gemv_add_float16_float32")]] [[kernel]] decltype(gemv_add<half>) gemv_add<half>;
template [[host_name("gemv_silu_mul_float16_float32")]] [[kernel]] decltype(gemv_silu_mul<half>) gemv_silu_mul<half>;

// Matrix times vector with matrices picked from a stack, the experts of a
// mixture: row r of x, or the row of each of its slots, times the matrices
// ids[r,…]. x_strides has 0 for slots that share a row. An id outside the stack
// makes NaN, and nothing outside is read.
//
// @kernel   gather_gemv_{W:float32=f32|float16_float32=f16}
// @arg 0 mat        device {W}[E, N, K] read
// @arg 1 x          device f32[rows, slots, K : x_strides[0], x_strides[1], 1] read
// @arg 2 ids        device u32[rows, slots] read
// @arg 3 y          device f32[rows, slots, N] write
// @arg 4 K          constant i32
// @arg 5 N          constant i32
// @arg 6 E          constant i32
// @arg 7 x_strides  constant i64[2]
// @groups   ceil(N/8), slots, rows
// @group    32, 2, 1
// @require  K >= 1 && N >= 1
// @where    dot[r,s,n] = sum[gemv_f16](k < K, mat[ids[r,s],n,k] * x[r,s,k])
// @term     y[r,s,n] = round(f32, select(ids[r,s] < E, dot[r,s,n], inf - inf))
template <typename W>
[[kernel]] void gather_gemv(
    const device W* mat [[buffer(0)]],
    const device float* x [[buffer(1)]],
    const device uint* ids [[buffer(2)]],
    device float* y [[buffer(3)]],
    constant int& K [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant int& E [[buffer(6)]],
    constant long x_strides[2] [[buffer(7)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint3 groups [[threadgroups_per_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const size_t at = size_t(group.z) * groups.y + group.y;
  const uint id = ids[at];
  const int first = (int(group.x) * 2 + int(simdgroup)) * ROWS;
  float result[ROWS];
  if (id < uint(E)) {
    dot_rows(mat + size_t(id) * N * K, x + long(group.z) * x_strides[0] + long(group.y) * x_strides[1], K, N, first, lane, result);
  }
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    if (lane == 0 && first + i < N) {
      y[at * N + first + i] = stored(id < uint(E) ? result[i] : NAN);
    }
  }
}

template [[host_name("gather_gemv_float32")]] [[kernel]] decltype(gather_gemv<float>) gather_gemv<float>;
template [[host_name("gather_gemv_float16_float32")]] [[kernel]] decltype(gather_gemv<half>) gather_gemv<half>;

// load_row brings 8 elements of a row to threadgroup memory; elements past
// `count` become zero.
template <typename T>
inline void load_row(const device T* from, threadgroup float* to, int count) {
#pragma unroll
  for (int i = 0; i < 8; i++) {
    to[i] = i < count ? float(from[i]) : 0.0f;
  }
}

// multiply_tile adds up the tile of x·wᵀ at (m0, n0) in a threadgroup's four
// simdgroups, a quarter each: acc[2·i + j] is the 8 × 8 block at (8·i, 8·j) of the
// quarter. Per step it brings TILE columns of x and w to threadgroup memory, a
// thread 8 elements of a row each.
template <typename W>
inline void multiply_tile(
    const device float* x, const device W* w, int K, int N, int M, int m0, int n0, threadgroup float* xs, threadgroup float* ws, uint thread_id, uint simdgroup,
    thread simdgroup_float8x8* acc) {
  const int row = int(thread_id) / 4;
  const int col = int(thread_id) % 4 * 8;
  const bool in_x = m0 + row < M;
  const bool in_w = n0 + row < N;
  threadgroup float* xt = xs + row * PITCH + col;
  threadgroup float* wt = ws + row * PITCH + col;
  x += size_t(in_x ? m0 + row : 0) * K;
  w += size_t(in_w ? n0 + row : 0) * K;

  const int sm = int(simdgroup) / 2 * 16;
  const int sn = int(simdgroup) % 2 * 16;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }

  // All threads count alike, which shows that they leave together.
  for (int begin = 0; begin < K; begin += TILE) {
    const int k = begin + col;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    load_row(x + k, xt, in_x ? K - k : 0);
    load_row(w + k, wt, in_w ? K - k : 0);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    add_product(xs, ws, sm, sn, acc);
  }
}

// matmul is the tile at (m0, n0) of y = x·wᵀ.
template <typename W>
inline void matmul(
    const device float* x, const device W* w, device float* y, int K, int N, int M, int m0, int n0, threadgroup float* xs, threadgroup float* ws, uint thread_id,
    uint simdgroup) {
  simdgroup_float8x8 acc[4];
  multiply_tile(x, w, K, N, M, m0, n0, xs, ws, thread_id, simdgroup, acc);
  store_tile<false>(acc, y, N, M, m0, n0, xs, thread_id, simdgroup);
}

// y = x·wᵀ: a threadgroup computes a TILE × TILE tile of y.
//
// @kernel   gemm_nt_{W:float32=f32|float16_float32=f16}
// @arg 0 x  device f32[M, K] read
// @arg 1 w  device {W}[N, K] read
// @arg 2 y  device f32[M, N] write
// @arg 3 K  constant i32
// @arg 4 N  constant i32
// @arg 5 M  constant i32
// @groups   ceil(N/32), ceil(M/32), 1
// @group    32, 2, 2
// @require  K >= 1 && N >= 1 && M >= 1
// @term     y[m,n] = round(f32, sum[gemm](k < K, x[m,k] * w[n,k]))
template <typename W>
[[kernel]] void gemm_nt(
    const device float* x [[buffer(0)]],
    const device W* w [[buffer(1)]],
    device float* y [[buffer(2)]],
    constant int& K [[buffer(3)]],
    constant int& N [[buffer(4)]],
    constant int& M [[buffer(5)]],
    TILE_PLACE) {
  threadgroup float xs[TILE * PITCH];
  threadgroup float ws[TILE * PITCH];
  matmul(x, w, y, K, N, M, int(group.y) * TILE, int(group.x) * TILE, xs, ws, thread_id, simdgroup);
}

// Two products of one input: their tiles follow each other along x.
//
// @kernel  gemm_nt_{arms:x2=0 1|x3=0 1 2}_{W:float32=f32|float16_float32=f16}
// @each    i = {arms}
// @arg     w{i}  device {W}[n{i}, K] read
// @end
// @arg     x     device f32[M, K] read
// @each    i = {arms}
// @arg     y{i}  device f32[M, n{i}] write
// @term    y{i}[m,n] = round(f32, sum[gemm](k < K, x[m,k] * w{i}[n,k]))
// @end
// @arg     K     constant i32
// @each    i = {arms}
// @arg     n{i}  constant i32
// @end
// @arg     M     constant i32
// @groups  {each i = {arms}; ceil(n{i}/32); +}, ceil(M/32), 1
// @group   32, 2, 2
// @require K >= 1 && {each i = {arms}; n{i} >= 1; &&} && M >= 1
template <typename W>
[[kernel]] void gemm_nt_x2(
    const device W* w0 [[buffer(0)]],
    const device W* w1 [[buffer(1)]],
    const device float* x [[buffer(2)]],
    device float* y0 [[buffer(3)]],
    device float* y1 [[buffer(4)]],
    constant int& K [[buffer(5)]],
    constant int& n0 [[buffer(6)]],
    constant int& n1 [[buffer(7)]],
    constant int& M [[buffer(8)]],
    TILE_PLACE) {
  threadgroup float xs[TILE * PITCH];
  threadgroup float ws[TILE * PITCH];
  const int m0 = int(group.y) * TILE;
  int column = int(group.x);
  const int columns0 = (n0 + TILE - 1) / TILE;
  if (column < columns0) {
    matmul(x, w0, y0, K, n0, M, m0, column * TILE, xs, ws, thread_id, simdgroup);
    return;
  }
  column -= columns0;
  matmul(x, w1, y1, K, n1, M, m0, column * TILE, xs, ws, thread_id, simdgroup);
}

// Three products of one input: their tiles follow each other along x.
template <typename W>
[[kernel]] void gemm_nt_x3(
    const device W* w0 [[buffer(0)]],
    const device W* w1 [[buffer(1)]],
    const device W* w2 [[buffer(2)]],
    const device float* x [[buffer(3)]],
    device float* y0 [[buffer(4)]],
    device float* y1 [[buffer(5)]],
    device float* y2 [[buffer(6)]],
    constant int& K [[buffer(7)]],
    constant int& n0 [[buffer(8)]],
    constant int& n1 [[buffer(9)]],
    constant int& n2 [[buffer(10)]],
    constant int& M [[buffer(11)]],
    TILE_PLACE) {
  threadgroup float xs[TILE * PITCH];
  threadgroup float ws[TILE * PITCH];
  const int m0 = int(group.y) * TILE;
  int column = int(group.x);
  const int columns0 = (n0 + TILE - 1) / TILE;
  if (column < columns0) {
    matmul(x, w0, y0, K, n0, M, m0, column * TILE, xs, ws, thread_id, simdgroup);
    return;
  }
  column -= columns0;
  const int columns1 = (n1 + TILE - 1) / TILE;
  if (column < columns1) {
    matmul(x, w1, y1, K, n1, M, m0, column * TILE, xs, ws, thread_id, simdgroup);
    return;
  }
  column -= columns1;
  matmul(x, w2, y2, K, n2, M, m0, column * TILE, xs, ws, thread_id, simdgroup);
}

// A product and the residual that it is added to.
//
// @kernel   gemm_nt_add_{W:float32=f32|float16_float32=f16}
// @arg 0 w  device {W}[N, K] read
// @arg 1 x  device f32[M, K] read
// @arg 2 r  device f32[M, N] read
// @arg 3 y  device f32[M, N] write
// @arg 4 K  constant i32
// @arg 5 N  constant i32
// @arg 6 M  constant i32
// @groups   ceil(N/32), ceil(M/32), 1
// @group    32, 2, 2
// @require  K >= 1 && N >= 1 && M >= 1
// @inplace  y r
// @term     y[m,n] = round(f32, r[m,n] + sum[gemm](k < K, x[m,k] * w[n,k]))
template <typename W>
[[kernel]] void gemm_nt_add(
    const device W* w [[buffer(0)]],
    const device float* x [[buffer(1)]],
    const device float* r [[buffer(2)]],
    device float* y [[buffer(3)]],
    constant int& K [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant int& M [[buffer(6)]],
    TILE_PLACE) {
  threadgroup float xs[TILE * PITCH];
  threadgroup float ws[TILE * PITCH];
  const int m0 = int(group.y) * TILE;
  const int n0 = int(group.x) * TILE;
  simdgroup_float8x8 acc[4];
  multiply_tile(x, w, K, N, M, m0, n0, xs, ws, thread_id, simdgroup, acc);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  spread(acc, xs, simdgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int row = int(thread_id) / 4;
  const int col = int(thread_id) % 4 * 8;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    if (m0 + row < M && n0 + col + i < N) {
      const size_t at = size_t(m0 + row) * N + n0 + col + i;
      y[at] = stored(r[at] + xs[row * PITCH + col + i]);
    }
  }
}

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @kernel  gemm_nt_silu_mul_{W:float32=f32|float16_float32=f16}
// @each    i = gate up
// @arg     w_{i}  device {W}[N, K] read
// @where   {i}[m,n] = sum[gemm](k < K, x[m,k] * w_{i}[n,k])
// @end
// @arg     x      device f32[M, K] read
// @arg     y      device f32[M, N] write
// @arg     K      constant i32
// @arg     N      constant i32
// @arg     M      constant i32
// @groups  ceil(N/32), ceil(M/32), 1
// @group   32, 2, 2
// @require K >= 1 && N >= 1 && M >= 1
// @term    y[m,n] = {silu_mul(m,n; f32)}
template <typename W>
[[kernel]] void gemm_nt_silu_mul(
    const device W* w_gate [[buffer(0)]],
    const device W* w_up [[buffer(1)]],
    const device float* x [[buffer(2)]],
    device float* y [[buffer(3)]],
    constant int& K [[buffer(4)]],
    constant int& N [[buffer(5)]],
    constant int& M [[buffer(6)]],
    TILE_PLACE) {
  threadgroup float xs[TILE * PITCH];
  threadgroup float ws[TILE * PITCH];
  const int m0 = int(group.y) * TILE;
  const int n0 = int(group.x) * TILE;
  simdgroup_float8x8 gate[4];
  simdgroup_float8x8 up[4];
  multiply_tile(x, w_gate, K, N, M, m0, n0, xs, ws, thread_id, simdgroup, gate);
  multiply_tile(x, w_up, K, N, M, m0, n0, xs, ws, thread_id, simdgroup, up);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  spread(gate, xs, simdgroup);
  spread(up, ws, simdgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int row = int(thread_id) / 4;
  const int col = int(thread_id) % 4 * 8;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    if (m0 + row < M && n0 + col + i < N) {
      y[size_t(m0 + row) * N + n0 + col + i] = stored(silu_mul(xs[row * PITCH + col + i], ws[row * PITCH + col + i]));
    }
  }
}

// load_column is load_row for a matrix whose elements lie along the other side:
// from is 8 elements of one depth, of the tile's rows from `first` on.
inline void load_column(const device float* from, threadgroup float* tile, int first, int depth, int count) {
#pragma unroll
  for (int i = 0; i < 8; i++) {
    tile[(first + i) * PITCH + depth] = i < count ? from[i] : 0.0f;
  }
}

// multiply_tile_t is multiply_tile for w [K, N] and, with TX, for x [K, M]: the
// same tiles come to threadgroup memory, so the same sums.
template <bool TX>
inline void multiply_tile_t(
    const device float* x, const device float* w, int K, int N, int M, int m0, int n0, threadgroup float* xs, threadgroup float* ws, uint thread_id,
    uint simdgroup, thread simdgroup_float8x8* acc) {
  const int row = int(thread_id) / 4;
  const int col = int(thread_id) % 4 * 8;
  const int sm = int(simdgroup) / 2 * 16;
  const int sn = int(simdgroup) % 2 * 16;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    acc[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }

  for (int k = 0; k < K; k += TILE) {
    const bool in_k = k + row < K;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (TX) {
      load_column(x + size_t(in_k ? k + row : 0) * M + m0 + col, xs, col, row, in_k ? M - m0 - col : 0);
    } else {
      const bool in_x = m0 + row < M;
      load_row(x + size_t(in_x ? m0 + row : 0) * K + k + col, xs + row * PITCH + col, in_x ? K - k - col : 0);
    }
    load_column(w + size_t(in_k ? k + row : 0) * N + n0 + col, ws, col, row, in_k ? N - n0 - col : 0);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    add_product(xs, ws, sm, sn, acc);
  }
}

// y = x·w: the gradient of the input of a linear layer, for w [its outputs, its
// inputs].
//
// @lines   gemm()
// @arg     K  constant i32
// @arg     N  constant i32
// @arg     M  constant i32
// @groups  ceil(N/32), ceil(M/32), 1
// @group   32, 2, 2
// @require K >= 1 && N >= 1 && M >= 1
// @end
// @kernel  gemm_nn_{T:float32=f32}
// @arg     x  device {T}[M, K] read
// @arg     w  device {T}[K, N] read
// @arg     y  device {T}[M, N] write
// @use     gemm()
// @term    y[m,n] = round({T}, sum[gemm](k < K, x[m,k] * w[k,n]))
//
// y = xᵀ·w: the gradient of its weight, for x the gradient of its output and w its
// input, row by row of a batch of K.
//
// @kernel  gemm_tn_{T:float32=f32}
// @arg     x  device {T}[K, M] read
// @arg     w  device {T}[K, N] read
// @arg     y  device {T}[M, N] write
// @use     gemm()
// @term    y[m,n] = round({T}, sum[gemm](k < K, x[k,m] * w[k,n]))
template <bool TX>
[[kernel]] void gemm_t(
    const device float* x [[buffer(0)]],
    const device float* w [[buffer(1)]],
    device float* y [[buffer(2)]],
    constant int& K [[buffer(3)]],
    constant int& N [[buffer(4)]],
    constant int& M [[buffer(5)]],
    TILE_PLACE) {
  threadgroup float xs[TILE * PITCH];
  threadgroup float ws[TILE * PITCH];
  const int m0 = int(group.y) * TILE;
  const int n0 = int(group.x) * TILE;
  simdgroup_float8x8 acc[4];
  multiply_tile_t<TX>(x, w, K, N, M, m0, n0, xs, ws, thread_id, simdgroup, acc);
  store_tile<false>(acc, y, N, M, m0, n0, xs, thread_id, simdgroup);
}

template [[host_name("gemm_nt_float32")]] [[kernel]] decltype(gemm_nt<float>) gemm_nt<float>;
template [[host_name("gemm_nt_float16_float32")]] [[kernel]] decltype(gemm_nt<half>) gemm_nt<half>;
template [[host_name("gemm_nn_float32")]] [[kernel]] decltype(gemm_t<false>) gemm_t<false>;
template [[host_name("gemm_tn_float32")]] [[kernel]] decltype(gemm_t<true>) gemm_t<true>;
template [[host_name("gemm_nt_x2_float32")]] [[kernel]] decltype(gemm_nt_x2<float>) gemm_nt_x2<float>;
template [[host_name("gemm_nt_x2_float16_float32")]] [[kernel]] decltype(gemm_nt_x2<half>) gemm_nt_x2<half>;
template [[host_name("gemm_nt_x3_float32")]] [[kernel]] decltype(gemm_nt_x3<float>) gemm_nt_x3<float>;
template [[host_name("gemm_nt_x3_float16_float32")]] [[kernel]] decltype(gemm_nt_x3<half>) gemm_nt_x3<half>;
template [[host_name("gemm_nt_add_float32")]] [[kernel]] decltype(gemm_nt_add<float>) gemm_nt_add<float>;
template [[host_name("gemm_nt_add_float16_float32")]] [[kernel]] decltype(gemm_nt_add<half>) gemm_nt_add<half>;
template [[host_name("gemm_nt_silu_mul_float32")]] [[kernel]] decltype(gemm_nt_silu_mul<float>) gemm_nt_silu_mul<float>;
template [[host_name("gemm_nt_silu_mul_float16_float32")]] [[kernel]] decltype(gemm_nt_silu_mul<half>) gemm_nt_silu_mul<half>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Dense products: (bm·sm·tm) rows a threadgroup of 32·bm·bn threads.
//
// @witness gemv_float32_bm4_bn1_sm1_sn32_tm4_* ; in_vec_size=576 out_vec_size=1537 marix_ld=576 ; groups 97 1 1 / 32 1 4 ; ok
// @witness gemv_float32_bm8_bn1_sm1_sn32_tm4_* ; in_vec_size=576 out_vec_size=49152 marix_ld=576 ; groups 1536 1 1 / 32 1 8 ; ok
// @witness gemv_float32_bm8_bn1_sm1_sn32_tm4_* ; in_vec_size=576 out_vec_size=4100 marix_ld=576 ; groups 129 1 1 / 32 1 8 ; ok
// @witness gemv_float32_bm4_bn1_sm1_sn32_tm1_* ; in_vec_size=576 out_vec_size=3 marix_ld=600 ; groups 1 1 1 / 32 1 4 ; ok
// @witness gemv_float32_bm4_bn1_sm1_sn32_tm1_* ; in_vec_size=576 out_vec_size=5 marix_ld=600 ; groups 2 1 1 / 32 1 4 ; ok
// @witness gemv_float32_bm1_bn8_sm1_sn32_tm4_* ; in_vec_size=1024 out_vec_size=62 marix_ld=1024 ; groups 16 1 1 / 32 8 1 ; ok
// @witness gemv_float32_bm1_bn8_sm1_sn32_tm1_* ; in_vec_size=1024 out_vec_size=3 marix_ld=1024 ; groups 3 1 1 / 32 8 1 ; ok
// @witness gemv_float32_bm1_bn1_sm8_sn4_tm4_* ; in_vec_size=64 out_vec_size=580 marix_ld=64 ; groups 19 1 1 / 32 1 1 ; ok
// @witness gemv_float32_bm1_bn1_sm8_sn4_tm1_* ; in_vec_size=64 out_vec_size=3 marix_ld=64 ; groups 1 1 1 / 32 1 1 ; ok
// @witness gemv_float32_bm1_bn1_sm8_sn4_tm1_* ; in_vec_size=64 out_vec_size=9 marix_ld=64 ; groups 2 1 1 / 32 1 1 ; ok
// @witness gemv_float32_bm4_bn1_sm1_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 8 ; refused
// @witness gemv_float32_bm4_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 4 ; ok
// @witness gemv_float32_bm4_* ; in_vec_size=0 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 4 ; refused
// @witness gemv_float32_bm4_* ; in_vec_size=1 out_vec_size=0 marix_ld=1 ; groups 0 1 1 / 32 1 4 ; refused
// @witness gemv_float32_bm8_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 8 ; ok
// @witness gemv_float32_bm1_bn8_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 8 1 ; ok
// @witness gemv_float32_bm1_bn8_* ; in_vec_size=0 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 8 1 ; refused
// @witness gemv_float32_bm1_bn8_* ; in_vec_size=1 out_vec_size=0 marix_ld=1 ; groups 0 1 1 / 32 8 1 ; refused
// @witness gemv_float32_bm1_bn1_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 1 ; ok
// @witness gemv_float32_bm1_bn1_* ; in_vec_size=0 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 1 ; refused
// @witness gemv_float32_bm1_bn1_* ; in_vec_size=1 out_vec_size=0 marix_ld=1 ; groups 0 1 1 / 32 1 1 ; refused
// @witness gemv_float32_bm4_bn1_sm1_sn32_tm4_* ; in_vec_size=64 out_vec_size=100 marix_ld=64 vector_batch_stride=64 matrix_batch_stride=6400 ; groups 7 1 3 / 32 1 4 ; ok
// @witness gemv_float16_float32 ; K=576 N=1537 ; groups 193 1 1 / 32 2 1 ; ok
// @witness gemv_{|add_}float16_float32 ; K=1 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gemv_{|add_}float16_float32 ; K=0 N=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_{|add_}float16_float32 ; K=1 N=0 ; groups 0 1 1 / 32 2 1 ; refused
// @witness gemm_{nt_float*|[nt]n_float32} ; K=576 N=97 M=65 ; groups 4 3 1 / 32 2 2 ; ok
// @witness gemm_nt_{|add_}float* ; K=1 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness gemm_nt_{|add_}float* ; K=0 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nt_{|add_}float* ; K=1 N=0 M=1 ; groups 0 1 1 / 32 2 2 ; refused
// @witness gemm_nt_{|add_}float* ; K=1 N=1 M=0 ; groups 1 0 1 / 32 2 2 ; refused
//
// Fused dense products.
//
// @witness gemv_x2_float16_float32 ; K=192 n0=153 n1=117 ; groups 35 1 1 / 32 2 1 ; ok
// @witness gemv_x2_float16_float32 ; K=192 n0=153 n1=117 ; groups 36 1 1 / 32 2 1 ; refused
// @witness gemv_x2_float16_float32 ; K=1 n0=1 n1=1 ; groups 2 1 1 / 32 2 1 ; ok
// @witness gemv_x2_float16_float32 ; K=0 n0=1 n1=1 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x2_float16_float32 ; K=1 n0=0 n1=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_x2_float16_float32 ; K=1 n0=1 n1=0 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_x2_float16_float32 ; K=64 n0=64 n1=1 inplace=y0,x ; groups 9 1 1 / 32 2 1 ; refused
// @witness gemv_x2_float16_float32 ; K=64 n0=1 n1=64 inplace=y1,x ; groups 9 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=192 n0=153 n1=117 n2=69 ; groups 44 1 1 / 32 2 1 ; ok
// @witness gemv_x3_float16_float32 ; K=192 n0=153 n1=117 n2=69 ; groups 45 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=1 n0=1 n1=1 n2=1 ; groups 3 1 1 / 32 2 1 ; ok
// @witness gemv_x3_float16_float32 ; K=0 n0=1 n1=1 n2=1 ; groups 3 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=1 n0=0 n1=1 n2=1 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=1 n0=1 n1=0 n2=1 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=1 n0=1 n1=1 n2=0 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=64 n0=64 n1=1 n2=1 inplace=y0,x ; groups 10 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=64 n0=1 n1=64 n2=1 inplace=y1,x ; groups 10 1 1 / 32 2 1 ; refused
// @witness gemv_x3_float16_float32 ; K=64 n0=1 n1=1 n2=64 inplace=y2,x ; groups 10 1 1 / 32 2 1 ; refused
// @witness gemv_{add|silu_mul}_float16_float32 ; K=192 N=153 ; groups 20 1 1 / 32 2 1 ; ok
// @witness gemv_{add|silu_mul}_float16_float32 ; K=192 N=153 ; groups 21 1 1 / 32 2 1 ; refused
// @witness gemv_add_float16_float32 ; K=192 N=153 inplace=y,r ; groups 20 1 1 / 32 2 1 ; ok
// @witness gemv_{add|silu_mul}_float16_float32 ; K=64 N=64 inplace=y,x ; groups 8 1 1 / 32 2 1 ; refused
// @witness gemv_silu_mul_float16_float32 ; K=1 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gemv_silu_mul_float16_float32 ; K=0 N=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_silu_mul_float16_float32 ; K=1 N=0 ; groups 0 1 1 / 32 2 1 ; refused
// @witness gemm_nt_x2_float* ; K=192 n0=97 n1=65 M=65 ; groups 7 3 1 / 32 2 2 ; ok
// @witness gemm_nt_x2_float* ; K=192 n0=97 n1=65 M=65 ; groups 8 3 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_float* ; K=1 n0=1 n1=1 M=1 ; groups 2 1 1 / 32 2 2 ; ok
// @witness gemm_nt_x2_float* ; K=0 n0=1 n1=1 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_float* ; K=1 n0=0 n1=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_float* ; K=1 n0=1 n1=0 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_float* ; K=1 n0=1 n1=1 M=0 ; groups 2 0 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_float* ; K=64 n0=64 n1=1 M=1 inplace=y0,x ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_float32 ; K=1 n0=1 n1=1 M=1 inplace=y{0|1},w{0|1} ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_float* ; K=64 n0=1 n1=64 M=1 inplace=y1,x ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=192 n0=97 n1=65 n2=33 M=65 ; groups 9 3 1 / 32 2 2 ; ok
// @witness gemm_nt_x3_float* ; K=192 n0=97 n1=65 n2=33 M=65 ; groups 10 3 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=1 n0=1 n1=1 n2=1 M=1 ; groups 3 1 1 / 32 2 2 ; ok
// @witness gemm_nt_x3_float* ; K=0 n0=1 n1=1 n2=1 M=1 ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=1 n0=0 n1=1 n2=1 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=1 n0=1 n1=0 n2=1 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=1 n0=1 n1=1 n2=0 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=1 n0=1 n1=1 n2=1 M=0 ; groups 3 0 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=64 n0=64 n1=1 n2=1 M=1 inplace=y0,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float32 ; K=1 n0=1 n1=1 n2=1 M=1 inplace=y{0|1|2},w{0|1|2} ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=64 n0=1 n1=64 n2=1 M=1 inplace=y1,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_float* ; K=64 n0=1 n1=1 n2=64 M=1 inplace=y2,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nt_{add|silu_mul}_float* ; K=192 N=97 M=65 ; groups 4 3 1 / 32 2 2 ; ok
// @witness gemm_nt_{add|silu_mul}_float* ; K=192 N=97 M=65 ; groups 5 3 1 / 32 2 2 ; refused
// @witness gemm_nt_add_float* ; K=192 N=97 M=65 inplace=y,r ; groups 4 3 1 / 32 2 2 ; ok
// @witness gemm_nt_{add|silu_mul}_float* ; K=64 N=64 M=1 inplace=y,x ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_add_float32 ; K=1 N=1 M=1 inplace=y,w ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_{nt_silu_mul_float*|[nt]n_float32} ; K=1 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness gemm_{nt_silu_mul_float*|[nt]n_float32} ; K=0 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_{nt_silu_mul_float*|[nt]n_float32} ; K=1 N=0 M=1 ; groups 0 1 1 / 32 2 2 ; refused
// @witness gemm_{nt_silu_mul_float*|[nt]n_float32} ; K=1 N=1 M=0 ; groups 1 0 1 / 32 2 2 ; refused
// @witness gemm_nt_silu_mul_float32 ; K=1 N=1 M=1 inplace=y,w_{gate|up} ; groups 1 1 1 / 32 2 2 ; refused
//
// Products with transposed operands, as gemm_nt.
//
// @witness gemm_{nn|tn}_float32 ; K=5 N=97 M=5 inplace=y,w ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nn_float32 ; K=97 N=97 M=5 inplace=y,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_tn_float32 ; K=5 N=5 M=5 inplace=y,x ; groups 1 1 1 / 32 2 2 ; refused
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; ok
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=192,96 ; groups 8 2 3 / 32 2 1 ; ok
// @witness gather_gemv_* ; K=1 N=1 E=1 x_strides=1,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=96,0 ; groups 7 2 3 / 32 2 1 ; refused
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 1 1 ; refused
// @witness gather_gemv_* ; K=0 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness gather_gemv_* ; K=96 N=0 E=8 x_strides=96,0 ; groups 0 2 3 / 32 2 1 ; refused
