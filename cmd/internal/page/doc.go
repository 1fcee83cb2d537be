// Package page writes a graph as one HTML page that needs no network and no other file:
// a recording and what an optimizer made of it, one above the other, or one graph alone.
// `mlxc optimize --html` and `mlxc dump --html` write it.
//
//	p := page.Page{Title: "g.mlxg", Graphs: []page.Graph{{Before: recorded, Result: result}}}
//	err := p.Write(ctx, w)
//
// # Words
//
// A column is an epoch: the commands between two barriers, in rows. An epoch of more than
// [maxRows] commands takes several columns beside one another. A side is one of the two
// graphs. A graph after is laid out twice: by itself (compact), and under the commands of the
// recording that its commands stand for (aligned).
//
// # How it works
//
// Nothing is analysed here. What must wait for what is internal/analysis/hazard's, how long
// scratch values live is internal/analysis/dataflow's, which command became which is
// cmd/internal/graphdiff's, and what was done and why not are the remarks of the passes. This
// package numbers, places and writes all of that, in time and memory linear in the graph and
// in what these say of it. The page draws on a canvas only what can be seen.
//
// # What it does not trust
//
// A graph is made by others. Names and labels reach the page as JSON in which '<' is escaped,
// without control characters and marks that change the direction of text, cut at [maxText]
// bytes, and the script of the page puts them into text nodes only. A policy in the page allows
// its own script and style, by their digests, and nothing else: no network, no other script.
//
// Commands behind the first [MaxCommands] of all graphs of a page are left out, and the page
// says so.
package page
