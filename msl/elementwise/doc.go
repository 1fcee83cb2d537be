// Package elementwise compiles the term of a generated kernel to a list of steps without branches.
// Each step computes one value, which may occur several times in the term. From the steps it makes
// Metal source.
//
//	d, err := decl.Elementwise("out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])")
//	p := elementwise.Compile(d)
//	// p.Steps: v0 = in0[i], v1 = 1.0, v2 = -v0, v3 = exp(v2), v4 = v1 + v3, …
//	source := p.Source()
//
// An executor without a Metal compiler runs the steps, a vector at a time.
//
// Values are f32. An f16 is widened when it is loaded, and round(f16, …) is a step like any other.
// An f16 result has such a step at its end, or is an operand whose bits are copied.
//
// Package decl defines the language of generated kernels, their limits and their declarations
// ([decl.Elementwise]). A pass decides which dispatches become one kernel.
package elementwise
