// Package passes rewrites graphs. A [Pass] is one file and one row of the
// table in table.go; [Run] runs a [Pipeline] of them, checks the graph around
// each, and reports what was done and what was not, because of what.
//
// The passes, in the order of the table: annotate.go, fuse.go (over
// passes/internal/fusion and passes/internal/isel), dce.go, rename.go, reorder.go, schedule.go
// (with balance.go), barriers.go (with cuts.go), plan.go, split.go (with
// roofline.go), constants.go. Several share relist.go, which writes a list of
// commands in a new order, and model.go, which picks the cost model. What bytes
// conflict is internal/analysis/hazard's matter, who reads what internal/analysis/dataflow's and
// passes/internal/values's.
//
// To add a pass: write its file, a function of (graph, options, report), put
// its row into the table with the constraints on its order, and add an example
// under passes/testdata. Options are values, never changes to the table.
package passes
