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

// The approximation by tanh (Hendrycks and Gimpel, arXiv:1606.08415): of f32 in the order in which ggml multiplies, of
// 16 bits as MLX's nn.gelu_approx, whose numbers are of type T and whose operations round to it.
struct Gelu {
  float operator()(float x) const {
    return 0.5f * x * (1.0f + precise::tanh(0.7978845608028654f * x * (1.0f + 0.044715f * x * x)));
  }

  template <typename T>
  T operator()(T v) const {
    const float x = float(v);
    const T cube = T(x * x * x);
    const T inner = T(x + float(T(float(T(0.044715f)) * float(cube))));
    const T bend = T(precise::tanh(float(T(float(T(0.7978845608028654f)) * float(inner)))));
    return T(float(T(0.5f * x)) * float(T(1.0f + float(bend))));
  }
};

// The function itself, in the order of MLX's nn.gelu, whose operations round to T.
struct GeluErf {
  template <typename T>
  T operator()(T x) const {
    const T part = T(erf(float(T(float(x) / float(T(1.4142135623730951f))))));
    return T(float(T(float(x) * float(T(1.0f + float(part))))) / 2.0f);
  }
};

// @text     twice() = float32float32=f32|float16float16=f16|bfloat16bfloat16=bf16
// @kernel   v_Gelu{T:{twice()}}
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @if       T == f32
// @term     out[i] = round({T}, 0.5 * in[i] * (1.0 + tanh(0.7978845608028654 * in[i] * (1.0 + 0.044715 * in[i] * in[i]))))
// @else
// @where    inner[i] = round({T}, in[i] + round({T}, round({T}, 0.044715) * round({T}, in[i] * in[i] * in[i])))
// @where    bend[i] = round({T}, tanh(round({T}, round({T}, 0.7978845608028654) * inner[i])))
// @term     out[i] = round({T}, round({T}, 0.5 * in[i]) * round({T}, 1.0 + bend[i]))
// @end
//
// @kernel   v_GeluErf{T:{twice()}}
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @where    part[i] = round({T}, erf(round({T}, in[i] / round({T}, 1.4142135623730951))))
// @term     out[i] = round({T}, round({T}, in[i] * round({T}, 1.0 + part[i])) / 2.0)
template <typename T, typename Op>
[[kernel]] void unary_v(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = stored(Op()(in[i]));
}

// Scores kept within ±cap: cap · tanh(x / cap), as some models do before a
// softmax. As in MLX, cap becomes a T, and each of the three operations rounds to T.
//
// @kernel   v_Softcap{T:{twice()}}
// @arg 0 in    device {T}[n] read
// @arg 1 out   device {T}[n] write
// @arg 2 size  constant u32 unused
// @arg 3 cap   constant f32
// @threads  n, 1, 1
// @group    _, _, _
// @inplace  out in
// @term     out[i] = round({T}, round({T}, cap) * round({T}, tanh(round({T}, in[i] / round({T}, cap)))))
template <typename T>
[[kernel]] void softcap_v(
    const device T* in [[buffer(0)]],
    device T* out [[buffer(1)]],
    constant uint& size [[buffer(2)]],
    constant float& cap [[buffer(3)]],
    uint i [[thread_position_in_grid]]) {
  const float limit = float(T(cap));
  out[i] = stored(T(limit * float(T(precise::tanh(float(T(float(in[i]) / limit)))))));
}

#define INSTANTIATE_ACTIVATION(name, T)                                                                       \
  template [[host_name("v_Gelu" #name #name)]] [[kernel]] decltype(unary_v<T, Gelu>) unary_v<T, Gelu>;          \
  template [[host_name("v_GeluErf" #name #name)]] [[kernel]] decltype(unary_v<T, GeluErf>) unary_v<T, GeluErf>; \
  template [[host_name("v_Softcap" #name #name)]] [[kernel]] decltype(softcap_v<T>) softcap_v<T>;

EACH_FLOAT(INSTANTIATE_ACTIVATION)

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
//
// Corruptions of these declarations that are no lies, or that only goldens tell apart.
//
// @equivalent v_Gelu* ; round: out: round(*, 0.5 * in[i]) -> 0.5 * in[i] ; a half is exact, but of subnormal numbers, beside which 1 + bend is 1
// @equivalent v_GeluErf* ; round: out: round(*, in[i] * round(*, 1.0 + part[i])) -> * ; only where the product overflows: a golden has the greatest numbers
// @equivalent v_GeluErf* ; round: out: round(*, round(*) / 2.0) -> round(*) / 2.0 ; a half is exact, but of subnormal numbers
