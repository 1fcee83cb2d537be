// What the sources of all kernels begin with.

#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)

// The types of activations that kernels have, in their declarations (docs/kernels.md, "Families") and in instances.
//
// @text floats() = float32=f32|float16=f16|bfloat16=bf16
// @text types() = float=f32|float16_t=f16|bfloat16_t=bf16
#define EACH_FLOAT(instantiate) instantiate(float32, float) instantiate(float16, half) instantiate(bfloat16, bfloat)

// What a store leaves of a result: of a NaN, the one NaN of the type, whichever operation
// made it (docs/terms.md, "Stores"). Bits are compared, which fast-math leaves alone.
inline bool is_nan(float v) { return (as_type<uint>(v) & 0x7fffffffu) > 0x7f800000u; }
inline float stored(float v) { return is_nan(v) ? as_type<float>(0x7fc00000u) : v; }
inline half stored(half v) { return (as_type<ushort>(v) & 0x7fff) > 0x7c00 ? as_type<half>(ushort(0x7e00)) : v; }
inline bfloat stored(bfloat v) { return (as_type<ushort>(v) & 0x7fff) > 0x7f80 ? as_type<bfloat>(ushort(0x7fc0)) : v; }

// greater is max(a, b) of terms: the number if one is NaN, and +0 rather than −0. It looks at bits, which
// fast-math leaves alone.
inline float greater(float a, float b) {
  const float m = precise::fmax(a, b);
  return a == b ? as_type<float>(as_type<uint>(a) & as_type<uint>(b)) : m;
}

// Apple's compiler has none of what ours knows of other GPUs (docs/kernels.md, "Weights before the wait",
// "Factors in parts", "Subnormal numbers").
#ifndef __MLXC__
inline void wait_for_dispatches() {}
inline void will_read(const device void* p) {}
inline bool parts_known() { return false; }
inline uint3 parts_of(float a, float b) { return uint3(0); }
inline float4 multiply_parts(const thread uint4* a, const thread uint2* b) { return float4(0); }
inline bool subnormals_known() { return false; }
#endif
