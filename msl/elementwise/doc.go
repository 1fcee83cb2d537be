// Package elementwise turns the term of a generated kernel into code: a list of steps
// without branches, each of which computes one value, however often the term contains
// it. From the steps it makes Metal source.
//
//	d, err := decl.Elementwise("out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])")
//	p := elementwise.Compile(d)
//	// p.Steps: v0 = in0[i], v1 = 1.0, v2 = -v0, v3 = exp(v2), v4 = v1 + v3, …
//	source := p.Source()
//
// An executor without a Metal compiler runs the steps, a vector at a time.
//
// Values are f32. What is f16 in memory is widened when it is loaded, and
// round(f16, …) is a step like any other; a result in f16 has one at its end, or
// is an operand whose bits are copied.
//
// The language of generated kernels, their limits and their declarations are those of
// package decl ([decl.Elementwise]). Which dispatches become one kernel is decided by a
// pass.
package elementwise
