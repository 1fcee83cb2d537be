// Package passes rewrites graphs. A [Pass] is one file and one entry of the [Table] in
// table.go; [Run] runs a [Pipeline] of them, checks the graph around each, and reports
// what was done, and what was not and why.
//
// Each pass stands in the file of its name; the table has their order. balance.go is the second
// half of schedule. The groups that fuse replaces are found by passes/internal/fusion and
// passes/internal/isel. Several passes share relist.go, which writes a list of commands in a new
// order, and cuts.go and mend.go, which place barriers. Package internal/analysis/hazard finds
// the commands that conflict, internal/analysis/dataflow who reads what was written, and
// passes/internal/values which bytes of scratch hold one value.
//
// # To add a pass
//
// Write its file: a function of a context, the [State], and its options, which is a struct of
// the pass's own; [State] says what the function owes those after it. In the same file
// [New] makes the pass of its name, the function, and a [Setting] for each option: name,
// type, default, bounds and help stand there and nowhere else. Constraints on its order
// stand there too ([Pass].Order), or in the table if they concern several passes. Name it in
// the table, and write passes/testdata/NAME.txtar, which shows what it does to a graph:
//
//	go test ./passes -run PassExamples -update
//
// proves that and writes it down. Nothing else has to know of the pass. The file
// newpass_test.go is one that was added in this way.
//
// A program's own passes are made in the same way. They stand in a table or pipeline of
// the program's; nothing is registered.
package passes
