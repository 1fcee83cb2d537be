// Products of f32 rows with matrices in GGML's block formats, as they lie in a
// GGUF file: nothing is repacked. A row is a whole number of blocks; a block is a
// scale d of 16 bits among bytes, at an even place and no better, so a matrix is
// read in words of 16 bits.
//
//   format  bytes  weights  block
//   q4_0     18      32     d, 16 bytes: codes i (low) and 16 + i (high) of 4 bits
//   q8_0     34      32     d, 32 codes of 8 bits, signed
//   q6_K    210     256     128 bytes with the low 4 bits of codes, 64 with the high
//                           2, 16 scales of 8 bits, signed, for 16 weights each, d
//
// A weight is d·(code − 8), d·code or d·scale·(code − 32). The names of our own
// kernels follow GGML's; its argument structs do not (docs/kernels.md).

#include "common.h"

constexpr constant int LANES = 32;
constexpr constant int ROWS = 4; // outputs of a simdgroup

// A format says how the lanes share a block: each takes one of `parts`, with
// `values` weights. place tells which of the block's weights is value i of a part,
// dot multiplies a part with the values of x.

inline float scale_of(const device ushort* d) { return float(as_type<half>(*d)); }

inline float signed_byte(ushort bits) { return float(as_type<char>(uchar(bits & 0xff))); }

struct q4_0 {
  static constexpr constant int weights = 32;
  static constexpr constant int words = 9;
  static constexpr constant int parts = 2;
  static constexpr constant int values = 16;

  static int place(int part, int i) { return 8 * part + i + (i < 8 ? 0 : 8); }

  static float dot(const device ushort* block, int part, const thread float* x) {
    const device ushort* codes = block + 1 + 4 * part;
    float acc = 0;
    for (int i = 0; i < 4; i++) {
      const ushort w = codes[i];
      acc += x[2 * i] * float(int(w & 15) - 8);
      acc += x[2 * i + 1] * float(int((w >> 8) & 15) - 8);
      acc += x[2 * i + 8] * float(int((w >> 4) & 15) - 8);
      acc += x[2 * i + 9] * float(int((w >> 12) & 15) - 8);
    }
    return scale_of(block) * acc;
  }
};

struct q8_0 {
  static constexpr constant int weights = 32;
  static constexpr constant int words = 17;
  static constexpr constant int parts = 4;
  static constexpr constant int values = 8;

  static int place(int part, int i) { return 8 * part + i; }

  static float dot(const device ushort* block, int part, const thread float* x) {
    const device ushort* codes = block + 1 + 4 * part;
    float acc = 0;
    for (int i = 0; i < 4; i++) {
      const ushort w = codes[i];
      acc += x[2 * i] * signed_byte(w);
      acc += x[2 * i + 1] * signed_byte(w >> 8);
    }
    return scale_of(block) * acc;
  }
};

// A part is 4 weights at the same place of each of the 4 quarters of a half block:
// their low bits lie in 4 + 4 bytes, their high bits in 4.
struct q6_K {
  static constexpr constant int weights = 256;
  static constexpr constant int words = 105;
  static constexpr constant int parts = 16;
  static constexpr constant int values = 16;

  static int place(int part, int i) { return part / 8 * 128 + i / 4 * 32 + part % 8 * 4 + i % 4; }

  static float dot(const device ushort* block, int part, const thread float* x) {
    const int h = part / 8; // of the block
    const int at = part % 8 * 2; // words before the part's in a quarter
    const device ushort* low = block + 32 * h + at;
    const device ushort* high = block + 64 + 16 * h + at;
    const device ushort* scales = block + 96 + 4 * h;
    float acc = 0;
    for (int q = 0; q < 4; q++) {
      float sum = 0;
      for (int i = 0; i < 4; i++) {
        const int shift = 8 * (i % 2);
        const int l = (int(low[q % 2 * 16 + i / 2]) >> (shift + q / 2 * 4)) & 15;
        const int u = (int(high[i / 2]) >> (shift + 2 * q)) & 3;
        sum += x[4 * q + i] * float(l + 16 * u - 32);
      }
      acc += signed_byte(scales[q] >> (part % 8 / 4 * 8)) * sum;
    }
    return scale_of(block + 104) * acc;
  }
};

// dot_rows leaves in result[i] the product of x with row first + i of a matrix
// [N, K]. Rows past the end are read as the last one.
template <typename F>
inline void dot_rows(const device ushort* w, const device float* x, int K, int N, int first, uint lane, thread float* result) {
  const int part = int(lane) % F::parts;
  const int blocks = K / F::weights;
  for (int i = 0; i < ROWS; i++) {
    result[i] = 0;
  }
  for (int c = int(lane) / F::parts; c < blocks; c += LANES / F::parts) {
    float v[F::values];
    for (int i = 0; i < F::values; i++) {
      v[i] = x[c * F::weights + F::place(part, i)];
    }
    for (int i = 0; i < ROWS; i++) {
      const size_t row = min(first + i, N - 1);
      result[i] += F::dot(w + (row * blocks + c) * F::words, part, v);
    }
  }
  for (int i = 0; i < ROWS; i++) {
    result[i] = simd_sum(result[i]);
  }
}

// The formats: a block has so many elements, of which so many codes or bytes are stored; how they are decoded, of block
// c of row n; and the product of the row with row m of x. Of a signed byte, too, w / 2^i % 2^j are bits i to i + j - 1:
// / rounds down, and % is never negative.
//
// @text  q4_0_codes() = u4
// @text  q4_0_block() = 32
// @text  q4_0_size() = 36
// @lines q4_0_decoded(n)
// @where d[{n},c] = as_f16(w[{n},c,0] + 16*w[{n},c,1] + 256*w[{n},c,2] + 4096*w[{n},c,3])
// @where q[{n},c,j] = w[{n},c,4 + j%16*2 + j/16] - 8
// @end
// @text  q4_0_dot(n; m) = sum[ggml_q4_0](c < K/32, d[{n},c] * sum[ggml_q4_0](j < 32, x[{m},c*32 + j] * f32(q[{n},c,j])))
//
// @text  q8_0_codes() = i8
// @text  q8_0_block() = 32
// @text  q8_0_size() = 34
// @lines q8_0_decoded(n)
// @where d[{n},c] = as_f16(w[{n},c,0] % 256 + 256*w[{n},c,1])
// @where q[{n},c,j] = w[{n},c,2 + j]
// @end
// @text  q8_0_dot(n; m) = sum[ggml_q8_0](c < K/32, d[{n},c] * sum[ggml_q8_0](j < 32, x[{m},c*32 + j] * f32(q[{n},c,j])))
//
// @text  q6_K_codes() = i8
// @text  q6_K_block() = 256
// @text  q6_K_size() = 210
// @lines q6_K_decoded(n)
// @where d[{n},c] = as_f16(w[{n},c,208] % 256 + 256*w[{n},c,209])
// @where low[{n},c,j] = w[{n},c,j/128*64 + j%64] / (1 + 15*(j/64%2)) % 16
// @where high[{n},c,j] = w[{n},c,128 + j/128*32 + j%32] / ((1 + 3*(j/32%2)) * (1 + 15*(j/64%2))) % 4
// @end
// @text  q6_K_dot(n; m) = sum[ggml_q6_K](c < K/256, d[{n},c] * sum[ggml_q6_K](g < 16, f32(w[{n},c,192 + g]) * \
//            sum[ggml_q6_K](l < 16, x[{m},c*256 + g*16 + l] * f32(low[{n},c,g*16 + l] + 16*high[{n},c,g*16 + l] - 32))))

// Rows times a matrix: a simdgroup computes ROWS outputs of a row. Meant for few
// rows; each of them reads the matrix once.
//
// The elements of the declarations are the codes: of 4 bits, or signed bytes.
//
// @kernel  ggml_mul_mv_{F:q4_0|q8_0|q6_K}_f32
// @arg     w  device u16 as {{F}_codes()}[N, K/{{F}_block()}, {{F}_size()}] read
// @arg     x  device f32[M, K] read
// @arg     y  device f32[M, N] write
// @arg     K  constant i32
// @arg     N  constant i32
// @groups  ceil(N/8), M, 1
// @group   32, 2, 1
// @require K >= {{F}_block()} && K % {{F}_block()} == 0 && N >= 1
// @use     {F}_decoded(n)
// @term    y[m,n] = round(f32, {{F}_dot(n; m)})
template <typename F>
[[kernel]] void ggml_mul_mv(
    const device ushort* w [[buffer(0)]],
    const device float* x [[buffer(1)]],
    device float* y [[buffer(2)]],
    constant int& K [[buffer(3)]],
    constant int& N [[buffer(4)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int first = (int(group.x) * 2 + int(simdgroup)) * ROWS;
  float result[ROWS];
  dot_rows<F>(w, x + size_t(group.y) * K, K, N, first, lane, result);
  for (int i = 0; i < ROWS; i++) {
    if (lane == 0 && first + i < N) {
      y[size_t(group.y) * N + first + i] = stored(result[i]);
    }
  }
}

template [[host_name("ggml_mul_mv_q4_0_f32")]] [[kernel]] decltype(ggml_mul_mv<q4_0>) ggml_mul_mv<q4_0>;
template [[host_name("ggml_mul_mv_q8_0_f32")]] [[kernel]] decltype(ggml_mul_mv<q8_0>) ggml_mul_mv<q8_0>;
template [[host_name("ggml_mul_mv_q6_K_f32")]] [[kernel]] decltype(ggml_mul_mv<q6_K>) ggml_mul_mv<q6_K>;

// The same with matrices that ids pick from a stack of E, a mixture of experts:
// row r of x, or the row of each of its slots, times the matrices ids[r,…].
// x_strides has 0 for slots that share a row. An id outside the stack makes NaN,
// and nothing outside is read.
//
// @kernel  ggml_mul_mv_id_{F:q4_0|q8_0|q6_K}_f32
// @arg     w          device u16 as {{F}_codes()}[E, N, K/{{F}_block()}, {{F}_size()}] read
// @arg     x          device f32[rows, slots, K : x_strides[0], x_strides[1], 1] read
// @arg     ids        device u32[rows, slots] read
// @arg     y          device f32[rows, slots, N] write
// @arg     K          constant i32
// @arg     N          constant i32
// @arg     E          constant i32
// @arg     x_strides  constant i64[2]
// @groups  ceil(N/8), slots, rows
// @group   32, 2, 1
// @require K >= {{F}_block()} && K % {{F}_block()} == 0 && N >= 1
// @use     {F}_decoded(e,n)
// @where   dot[e,r,s,n] = {{F}_dot(e,n; r,s)}
// @term    y[r,s,n] = round(f32, select(ids[r,s] < E, dot[ids[r,s],r,s,n], inf - inf))
template <typename F>
[[kernel]] void ggml_mul_mv_id(
    const device ushort* w [[buffer(0)]],
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
    const size_t words = size_t(N) * (K / F::weights) * F::words; // of a matrix
    dot_rows<F>(w + id * words, x + long(group.z) * x_strides[0] + long(group.y) * x_strides[1], K, N, first, lane, result);
  }
  for (int i = 0; i < ROWS; i++) {
    if (lane == 0 && first + i < N) {
      y[at * N + first + i] = stored(id < uint(E) ? result[i] : NAN);
    }
  }
}

template [[host_name("ggml_mul_mv_id_q4_0_f32")]] [[kernel]] decltype(ggml_mul_mv_id<q4_0>) ggml_mul_mv_id<q4_0>;
template [[host_name("ggml_mul_mv_id_q8_0_f32")]] [[kernel]] decltype(ggml_mul_mv_id<q8_0>) ggml_mul_mv_id<q8_0>;
template [[host_name("ggml_mul_mv_id_q6_K_f32")]] [[kernel]] decltype(ggml_mul_mv_id<q6_K>) ggml_mul_mv_id<q6_K>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Products with GGML's blocks: one threadgroup 8 outputs of a row.
//
// @witness ggml_mul_mv_q?_0_f32 ; K=96 N=60 ; groups 8 3 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_q?_0_f32 ; K=32 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_q?_0_f32 ; K=96 N=60 ; threads 256 6 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_q?_0_f32 ; K={48|0} N=60 ; groups 8 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_q?_0_f32 ; K=96 N=0 ; groups 0 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_q?_0_f32 ; K=96 N=60 ; groups 7 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_q?_0_f32 ; K=96 N=60 ; groups 8 3 2 / 32 2 1 ; refused
// @witness ggml_mul_mv_q?_0_f32 ; K=96 N=60 ; groups 8 3 1 / 32 1 1 ; refused
// @witness ggml_mul_mv_q6_K_f32 ; K=768 N=60 ; groups 8 3 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_q6_K_f32 ; K=256 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_q6_K_f32 ; K={384|0} N=60 ; groups 8 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_q6_K_f32 ; K=768 N=0 ; groups 0 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_q6_K_f32 ; K=768 N=60 ; groups 7 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_q6_K_f32 ; K=768 N=60 ; groups 8 3 2 / 32 2 1 ; refused
// @witness ggml_mul_mv_q6_K_f32 ; K=768 N=60 ; groups 8 3 1 / 32 1 1 ; refused
// @witness ggml_mul_mv_id_q?_0_f32 ; K=96 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_q?_0_f32 ; K=96 N=60 E=8 x_strides=192,96 ; groups 8 2 3 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_q?_0_f32 ; K=32 N=1 E=1 x_strides=1,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_q?_0_f32 ; K=48 N=60 E=8 x_strides=48,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q?_0_f32 ; K=0 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q?_0_f32 ; K=96 N=0 E=8 x_strides=96,0 ; groups 0 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q?_0_f32 ; K=96 N=60 E=8 x_strides=96,0 ; groups 7 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q?_0_f32 ; K=96 N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 1 1 ; refused
// @witness ggml_mul_mv_id_q6_K_f32 ; K=768 N=60 E=8 x_strides=768,0 ; groups 8 2 3 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_q6_K_f32 ; K=256 N=1 E=1 x_strides=1,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_q6_K_f32 ; K=384 N=60 E=8 x_strides=384,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q6_K_f32 ; K=0 N=60 E=8 x_strides=768,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q6_K_f32 ; K=768 N=0 E=8 x_strides=768,0 ; groups 0 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q6_K_f32 ; K=768 N=60 E=8 x_strides=768,0 ; groups 7 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_q6_K_f32 ; K=768 N=60 E=8 x_strides=768,0 ; groups 8 2 3 / 32 1 1 ; refused
