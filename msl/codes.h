// Affine codes: the widths and groups that MLX quantizes with (docs/kernels.md, "Families"), and a code by its number.

#include "common.h"

// A kernel is declared for groups() and bits(), and EACH_TYPE instantiates it for all of them and each type, EACH_WIDTH
// for one type.
//
// @text  groups() = 32|64|128
// @text  bits() = 2|3|4|5|6|8

#define EACH_BITS(instantiate, name, T, g)                                                         \
  instantiate(name, T, g, 2) instantiate(name, T, g, 3) instantiate(name, T, g, 4)                 \
  instantiate(name, T, g, 5) instantiate(name, T, g, 6) instantiate(name, T, g, 8)
#define EACH_WIDTH(instantiate, name, T)  \
  EACH_BITS(instantiate, name, T, 32)     \
  EACH_BITS(instantiate, name, T, 64)     \
  EACH_BITS(instantiate, name, T, 128)
#define EACH_TYPE(instantiate)               \
  EACH_WIDTH(instantiate, float, float)      \
  EACH_WIDTH(instantiate, float16_t, half)   \
  EACH_WIDTH(instantiate, bfloat16_t, bfloat)

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
