// Matrices in GGML's block formats, as they lie in a GGUF file: nothing is repacked. A row is a whole number of
// blocks; a block has its codes and what they are scaled by. A scale d of 16 bits lies at an even place and no better,
// so a matrix is read in words of 16 bits; one of mxfp4, whose blocks have an odd size, in bytes.
//
//   format  bytes  weights  block
//   q4_0     18      32     d, 16 bytes: codes i (low) and 16 + i (high) of 4 bits
//   q4_1     20      32     d, m, codes as in q4_0
//   q5_0     22      32     d, 4 bytes with bit 4 of the codes, the low 4 bits as in q4_0
//   q5_1     24      32     d, m, then as in q5_0
//   q8_0     34      32     d, 32 codes of 8 bits, signed
//   iq4_nl   18      32     as q4_0; a code is the place of a number in a table of 16
//   mxfp4    17      32     an exponent of 8 bits, codes as in q4_0, each a float of 4 bits, doubled
//   q2_K     84     256     16 bytes: scale (low) and minimum (high) of 16 weights, 64 bytes of codes of 2 bits, d, dmin
//   q3_K    110     256     32 bytes with bit 2 of the codes, 64 with the low 2, 16 scales of 6 bits for 16 weights, d
//   q4_K    144     256     d, dmin, 8 scales and 8 minima of 6 bits for 32 weights, 128 bytes of codes
//   q5_K    176     256     as q4_K, with 32 bytes with bit 4 of the codes before those of the low 4
//   q6_K    210     256     128 bytes with the low 4 bits of codes, 64 with the high 2, 16 scales of 8 bits, signed,
//                           for 16 weights each, d
//
// A weight is scale·code + bias: scale is d, 2^(exponent − 128) or d times that of its group, bias is 0, m or −dmin
// times the minimum of its group. Codes of q4_0, q5_0, q3_K and q6_K are what lies there less 8, 16, 4 and 32. The
// names of our own kernels follow GGML's; its argument structs do not (docs/kernels.md).

#include "slots.h"

// A format has functions for weight j of a block: its code, its scale and, if it is `biased`, its bias. How the lanes
// share a block: each takes one of `parts`, with `values` weights, of which weight i is place(part, i); `run` of them,
// one after another, have one scale. So have 8 weights whose first is a multiple of 8.

template <typename W>
inline uint byte_of(const device W* block, uint i) {
  return sizeof(W) == 1 ? uint(block[i]) : (uint(block[i / 2]) >> (8 * (i % 2))) & 255;
}

inline float half_of(const device ushort* block, uint word) { return float(as_type<half>(block[word])); }

// number is an integer of few bits as a float.
inline float number(uint code, int less) { return float(int(code) - less); }

// Blocks of 32 codes of 4 bits: weights 8·part to 8·part + 7, and those 16 places on, which lie in the same bytes.
struct nibbles {
  typedef ushort word;
  static constexpr constant int weights = 32;
  static constexpr constant int parts = 2;
  static constexpr constant int values = 16;
  static constexpr constant int run = 16;
  static constexpr constant bool biased = false;

  static uint place(uint part, uint i) { return i / 8 * 16 + 8 * part + i % 8; }

  // Those whose first byte is `from`.
  template <typename W>
  static uint low(const device W* block, uint from, uint j) {
    return (byte_of(block, from + j % 16) >> (j / 16 * 4)) & 15;
  }
  // Bit 4 of them, in the 4 bytes before.
  static uint high(const device ushort* block, uint from, uint j) { return (byte_of(block, from - 4 + j / 8) >> (j % 8) & 1) << 4; }

  static float scale(const device ushort* block, uint) { return half_of(block, 0); }
  static float bias(const device ushort* block, uint) { return 0; }
};

struct q4_0 : nibbles {
  static constexpr constant int words = 9;
  static float code(const device ushort* block, uint j) { return number(low(block, 2, j), 8); }
};

struct q4_1 : nibbles {
  static constexpr constant int words = 10;
  static constexpr constant bool biased = true;
  static float code(const device ushort* block, uint j) { return number(low(block, 4, j), 0); }
  static float bias(const device ushort* block, uint) { return half_of(block, 1); }
};

struct q5_0 : nibbles {
  static constexpr constant int words = 11;
  static float code(const device ushort* block, uint j) { return number(low(block, 6, j) | high(block, 6, j), 16); }
};

struct q5_1 : nibbles {
  static constexpr constant int words = 12;
  static constexpr constant bool biased = true;
  static float code(const device ushort* block, uint j) { return number(low(block, 8, j) | high(block, 8, j), 0); }
  static float bias(const device ushort* block, uint) { return half_of(block, 1); }
};

// The table is −127 −104 −83 −65 −49 −35 −22 −10 1 13 25 38 53 69 89 113, a byte each.
struct iq4_nl : nibbles {
  static constexpr constant int words = 9;
  static float code(const device ushort* block, uint j) {
    const uint at = low(block, 2, j);
    const uint table[4] = {0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u};
    const uint four = at < 8 ? (at < 4 ? table[0] : table[1]) : (at < 12 ? table[2] : table[3]);
    return float(as_type<char>(uchar((four >> (at % 4 * 8)) & 255)));
  }
};

// The doubled magnitudes are 0 1 2 3 4 6 8 12, 4 bits each.
struct mxfp4 : nibbles {
  typedef uchar word;
  static constexpr constant int words = 17;
  static float code(const device uchar* block, uint j) {
    const uint c = low(block, 1, j);
    const int size = int((0xc8643210u >> (c % 8 * 4)) & 15);
    return float(c < 8 ? size : -size);
  }
  static float scale(const device uchar* block, uint) {
    const uint e = block[0];
    return as_type<float>(e < 2 ? 0x200000u << e : (e - 1) << 23);
  }
  static float bias(const device uchar* block, uint) { return 0; }
};

struct q8_0 : nibbles {
  static constexpr constant int words = 17;
  static constexpr constant int parts = 4;
  static constexpr constant int values = 8;
  static constexpr constant int run = 8;
  static uint place(uint part, uint i) { return 8 * part + i; }
  static float code(const device ushort* block, uint j) { return float(as_type<char>(uchar(byte_of(block, 2 + j)))); }
};

// Blocks of 256 codes whose 2 bits lie with those of the other quarters of their half: a part is 4 weights at the same
// place of each quarter.
struct quarters {
  typedef ushort word;
  static constexpr constant int weights = 256;
  static constexpr constant int parts = 16;
  static constexpr constant int values = 16;
  static constexpr constant int run = 4;
  static constexpr constant bool biased = false;

  static uint place(uint part, uint i) { return part / 8 * 128 + i / 4 * 32 + part % 8 * 4 + i % 4; }

  // Two bits of code j, those of all beginning with byte `from`.
  static uint two(const device ushort* block, uint from, uint j) {
    return (byte_of(block, from + j / 128 * 32 + j % 32) >> (j / 32 % 4 * 2)) & 3;
  }
  static float bias(const device ushort* block, uint) { return 0; }
};

struct q2_K : quarters {
  static constexpr constant int words = 42;
  static constexpr constant bool biased = true;
  static float code(const device ushort* block, uint j) { return number(two(block, 16, j), 0); }
  static float scale(const device ushort* block, uint j) { return half_of(block, 40) * float(byte_of(block, j / 16) & 15); }
  static float bias(const device ushort* block, uint j) { return -half_of(block, 41) * float(byte_of(block, j / 16) >> 4); }
};

struct q3_K : quarters {
  static constexpr constant int words = 55;
  static float code(const device ushort* block, uint j) {
    return number(two(block, 32, j) | (byte_of(block, j % 32) >> (j / 32) & 1) << 2, 4);
  }
  static float scale(const device ushort* block, uint j) {
    const uint g = j / 16;
    const uint low = (byte_of(block, 96 + g % 8) >> (g / 8 * 4)) & 15;
    return half_of(block, 54) * number(low | (byte_of(block, 104 + g % 4) >> (g / 4 * 2) & 3) << 4, 32);
  }
};

struct q6_K : quarters {
  static constexpr constant int words = 105;
  static float code(const device ushort* block, uint j) {
    const uint low = (byte_of(block, j / 128 * 64 + j % 64) >> (j / 64 % 2 * 4)) & 15;
    return number(low | two(block, 128, j) << 4, 32);
  }
  static float scale(const device ushort* block, uint j) {
    return half_of(block, 104) * float(as_type<char>(uchar(byte_of(block, 192 + j / 16))));
  }
};

// Scales and minima of q4_K and q5_K: 6 bits each, in 12 bytes from the fifth on. The last four of each have their
// high 2 bits in the bytes of the first four.
struct q4_K : nibbles {
  static constexpr constant int weights = 256;
  static constexpr constant int words = 72;
  static constexpr constant int parts = 16;
  static constexpr constant int run = 8;
  static constexpr constant bool biased = true;

  static uint place(uint part, uint i) { return part / 4 * 64 + i / 8 * 32 + part % 4 * 8 + i % 8; }

  static uint four(const device ushort* block, uint from, uint j) {
    return (byte_of(block, from + j / 64 * 32 + j % 32) >> (j / 32 % 2 * 4)) & 15;
  }
  static float code(const device ushort* block, uint j) { return number(four(block, 16, j), 0); }
  static float scale(const device ushort* block, uint j) {
    const uint g = j / 32;
    const uint s = g < 4 ? byte_of(block, 4 + g) & 63 : (byte_of(block, 8 + g) & 15) | byte_of(block, g) >> 6 << 4;
    return half_of(block, 0) * float(s);
  }
  static float bias(const device ushort* block, uint j) {
    const uint g = j / 32;
    const uint m = g < 4 ? byte_of(block, 8 + g) & 63 : byte_of(block, 8 + g) >> 4 | byte_of(block, 4 + g) >> 6 << 4;
    return -half_of(block, 1) * float(m);
  }
};

struct q5_K : q4_K {
  static constexpr constant int words = 88;
  static float code(const device ushort* block, uint j) {
    return number(four(block, 48, j) | (byte_of(block, 16 + j % 32) >> (j / 32) & 1) << 4, 0);
  }
};

// EACH_FORMAT instantiates a kernel for all formats, with the type of a word of their blocks, and for one type of vectors
// and results, with its name in those of kernels; EACH_VECTOR for all types.
#define EACH_FORMAT(instantiate, name, T)                                                                              \
  instantiate(q4_0, ushort, name, T) instantiate(q8_0, ushort, name, T) instantiate(q6_K, ushort, name, T)             \
  instantiate(q4_1, ushort, name, T) instantiate(q5_0, ushort, name, T) instantiate(q5_1, ushort, name, T)             \
  instantiate(iq4_nl, ushort, name, T) instantiate(mxfp4, uchar, name, T) instantiate(q2_K, ushort, name, T)           \
  instantiate(q3_K, ushort, name, T) instantiate(q4_K, ushort, name, T) instantiate(q5_K, ushort, name, T)
#define EACH_VECTOR(instantiate)         \
  EACH_FORMAT(instantiate, f32, float)   \
  EACH_FORMAT(instantiate, f16, half)    \
  EACH_FORMAT(instantiate, bf16, bfloat)

// Blocks are weights in format F.
template <typename word>
struct Words {
  const device word* w;
};
template <typename F>
struct Blocks : InRows<Blocks<F>> {
  typedef typename F::word word;
  typedef Words<word> matrix;
  static constexpr constant bool whole = false;
  static constexpr constant bool ragged = false;
  static uint row(uint3 group) { return group.y; }
  static int block(uint3 group) { return int(group.x); }
  static const device word* row_of(const thread matrix& m, size_t n,
  int K) { return m.w + n * (K / F::weights) * F::words; }
  static matrix of(const thread matrix& m, uint id, int K, int N) { return {row_of(m, size_t(id) * N, K)}; }

  template <int matrices, typename T>
  static void dot(const thread matrix* m, const device T* x, int K, int N, int first, uint lane,
  thread float* result) {
    const uint part = lane % F::parts;
    const int blocks = K / F::weights;
#pragma unroll
    for (int i = 0; i < matrices * ROWS; i++) {
      result[i] = 0;
    }
    for (int c = int(lane) / F::parts; c < blocks; c += LANES / F::parts) {
      float v[F::values];
      float sums[F::values / F::run];
#pragma unroll
      for (int i = 0; i < F::values; i++) {
        v[i] = float(x[c * F::weights + int(F::place(part, i))]);
        sums[i / F::run] = i % F::run == 0 ? v[i] : sums[i / F::run] + v[i];
      }
#pragma unroll
      for (int i = 0; i < matrices * ROWS; i++) {
        const device word* block = row_of(m[i / ROWS], min(first + i % ROWS, N - 1), K) + c * F::words;
#pragma unroll
        for (int r = 0; r < F::values; r += F::run) {
          float products = 0;
#pragma unroll
          for (int k = r; k < r + F::run; k++) {
            products += v[k] * F::code(block, F::place(part, k));
          }
          const uint at = F::place(part, r);
          result[i] += F::biased ? F::scale(block, at) * products + F::bias(block,
          at) * sums[r / F::run] : F::scale(block, at) * products;
        }
      }
    }
    sum_all<matrices * ROWS>(result);
  }

  static void decode(const thread matrix& m, int K, bool is_there, int n, int k, threadgroup float* to) {
    const device word* block = row_of(m, is_there ? n : 0, K) + size_t(k / F::weights) * F::words;
    const uint j = uint(k % F::weights);
    const float scale = F::scale(block, j);
    const float bias = F::bias(block, j);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const float product = scale * F::code(block, j + i);
      to[i] = is_there ? (F::biased ? product + bias : product) : 0.0f;
    }
  }
};

// weight is weight j of a block.
template <typename F>
inline float weight(const device typename F::word* block, uint j) {
  const float product = F::scale(block, j) * F::code(block, j);
  return F::biased ? product + F::bias(block, j) : product;
}

// The types of vectors and results, whose sums are f32, and the formats: their names; what the bytes of a block are read as; weights and bytes of a block, weights of a group that
// has one scale; scale, code and bias of the weights of row n of the matrix whose names end in s. Of a signed byte, too,
// w / 2^i % 2^j are bits i to i + j - 1: / rounds down, and % is never negative.
//
// @text  vectors() = f32|f16|bf16
// @text  formats() = q4_0|q8_0|q6_K|q4_1|q5_0|q5_1|iq4_nl|mxfp4|q2_K|q3_K|q4_K|q5_K
// @text  half(n; B; at; s) = as_f16(w{s}[{n},{B},{at}] + 256*w{s}[{n},{B},{at} + 1])
// @text  half_of_signed(n; B; at; s) = as_f16(w{s}[{n},{B},{at}] % 256 + 256*w{s}[{n},{B},{at} + 1])
// @text  nibble(n; from; s) = w{s}[{n},k/32,{from} + k%16] / (1 + 15*(k/16%2)) % 16
// @text  two(n; from; s) = w{s}[{n},k/256,{from} + k/128%2*32 + k%32] / ((1 + 3*(k/32%2)) * (1 + 15*(k/64%2))) % 4
// @text  four(n; from; s) = w{s}[{n},k/256,{from} + k/64%4*32 + k%32] / (1 + 15*(k/32%2)) % 16
// @text  power(i) = ((1 + {i}%2) * (1 + 3*({i}/2%2)) * (1 + 15*({i}/4%2)))
//
// How weight k, the dot product of the row with row m of x, and the same of blocks with biases follow from them. That of
// mxfp4, whose weights may be infinite where no product is, scales each.
//
// @text  scaled(G; n; k; s) = scale{s}[{n},{k}/{G}] * code{s}[{n},{k}]
// @text  moved(G; n; k; s) = {scaled({G}; {n}; {k}; {s})} + bias{s}[{n},{k}/{G}]
// @text  scaled_dot(F; G; n; m; s) = sum[ggml_{F}](g < K/{G}, scale{s}[{n},g] * sum[ggml_{F}](j < {G}, x[{m},g*{G} + j] * code{s}[{n},g*{G} + j]))
// @text  moved_dot(F; G; n; m; s) = sum[ggml_{F}](g < K/{G}, scale{s}[{n},g] * sum[ggml_{F}](j < {G}, x[{m},g*{G} + j] * code{s}[{n},g*{G} + j]) \
//            + bias{s}[{n},g] * sum[ggml_{F}](j < {G}, x[{m},g*{G} + j]))
//
// @text  q4_0_codes() = u16 as u8
// @text  q4_0_block() = 32
// @text  q4_0_size() = 18
// @text  q4_0_weight(n; k; s) = {scaled(32; {n}; {k}; {s})}
// @text  q4_0_dot(n; m; s) = {scaled_dot(q4_0; 32; {n}; {m}; {s})}
// @lines q4_0_decoded(n; s)
// @where scale{s}[{n},g] = {half({n}; g; 0; {s})}
// @where code{s}[{n},k] = {nibble({n}; 2; {s})} - 8
// @end
//
// @text  q8_0_codes() = u16 as i8
// @text  q8_0_block() = 32
// @text  q8_0_size() = 34
// @text  q8_0_weight(n; k; s) = {scaled(32; {n}; {k}; {s})}
// @text  q8_0_dot(n; m; s) = {scaled_dot(q8_0; 32; {n}; {m}; {s})}
// @lines q8_0_decoded(n; s)
// @where scale{s}[{n},g] = {half_of_signed({n}; g; 0; {s})}
// @where code{s}[{n},k] = w{s}[{n},k/32,2 + k%32]
// @end
//
// @text  q6_K_codes() = u16 as i8
// @text  q6_K_block() = 256
// @text  q6_K_size() = 210
// @text  q6_K_weight(n; k; s) = {scaled(16; {n}; {k}; {s})}
// @text  q6_K_dot(n; m; s) = {scaled_dot(q6_K; 16; {n}; {m}; {s})}
// @lines q6_K_decoded(n; s)
// @where scale{s}[{n},g] = {half_of_signed({n}; g/16; 208; {s})} * w{s}[{n},g/16,192 + g%16]
// @where low{s}[{n},k] = w{s}[{n},k/256,k/128%2*64 + k%64] / (1 + 15*(k/64%2)) % 16
// @where code{s}[{n},k] = low{s}[{n},k] + 16*({two({n}; 128; {s})}) - 32
// @end
//
// @text  q4_1_codes() = u16 as u8
// @text  q4_1_block() = 32
// @text  q4_1_size() = 20
// @text  q4_1_weight(n; k; s) = {moved(32; {n}; {k}; {s})}
// @text  q4_1_dot(n; m; s) = {moved_dot(q4_1; 32; {n}; {m}; {s})}
// @lines q4_1_decoded(n; s)
// @where scale{s}[{n},g] = {half({n}; g; 0; {s})}
// @where bias{s}[{n},g] = {half({n}; g; 2; {s})}
// @where code{s}[{n},k] = {nibble({n}; 4; {s})}
// @end
//
// @text  q5_0_codes() = u16 as u8
// @text  q5_0_block() = 32
// @text  q5_0_size() = 22
// @text  q5_0_weight(n; k; s) = {scaled(32; {n}; {k}; {s})}
// @text  q5_0_dot(n; m; s) = {scaled_dot(q5_0; 32; {n}; {m}; {s})}
// @lines q5_0_decoded(n; s)
// @where scale{s}[{n},g] = {half({n}; g; 0; {s})}
// @where code{s}[{n},k] = {nibble({n}; 6; {s})} + 16*(w{s}[{n},k/32,2 + k/8%4] / {power(k)} % 2) - 16
// @end
//
// @text  q5_1_codes() = u16 as u8
// @text  q5_1_block() = 32
// @text  q5_1_size() = 24
// @text  q5_1_weight(n; k; s) = {moved(32; {n}; {k}; {s})}
// @text  q5_1_dot(n; m; s) = {moved_dot(q5_1; 32; {n}; {m}; {s})}
// @lines q5_1_decoded(n; s)
// @where scale{s}[{n},g] = {half({n}; g; 0; {s})}
// @where bias{s}[{n},g] = {half({n}; g; 2; {s})}
// @where code{s}[{n},k] = {nibble({n}; 8; {s})} + 16*(w{s}[{n},k/32,4 + k/8%4] / {power(k)} % 2)
// @end
//
// @text  iq4_nl_codes() = u16 as u8
// @text  iq4_nl_block() = 32
// @text  iq4_nl_size() = 18
// @text  iq4_nl_weight(n; k; s) = {scaled(32; {n}; {k}; {s})}
// @text  iq4_nl_dot(n; m; s) = {scaled_dot(iq4_nl; 32; {n}; {m}; {s})}
// @lines iq4_nl_decoded(n; s)
// @where scale{s}[{n},g] = {half({n}; g; 0; {s})}
// @where at{s}[{n},k] = {nibble({n}; 2; {s})}
// @where code{s}[{n},k] = select(at{s}[{n},k] < 8, select(at{s}[{n},k] < 4, \
//            select(at{s}[{n},k] < 2, select(at{s}[{n},k] < 1, -127, -104), select(at{s}[{n},k] < 3, -83, -65)), \
//            select(at{s}[{n},k] < 6, select(at{s}[{n},k] < 5, -49, -35), select(at{s}[{n},k] < 7, -22, -10))), select(at{s}[{n},k] < 12, \
//            select(at{s}[{n},k] < 10, select(at{s}[{n},k] < 9, 1, 13), select(at{s}[{n},k] < 11, 25, 38)), \
//            select(at{s}[{n},k] < 14, select(at{s}[{n},k] < 13, 53, 69), select(at{s}[{n},k] < 15, 89, 113))))
// @end
//
// @text  mxfp4_codes() = u8
// @text  mxfp4_block() = 32
// @text  mxfp4_size() = 17
// @text  mxfp4_weight(n; k; s) = {scaled(32; {n}; {k}; {s})}
// @text  mxfp4_dot(n; m; s) = sum[ggml_mxfp4](k < K, x[{m},k] * code{s}[{n},k] * scale{s}[{n},k/32])
// @lines mxfp4_decoded(n; s)
// @where above{s}[{n},g] = w{s}[{n},g,0]
// @where scale{s}[{n},g] = select(above{s}[{n},g] < 2, as_f32(2097152 * (above{s}[{n},g] + 1)), as_f32(8388608 * (above{s}[{n},g] - 1)))
// @where at{s}[{n},k] = {nibble({n}; 1; {s})}
// @where code{s}[{n},k] = (1 - 2*(at{s}[{n},k]/4/2)) * max(at{s}[{n},k]%8, (4 + 2*(at{s}[{n},k]%2)) * (at{s}[{n},k]/2%4 - 1))
// @end
//
// @text  q2_K_codes() = u16 as u8
// @text  q2_K_block() = 256
// @text  q2_K_size() = 84
// @text  q2_K_weight(n; k; s) = {moved(16; {n}; {k}; {s})}
// @text  q2_K_dot(n; m; s) = {moved_dot(q2_K; 16; {n}; {m}; {s})}
// @lines q2_K_decoded(n; s)
// @where scale{s}[{n},g] = {half({n}; g/16; 80; {s})} * (w{s}[{n},g/16,g%16] % 16)
// @where bias{s}[{n},g] = -{half({n}; g/16; 82; {s})} * (w{s}[{n},g/16,g%16] / 16)
// @where code{s}[{n},k] = {two({n}; 16; {s})}
// @end
//
// @text  q3_K_codes() = u16 as u8
// @text  q3_K_block() = 256
// @text  q3_K_size() = 110
// @text  q3_K_weight(n; k; s) = {scaled(16; {n}; {k}; {s})}
// @text  q3_K_dot(n; m; s) = {scaled_dot(q3_K; 16; {n}; {m}; {s})}
// @lines q3_K_decoded(n; s)
// @where low{s}[{n},g] = w{s}[{n},g/16,96 + g%8] / (1 + 15*(g/8%2)) % 16
// @where scale{s}[{n},g] = {half({n}; g/16; 108; {s})} * (low{s}[{n},g] + 16*(w{s}[{n},g/16,104 + g%4] / ((1 + 3*(g/4%2)) * (1 + 15*(g/8%2))) % 4) - 32)
// @where code{s}[{n},k] = {two({n}; 32; {s})} + 4*(w{s}[{n},k/256,k%32] / {power(k/32)} % 2) - 4
// @end
//
// @lines six(n; s)
// @where six{s}[{n},c,i] = select(i < 4, w{s}[{n},c,4 + i] % 64, w{s}[{n},c,8 + i] % 16 + 16*(w{s}[{n},c,i] / 64))
// @where least{s}[{n},c,i] = select(i < 4, w{s}[{n},c,8 + i] % 64, w{s}[{n},c,8 + i] / 16 + 16*(w{s}[{n},c,4 + i] / 64))
// @where scale{s}[{n},g] = {half({n}; g/8; 0; {s})} * six{s}[{n},g/8,g%8]
// @where bias{s}[{n},g] = -{half({n}; g/8; 2; {s})} * least{s}[{n},g/8,g%8]
// @end
//
// @text  q4_K_codes() = u16 as u8
// @text  q4_K_block() = 256
// @text  q4_K_size() = 144
// @text  q4_K_weight(n; k; s) = {moved(32; {n}; {k}; {s})}
// @text  q4_K_dot(n; m; s) = {moved_dot(q4_K; 32; {n}; {m}; {s})}
// @lines q4_K_decoded(n; s)
// @use   six({n}; {s})
// @where code{s}[{n},k] = {four({n}; 16; {s})}
// @end
//
// @text  q5_K_codes() = u16 as u8
// @text  q5_K_block() = 256
// @text  q5_K_size() = 176
// @text  q5_K_weight(n; k; s) = {moved(32; {n}; {k}; {s})}
// @text  q5_K_dot(n; m; s) = {moved_dot(q5_K; 32; {n}; {m}; {s})}
// @lines q5_K_decoded(n; s)
// @use   six({n}; {s})
// @where code{s}[{n},k] = {four({n}; 48; {s})} + 16*(w{s}[{n},k/256,16 + k%32] / {power(k/32)} % 2)
// @end
//
// Rows times a matrix: a simdgroup computes ROWS outputs of a row. Meant for few
// rows; each of them reads the matrix once.
//
// @kernel  ggml_mul_mv_{F:{formats()}}_{T:{vectors()}}
// @arg     w  device {{F}_codes()}[N, K/{{F}_block()}, {{F}_size()}] read
// @arg     x  device {T}[M, K] read
// @arg     y  device {T}[M, N] write
// @arg     K  constant i32
// @arg     N  constant i32
// @groups  ceil(N/8), M, 1
// @group   32, 2, 1
// @require K >= {{F}_block()} && K % {{F}_block()} == 0 && N >= 1
// @use     {F}_decoded(n; )
// @term    y[m,n] = round({T}, {{F}_dot(n; m; )})
VECTOR(ggml_mul_mv, 1, PLAIN, w, K, N, )

#define INSTANTIATE_MV(F, word, name, T) \
  template [[host_name("ggml_mul_mv_" #F "_" #name)]] [[kernel]] \
  decltype(ggml_mul_mv<T, word, Blocks<F>>) ggml_mul_mv<T, word, Blocks<F>>;
EACH_VECTOR(INSTANTIATE_MV)

// The gate and up products of a feed-forward layer, and silu(gate)·up of them.
//
// @kernel  ggml_mul_mv_silu_mul_{F:{formats()}}_{T:{vectors()}}
// @each    i = gate up
// @arg     w_{i}  device {{F}_codes()}[N, K/{{F}_block()}, {{F}_size()}] read
// @use     {F}_decoded(n; _{i})
// @where   {i}[m,n] = round({T}, {{F}_dot(n; m; _{i})})
// @end
// @use     one_behind({T}; M, ; K; N)
// @groups  ceil(N/8), M, 1
// @group   32, 2, 1
// @require K >= {{F}_block()} && K % {{F}_block()} == 0 && N >= 1
// @use     silu_mul(m,n; {T})
VECTOR_SILU_MUL(ggml_mul_mv_silu_mul, PLAIN, K, N)

#define INSTANTIATE_MV_SILU_MUL(F, word, name, T) \
  template [[host_name("ggml_mul_mv_silu_mul_" #F "_" #name)]] [[kernel]] \
  decltype(ggml_mul_mv_silu_mul<T, word, Blocks<F>>) ggml_mul_mv_silu_mul<T, word, Blocks<F>>;
EACH_VECTOR(INSTANTIATE_MV_SILU_MUL)

// The same with matrices that ids pick from a stack of E, a mixture of experts:
// row r of x, or the row of each of its slots, times the matrices ids[r,…].
// x_strides has 0 for slots that share a row. An id outside the stack makes NaN,
// and nothing outside is read.
//
// @kernel  ggml_mul_mv_id_{F:{formats()}}_{T:{vectors()}}
// @arg     w          device {{F}_codes()}[E, N, K/{{F}_block()}, {{F}_size()}] read
// @use     picked_behind({T})
// @require K >= {{F}_block()} && K % {{F}_block()} == 0 && N >= 1
// @use     {F}_decoded(e,n; )
// @where   dot[e,r,s,n] = {{F}_dot(e,n; r,s; )}
// @term    y[r,s,n] = round({T}, select(ids[r,s] < E, dot[ids[r,s],r,s,n], inf - inf))
VECTOR_PICKED(ggml_mul_mv_id, PLAIN, w)

#define INSTANTIATE_MV_ID(F, word, name, T) \
  template [[host_name("ggml_mul_mv_id_" #F "_" #name)]] [[kernel]] \
  decltype(ggml_mul_mv_id<T, word, Blocks<F>>) ggml_mul_mv_id<T, word, Blocks<F>>;
EACH_VECTOR(INSTANTIATE_MV_ID)

// Many rows times a matrix: a threadgroup computes a TILE × TILE tile of y, of which each step brings TILE columns of
// x and, decoded, of w to threadgroup memory, a thread 8 elements of a row each.
//
// @kernel  ggml_mul_mm_{F:{formats()}}_{T:{vectors()}}
// @arg     x  device {T}[M, K] read
// @arg     w  device {{F}_codes()}[N, K/{{F}_block()}, {{F}_size()}] read
// @arg     y  device {T}[M, N] write
// @arg     K  constant i32
// @arg     N  constant i32
// @arg     M  constant i32
// @groups  ceil(N/32), ceil(M/32), 1
// @group   32, 2, 2
// @require K >= {{F}_block()} && K % {{F}_block()} == 0 && N >= 1 && M >= 1
// @use     {F}_decoded(n; )
// @where   weight[n,k] = {{F}_weight(n; k; )}
// @term    y[m,n] = round({T}, sum[gemm](k < K, x[m,k] * weight[n,k]))
MATRIX(ggml_mul_mm, 1, Tile, X_FIRST, PLAIN, N, )

#define INSTANTIATE_MM(F, word, name, T) \
  template [[host_name("ggml_mul_mm_" #F "_" #name)]] [[kernel]] \
  decltype(ggml_mul_mm<T, word, Blocks<F>>) ggml_mul_mm<T, word, Blocks<F>>;
EACH_VECTOR(INSTANTIATE_MM)

// Rows of a table, picked by ids, as `embed` does. A row whose id is outside the table becomes NaN, and nothing
// outside the table is read.
//
// @kernel  ggml_get_rows_{F:{formats()}}_{T:{vectors()}}
// @arg     ids  device i32[n] read
// @arg     w    device {{F}_codes()}[V, K/{{F}_block()}, {{F}_size()}] read
// @arg     out  device {T}[n, K] write
// @arg     K    constant i32
// @arg     V    constant i32
// @threads K, n, 1
// @group   _, _, _
// @require K % {{F}_block()} == 0
// @use     {F}_decoded(r; )
// @where   weight[r,k] = {{F}_weight(r; k; )}
// @term    out[t,k] = round({T}, select(ids[t] >= 0 && ids[t] < V, weight[ids[t],k], inf - inf))
template <typename T, typename word, typename F>
[[kernel]] void ggml_get_rows(
    const device int* ids [[buffer(0)]],
    const device word* w [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant int& K [[buffer(3)]],
    constant int& V [[buffer(4)]],
    uint2 at [[thread_position_in_grid]]) {
  const int id = ids[at.y];
  float result = NAN;
  if (id >= 0 && id < V) {
    const device typename F::word* block = w + (size_t(id) * (K / F::weights) + at.x / F::weights) * F::words;
    result = weight<F>(block, at.x % F::weights);
  }
  out[size_t(at.y) * K + at.x] = stored(T(result));
}

#define INSTANTIATE_GET_ROWS(F, word, name, T) \
  template [[host_name("ggml_get_rows_" #F "_" #name)]] [[kernel]] \
  decltype(ggml_get_rows<T, word, F>) ggml_get_rows<T, word, F>;
EACH_VECTOR(INSTANTIATE_GET_ROWS)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Products with GGML's blocks: one threadgroup 8 outputs of a row.
//
// @witness ggml_mul_mv_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 ; {groups 8 3 1|threads 256 6 1} / 32 2 1 ; ok
// @witness ggml_mul_mv_{q?_0|q?_1|iq4_nl|mxfp4}_* ; K=32 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_q?_K_* ; K=256 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_q?_K_* ; K=384 N=60 ; groups 8 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_{q?_?|iq4_nl|mxfp4}_* ; K={48|0} N=60 ; groups 8 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=0 ; groups 0 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 ; groups {7 3 1|8 3 2} / 32 2 1 ; refused
// @witness ggml_mul_mv_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 ; groups 8 3 1 / 32 1 1 ; refused
// @witness ggml_mul_mv_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=768 inplace=y,x ; groups 96 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_silu_mul_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 ; {groups 8 3 1|threads 256 6 1} / 32 2 1 ; ok
// @witness ggml_mul_mv_silu_mul_{q?_0|q?_1|iq4_nl|mxfp4}_* ; K=32 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_silu_mul_q?_K_* ; K=256 N=1 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_silu_mul_q?_K_* ; K=384 N=60 ; groups 8 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_silu_mul_{q?_?|iq4_nl|mxfp4}_* ; K={48|0} N=60 ; groups 8 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_silu_mul_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=0 ; groups 0 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_silu_mul_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 ; groups {7 3 1|8 3 2} / 32 2 1 ; refused
// @witness ggml_mul_mv_silu_mul_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 ; groups 8 3 1 / 32 1 1 ; refused
// @witness ggml_mul_mv_silu_mul_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=768 inplace=y,x ; groups 96 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 E=8 x_strides={768,0|1536,768} ; groups 8 2 3 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_{q?_0|q?_1|iq4_nl|mxfp4}_* ; K=32 N=1 E=1 x_strides=1,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_q?_K_* ; K=256 N=1 E=1 x_strides=1,0 ; groups 1 1 1 / 32 2 1 ; ok
// @witness ggml_mul_mv_id_q?_K_* ; K=384 N=60 E=8 x_strides=384,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_{q?_?|iq4_nl|mxfp4}_* ; K={48|0} N=60 E=8 x_strides=96,0 ; groups 8 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=0 E=8 x_strides=768,0 ; groups 0 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 E=8 x_strides=768,0 ; groups 7 2 3 / 32 2 1 ; refused
// @witness ggml_mul_mv_id_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=60 E=8 x_strides=768,0 ; groups 8 2 3 / 32 1 1 ; refused
// @witness ggml_mul_mv_id_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=768 E=8 x_strides=1536,768 inplace=y,x ; groups 96 2 3 / 32 2 1 ; refused
//
// Of many rows: one threadgroup a tile of 32 × 32.
//
// @witness ggml_mul_mm_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=97 M=65 ; groups 4 3 1 / 32 2 2 ; ok
// @witness ggml_mul_mm_{q?_0|q?_1|iq4_nl|mxfp4}_* ; K=32 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness ggml_mul_mm_q?_K_* ; K=256 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; ok
// @witness ggml_mul_mm_q?_K_* ; K=384 N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness ggml_mul_mm_{q?_?|iq4_nl|mxfp4}_* ; K={48|0} N=1 M=1 ; groups 1 1 1 / 32 2 2 ; refused
// @witness ggml_mul_mm_{q?_?|iq4_nl|mxfp4}_* ; K=256 N=0 M=1 ; groups 0 1 1 / 32 2 2 ; refused
// @witness ggml_mul_mm_{q?_?|iq4_nl|mxfp4}_* ; K=256 N=1 M=0 ; groups 1 0 1 / 32 2 2 ; refused
// @witness ggml_mul_mm_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=97 M=65 ; groups {3 3 1|4 2 1|4 3 2} / 32 2 2 ; refused
// @witness ggml_mul_mm_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=97 M=65 ; groups 4 3 1 / 32 2 1 ; refused
// @witness ggml_mul_mm_{q?_?|iq4_nl|mxfp4}_* ; K=768 N=768 M=65 inplace=y,x ; groups 24 3 1 / 32 2 2 ; refused
//
// Embeddings: one thread an element.
//
// @witness ggml_get_rows_{q?_?|iq4_nl|mxfp4}_* ; K=768 V=49152 ; threads 768 7 1 / 256 1 1 ; ok
// @witness ggml_get_rows_{q?_?|iq4_nl|mxfp4}_* ; K=768 V=49152 ; threads {767 7 1|768 7 2} / 256 1 1 ; refused
// @witness ggml_get_rows_{q?_?|iq4_nl|mxfp4}_* ; K=48 V=100 ; threads 48 7 1 / 48 1 1 ; refused
// @witness ggml_get_rows_q?_K_* ; K=384 V=100 ; threads 384 7 1 / 256 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent ggml_mul_m*_mxfp4_* ; constant: scale{|_gate|_up}: 2097152 -> 2097153 ; of so small a scale a product has no bit
// @equivalent ggml_get_rows_mxfp4_bf16* ; round: out: round(* ; a weight is a number of 4 bits and a power of two, which bf16 has
