// Package reach answers whether a path of edges leads from one command of a graph to
// another, within a replay or from one replay to the next.
//
//	x := reach.New(g, 2) // two replays in a row
//	path, decided := x.Path(a, b)
//
// For every command it keeps the latest command that it waits for. These make a tree,
// and numbering the tree answers most questions at once. The others need a search
// backwards along the edges, latest commands first, which goes no further back than the
// earliest command in question. All searches of an index share a budget of steps in
// proportion to the graph; beyond it the answer is "not decided".
//
// The package knows nothing of what commands touch. Analyses and the prover both use
// it.
package reach
