// Package meaning says whether a graph means something: whether the result of its
// replay depends neither on the order that its barriers and commits leave open nor
// on bytes that nothing wrote.
//
// [Of] goes by the effects that kernels declare (package msl); of a kernel without
// declaration by those that the graph stores. Three answers are kept apart:
//
//   - a fault is proved: two commands that nothing orders and bytes that both touch,
//     or a read of undefined bytes, that an output or state can depend on, for values
//     of the params that are named. Whoever optimizes, verifies or replays a graph
//     refuses it ([Report.Err]);
//   - what is unsure: pairs whose ranges depend on params and could neither be proved
//     apart nor shown to meet. Nobody refuses a graph for that;
//   - what is assumed: pairs of which one command has unknown effects. A strict check
//     refuses it ([Report.Assumed]).
//
// Races on bytes that nobody sees are no faults. What is between one replay and
// the next is not looked at: a graph denotes one replay.
//
// The prover has its own code for the same question about the graph after.
package meaning
