// Package reach answers which commands of a graph ordered by edges are ordered: those
// that a path of edges connects, within a replay and from one replay to the next.
//
// Every command keeps the latest of those that it waits for; these make a tree, whose
// numbering answers most questions at once. The others are searched for backwards,
// nearest first, and no further than the earliest command that is asked for. All
// searches of an index share a budget in proportion to the graph: beyond it nothing is
// decided.
//
// It knows nothing of what commands touch. Analyses and the prover both use it.
package reach
