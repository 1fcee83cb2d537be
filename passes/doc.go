// Package passes rewrites graphs. A [Pass] is one file and one entry of the [Table] in
// table.go; [Run] runs a [Pipeline] of them, checks the graph around each, and reports
// what was done and what was not, because of what.
//
// The passes, in the order of the table: annotate.go, fuse.go (over
// passes/internal/fusion and passes/internal/isel), dce.go, rename.go, reorder.go, schedule.go
// (with balance.go), barriers.go (with cuts.go), plan.go, split.go,
// constants.go, edges.go. What they cost is package cost's matter. Several share relist.go, which writes a list of
// commands in a new order. What bytes conflict is internal/analysis/hazard's matter, who
// reads what internal/analysis/dataflow's and passes/internal/values's.
//
// # To add a pass
//
// Write its file: a function of a context, the [State], and its options, which is a struct of
// the pass's own; [State] says what the function owes those after it. In the same file
// [New] makes the pass of its name, the function, and a [Setting] for each option: name,
// type, default, bounds and help stand there and nowhere else. Put it into the table, with
// constraints on its order, and add an example under passes/testdata.
//
// A program's own passes are made in the same way. They stand in a table or pipeline of
// the program's; nothing is registered.
package passes
