// Package record records what an engine dispatches into a graph: the front end
// that every other one stands on.
//
// A [Session] captures. Its operations ([Session.RMSNorm], [Session.QMatmul],
// …) take and give [Tensor] values, choose the kernel and grid that MLX would
// choose (docs/kernels.md), and append dispatches. Results live in scratch
// memory that a bump arena reuses ([Session.Mark], [Session.Reset]), as in
// real engines. Barriers are placed as a careful engine places them: one
// whenever a dispatch conflicts, by the ranges that it binds, with something
// since the last barrier.
//
// Operations do not return errors: the first mistake is kept and
// [Session.Finish] returns it, so that a model reads like a formula.
//
//	r := record.New("norm")
//	x := r.Input("x", ir.F32, 576)
//	y := r.Output("y", ir.F32, 576)
//	r.RMSNorm(x, 1e-5, record.Into(y))
//	g, err := r.Finish()
//
// Not here: optimization. The recorder writes what it is told, two dispatches
// for a norm and its weight; package passes fuses them.
package record
