// Package prove decides whether one graph computes what another graph computes: equal
// outputs and states, for every value of the params and the inputs, in every order of
// execution that the second graph allows.
//
//	r := prove.Check(ctx, recorded, optimized, prove.Options{})
//	if r.Verdict != prove.Proved {
//		fmt.Println(r) // the reasons, with the commands and bytes concerned
//	}
//
// [Check] answers proved, refused, or cannot tell. docs/proof.md states what is shown and
// why that is enough.
//
// The package does not run a graph, and it does not ask whether the recording has a
// meaning at all (internal/analysis/meaning does). It stands apart from the passes: it
// imports nothing of passes, internal/analysis/hazard or internal/analysis/dataflow. It
// believes neither the provenance nor the effects that the second graph stores.
//
// # Words
//
//   - B (before) is the first graph, usually a recording; A (after) is the graph that has
//     to compute the same. In code they are the models b and a.
//   - The image of a command of A is the set of commands of B that it implements: one, or
//     several if A has fused them. The image of a write of A is the write of B that leaves
//     the same bytes.
//   - A pillar is a command of unknown effects. Nothing may be moved across it. Eras count
//     the stretches between pillars.
//   - An epoch is a stretch of commands without a barrier between them.
//   - A flat access covers the bytes [lo, end) for every value of the params. Any other
//     access has a shape: strides, or ends that params move.
//   - A reading is the list of writes that a read may see. Equal readings are equal bytes.
//   - A term is what a kernel computes, as a formula over the elements that it loads; the
//     loads are the leaves of the formula.
//
// # Files
//
// They follow the points of docs/proof.md: interface.go and claims.go (0), coverage.go (1),
// values.go, segments.go and trace.go (2, 3), order.go, edges.go and pillars.go (4),
// fusion.go, compose.go, terms.go and rewrites.go (5), aliasing.go (6). match.go and
// search.go guess the image of each command, command.go and bindings.go compare two
// commands, region.go compares ranges of bytes (shapes.go: each pair once), model.go
// resolves what the commands of a graph touch, and sources.go decides whose declarations
// may be believed.
package prove
