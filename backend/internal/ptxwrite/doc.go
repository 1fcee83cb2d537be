// Package ptxwrite writes the PTX of generated kernels, straight from their terms, without a compiler:
//
//	d, err := decl.Elementwise("out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])")
//	k := ptxwrite.Describe(d)                  // the arguments, as the Metal source of msl/elementwise has them
//	text := ptxwrite.Emit(d, nvptx.Launch{})     // an entry as nvptx.Compile makes of that source
//
// An entry takes the same parameters in the same order, numbers its threads in the same way, and computes
// the same bits: each operation of a term is one of PTX's, rounded to f32, and never contracted; the
// functions (exp, sin, …) are those of internal/air/calls, which stand in math.ptx as clang compiles
// them (`make ptx`). Tests compare with what clang makes of the Metal source, by running both.
//
// What comes out is a subset of what clang writes: registers %p, %rs, %r and %rd, instructions in a
// straight line, and the jumps of functions.
package ptxwrite
