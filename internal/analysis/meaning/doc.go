// Package meaning says whether a graph has one meaning: whether the result of its
// replay depends neither on an order that its barriers, commits or edges leave open,
// nor on bytes that nothing wrote.
//
//	r, err := meaning.Of(ctx, g) // err: the context has ended
//	if err := r.Err(); err != nil {
//		return err // says which commands, which bytes and what to do
//	}
//
// [Of] uses the effects that the kernels' declarations give (package msl). For a kernel
// without declaration it uses the effects that the graph stores. It tells three things
// apart:
//
//   - Faults are proved. A fault is either a race (two commands that nothing orders touch
//     the same bytes) or a read of undefined bytes, on which an output or state can
//     depend, for values of the params that the report names. Whoever optimizes, verifies
//     or replays a graph refuses it ([Report.Err]).
//   - What is unsure: pairs of commands whose ranges depend on params and were neither
//     proved to be apart nor shown to meet. This alone is no reason to refuse a graph.
//   - What is assumed: pairs of commands of which one has unknown effects. A strict check
//     refuses these and what is unsure ([Report.Strict]).
//
// A race on bytes that nobody sees is no fault. The order between one replay and the
// next is not looked at, because a graph denotes one replay.
//
// The prover asks the same about its second graph with code of its own.
package meaning
