// Package passes rewrites graphs. A [Pass] is one file and one row of the
// table in table.go; [Run] runs a [Pipeline] of them, checks the graph around
// each, and reports what was done and what was not, because of what.
//
// To add a pass: write its file, a function of (graph, options, report), put
// its row into the table with the constraints on its order, and add a golden
// under testdata/. Options are values, never changes to the table.
package passes
