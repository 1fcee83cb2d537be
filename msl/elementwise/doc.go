// Package elementwise turns the term of a generated kernel into code: a straight
// line of operations on values, each computed once however often the term
// writes it, and from that Metal source.
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
// What it is not: the language of generated kernels, their limits and their
// declarations are in package decl ([decl.Elementwise]); which dispatches
// become one is decided by a pass.
package elementwise
