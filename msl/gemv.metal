// Dense matrix times vector and dense matrix times transposed matrix.

#include "slots.h"

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

// widened makes floats of the elements in 16 bytes, or of four of 16 bits.
inline void widened(uint4 bits, half, thread float* e) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const half2 two = as_type<half2>(bits[i]);
    e[2 * i] = float(two.x);
    e[2 * i + 1] = float(two.y);
  }
}
inline void widened(uint4 bits, bfloat, thread float* e) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    e[2 * i] = as_type<float>(bits[i] << 16);
    e[2 * i + 1] = as_type<float>(bits[i] & 0xffff0000u);
  }
}
inline void widened(uint4 bits, float, thread float* e) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    e[i] = as_type<float>(bits[i]);
  }
}
inline void widened(uint2 bits, half, thread float* e) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const half2 two = as_type<half2>(bits[i]);
    e[2 * i] = float(two.x);
    e[2 * i + 1] = float(two.y);
  }
}
inline void widened(uint2 bits, bfloat, thread float* e) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    e[2 * i] = as_type<float>(bits[i] << 16);
    e[2 * i + 1] = as_type<float>(bits[i] & 0xffff0000u);
  }
}

// PieceOf is what a thread reads at once: 16 bytes, or 8 where it takes no more.
template <bool large>
struct PieceOf {
  typedef uint4 type;
};
template <>
struct PieceOf<false> {
  typedef uint2 type;
};

// row_products leaves in acc what one thread adds to TM outputs from row
// `first` on: it takes TN elements of a row at a time, `step` elements apart,
// beginning at column `col`. Rows past N are read as the last one: their sums
// are for the caller to drop.
//
// TN elements are 8, 16 or 32 bytes, of which up to 16 are read at once where rows lie so. Memory
// answers late and then with much: some of these are asked for ahead, the first
// ones before x is there if `wait` is asked for, and of x the next one.
template <typename W, int TM, int TN, bool wait = true, typename X>
inline void row_products(
    const device W* mat, const device X* x, int K, int N, size_t ld, int first, int col, int step, thread float* acc) {
#pragma unroll
  for (int i = 0; i < TM; i++) {
    acc[i] = 0;
  }
  int k = col;
  typedef typename PieceOf<(TN * sizeof(W) >= 16)>::type Piece;
  const bool wide = ((ulong(mat) | ulong(x) | ld * sizeof(W)) & (sizeof(Piece) - 1)) == 0;
  if (wide) {
    constexpr int parts = 3;
    constexpr int pieces = TN * int(sizeof(W)) / int(sizeof(Piece));
    constexpr int in_piece = TN / pieces;
    Piece p[parts][TM][pieces];
#pragma unroll
    for (int d = 0; d < parts; d++) {
      if (k + d * step + TN <= K) {
#pragma unroll
        for (int i = 0; i < TM; i++) {
#pragma unroll
          for (int j = 0; j < pieces; j++) {
            p[d][i][j] = wide_load<Piece>(mat + size_t(min(first + i, N - 1)) * ld + k + d * step + j * in_piece);
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
                p[d][i][j] = wide_load<Piece>(mat + size_t(min(first + i, N - 1)) * ld + next + j * in_piece);
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
      v[j] = j < count ? float(x[k + j]) : 0.0f;
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
// @arg     mat                  device {T}[B, out_vec_size, in_vec_size : matrix_batch_stride[0], marix_ld, 1] read
// @arg     in_vec               device {T}[B, in_vec_size : vector_batch_stride[0], 1] read
// @arg     bias                 device {T} unused
// @arg     out_vec              device {T}[B, out_vec_size] write
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
// @term    out_vec[z,n] = round({T}, sum[{C}](k < in_vec_size, mat[z,n,k] * in_vec[z,k]))
// @end
// @kernel  gemv_{T:{floats()}}_bm{bm:4|8}_bn1_sm1_sn32_tm4_tn4_nc0_axpby0
// @use     gemv((4*bm); 32, 1, bm; gemv_bn1_sn32)
// @kernel  gemv_{T:{floats()}}_bm4_bn1_sm1_sn32_tm1_tn4_nc0_axpby0
// @use     gemv(4; 32, 1, 4; gemv_bn1_sn32)
// @kernel  gemv_{T:{floats()}}_bm1_bn8_sm1_sn32_tm{tm:1|4}_tn4_nc0_axpby0
// @use     gemv(tm; 32, 8, 1; gemv_bn8_sn32)
// @kernel  gemv_{T:{floats()}}_bm1_bn1_sm8_sn4_tm{tm:1|4}_tn4_nc0_axpby0
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
        out_vec[first + i] = stored(T(acc[i]));
      }
    }
  }
}

#define INSTANTIATE_GEMV(name, T, bm, bn, sm, sn, tm)                                                               \
  template [[host_name("gemv_" #name "_bm" #bm "_bn" #bn "_sm" #sm "_sn" #sn "_tm" #tm "_tn4_nc0_axpby0")]]         \
  [[kernel]] decltype(gemv<T, bm, bn, sm, sn, tm, 4>) gemv<T, bm, bn, sm, sn, tm, 4>;
#define INSTANTIATE_GEMVS(name, T)           \
  INSTANTIATE_GEMV(name, T, 4, 1, 1, 32, 4)  \
  INSTANTIATE_GEMV(name, T, 8, 1, 1, 32, 4)  \
  INSTANTIATE_GEMV(name, T, 4, 1, 1, 32, 1)  \
  INSTANTIATE_GEMV(name, T, 1, 8, 1, 32, 1)  \
  INSTANTIATE_GEMV(name, T, 1, 8, 1, 32, 4)  \
  INSTANTIATE_GEMV(name, T, 1, 1, 8, 4, 1)   \
  INSTANTIATE_GEMV(name, T, 1, 1, 8, 4, 4)

EACH_FLOAT(INSTANTIATE_GEMVS)

// Dense weights are elements of D. Lanes multiply TN of a row at a time: how many says in which order sums are added.
template <typename D>
struct Elements {
  const device D* w;
};
template <typename D, int TN = 8>
struct Dense : InRows<Dense<D, TN>> {
  typedef Elements<D> matrix;
  static constexpr constant bool whole = false;
  static constexpr constant bool ragged = true;
  static uint row(uint3 group) { return 0; }
  static int block(uint3 group) { return int(group.x); }
  static matrix of(const thread matrix& m, uint id, int K, int N) { return {m.w + size_t(id) * N * K}; }

  template <int matrices, typename X>
  static void dot(const thread matrix* m, const device X* x, int K, int N, int first, uint lane,
  thread float* result) {
    row_products<D, ROWS, TN>(m[0].w, x, K, N, K, first, int(lane) * TN, LANES * TN, result);
#pragma unroll
    for (int j = 1; j < matrices; j++) {
      row_products<D, ROWS, TN, false>(m[j].w, x, K, N, K, first, int(lane) * TN, LANES * TN, result + j * ROWS);
    }
    sum_all<matrices * ROWS>(result);
  }

  static void decode(const thread matrix& m, int K, bool is_there, int n, int k, threadgroup float* to) {
    const device D* from = m.w + size_t(n) * K + k;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      to[i] = is_there && k + i < K ? float(from[i]) : 0.0f;
    }
  }
};

// Weights of another type than the vector; two simdgroups, each 4 outputs.
//
// @kernel   gemv_{W:float16=f16}_float32
// @arg      mat  device {W}[N, K] read
// @use      one_behind(f32; ; K; N)
// @groups   ceil(N/8), 1, 1
// @group    32, 2, 1
// @require  K >= 1 && N >= 1
// @term     y[n] = round(f32, sum[gemv_f16](k < K, mat[n,k] * x[k]))
VECTOR(gemv_mixed, 1, PLAIN, mat, K, N, )

// Two or three products of one input: their blocks follow each other in the grid. Those of vectors of 16 bits add as
// MLX's gemv, which is the plain product there.
//
// @lines   gemv_arms(arms; W; T; C)
// @each    i = {arms}
// @arg     w{i}  device {W}[n{i}, K] read
// @end
// @use     arms_behind({arms}; {T}; ; K)
// @each    i = {arms}
// @term    y{i}[n] = round({T}, sum[{C}](k < K, w{i}[n,k] * x[k]))
// @end
// @groups  {each i = {arms}; ceil(n{i}/8); +}, 1, 1
// @group   32, 2, 1
// @require K >= 1 && {each i = {arms}; n{i} >= 1; &&}
// @end
// @kernel  gemv_{arms:x2=0 1}_{W:float16=f16}_float32
// @use     gemv_arms({arms}; {W}; f32; gemv_f16)
// @kernel  gemv_{arms:x2=0 1}_{T:float16=f16|bfloat16=bf16}
// @use     gemv_arms({arms}; {T}; {T}; gemv_bn1_sn32)
VECTOR(gemv_x2, 2, PLAIN, w, K, n, )
// @kernel  gemv_{arms:x3=0 1 2}_{W:float16=f16}_float32
// @use     gemv_arms({arms}; {W}; f32; gemv_f16)
// @kernel  gemv_{arms:x3=0 1 2}_{T:float16=f16|bfloat16=bf16}
// @use     gemv_arms({arms}; {T}; {T}; gemv_bn1_sn32)
VECTOR(gemv_x3, 3, PLAIN, w, K, n, )

// A product and the residual that it is added to.
//
// @lines    gemv_add(W; T)
// @arg      w  device {W}[N, K] read
// @use      sum_behind({T}; ; K; N)
// @groups   ceil(N/8), 1, 1
// @group    32, 2, 1
// @require  K >= 1 && N >= 1
// @end
// @kernel   gemv_add_{W:float16=f16}_float32
// @use      gemv_add({W}; f32)
// @term     y[n] = round(f32, r[n] + sum[gemv_f16](k < K, w[n,k] * x[k]))
// @kernel   gemv_add_{T:float16=f16|bfloat16=bf16}
// @use      gemv_add({T}; {T})
// @term     y[n] = round({T}, r[n] + round({T}, sum[gemv_bn1_sn32](k < K, w[n,k] * x[k])))
VECTOR_ADD(gemv_add, PLAIN, K, N)

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @lines   gemv_silu_mul(W; T; C)
// @each    i = gate up
// @arg     w_{i}  device {W}[N, K] read
// @where   {i}[n] = round({T}, sum[{C}](k < K, w_{i}[n,k] * x[k]))
// @end
// @use     one_behind({T}; ; K; N)
// @groups  ceil(N/8), 1, 1
// @group   32, 2, 1
// @require K >= 1 && N >= 1
// @use     silu_mul(n; {T})
// @end
// @kernel  gemv_silu_mul_{W:float16=f16}_float32
// @use     gemv_silu_mul({W}; f32; gemv_f16)
// @kernel  gemv_silu_mul_{T:float16=f16|bfloat16=bf16}
// @use     gemv_silu_mul({T}; {T}; gemv_bn1_sn32)
VECTOR_SILU_MUL(gemv_silu_mul, PLAIN, K, N)

#define DENSE(name, host, D) \
  template [[host_name(#host)]] [[kernel]] decltype(name<float, D, Dense<D>>) name<float, D, Dense<D>>;
DENSE(gemv_mixed, gemv_float16_float32, half)
DENSE(gemv_x2, gemv_x2_float16_float32, half)
DENSE(gemv_x3, gemv_x3_float16_float32, half)
DENSE(gemv_add, gemv_add_float16_float32, half)
DENSE(gemv_silu_mul, gemv_silu_mul_float16_float32, half)
#define INSTANTIATE_GEMV_NARROW(name)                                                                                              \
  template [[host_name(#name "_float16")]] [[kernel]] decltype(name<half, half, Dense<half, 4>>) name<half, half, Dense<half, 4>>; \
  template [[host_name(#name "_bfloat16")]] [[kernel]] decltype(name<bfloat, bfloat, Dense<bfloat, 4>>) name<bfloat, bfloat, Dense<bfloat, 4>>;
INSTANTIATE_GEMV_NARROW(gemv_x2)
INSTANTIATE_GEMV_NARROW(gemv_x3)
INSTANTIATE_GEMV_NARROW(gemv_add)
INSTANTIATE_GEMV_NARROW(gemv_silu_mul)

// Matrix times vector with matrices picked from a stack, the experts of a
// mixture: row r of x, or the row of each of its slots, times the matrices
// ids[r,…]. x_strides has 0 for slots that share a row. An id outside the stack
// makes NaN, and nothing outside is read.
//
// @kernel   gather_gemv_{W:float32=f32|float16_float32=f16}
// @arg      mat  device {W}[E, N, K] read
// @use      picked_behind(f32)
// @require  K >= 1 && N >= 1
// @where    dot[r,s,n] = sum[gemv_f16](k < K, mat[ids[r,s],n,k] * x[r,s,k])
// @term     y[r,s,n] = round(f32, select(ids[r,s] < E, dot[r,s,n], inf - inf))
//
// The same with vectors of 16 bits, of the matrices' type.
//
// @kernel   gather_gemv_{T:float16=f16|bfloat16=bf16}
// @arg      mat  device {T}[E, N, K] read
// @use      picked_behind({T})
// @require  K >= 1 && N >= 1
// @where    dot[r,s,n] = sum[gemv_f16](k < K, mat[ids[r,s],n,k] * x[r,s,k])
// @term     y[r,s,n] = round({T}, select(ids[r,s] < E, dot[r,s,n], inf - inf))
VECTOR_PICKED(gather_gemv, PLAIN, mat)

DENSE(gather_gemv, gather_gemv_float32, float)
DENSE(gather_gemv, gather_gemv_float16_float32, half)
template [[host_name("gather_gemv_float16")]] [[kernel]] decltype(gather_gemv<half, half, Dense<half>>) gather_gemv<half, half, Dense<half>>;
template [[host_name("gather_gemv_bfloat16")]] [[kernel]] decltype(gather_gemv<bfloat, bfloat, Dense<bfloat>>) gather_gemv<bfloat, bfloat, Dense<bfloat>>;

// y = x·wᵀ: a threadgroup computes a TILE × TILE tile of y. Results of 16 bits are rounded where a kernel that stores
// the product would round it.
//
// @lines   gemm_nt(W; T)
// @arg 0 x  device {T}[M, K] read
// @arg 1 w  device {W}[N, K] read
// @arg 2 y  device {T}[M, N] write
// @arg 3 K  constant i32
// @arg 4 N  constant i32
// @arg 5 M  constant i32
// @groups   ceil(N/32), ceil(M/32), 1
// @group    32, 2, 2
// @require  K >= 1 && N >= 1 && M >= 1
// @term     y[m,n] = round({T}, sum[gemm](k < K, x[m,k] * w[n,k]))
// @end
// @kernel   gemm_nt_{W:float32=f32|float16_float32=f16}
// @use      gemm_nt({W}; f32)
// @kernel   gemm_nt_{T:float16=f16|bfloat16=bf16}
// @use      gemm_nt({T}; {T})
MATRIX(gemm_nt, 1, Tile, X_FIRST, PLAIN, N, )

// Two or three products of one input: their tiles follow each other along x.
//
// @lines   gemm_nt_arms(arms; W; T)
// @each    i = {arms}
// @arg     w{i}  device {W}[n{i}, K] read
// @end
// @use     arms_behind({arms}; {T}; M, ; K)
// @each    i = {arms}
// @term    y{i}[m,n] = round({T}, sum[gemm](k < K, x[m,k] * w{i}[n,k]))
// @end
// @arg     M     constant i32
// @groups  {each i = {arms}; ceil(n{i}/32); +}, ceil(M/32), 1
// @group   32, 2, 2
// @require K >= 1 && {each i = {arms}; n{i} >= 1; &&} && M >= 1
// @end
// @kernel  gemm_nt_{arms:x2=0 1}_{W:float32=f32|float16_float32=f16}
// @use     gemm_nt_arms({arms}; {W}; f32)
// @kernel  gemm_nt_{arms:x2=0 1}_{T:float16=f16|bfloat16=bf16}
// @use     gemm_nt_arms({arms}; {T}; {T})
MATRIX(gemm_nt_x2, 2, Tile, X_LAST, PLAIN, n, )
// @kernel  gemm_nt_{arms:x3=0 1 2}_{W:float32=f32|float16_float32=f16}
// @use     gemm_nt_arms({arms}; {W}; f32)
// @kernel  gemm_nt_{arms:x3=0 1 2}_{T:float16=f16|bfloat16=bf16}
// @use     gemm_nt_arms({arms}; {T}; {T})
MATRIX(gemm_nt_x3, 3, Tile, X_LAST, PLAIN, n, )

// A product and the residual that it is added to.
//
// @lines    gemm_nt_add(W; T)
// @arg      w  device {W}[N, K] read
// @use      sum_behind({T}; M, ; K; N)
// @arg      M  constant i32
// @groups   ceil(N/32), ceil(M/32), 1
// @group    32, 2, 2
// @require  K >= 1 && N >= 1 && M >= 1
// @end
// @kernel   gemm_nt_add_{W:float32=f32|float16_float32=f16}
// @use      gemm_nt_add({W}; f32)
// @term     y[m,n] = round(f32, r[m,n] + sum[gemm](k < K, x[m,k] * w[n,k]))
// @kernel   gemm_nt_add_{T:float16=f16|bfloat16=bf16}
// @use      gemm_nt_add({T}; {T})
// @term     y[m,n] = round({T}, r[m,n] + round({T}, sum[gemm](k < K, x[m,k] * w[n,k])))
MATRIX_ADD(gemm_nt_add, Tile, PLAIN)

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @lines   gemm_nt_silu_mul(W; T)
// @each    i = gate up
// @arg     w_{i}  device {W}[N, K] read
// @where   {i}[m,n] = round({T}, sum[gemm](k < K, x[m,k] * w_{i}[n,k]))
// @end
// @use     one_behind({T}; M, ; K; N)
// @arg     M      constant i32
// @groups  ceil(N/32), ceil(M/32), 1
// @group   32, 2, 2
// @require K >= 1 && N >= 1 && M >= 1
// @use     silu_mul(m,n; {T})
// @end
// @kernel  gemm_nt_silu_mul_{W:float32=f32|float16_float32=f16}
// @use     gemm_nt_silu_mul({W}; f32)
// @kernel  gemm_nt_silu_mul_{T:float16=f16|bfloat16=bf16}
// @use     gemm_nt_silu_mul({T}; {T})
MATRIX_SILU_MUL(gemm_nt_silu_mul, Tile, PLAIN)

#define INSTANTIATE_GEMM_NT(name)                                                                     \
  DENSE(name, name##_float32, float)                                                                  \
  DENSE(name, name##_float16_float32, half)                                                           \
  template [[host_name(#name "_float16")]] [[kernel]] decltype(name<half, half, Dense<half>>) name<half, half, Dense<half>>;            \
  template [[host_name(#name "_bfloat16")]] [[kernel]] decltype(name<bfloat, bfloat, Dense<bfloat>>) name<bfloat, bfloat, Dense<bfloat>>;
INSTANTIATE_GEMM_NT(gemm_nt)
INSTANTIATE_GEMM_NT(gemm_nt_x2)
INSTANTIATE_GEMM_NT(gemm_nt_x3)
INSTANTIATE_GEMM_NT(gemm_nt_add)
INSTANTIATE_GEMM_NT(gemm_nt_silu_mul)

// Columns are weights w [K, N], and with TX x is [K, M]: the same tiles come to threadgroup memory, so the same sums.
template <bool TX, typename D>
struct Columns : Dense<D> {
  typedef Elements<D> matrix;
  static void bring_x(const device D* x, int K, int M, int m0, int k, uint thread_id, threadgroup float* tile) {
    if (TX) {
      bring(matrix{x}, K, M, m0, k, thread_id, tile);
    } else {
      Dense<D>::bring_x(x, K, M, m0, k, thread_id, tile);
    }
  }

  // A thread brings 8 elements that lie side by side to 8 rows of a tile.
  static void bring(const thread matrix& m, int K, int N, int n0, int k, uint thread_id, threadgroup float* tile) {
    const int depth = int(thread_id) / 4;
    const int first = int(thread_id) % 4 * 8;
    const device D* from = m.w + size_t(k + depth) * N + n0 + first;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      tile[(first + i) * PITCH + depth] = k + depth < K && n0 + first + i < N ? float(from[i]) : 0.0f;
    }
  }
};

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
// @kernel  gemm_nn_{T:{floats()}}
// @arg     x  device {T}[M, K] read
// @arg     w  device {T}[K, N] read
// @arg     y  device {T}[M, N] write
// @use     gemm()
// @term    y[m,n] = round({T}, sum[gemm](k < K, x[m,k] * w[k,n]))
//
// y = xᵀ·w: the gradient of its weight, for x the gradient of its output and w its
// input, row by row of a batch of K.
//
// @kernel  gemm_tn_{T:{floats()}}
// @arg     x  device {T}[K, M] read
// @arg     w  device {T}[K, N] read
// @arg     y  device {T}[M, N] write
// @use     gemm()
// @term    y[m,n] = round({T}, sum[gemm](k < K, x[k,m] * w[k,n]))
MATRIX(gemm_t, 1, Tile, X_FIRST, PLAIN, N, )

#define INSTANTIATE_GEMM_T(name, T)                                                                                    \
  template [[host_name("gemm_nn_" #name)]] [[kernel]] decltype(gemm_t<T, T, Columns<false, T>>) gemm_t<T, T, Columns<false, T>>; \
  template [[host_name("gemm_tn_" #name)]] [[kernel]] decltype(gemm_t<T, T, Columns<true, T>>) gemm_t<T, T, Columns<true, T>>;

EACH_FLOAT(INSTANTIATE_GEMM_T)

// The same of batches of two dimensions, with rows that may lie apart, and either operand row by row (n) or column by column (t):
// the letters are those of MLX's names, so that nt is x·wᵀ for w [N, K] in rows. The sums are those of gemm_nt.
//
// @lines   gemm_batch()
// @arg     y          device {T}[shape[0], shape[1], M, N] write
// @arg     K          constant i32
// @arg     N          constant i32
// @arg     M          constant i32
// @arg     x_ld       constant i32
// @arg     w_ld       constant i32
// @arg     shape      constant i32[2]
// @arg     x_strides  constant i64[2]
// @arg     w_strides  constant i64[2]
// @groups  ceil(N/32), ceil(M/32), shape[0]*shape[1]
// @group   32, 2, 2
// @require K >= 1 && N >= 1 && M >= 1 && shape[0] >= 1 && shape[1] >= 1
// @end
// @kernel  gemm_{a:n|t}{b:n|t}_batch_{T:{floats()}}
// @if      a == n
// @arg     x  device {T}[shape[0], shape[1], M, K : x_strides[0], x_strides[1], x_ld, 1] read
// @else
// @arg     x  device {T}[shape[0], shape[1], K, M : x_strides[0], x_strides[1], x_ld, 1] read
// @end
// @if      b == n
// @arg     w  device {T}[shape[0], shape[1], K, N : w_strides[0], w_strides[1], w_ld, 1] read
// @else
// @arg     w  device {T}[shape[0], shape[1], N, K : w_strides[0], w_strides[1], w_ld, 1] read
// @end
// @use     gemm_batch()
// @if      a == n
// @if      b == n
// @term    y[h,i,m,n] = round({T}, sum[gemm](k < K, x[h,i,m,k] * w[h,i,k,n]))
// @else
// @term    y[h,i,m,n] = round({T}, sum[gemm](k < K, x[h,i,m,k] * w[h,i,n,k]))
// @end
// @else
// @if      b == n
// @term    y[h,i,m,n] = round({T}, sum[gemm](k < K, x[h,i,k,m] * w[h,i,k,n]))
// @else
// @term    y[h,i,m,n] = round({T}, sum[gemm](k < K, x[h,i,k,m] * w[h,i,n,k]))
// @end
// @end

// bring_part brings rows r0 to r0 + TILE of a matrix, and of each elements k to k + TILE, to threadgroup memory: 8 elements a
// thread. Elements of a row lie side by side, or, across, those of a column.
template <bool across, typename T>
inline void bring_part(const device T* p, long ld, int rows, int K, int r0, int k, uint thread_id, threadgroup float* tile) {
  const int outer = int(thread_id) / 4;
  const int inner = int(thread_id) % 4 * 8;
  const int row = across ? inner : outer;
  const int depth = across ? outer : inner;
  const device T* from = p + (across ? long(k + depth) * ld + r0 + row : long(r0 + row) * ld + k + depth);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int r = across ? row + i : row;
    const int d = across ? depth : depth + i;
    tile[r * PITCH + d] = r0 + r < rows && k + d < K ? float(from[i]) : 0.0f;
  }
}

template <typename T, bool x_across, bool w_across>
[[kernel]] void gemm_batch(
    const device T* x,
    const device T* w,
    device T* y,
    constant int& K,
    constant int& N,
    constant int& M,
    constant int& x_ld,
    constant int& w_ld,
    constant int shape[2],
    constant long x_strides[2],
    constant long w_strides[2],
    TILE_PLACE) {
  threadgroup float4 memory[Tile::memory];
  threadgroup float* xs = (threadgroup float*)memory;
  threadgroup float* ws = xs + TILE * PITCH;
  const long outer = group.z / uint(shape[1]);
  const long inner = group.z % uint(shape[1]);
  x += outer * x_strides[0] + inner * x_strides[1];
  w += outer * w_strides[0] + inner * w_strides[1];
  const int m0 = Tile::m0(group);
  const int n0 = Tile::number(group) * TILE;
  simdgroup_float8x8 acc[1][4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    acc[0][i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  for (int k = 0; k < K; k += TILE) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    bring_part<x_across>(x, x_ld, M, K, m0, k, thread_id, xs);
    bring_part<w_across>(w, w_ld, N, K, n0, k, thread_id, ws);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add_product(xs, ws, int(simdgroup) / 2 * 16, int(simdgroup) % 2 * 16, acc[0]);
  }
  put_tile<false>(acc, Store<T>{y + size_t(group.z) * M * N}, N, M, m0, n0, xs, thread_id, simdgroup);
}

#define INSTANTIATE_GEMM_BATCH(name, T)                                                                                    \
  template [[host_name("gemm_nn_batch_" #name)]] [[kernel]] decltype(gemm_batch<T, false, true>) gemm_batch<T, false, true>;   \
  template [[host_name("gemm_nt_batch_" #name)]] [[kernel]] decltype(gemm_batch<T, false, false>) gemm_batch<T, false, false>; \
  template [[host_name("gemm_tn_batch_" #name)]] [[kernel]] decltype(gemm_batch<T, true, true>) gemm_batch<T, true, true>;     \
  template [[host_name("gemm_tt_batch_" #name)]] [[kernel]] decltype(gemm_batch<T, true, false>) gemm_batch<T, true, false>;

EACH_FLOAT(INSTANTIATE_GEMM_BATCH)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Dense products: (bm·sm·tm) rows a threadgroup of 32·bm·bn threads.
//
// @witness gemv_*_bm4_bn1_sm1_sn32_tm4_* ; in_vec_size=576 out_vec_size=1537 marix_ld=576 ; groups 97 1 1 / 32 1 4 ; ok
// @witness gemv_*_bm8_bn1_sm1_sn32_tm4_* ; in_vec_size=576 out_vec_size=49152 marix_ld=576 ; groups 1536 1 1 / 32 1 8 ; ok
// @witness gemv_*_bm8_bn1_sm1_sn32_tm4_* ; in_vec_size=576 out_vec_size=4100 marix_ld=576 ; groups 129 1 1 / 32 1 8 ; ok
// @witness gemv_*_bm4_bn1_sm1_sn32_tm1_* ; in_vec_size=576 out_vec_size=3 marix_ld=600 ; groups 1 1 1 / 32 1 4 ; ok
// @witness gemv_*_bm4_bn1_sm1_sn32_tm1_* ; in_vec_size=576 out_vec_size=5 marix_ld=600 ; groups 2 1 1 / 32 1 4 ; ok
// @witness gemv_*_bm1_bn8_sm1_sn32_tm4_* ; in_vec_size=1024 out_vec_size=62 marix_ld=1024 ; groups 16 1 1 / 32 8 1 ; ok
// @witness gemv_*_bm1_bn8_sm1_sn32_tm1_* ; in_vec_size=1024 out_vec_size=3 marix_ld=1024 ; groups 3 1 1 / 32 8 1 ; ok
// @witness gemv_*_bm1_bn1_sm8_sn4_tm4_* ; in_vec_size=64 out_vec_size=580 marix_ld=64 ; groups 19 1 1 / 32 1 1 ; ok
// @witness gemv_*_bm1_bn1_sm8_sn4_tm1_* ; in_vec_size=64 out_vec_size=3 marix_ld=64 ; groups 1 1 1 / 32 1 1 ; ok
// @witness gemv_*_bm1_bn1_sm8_sn4_tm1_* ; in_vec_size=64 out_vec_size=9 marix_ld=64 ; groups 2 1 1 / 32 1 1 ; ok
// @witness gemv_*_bm4_bn1_sm1_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 8 ; refused
// @witness gemv_*_bm4_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 4 ; ok
// @witness gemv_*_bm4_* ; in_vec_size=0 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 4 ; refused
// @witness gemv_*_bm4_* ; in_vec_size=1 out_vec_size=0 marix_ld=1 ; groups 0 1 1 / 32 1 4 ; refused
// @witness gemv_*_bm8_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 8 ; ok
// @witness gemv_*_bm1_bn8_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 8 1 ; ok
// @witness gemv_*_bm1_bn8_* ; in_vec_size=0 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 8 1 ; refused
// @witness gemv_*_bm1_bn8_* ; in_vec_size=1 out_vec_size=0 marix_ld=1 ; groups 0 1 1 / 32 8 1 ; refused
// @witness gemv_*_bm1_bn1_* ; in_vec_size=1 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 1 ; ok
// @witness gemv_*_bm1_bn1_* ; in_vec_size=0 out_vec_size=1 marix_ld=1 ; groups 1 1 1 / 32 1 1 ; refused
// @witness gemv_*_bm1_bn1_* ; in_vec_size=1 out_vec_size=0 marix_ld=1 ; groups 0 1 1 / 32 1 1 ; refused
// @witness gemv_*_bm4_bn1_sm1_sn32_tm4_* ; in_vec_size=64 out_vec_size=100 marix_ld=64 vector_batch_stride=64 matrix_batch_stride=6400 ; groups 7 1 3 / 32 1 4 ; ok
// @witness gemv_float16_float32 ; K=576 N=1537 ; groups 193 1 1 / 32 2 1 ; ok
// @witness gemv_{float16_float32|add_float16_float32|add_float16|add_bfloat16} ; K=1 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gemv_{float16_float32|add_float16_float32|add_float16|add_bfloat16} ; K=0 N=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_{float16_float32|add_float16_float32|add_float16|add_bfloat16} ; K=1 N=0 ; groups 0 1 1 / 32 2 1 ; refused
// @witness gemm_{nt_float*|nt_bfloat*|[nt]n_[bf][lf]*} ; K=576 N=97 M=65 ; groups 4 3 1 / 32 2 2 ; ok
// @witness gemm_nt_{|add_}{|b}float* ; K=1 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness gemm_nt_{float32|float16|bfloat16} ; K=4 N=4 M=4 inplace=y,{x|w} ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nt_{|add_}{|b}float* ; K=0 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nt_{|add_}{|b}float* ; K=1 N=0 M=1 ; groups 0 1 1 / 32 2 2 ; refused
// @witness gemm_nt_{|add_}{|b}float* ; K=1 N=1 M=0 ; groups 1 0 1 / 32 2 2 ; refused
//
// Fused dense products.
//
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=192 n0=153 n1=117 ; groups 35 1 1 / 32 2 1 ; ok
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=192 n0=153 n1=117 ; groups 36 1 1 / 32 2 1 ; refused
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=1 n0=1 n1=1 ; groups 2 1 1 / 32 2 1 ; ok
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=0 n0=1 n1=1 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=1 n0=0 n1=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=1 n0=1 n1=0 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=64 n0=64 n1=1 inplace=y0,x ; groups 9 1 1 / 32 2 1 ; refused
// @witness gemv_x2_{float16_float32|float16|bfloat16} ; K=64 n0=1 n1=64 inplace=y1,x ; groups 9 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=192 n0=153 n1=117 n2=69 ; groups 44 1 1 / 32 2 1 ; ok
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=192 n0=153 n1=117 n2=69 ; groups 45 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=1 n0=1 n1=1 n2=1 ; groups 3 1 1 / 32 2 1 ; ok
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=0 n0=1 n1=1 n2=1 ; groups 3 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=1 n0=0 n1=1 n2=1 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=1 n0=1 n1=0 n2=1 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=1 n0=1 n1=1 n2=0 ; groups 2 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=64 n0=64 n1=1 n2=1 inplace=y0,x ; groups 10 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=64 n0=1 n1=64 n2=1 inplace=y1,x ; groups 10 1 1 / 32 2 1 ; refused
// @witness gemv_x3_{float16_float32|float16|bfloat16} ; K=64 n0=1 n1=1 n2=64 inplace=y2,x ; groups 10 1 1 / 32 2 1 ; refused
// @witness gemv_{add|silu_mul}_{float16_float32|float16|bfloat16} ; K=192 N=153 ; groups 20 1 1 / 32 2 1 ; ok
// @witness gemv_{add|silu_mul}_{float16_float32|float16|bfloat16} ; K=192 N=153 ; groups 21 1 1 / 32 2 1 ; refused
// @witness gemv_add_{float16_float32|float16|bfloat16} ; K=192 N=153 inplace=y,r ; groups 20 1 1 / 32 2 1 ; ok
// @witness gemv_{add|silu_mul}_{float16_float32|float16|bfloat16} ; K=64 N=64 inplace=y,x ; groups 8 1 1 / 32 2 1 ; refused
// @witness gemv_silu_mul_{float16_float32|float16|bfloat16} ; K=1 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gemv_silu_mul_{float16_float32|float16|bfloat16} ; K=0 N=1 ; groups 1 1 1 / 32 2 1 ; refused
// @witness gemv_silu_mul_{float16_float32|float16|bfloat16} ; K=1 N=0 ; groups 0 1 1 / 32 2 1 ; refused
// @witness gemm_nt_x2_{|b}float* ; K=192 n0=97 n1=65 M=65 ; groups 7 3 1 / 32 2 2 ; ok
// @witness gemm_nt_x2_{|b}float* ; K=192 n0=97 n1=65 M=65 ; groups 8 3 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_{|b}float* ; K=1 n0=1 n1=1 M=1 ; groups 2 1 1 / 32 2 2 ; ok
// @witness gemm_nt_x2_{|b}float* ; K=0 n0=1 n1=1 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_{|b}float* ; K=1 n0=0 n1=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_{|b}float* ; K=1 n0=1 n1=0 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_{|b}float* ; K=1 n0=1 n1=1 M=0 ; groups 2 0 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_{|b}float* ; K=64 n0=64 n1=1 M=1 inplace=y0,x ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_{float32|float16|bfloat16} ; K=1 n0=1 n1=1 M=1 inplace=y{0|1},w{0|1} ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x2_{|b}float* ; K=64 n0=1 n1=64 M=1 inplace=y1,x ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=192 n0=97 n1=65 n2=33 M=65 ; groups 9 3 1 / 32 2 2 ; ok
// @witness gemm_nt_x3_{|b}float* ; K=192 n0=97 n1=65 n2=33 M=65 ; groups 10 3 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=1 n0=1 n1=1 n2=1 M=1 ; groups 3 1 1 / 32 2 2 ; ok
// @witness gemm_nt_x3_{|b}float* ; K=0 n0=1 n1=1 n2=1 M=1 ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=1 n0=0 n1=1 n2=1 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=1 n0=1 n1=0 n2=1 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=1 n0=1 n1=1 n2=0 M=1 ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=1 n0=1 n1=1 n2=1 M=0 ; groups 3 0 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=64 n0=64 n1=1 n2=1 M=1 inplace=y0,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{float32|float16|bfloat16} ; K=1 n0=1 n1=1 n2=1 M=1 inplace=y{0|1|2},w{0|1|2} ; groups 3 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=64 n0=1 n1=64 n2=1 M=1 inplace=y1,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nt_x3_{|b}float* ; K=64 n0=1 n1=1 n2=64 M=1 inplace=y2,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nt_{add|silu_mul}_{|b}float* ; K=192 N=97 M=65 ; groups 4 3 1 / 32 2 2 ; ok
// @witness gemm_nt_{add|silu_mul}_{|b}float* ; K=192 N=97 M=65 ; groups 5 3 1 / 32 2 2 ; refused
// @witness gemm_nt_add_{|b}float* ; K=192 N=97 M=65 inplace=y,r ; groups 4 3 1 / 32 2 2 ; ok
// @witness gemm_nt_{add|silu_mul}_{|b}float* ; K=64 N=64 M=1 inplace=y,x ; groups 2 1 1 / 32 2 2 ; refused
// @witness gemm_nt_add_{float32|float16|bfloat16} ; K=1 N=1 M=1 inplace=y,w ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_{nt_silu_mul_*|[nt]n_[bf][lf]*} ; K=1 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness gemm_{nt_silu_mul_*|[nt]n_[bf][lf]*} ; K=0 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_{nt_silu_mul_*|[nt]n_[bf][lf]*} ; K=1 N=0 M=1 ; groups 0 1 1 / 32 2 2 ; refused
// @witness gemm_{nt_silu_mul_*|[nt]n_[bf][lf]*} ; K=1 N=1 M=0 ; groups 1 0 1 / 32 2 2 ; refused
// @witness gemm_nt_silu_mul_{float32|float16|bfloat16} ; K=1 N=1 M=1 inplace=y,w_{gate|up} ; groups 1 1 1 / 32 2 2 ; refused
//
// Products with transposed operands, as gemm_nt.
//
// @witness gemm_{nn|tn}_{|b}float* ; K=5 N=97 M=5 inplace=y,w ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_nn_{|b}float* ; K=97 N=97 M=5 inplace=y,x ; groups 4 1 1 / 32 2 2 ; refused
// @witness gemm_tn_{|b}float* ; K=5 N=5 M=5 inplace=y,x ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_nn_batch_* ; K=40 N=97 M=65 x_ld=40 w_ld=97 shape=2,3 x_strides=7800,2600 w_strides=3880,0 ; groups 4 3 6 / 32 2 2 ; ok
// @witness gemm_nt_batch_* ; K=40 N=97 M=65 x_ld=40 w_ld=40 shape=2,3 x_strides=7800,2600 w_strides=3880,0 ; groups 4 3 6 / 32 2 2 ; ok
// @witness gemm_tn_batch_* ; K=40 N=97 M=65 x_ld=65 w_ld=97 shape=2,3 x_strides=7800,2600 w_strides=3880,0 ; groups 4 3 6 / 32 2 2 ; ok
// @witness gemm_tt_batch_* ; K=40 N=97 M=65 x_ld=65 w_ld=40 shape=2,3 x_strides=7800,2600 w_strides=3880,0 ; groups 4 3 6 / 32 2 2 ; ok
// @witness gemm_*_batch_* ; K=1 N=1 M=1 x_ld=1 w_ld=1 shape=1,1 x_strides=1,1 w_strides=1,1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness gemm_*_batch_* ; K=1 M=1 N=1 shape=1,4 w_ld=0 w_strides=16,4 x_ld=1 x_strides=4,1 inplace=y,x ; groups 1 1 4 / 32 2 2 ; refused
// @witness gemm_{nn|tn}_batch_* ; K=2 M=2 N=40 shape=4,5 w_ld=40 w_strides=400,80 x_ld=2 x_strides=20,4 inplace=y,w ; groups 2 1 20 / 32 2 2 ; refused
// @witness gemm_*_batch_* ; K=0 N=1 M=1 x_ld=1 w_ld=1 shape=1,1 x_strides=1,1 w_strides=1,1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness gemm_*_batch_* ; K=1 N=0 M=1 x_ld=1 w_ld=1 shape=1,1 x_strides=1,1 w_strides=1,1 ; groups 0 1 1 / 32 2 2 ; refused
// @witness gemm_*_batch_* ; K=1 N=1 M=0 x_ld=1 w_ld=1 shape=1,1 x_strides=1,1 w_strides=1,1 ; groups 1 0 1 / 32 2 2 ; refused
// @witness gemm_*_batch_* ; K=1 N=1 M=1 x_ld=1 w_ld=1 shape={0,1|1,0} x_strides=1,1 w_strides=1,1 ; groups 1 1 0 / 32 2 2 ; refused
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; ok
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=192,96 ; groups 8 2 3 / 32 2 1 ; ok
// @witness gather_gemv_* ; K=1 N=1 E=1 x_strides=1,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=96,0 ; groups 7 2 3 / 32 2 1 ; refused
// @witness gather_gemv_* ; K=96 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 1 1 ; refused
// @witness gather_gemv_* ; K=0 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness gather_gemv_* ; K=96 N=0 E=8 x_strides=96,0 ; groups 0 2 3 / 32 2 1 ; refused
// @witness gather_gemv_* ; E=6 K=1 N=1 x_strides=6,1 inplace=y,x ; groups 1 6 8 / 32 2 1 ; refused
