// What matrix-vector products share: loads, sums over lanes, and arithmetic with affine codes.

#include "codes.h"
#include "activation.h"

// What their declarations share (docs/kernels.md, "Families"). A matrix of affine codes, whose arguments and terms
// end in s, and its product with a vector x; what two products of a gated feed-forward layer become.
// Scales, biases, vectors and results have the type T of a declaration's name.
//
// @lines matrix(s; bits; N; K)
// @arg   w{s}       device u32 as u{bits}[{N}, {K}] read
// @arg   scales{s}  device {T}[{N}, {K}/g] read
// @arg   biases{s}  device {T}[{N}, {K}/g] read
// @end
// @text  affine(K; C; s; n; x) = sum[{C}](c < {K}/g, scales{s}[{n},c] * sum[{C}](j < g, {x} * f32(w{s}[{n},c*g + j])) \
//            + biases{s}[{n},c] * sum[{C}](j < g, {x}))
// @text  dot(C; s) = {affine(in_vec_size; {C}; {s}; n; x[m,c*g + j])}
// @lines silu_mul(at; T)
// @where part[{at}] = {part_{T}(gate[{at}])}
// @term  y[{at}] = round({T}, round({T}, {silu_{T}(gate[{at}]; part[{at}])}) * up[{at}])
// @end

constexpr constant int LANES = 32;
constexpr constant int ROWS = 4; // outputs of a simdgroup at a time, if not told otherwise

// aligned is whether p lies at a multiple of n bytes, and wide_load a load from
// where p lies at a multiple of its own size.
inline bool aligned(const device void* p, ulong n) { return (ulong(p) & (n - 1)) == 0; }
template <typename V, typename T>
inline V wide_load(const device T* p) {
  return *(const device V*)p;
}

// take reads n elements, a multiple of 4, from where they lie so that they can be read at once.
template <int n, typename T>
inline void take(const device T* p, thread float* v) {
  typedef vec<T, 4> Four;
#pragma unroll
  for (int i = 0; i < n; i += 4) {
    const Four e = *(const device Four*)(p + i);
    v[i] = e.x;
    v[i + 1] = e.y;
    v[i + 2] = e.z;
    v[i + 3] = e.w;
  }
}

// has is whether a row has part d of a lane. If all lanes have theirs or none has, K alone says so.
template <int values>
inline bool has(int K, int d, uint lane) {
  return LANES * d * values < K && (LANES * (d + 1) * values <= K || (LANES * d + int(lane)) * values < K);
}

// sum_all leaves in each of n values, an even number, its sum over the simdgroup. Those of a vector go together:
// none of them waits for another.
template <int n>
inline void sum_all(thread float* v) {
#pragma unroll
  for (int i = 0; i + 4 <= n; i += 4) {
    const float4 s = simd_sum(float4(v[i], v[i + 1], v[i + 2], v[i + 3]));
    v[i] = s.x;
    v[i + 1] = s.y;
    v[i + 2] = s.z;
    v[i + 3] = s.w;
  }
  if (n % 4 == 2) {
    const float2 s = simd_sum(float2(v[n - 2], v[n - 1]));
    v[n - 2] = s.x;
    v[n - 1] = s.y;
  }
}

// of_lane is value lane of n, 2 or 4: what all lanes have, each makes one result of.
template <int n>
inline float of_lane(const thread float* v, uint lane) {
  const bool odd = (lane & 1) != 0;
  const float low = select(v[0], v[1], odd);
  const float high = select(v[n - 2], v[n - 1], odd);
  return select(low, high, n == 4 && (lane & 2) != 0);
}

// silu_mul is what a gated feed-forward layer makes of its two products.
template <typename T>
inline T silu_mul(T gate, T up) {
  return T(float(silu(gate)) * float(up));
}

// Affine is a matrix [N, K] of affine codes: element (n, k) is scales[n, k/g] · q + biases[n, k/g], with q an
// unsigned code of b bits. Codes lie bit after bit in 32-bit words, the first in the lowest bits; a row is a multiple of
// 32 codes, and so of words. It begins with the first row of the matrix, or with another. Scales and biases of 16 bits are widened where they are used.
template <typename T>
struct AffineOf {
  const device uint* w;
  const device T* scales;
  const device T* biases;
};
typedef AffineOf<float> Affine;

// PLACE declares where a thread is.
#define PLACE                                            \
  uint3 group [[threadgroup_position_in_grid]],          \
  uint simdgroup [[simdgroup_index_in_threadgroup]],     \
  uint lane [[thread_index_in_simdgroup]]

// in_words is whether no code lies in two words.
template <int b>
constexpr bool in_words() {
  return 32 % b == 0;
}

// words_of is how many words n codes take, a multiple of 32 or, if they lie in words, of those of a word.
template <int b, typename I>
inline I words_of(I n) {
  return in_words<b>() ? n / (32 / b) : n / 32 * b;
}

// values_of is how many codes a lane takes at a time that has so many words for them: those of the words, or 16.
template <int b, int words>
constexpr int values_of() {
  return in_words<b>() ? words * 32 / b : 16;
}

// code_in is code i of some words.
template <int b>
inline uint code_in(const thread uint* words, int i) {
  const int bit = b * i % 32;
  const uint low = words[b * i / 32] >> bit;
  return (bit + b > 32 ? low | words[b * i / 32 + 1] << (32 - bit) : low) & ((1u << b) - 1);
}

// code_at is code i of a matrix. j is a number that is like i, if both are divided by 32.
template <int b>
inline uint code_at(const device uint* w, size_t i, uint j) {
  if (in_words<b>()) {
    return (w[i / (32 / b)] >> (b * (j % (32 / b)))) & ((1u << b) - 1);
  }
  const device uint* from = w + i / 32 * b + b * (j % 32) / 32;
  const uint bit = b * (j % 32) % 32;
  const uint low = from[0] >> bit;
  return (bit + b > 32 ? low | from[1] << (32 - bit) : low) & ((1u << b) - 1);
}

// bytes_of leaves in words the b bytes of eight codes.
template <int b>
inline void bytes_of(const device uchar* from, thread uint* words) {
#pragma unroll
  for (int i = 0; i < b; i++) {
    words[i / 4] = (i % 4 == 0 ? 0 : words[i / 4]) | uint(from[i]) << (8 * (i % 4));
  }
}

// row_of is a matrix from one of its rows on.
template <int g, int b, typename T>
inline AffineOf<T> row_of(const thread AffineOf<T>& m, int K, size_t row) {
  return {m.w + size_t(row) * words_of<b>(K), m.scales + size_t(row) * (K / g), m.biases + size_t(row) * (K / g)};
}

// scaled divides value i by 2^(b·j), j being the place of code i in its 16 bits, if codes lie so,
// and returns the sum of what the values were: a code then needs no shift, only a
// mask, and the product is exact as before.
template <int b, int n>
inline float scaled(thread float* v) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < n; i++) {
    sum += v[i];
    v[i] *= in_words<b>() ? 1.0f / float(1 << (b * (i % (16 / b)))) : 1.0f;
  }
  return sum;
}

// small is an integer below 2^23 as a float: it is put into the fraction of 2^23.
// Behind a mask this is one logical operation and a subtraction, which a GPU
// does at its full rate, unlike conversions.
inline float small(uint n) { return as_type<float>(n | 0x4b000000u) - 8388608.0f; }

// dot_codes returns Σ v·q over n codes, v as `scaled` left it.
template <int b, int n>
inline float dot_codes(const thread uint* w, const thread float* v) {
  constexpr int in_half = 16 / b;
  constexpr uint mask = (1u << b) - 1;
  float acc = 0;
  if (!in_words<b>()) {
#pragma unroll
    for (int i = 0; i < n; i++) {
      acc = fma(v[i], small(code_in<b>(w, i)), acc);
    }
    return acc;
  }
#pragma unroll
  for (int i = 0; i < n / in_half; i++) {
    const uint codes = i % 2 == 0 ? w[i / 2] : w[i / 2] >> 16;
#pragma unroll
    for (int j = 0; j < in_half; j++) {
      acc = fma(v[in_half * i + j], small(codes & (mask << (b * j))), acc);
    }
  }
  return acc;
}
