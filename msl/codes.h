// Affine codes of any width, for kernels that take them one by one.

#include "common.h"

// The widths and groups that MLX quantizes with (docs/kernels.md, "Families"), and EACH_CODE, which instantiates a
// kernel for each of them and each type.
//
// @text code_bits() = 2|3|4|5|6|8
// @text code_groups() = 32|64|128

#define EACH_CODE_GROUP(instantiate, name, T, b) \
  instantiate(name, T, 32, b) instantiate(name, T, 64, b) instantiate(name, T, 128, b)
#define EACH_CODE_WIDTH(instantiate, name, T)                                         \
  EACH_CODE_GROUP(instantiate, name, T, 2) EACH_CODE_GROUP(instantiate, name, T, 3)   \
  EACH_CODE_GROUP(instantiate, name, T, 4) EACH_CODE_GROUP(instantiate, name, T, 5)   \
  EACH_CODE_GROUP(instantiate, name, T, 6) EACH_CODE_GROUP(instantiate, name, T, 8)
#define EACH_CODE(instantiate)                    \
  EACH_CODE_WIDTH(instantiate, float, float)      \
  EACH_CODE_WIDTH(instantiate, float16_t, half)   \
  EACH_CODE_WIDTH(instantiate, bfloat16_t, bfloat)

// code is number i of the codes of b bits that begin at w: one follows the other, the first in the lowest bits.
template <int b>
inline uint code(const device uchar* w, size_t i) {
  const size_t bit = i * b;
  const int shift = int(bit % 8);
  uint bits = w[bit / 8];
  if (shift + b > 8) {
    bits |= uint(w[bit / 8 + 1]) << 8;
  }
  return (bits >> shift) & ((1u << b) - 1);
}
