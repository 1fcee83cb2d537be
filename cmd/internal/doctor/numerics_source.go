package doctor

// numericsSource has the kernels that show how a device computes. Thread i reads four words of input and
// writes one of output; contraction is off, as in the kernels of the library.
const numericsSource = `#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

#define NUMERIC(NAME, RESULT)                                                                     \
  kernel void NAME(const device uint* in [[buffer(0)]], device uint* out [[buffer(1)]],           \
                   uint i [[thread_position_in_grid]]) {                                          \
    uint u = in[4 * i];                                                                           \
    float a = as_type<float>(u), b = as_type<float>(in[4 * i + 1]), c = as_type<float>(in[4 * i + 2]); \
    half h = as_type<half>(ushort(u));                                                            \
    bfloat w = as_type<bfloat>(ushort(u));                                                        \
    out[i] = RESULT;                                                                              \
  }

#define BITS(X) as_type<uint>(float(X))
#define BITS16(X) uint(as_type<ushort>(X))

NUMERIC(numeric_move, BITS(a))
NUMERIC(numeric_add, BITS(a + b))
NUMERIC(numeric_mul, BITS(a * b))
NUMERIC(numeric_div, BITS(a / b))
NUMERIC(numeric_mul_add, BITS(a * b + c))
NUMERIC(numeric_fma, BITS(fma(a, b, c)))
NUMERIC(numeric_back, BITS((a + b) - a))
NUMERIC(numeric_max, BITS(max(a, b)))
NUMERIC(numeric_min, BITS(min(a, b)))
NUMERIC(numeric_sqrt, BITS(sqrt(a)))
NUMERIC(numeric_rsqrt, BITS(rsqrt(a)))
NUMERIC(numeric_exp, BITS(exp(a)))
NUMERIC(numeric_log, BITS(log(a)))
NUMERIC(numeric_sin, BITS(sin(a)))
NUMERIC(numeric_class, (a == a ? 1u : 0u) | (isnan(a) ? 2u : 0u) | (isinf(a) ? 4u : 0u) | (a < b ? 8u : 0u))
NUMERIC(numeric_to_half, BITS16(half(a)))
NUMERIC(numeric_from_half, BITS(float(h)))
NUMERIC(numeric_half_add, BITS16(half(h + half(b))))
NUMERIC(numeric_to_bfloat, BITS16(bfloat(a)))
NUMERIC(numeric_from_bfloat, BITS(float(w)))
NUMERIC(numeric_to_int, uint(int(a)))

// A softmax of four numbers, of which some are left out by −inf.
kernel void numeric_softmax(const device uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  float m = -INFINITY;
  for (uint k = 0; k < 4; k++)
    m = max(m, as_type<float>(in[4 * i + k]));
  float s = 0, first = 0;
  for (uint k = 0; k < 4; k++) {
    float e = exp(as_type<float>(in[4 * i + k]) - m);
    s += e;
    if (k == 0)
      first = e;
  }
  out[i] = BITS(first / s);
}

kernel void numeric_simd_sum(const device uint* in [[buffer(0)]], device uint* out [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  out[i] = BITS(simd_sum(as_type<float>(in[4 * i])));
}
`
