// Sigmoid and silu, which several sources make.
//
// MLX rounds each step of a sigmoid to bf16, but computes one of f16 in f32. Its silu in 16 bits is x times a sigmoid
// that is rounded before; in f32 there is nothing to round, and silu is one division.
//
// A term says first what a number is divided by, or multiplied with, as a value `part` of its own: a sigmoid needs it twice.
//
// @text  inverse(x) = 1.0 / (1.0 + exp({x}))
// @text  part_f32(x) = 1.0 + exp(-{x})
// @text  part_f16(x) = {inverse(abs({x}))}
// @text  part_bf16(x) = round(bf16, 1.0 / round(bf16, 1.0 + round(bf16, exp(abs({x})))))
// @text  sigmoid(x; part) = select({x} < 0.0, {part}, 1.0 - {part})
// @text  silu_f32(x; part) = {x} / {part}
// @text  silu_f16(x; part) = {x} * round(f16, {sigmoid({x}; {part})})
// @text  silu_bf16(x; part) = {x} * round(bf16, {sigmoid({x}; {part})})

// MLX's form: exp gets no negative argument, so it overflows to inf at worst
// and the quotient is 0.
inline float sigmoid(float x) {
  const float y = 1.0f / (1.0f + precise::exp(abs(x)));
  return x < 0.0f ? y : 1.0f - y;
}
inline half sigmoid(half x) { return half(sigmoid(float(x))); }
inline bfloat sigmoid(bfloat x) {
  const bfloat e = bfloat(precise::exp(abs(float(x))));
  const bfloat y = bfloat(1.0f / float(bfloat(1.0f + float(e))));
  return x < bfloat(0.0f) ? y : bfloat(1.0f - float(y));
}

inline float silu(float x) { return x / (1.0f + precise::exp(-x)); }
inline half silu(half x) { return half(float(x) * float(sigmoid(x))); }
inline bfloat silu(bfloat x) { return bfloat(float(x) * float(sigmoid(x))); }
