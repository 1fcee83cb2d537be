// Activations and caps: one element a thread, functions of one array.

#include "common.h"

// erf, which Metal does not have, within 2.4 ulp for every f32, also where exp is
// off by 4: x·P(x²) below 0.95, 1 − exp(Q(x)) above, and 1 from 4 on, where
// erfc is less than half a unit. The coefficients are a weighted Chebyshev fit;
// testdata/gen/erf.py makes them and measures the error.
inline float erf(float x) {
  const float a = abs(x);
  if (!(a < 4.0f)) {
    return a != a ? x : copysign(1.0f, x);
  }
  if (a < 0.95f) {
    const float s = x * x;
    float p = 8.20979694253765e-05f;
    p = p * s + -0.0008104441803880036f;
    p = p * s + 0.005197642371058464f;
    p = p * s + -0.026858031749725342f;
    p = p * s + 0.11283671110868454f;
    p = p * s + -0.37612631916999817f;
    p = p * s + 1.128379225730896f;
    return x * p;
  }
  float q = -6.664457430360926e-08f;
  q = q * a + -2.0646239136112854e-05f;
  q = q * a + 0.0004344463814049959f;
  q = q * a + -0.004179252777248621f;
  q = q * a + 0.025151759386062622f;
  q = q * a + -0.10833998769521713f;
  q = q * a + -0.6332864761352539f;
  q = q * a + -1.129546880722046f;
  q = q * a + 0.00018167687812820077f;
  return copysign(1.0f - precise::exp(q), x);
}

// The approximation by tanh (Hendrycks and Gimpel, arXiv:1606.08415), in the
// order in which ggml multiplies.
struct Gelu {
  float operator()(float x) const {
    return 0.5f * x * (1.0f + precise::tanh(0.7978845608028654f * x * (1.0f + 0.044715f * x * x)));
  }
};

// The function itself, in the order of MLX's nn.gelu.
struct GeluErf {
  float operator()(float x) const {
    return x * (1.0f + erf(x / 1.4142135623730951f)) / 2.0f;
  }
};

// @kernel   v_Gelu{T:float32float32=f32}
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @term     out[i] = round({T}, 0.5 * in[i] * (1.0 + tanh(0.7978845608028654 * in[i] * (1.0 + 0.044715 * in[i] * in[i]))))
//
// @kernel   v_GeluErf{T:float32float32=f32}
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @term     out[i] = round({T}, in[i] * (1.0 + erf(in[i] / 1.4142135623730951)) / 2.0)
template <typename T, typename Op>
[[kernel]] void unary_v(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = stored(T(Op()(float(in[i]))));
}

// Scores kept within ±cap: cap · tanh(x / cap), as some models do before a
// softmax.
//
// @kernel   v_Softcap{T:float32float32=f32}
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @arg 3 cap   constant f32
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @term     out[i] = round({T}, cap * tanh(in[i] / cap))
template <typename T>
[[kernel]] void softcap_v(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    constant float& cap [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = stored(T(cap * precise::tanh(float(in[i]) / cap)));
}

template [[host_name("v_Gelufloat32float32")]] [[kernel]] decltype(unary_v<float, Gelu>) unary_v<float, Gelu>;
template [[host_name("v_GeluErffloat32float32")]] [[kernel]] decltype(unary_v<float, GeluErf>) unary_v<float, GeluErf>;
template [[host_name("v_Softcapfloat32float32")]] [[kernel]] decltype(softcap_v<float>) softcap_v<float>;

// What the tests of declarations compare grids and conditions with (docs/kernels.md, "Witnesses").
//
// Activations: one thread an element.
//
// @witness v_Gelu* ;  ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_Gelu* ; inplace=out,in ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_Gelu* ;  ; threads 3072 2 1 / 1024 1 1 ; refused
// @witness v_Softcap* ; cap=30 ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_Softcap* ; cap=30 inplace=out,in ; threads 3072 1 1 / 1024 1 1 ; ok
// @witness v_Softcap* ; cap=30 ; threads 3072 2 1 / 1024 1 1 ; refused
