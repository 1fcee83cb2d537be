// Products with a matrix of affine codes: element (n, k) of the matrix is
// scales[n, k/g] · q + biases[n, k/g], with q an unsigned code of b bits. Codes
// lie in 32-bit words, the first in the lowest bits.

#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

constexpr constant int LANES = 32;
constexpr constant int ROWS = 4; // outputs of a simdgroup in a matrix-vector product

// load_scaled reads n values of x and returns their sum. Value i is divided by
// 2^(b·j), j being the place of code i in its 16 bits: a code then needs no
// shift, only a mask, and the product is exact as before.
template <int b, int n>
inline float load_scaled(const device float* x, thread float* v) {
  float sum = 0;
  for (int i = 0; i < n; i++) {
    const float e = x[i];
    sum += e;
    v[i] = e * (1.0f / float(1 << (b * (i % (16 / b)))));
  }
  return sum;
}

// dot_codes returns Σ x·q over n codes, x as load_scaled left it.
template <int b, int n>
inline float dot_codes(const device uint* w, const thread float* v) {
  constexpr int in_half = 16 / b;
  constexpr uint mask = (1u << b) - 1;
  float acc = 0;
  for (int i = 0; i < n / in_half; i++) {
    const uint codes = (w[i / 2] >> (16 * (i % 2))) & 0xffffu;
    for (int j = 0; j < in_half; j++) {
      acc += v[in_half * i + j] * float(codes & (mask << (b * j)));
    }
  }
  return acc;
}

// Matrix times vector: a simdgroup computes ROWS outputs, a lane takes the
// codes of `words` words of each row at a time; they lie in one group, so
// scale and bias are applied once.
//
// Any N, any K that is a multiple of the group.
//
// @kernel   affine_qmv_float_gs_{g:32|64}_b_{b:4|8}_batch_0_pr_0_hgs_0_r_4
// @arg 0 w             device u32 as u{b}[out_vec_size, in_vec_size] read
// @arg 1 scales        device f32[out_vec_size, in_vec_size/g] read
// @arg 2 biases        device f32[out_vec_size, in_vec_size/g] read
// @arg 3 x             device f32[M, in_vec_size] read
// @arg 4 y             device f32[M, out_vec_size] write
// @arg 5 in_vec_size   constant i32
// @arg 6 out_vec_size  constant i32
// @arg 7 x_batch_ndims constant i32 unused
// @arg 8 x_shape       constant i32 unused
// @arg 9 x_strides     constant i64 unused
// @arg 10 w_batch_ndims constant i32 unused
// @arg 11 w_shape      constant i32 unused
// @arg 12 w_strides    constant i64 unused
// @arg 13 s_strides    constant i64 unused
// @arg 14 b_strides    constant i64 unused
// @groups   M, ceil(out_vec_size/8), 1
// @group    32, 2, 1
// @require  in_vec_size >= g && in_vec_size % g == 0 && out_vec_size >= 1
// @term     y[m,n] = round(f32, sum[qmv](c < in_vec_size/g, \
//             scales[n,c] * sum[qmv](j < g, x[m,c*g + j] * f32(w[n,c*g + j])) + biases[n,c] * sum[qmv](j < g, x[m,c*g + j])))
//
// Whole blocks only: K a multiple of 2048/b, N of 8.
//
// @kernel   affine_qmv_fast_float_gs_{g:32|64}_b_{b:4|8}_batch_0_pr_0_hgs_0_r_4
// @arg 0 w             device u32 as u{b}[out_vec_size, in_vec_size] read
// @arg 1 scales        device f32[out_vec_size, in_vec_size/g] read
// @arg 2 biases        device f32[out_vec_size, in_vec_size/g] read
// @arg 3 x             device f32[M, in_vec_size] read
// @arg 4 y             device f32[M, out_vec_size] write
// @arg 5 in_vec_size   constant i32
// @arg 6 out_vec_size  constant i32
// @arg 7 x_batch_ndims constant i32 unused
// @arg 8 x_shape       constant i32 unused
// @arg 9 x_strides     constant i64 unused
// @arg 10 w_batch_ndims constant i32 unused
// @arg 11 w_shape      constant i32 unused
// @arg 12 w_strides    constant i64 unused
// @arg 13 s_strides    constant i64 unused
// @arg 14 b_strides    constant i64 unused
// @groups   M, ceil(out_vec_size/8), 1
// @group    32, 2, 1
// @require  in_vec_size >= 1 && in_vec_size % (2048/b) == 0 && out_vec_size >= 1 && out_vec_size % 8 == 0
// @term     y[m,n] = round(f32, sum[qmv_fast](c < in_vec_size/g, \
//             scales[n,c] * sum[qmv_fast](j < g, x[m,c*g + j] * f32(w[n,c*g + j])) + biases[n,c] * sum[qmv_fast](j < g, x[m,c*g + j])))
template <int g, int b, int words, bool whole>
[[kernel]] void qmv(
    const device uint* w [[buffer(0)]],
    const device float* scales [[buffer(1)]],
    const device float* biases [[buffer(2)]],
    const device float* x [[buffer(3)]],
    device float* y [[buffer(4)]],
    constant int& in_vec_size [[buffer(5)]],
    constant int& out_vec_size [[buffer(6)]],
    constant int& x_batch_ndims [[buffer(7)]],
    constant int* x_shape [[buffer(8)]],
    constant long* x_strides [[buffer(9)]],
    constant int& w_batch_ndims [[buffer(10)]],
    constant int* w_shape [[buffer(11)]],
    constant long* w_strides [[buffer(12)]],
    constant long* s_strides [[buffer(13)]],
    constant long* b_strides [[buffer(14)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int values = words * 32 / b;
  const int K = in_vec_size;
  const int N = out_vec_size;
  const int first = int(group.y) * 2 * ROWS + int(simdgroup) * ROWS;
  if (!whole && first >= N) {
    return;
  }
  x += size_t(group.x) * K;
  y += size_t(group.x) * N;

  float result[ROWS] = {0};
  for (int k = int(lane) * values; k < K; k += LANES * values) {
    float v[values];
    const float sum = load_scaled<b, values>(x + k, v);
    for (int i = 0; i < ROWS; i++) {
      // Rows past the end are read as the last one and not stored.
      const size_t row = whole ? first + i : min(first + i, N - 1);
      const size_t in_group = row * (K / g) + k / g;
      const float acc = dot_codes<b, values>(w + row * (K / (32 / b)) + k / (32 / b), v);
      result[i] += scales[in_group] * acc + biases[in_group] * sum;
    }
  }
  for (int i = 0; i < ROWS; i++) {
    const float total = simd_sum(result[i]);
    if (lane == 0 && (whole || first + i < N)) {
      y[first + i] = total;
    }
  }
}

#define INSTANTIATE_QMV(g, b)                                                                \
  template [[host_name("affine_qmv_float_gs_" #g "_b_" #b "_batch_0_pr_0_hgs_0_r_4")]]       \
  [[kernel]] decltype(qmv<g, b, 1, false>) qmv<g, b, 1, false>;                              \
  template [[host_name("affine_qmv_fast_float_gs_" #g "_b_" #b "_batch_0_pr_0_hgs_0_r_4")]]  \
  [[kernel]] decltype(qmv<g, b, 2, true>) qmv<g, b, 2, true>;

INSTANTIATE_QMV(32, 4)
INSTANTIATE_QMV(32, 8)
INSTANTIATE_QMV(64, 4)
INSTANTIATE_QMV(64, 8)

constexpr constant int TILE = 32; // rows, columns and depth of a tile
constexpr constant int PITCH = 36; // floats from row to row of a tile, so that 8 rows lie in different banks

// Matrix times matrix, y = x·wᵀ: a threadgroup computes a TILE × TILE tile of y,
// each of its four simdgroups a quarter. Per step it brings TILE columns of x
// and of the decoded w to threadgroup memory, a thread 8 elements of a row each.
//
// @kernel   affine_qmm_t_float_gs_{g:32|64}_b_{b:4|8}_alN_{aligned:true|false}_batch_0
// @arg 0 w             device u32 as u{b}[N, K] read
// @arg 1 scales        device f32[N, K/g] read
// @arg 2 biases        device f32[N, K/g] read
// @arg 3 x             device f32[M, K] read
// @arg 4 y             device f32[M, N] write
// @arg 5 K             constant i32
// @arg 6 N             constant i32
// @arg 7 M             constant i32
// @arg 8 x_batch_ndims constant i32 unused
// @arg 9 x_shape       constant i32 unused
// @arg 10 x_strides    constant i64 unused
// @arg 11 w_batch_ndims constant i32 unused
// @arg 12 w_shape      constant i32 unused
// @arg 13 w_strides    constant i64 unused
// @arg 14 s_strides    constant i64 unused
// @arg 15 b_strides    constant i64 unused
// @groups   ceil(N/32), ceil(M/32), 1
// @group    32, 2, 2
// @require  K >= g && K % g == 0 && N >= 1 && M >= 1
// @require  aligned == 0 || N % 32 == 0
// @term     y[m,n] = round(f32, sum[qmm](k < K, x[m,k] * (scales[n,k/g] * f32(w[n,k]) + biases[n,k/g])))
template <int g, int b, bool aligned>
[[kernel]] void qmm_t(
    const device uint* w [[buffer(0)]],
    const device float* scales [[buffer(1)]],
    const device float* biases [[buffer(2)]],
    const device float* x [[buffer(3)]],
    device float* y [[buffer(4)]],
    constant int& K [[buffer(5)]],
    constant int& N [[buffer(6)]],
    constant int& M [[buffer(7)]],
    constant int& x_batch_ndims [[buffer(8)]],
    constant int* x_shape [[buffer(9)]],
    constant long* x_strides [[buffer(10)]],
    constant int& w_batch_ndims [[buffer(11)]],
    constant int* w_shape [[buffer(12)]],
    constant long* w_strides [[buffer(13)]],
    constant long* s_strides [[buffer(14)]],
    constant long* b_strides [[buffer(15)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float xs[TILE * PITCH];
  threadgroup float ws[TILE * PITCH];

  const int m0 = int(group.y) * TILE;
  const int n0 = int(group.x) * TILE;
  const int row = int(thread_id) / 4;
  const int col = int(thread_id) % 4 * 8;
  const bool in_x = m0 + row < M;
  const bool in_w = aligned || n0 + row < N;
  threadgroup float* xt = xs + row * PITCH + col;
  threadgroup float* wt = ws + row * PITCH + col;
  const size_t x_at = size_t(m0 + row) * K + col;
  const size_t w_at = size_t(n0 + row) * K + col;

  const int sm = int(simdgroup) / 2 * 16;
  const int sn = int(simdgroup) % 2 * 16;
  simdgroup_float8x8 acc[2][2];
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) {
      acc[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }

  for (int k = 0; k < K; k += TILE) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = 0; i < 8; i++) {
      xt[i] = in_x ? x[x_at + k + i] : 0.0f;
    }
    if (in_w) {
      const float scale = scales[(w_at + k) / g];
      const float bias = biases[(w_at + k) / g];
      const device uint* words = w + (w_at + k) / (32 / b);
      for (int i = 0; i < 8; i++) {
        const uint code = (words[i / (32 / b)] >> (b * (i % (32 / b)))) & ((1u << b) - 1);
        wt[i] = scale * float(code) + bias;
      }
    } else {
      for (int i = 0; i < 8; i++) {
        wt[i] = 0;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (int kk = 0; kk < TILE; kk += 8) {
      simdgroup_float8x8 xm[2];
      simdgroup_float8x8 wm[2];
      for (int i = 0; i < 2; i++) {
        simdgroup_load(xm[i], xs + (sm + 8 * i) * PITCH + kk, PITCH);
        simdgroup_load(wm[i], ws + (sn + 8 * i) * PITCH + kk, PITCH, ulong2(0, 0), true);
      }
      for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
          simdgroup_multiply_accumulate(acc[i][j], xm[i], wm[j], acc[i][j]);
        }
      }
    }
  }

  if (m0 + TILE <= M && (aligned || n0 + TILE <= N)) {
    for (int i = 0; i < 2; i++) {
      for (int j = 0; j < 2; j++) {
        simdgroup_store(acc[i][j], y + size_t(m0 + sm + 8 * i) * N + n0 + sn + 8 * j, N);
      }
    }
    return;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) {
      simdgroup_store(acc[i][j], xs + (sm + 8 * i) * PITCH + sn + 8 * j, PITCH);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = 0; i < 8; i++) {
    if (in_x && n0 + col + i < N) {
      y[size_t(m0 + row) * N + n0 + col + i] = xt[i];
    }
  }
}

#define INSTANTIATE_QMM_T_ALIGNED(g, b, aligned)                                     \
  template [[host_name("affine_qmm_t_float_gs_" #g "_b_" #b "_alN_" #aligned "_batch_0")]] \
  [[kernel]] decltype(qmm_t<g, b, aligned>) qmm_t<g, b, aligned>;
#define INSTANTIATE_QMM_T(g, b)            \
  INSTANTIATE_QMM_T_ALIGNED(g, b, true)    \
  INSTANTIATE_QMM_T_ALIGNED(g, b, false)

INSTANTIATE_QMM_T(32, 4)
INSTANTIATE_QMM_T(32, 8)
INSTANTIATE_QMM_T(64, 4)
INSTANTIATE_QMM_T(64, 8)
