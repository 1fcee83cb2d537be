// Affine quantization of groups of consecutive elements, and back: an element is scale · q + bias of its group, with q
// an unsigned code of b bits. Threads are counted over two dimensions of the grid, as MLX sends more than 2^32 − 1.

#include "codes.h"

// Limit is the greatest finite number of a type.
template <typename T>
struct Limit {};
template <>
struct Limit<float> {
  static constexpr constant float greatest = 0x1.fffffep+127f;
};
template <>
struct Limit<half> {
  static constexpr constant float greatest = 65504.0f;
};
template <>
struct Limit<bfloat> {
  static constexpr constant float greatest = 0x1.fep+127f;
};

// Step is how a group is quantized.
struct Step {
  float scale;
  float bias;
};

// step_of is MLX's rule. The scale covers the elements and 0 with codes; it is then changed a little, so that the
// element farthest from 0, which becomes the bias, is a whole number of steps from 0, and 0 has a code. If all elements of
// a group are closer to 0 than half a step, its bias is 0.
template <int b>
inline Step step_of(float least, float greatest) {
  const bool is_low = abs(least) > abs(greatest);
  const float width = precise::fmax((greatest - least) / float((1 << b) - 1), 1e-7f);
  const float scale = is_low ? width : -width;
  const float edge = is_low ? least : greatest;
  const float steps = round(edge / scale);
  return steps == 0.0f ? Step{scale, 0.0f} : Step{edge / steps, edge};
}

// code_of is the nearest code; between two, the greater. What is no number has the greatest code.
template <int b>
inline uint code_of(float v, Step s) {
  const float q = round((v - s.bias) / s.scale);
  return q < float((1 << b) - 1) ? uint(q) : (1u << b) - 1;
}

// A simdgroup quantizes a group. Each of its lanes takes every 32nd element for the scale, and then writes
// every 32nd byte of the codes.
//
// @kernel   affine_quantize_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}
// @mlx      unlisted
// @effects  terms do not round to integers; backend/softmetal/mlx_quantize_test.go compares with MLX
// @arg 0 w       device {T}[y, x/32*g] read
// @arg 1 out     device u8 as u{b}[y, x/32*g] write
// @arg 2 scales  device {T}[y, x/32] write
// @arg 3 biases  device {T}[y, x/32] write
// @threads  x, y, 1
// @group    threads, 1, 1
// @require  x % 32 == 0 && threads % 32 == 0
template <typename T, int g, int b>
[[kernel]] void quantize(
    const device T* w [[buffer(0)]],
    device uchar* out [[buffer(1)]],
    device T* scales [[buffer(2)]],
    device T* biases [[buffer(3)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const size_t group = (at.x + size_t(grid.x) * at.y) / 32;
  w += group * g;
  out += group * (g * b / 8);
  float least = Limit<T>::greatest;
  float greatest = 0;
  for (int i = int(lane); i < g; i += 32) {
    least = precise::fmin(least, float(w[i]));
    greatest = precise::fmax(greatest, float(w[i]));
  }
  const Step s = step_of<b>(simd_min(least), simd_max(greatest));
  if (lane == 0) {
    scales[group] = stored(T(s.scale));
    biases[group] = stored(T(s.bias));
  }
  for (int i = int(lane); i < g * b / 8; i += 32) {
    uint byte = 0;
    for (int e = 8 * i / b; e * b < 8 * i + 8; e++) {
      const uint q = code_of<b>(float(w[e]), s);
      byte |= e * b < 8 * i ? q >> (8 * i - e * b) : q << (e * b - 8 * i);
    }
    out[i] = uchar(byte);
  }
}

// A thread makes the elements of as few whole bytes as there are.
//
// @kernel   affine_dequantize_{T:{types()}}_gs_{g:{groups()}}_b_{b:{bits()}}
// @mlx      unlisted
// @let      each = 1 + min(b % 8, 1) + 2*min(b % 4, 1) + 4*(b % 2)  -- 8 over the greatest common divisor of b and 8
// @arg 0 w       device u8 as u{b}[y, x*each] read
// @arg 1 scales  device {T}[y, x*each/g] read
// @arg 2 biases  device {T}[y, x*each/g] read
// @arg 3 out     device {T}[y, x*each] write
// @threads  x, y, 1
// @group    _, _, _
// @require  x % (g/each) == 0
// @term     out[j,i] = round({T}, round({T}, scales[j,i/g] * f32(w[j,i])) + biases[j,i/g])
template <typename T, int g, int b>
[[kernel]] void dequantize(
    const device uchar* w [[buffer(0)]],
    const device T* scales [[buffer(1)]],
    const device T* biases [[buffer(2)]],
    device T* out [[buffer(3)]],
    uint2 at [[thread_position_in_grid]],
    uint2 grid [[threads_per_grid]]) {
  constexpr int each = b == 8 ? 1 : b == 4 ? 2 : b % 2 == 0 ? 4 : 8;
  const size_t first = (at.x + size_t(grid.x) * at.y) * each;
  const float scale = scales[first / g];
  const float bias = biases[first / g];
#pragma unroll
  for (int i = 0; i < each; i++) {
    out[first + i] = stored(T(float(T(scale * float(code<b>(w, first + i)))) + bias));
  }
}

#define INSTANTIATE_QUANTIZE(name, T, g, b)                             \
  template [[host_name("affine_quantize_" #name "_gs_" #g "_b_" #b)]]   \
  [[kernel]] decltype(quantize<T, g, b>) quantize<T, g, b>;             \
  template [[host_name("affine_dequantize_" #name "_gs_" #g "_b_" #b)]] \
  [[kernel]] decltype(dequantize<T, g, b>) dequantize<T, g, b>;

EACH_TYPE(INSTANTIATE_QUANTIZE)

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// @witness affine_quantize_* ; ; threads 96 1 1 / 96 1 1 ; ok
// @witness affine_quantize_* ; ; threads 64 3 1 / 32 1 1 ; ok
// @witness affine_quantize_* ; ; threads 48 1 1 / 32 1 1 ; refused
// @witness affine_quantize_* ; ; threads 64 1 1 / 48 1 1 ; refused
// @witness affine_quantize_* ; ; threads 64 1 2 / 32 1 1 ; refused
// @witness affine_quantize_* ; ; threads 64 2 1 / 32 2 1 ; refused
// @witness affine_dequantize_* ; ; threads 256 1 1 / 256 1 1 ; ok
// @witness affine_dequantize_* ; ; threads 256 3 1 / 64 1 1 ; ok
// @witness affine_dequantize_* ; ; threads 256 1 2 / 256 1 1 ; refused
// @witness affine_dequantize_* ; ; threads 257 1 1 / 257 1 1 ; refused
//
// Corruptions of these declarations that are no lies.
//
// @equivalent affine_quantize_* ; shape: *[1] exchanged with the one before ; groups follow one another
// @equivalent affine_quantize_* ; slot: scales exchanged with biases ; they are written alike, and only a term says what
// @equivalent affine_quantize_* ; inplace: allow * w ; w has as many elements as groups where there is none: nothing is touched
// @equivalent affine_dequantize_* ; inplace: allow out * ; likewise
