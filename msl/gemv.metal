// Dense matrix times vector and dense matrix times transposed matrix.

#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

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

// row_products leaves in acc what one thread adds to TM outputs from row
// `first` on: it takes TN elements of a row at a time, `step` elements apart,
// beginning at column `col`. Rows past N are read as the last one: their sums
// are for the caller to drop.
template <typename W, int TM, int TN>
inline void row_products(
    const device W* mat, const device float* x, int K, int N, size_t ld, int first, int col, int step, thread float* acc) {
  for (int i = 0; i < TM; i++) {
    acc[i] = 0;
  }
  for (int k = col; k < K; k += step) {
    const int count = min(TN, K - k);
    float v[TN];
    for (int j = 0; j < TN; j++) {
      v[j] = j < count ? x[k + j] : 0.0f;
    }
    for (int i = 0; i < TM; i++) {
      const device W* row = mat + size_t(min(first + i, N - 1)) * ld + k;
      if (count == TN) {
        for (int j = 0; j < TN; j++) {
          acc[i] += float(row[j]) * v[j];
        }
      } else {
        for (int j = 0; j < count; j++) {
          acc[i] += float(row[j]) * v[j];
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
// @kernel   gemv_float32_bm{bm:4|8}_bn1_sm1_sn32_tm4_tn4_nc0_axpby0
// @arg 0 mat            device f32[B, out_vec_size, in_vec_size : matrix_batch_stride[0], marix_ld, 1] read
// @arg 1 in_vec         device f32[B, in_vec_size : vector_batch_stride[0], 1] read
// @arg 2 bias           device f32 unused
// @arg 3 out_vec        device f32[B, out_vec_size] write
// @arg 4 in_vec_size    constant i32
// @arg 5 out_vec_size   constant i32
// @arg 6 marix_ld       constant i32
// @arg 7 alpha          constant f32 unused
// @arg 8 beta           constant f32 unused
// @arg 9 batch_ndim     constant i32 unused
// @arg 10 batch_shape   constant i32 unused
// @arg 11 vector_batch_stride constant i64[1]
// @arg 12 matrix_batch_stride constant i64[1]
// @arg 13 bias_batch_stride constant i64 unused
// @arg 14 bias_stride   constant i32 unused
// @groups   ceil(out_vec_size/(4*bm)), 1, B
// @group    32, 1, bm
// @require  in_vec_size >= 1 && out_vec_size >= 1
// @term     out_vec[z,n] = round(f32, sum[gemv_bn1_sn32](k < in_vec_size, mat[z,n,k] * in_vec[z,k]))
//
// @kernel   gemv_float32_bm4_bn1_sm1_sn32_tm1_tn4_nc0_axpby0
// @arg 0 mat            device f32[B, out_vec_size, in_vec_size : matrix_batch_stride[0], marix_ld, 1] read
// @arg 1 in_vec         device f32[B, in_vec_size : vector_batch_stride[0], 1] read
// @arg 2 bias           device f32 unused
// @arg 3 out_vec        device f32[B, out_vec_size] write
// @arg 4 in_vec_size    constant i32
// @arg 5 out_vec_size   constant i32
// @arg 6 marix_ld       constant i32
// @arg 7 alpha          constant f32 unused
// @arg 8 beta           constant f32 unused
// @arg 9 batch_ndim     constant i32 unused
// @arg 10 batch_shape   constant i32 unused
// @arg 11 vector_batch_stride constant i64[1]
// @arg 12 matrix_batch_stride constant i64[1]
// @arg 13 bias_batch_stride constant i64 unused
// @arg 14 bias_stride   constant i32 unused
// @groups   ceil(out_vec_size/4), 1, B
// @group    32, 1, 4
// @require  in_vec_size >= 1 && out_vec_size >= 1
// @term     out_vec[z,n] = round(f32, sum[gemv_bn1_sn32](k < in_vec_size, mat[z,n,k] * in_vec[z,k]))
//
// @kernel   gemv_float32_bm1_bn8_sm1_sn32_tm{tm:1|4}_tn4_nc0_axpby0
// @arg 0 mat            device f32[B, out_vec_size, in_vec_size : matrix_batch_stride[0], marix_ld, 1] read
// @arg 1 in_vec         device f32[B, in_vec_size : vector_batch_stride[0], 1] read
// @arg 2 bias           device f32 unused
// @arg 3 out_vec        device f32[B, out_vec_size] write
// @arg 4 in_vec_size    constant i32
// @arg 5 out_vec_size   constant i32
// @arg 6 marix_ld       constant i32
// @arg 7 alpha          constant f32 unused
// @arg 8 beta           constant f32 unused
// @arg 9 batch_ndim     constant i32 unused
// @arg 10 batch_shape   constant i32 unused
// @arg 11 vector_batch_stride constant i64[1]
// @arg 12 matrix_batch_stride constant i64[1]
// @arg 13 bias_batch_stride constant i64 unused
// @arg 14 bias_stride   constant i32 unused
// @groups   ceil(out_vec_size/tm), 1, B
// @group    32, 8, 1
// @require  in_vec_size >= 1 && out_vec_size >= 1
// @term     out_vec[z,n] = round(f32, sum[gemv_bn8_sn32](k < in_vec_size, mat[z,n,k] * in_vec[z,k]))
//
// @kernel   gemv_float32_bm1_bn1_sm8_sn4_tm{tm:1|4}_tn4_nc0_axpby0
// @arg 0 mat            device f32[B, out_vec_size, in_vec_size : matrix_batch_stride[0], marix_ld, 1] read
// @arg 1 in_vec         device f32[B, in_vec_size : vector_batch_stride[0], 1] read
// @arg 2 bias           device f32 unused
// @arg 3 out_vec        device f32[B, out_vec_size] write
// @arg 4 in_vec_size    constant i32
// @arg 5 out_vec_size   constant i32
// @arg 6 marix_ld       constant i32
// @arg 7 alpha          constant f32 unused
// @arg 8 beta           constant f32 unused
// @arg 9 batch_ndim     constant i32 unused
// @arg 10 batch_shape   constant i32 unused
// @arg 11 vector_batch_stride constant i64[1]
// @arg 12 matrix_batch_stride constant i64[1]
// @arg 13 bias_batch_stride constant i64 unused
// @arg 14 bias_stride   constant i32 unused
// @groups   ceil(out_vec_size/(8*tm)), 1, B
// @group    32, 1, 1
// @require  in_vec_size >= 1 && out_vec_size >= 1
// @term     out_vec[z,n] = round(f32, sum[gemv_bn1_sn4](k < in_vec_size, mat[z,n,k] * in_vec[z,k]))
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
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
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
  for (int i = 0; i < TM; i++) {
    acc[i] = sum_of_lanes<SN>(acc[i]);
  }
  if (BN > 1) {
    if (column == 0) {
      for (int i = 0; i < TM; i++) {
        partial[slice * pitch + i] = acc[i];
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (slice == 0 && column == 0) {
    for (int i = 0; i < TM; i++) {
      for (int s = 1; s < BN; s++) {
        acc[i] += partial[s * pitch + i];
      }
      if (first + i < out_vec_size) {
        out_vec[first + i] = acc[i];
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
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int TM = 4;
  constexpr int TN = 8;
  const int first = (int(group.x) * 2 + int(simdgroup)) * TM;
  float acc[TM];
  row_products<W, TM, TN>(mat, x, K, N, K, first, int(lane) * TN, 32 * TN, acc);
  for (int i = 0; i < TM; i++) {
    const float total = simd_sum(acc[i]);
    if (lane == 0 && first + i < N) {
      y[first + i] = total;
    }
  }
}

template [[host_name("gemv_float16_float32")]] [[kernel]] decltype(gemv_mixed<half>) gemv_mixed<half>;

constexpr constant int TILE = 32; // rows, columns and depth of a tile
constexpr constant int PITCH = 36; // floats from row to row of a tile, so that 8 rows lie in different banks

// load_row brings 8 elements of a row to threadgroup memory; elements past
// `count` become zero.
template <typename T>
inline void load_row(const device T* from, threadgroup float* to, int count) {
  for (int i = 0; i < 8; i++) {
    to[i] = i < count ? float(from[i]) : 0.0f;
  }
}

// y = x·wᵀ: a threadgroup computes a TILE × TILE tile of y, each of its four
// simdgroups a quarter. Per step it brings TILE columns of x and w to
// threadgroup memory, a thread 8 elements of a row each.
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
  const bool in_w = n0 + row < N;
  threadgroup float* xt = xs + row * PITCH + col;
  threadgroup float* wt = ws + row * PITCH + col;
  x += size_t(in_x ? m0 + row : 0) * K;
  w += size_t(in_w ? n0 + row : 0) * K;

  const int sm = int(simdgroup) / 2 * 16;
  const int sn = int(simdgroup) % 2 * 16;
  simdgroup_float8x8 acc[2][2];
  for (int i = 0; i < 2; i++) {
    for (int j = 0; j < 2; j++) {
      acc[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
  }

  for (int k = col; k - col < K; k += TILE) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    load_row(x + k, xt, in_x ? K - k : 0);
    load_row(w + k, wt, in_w ? K - k : 0);
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

  if (m0 + TILE <= M && n0 + TILE <= N) {
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

template [[host_name("gemm_nt_float32")]] [[kernel]] decltype(gemm_nt<float>) gemm_nt<float>;
template [[host_name("gemm_nt_float16_float32")]] [[kernel]] decltype(gemm_nt<half>) gemm_nt<half>;
