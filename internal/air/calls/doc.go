// Package calls has the bodies, as textual LLVM IR, of the functions named air.* that a Metal
// kernel calls and that exchange nothing between threads: mathematics, conversions, arithmetic
// of integers, geometry, packing, atomics, and what the compiler asks of a value.
//
//	if calls.Exchanges(f.Name) { … }          // barriers, simd, quad and matrix functions: not here
//	d, err := calls.Define(f, calls.Host)     // d.Text is `define internal … @air.exp.f32 …`
//
// A body is found by the name, which spells operation and types (air.exp.v4f32,
// air.convert.s.i8.f.f16), and is held against the types that the kernel declares. What Metal has
// as a family is here for all its types, whether a known library calls it or not. What is missing
// is an error that names it.
//
// # Targets
//
// [Host] is one text for x86-64 and arm64, where address spaces mean nothing: pointers keep
// those that the kernel declares. The machine is taken to round and fuse in hardware (x86-64-v3,
// any arm64); on less, and wherever a kernel itself makes bfloats of floats, LLVM calls functions
// of a library: [Runtime] has them. [PTX] is for nvptx64: address spaces 1 and 3 stay, the
// constant space 2 becomes 1.
//
// # Values
//
// Precise functions give the same bits on every target, but for which NaN it is. The functions of
// the mathematical library are in math/math.c, computed in double and rounded once, to a half or
// a bfloat too; so is fma. exp and rsqrt of floats are computed in float, within 1 and 1.5 ulp:
// kernels wait for them on GPUs, where a chain of doubles takes several times as long. Other
// functions of halves and bfloats go through float. docs/softmetal-math.md has the errors,
// measured. The text must not be compiled with -ffp-contract=fast, which would fuse what is
// written apart.
//
//   - fmin, fmax and what is made of them return the other operand for a NaN, and take -0 to be
//     less than +0.
//   - Floats become integers by truncation; what is too large becomes the nearest integer of the
//     type, a NaN becomes 0.
//   - Integers become bfloats with one rounding.
//   - round takes ties away from zero, rint to even.
//   - fract of an infinity is 0 and of a NaN a NaN.
//
// The functions named air.fast_* are the precise ones, except on PTX, where exp, exp2, exp10, log,
// log2, log10, sin, cos, tan, rsqrt and powr use the GPU's approximations.
//
// # Denormals
//
// Nothing here sets or reads the state that flushes them. Where it flushes, a function of floats
// takes a denormal argument as zero and may return zero for a denormal result. What works on
// bits does not depend on it: fabs, copysign, fmin and fmax of two zeros, nextafter, frexp, ilogb,
// select, and all conversions between half, bfloat and float on machines with instructions for
// them.
//
// # Why the mathematics is embedded text
//
// math/math.ll is made from math/math.c by clang, once, and stripped of what LLVM 19 does not
// know; TestMathText makes it anew and compares. So a body does not depend on the clang that is
// found, none has to run before it is asked for, and yet the algorithms are written and read as
// C. LLVM 19 to 22 take the text.
package calls
