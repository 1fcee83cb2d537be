// Package metamorph tests that passes keep what a graph computes, by running it: it
// makes random graphs of builtin kernels, applies random pipelines to them, and
// requires that the CPU backend gives the same bits before and after.
//
// # What is run
//
// [Recipe.Graph] makes a graph. It may have aliases, partial overlaps, strided reads
// and writes, offsets, lengths and scalars that depend on params, states, carries,
// several command buffers, groups of commands that look fusible, and dead commands.
// Every read is of defined bytes, and there are no races, neither within a replay nor
// from one replay to the next. Some graphs store the effects of all dispatches, others
// only of some: to a pipeline that does not begin with annotate, the other dispatches
// have unknown effects. The library has no kernel with may-writes; commands that write
// a part of a value take their place.
//
// Three consecutive replays, each with its own params and inputs, are run in two ways.
// (If the graph carries something, only the first replay has inputs of its own; the
// others get what is carried.) First one after another through package replay, with
// scratch memory and outputs poisoned in between. Then as one stream ([NewStream]),
// whose commands run in written order, in the most adverse order and in random orders,
// all of which the barriers and commits allow. Every defined byte of every output and
// state is compared.
//
// # Pipelines
//
// [Recipe.Pipeline] draws from the table of passes, so that a new pass is tested as
// soon as it has a row there. Barriers are placed after passes that change commands or
// their order; any other pass may be left out.
//
// # The long form
//
// go test ./internal/testing/metamorph tries a few hundred graphs. For more:
//
//	go test ./internal/testing/metamorph -metamorph.graphs=10000
//
// A failing graph is reduced by rapid and printed as text, together with its pipeline.
//
// # Values
//
// TestOddValues attacks what becomes of values. It runs random terms of every operation
// that a generated kernel can have, and norms, softmax, rope and copies, in f32, f16
// and bf16, on zeros of both signs, NaNs with payloads, subnormals, infinities and
// extreme numbers. Each graph runs as recorded, as optimized by default, and as changed
// by hand in a way that the prover calls harmless: no bit may differ. The long form,
// which begins with another graph:
//
//	go test ./internal/testing/metamorph -run OddValues -timeout 60m -metamorph.values=100000 -metamorph.first=1000000
//
// # What it is not
//
// It sees bits, not reasons. A missing barrier shows only if some order of whole
// commands gives other bits. Package oracle also judges commands that interleave byte
// by byte.
//
// The smallest example is ExampleRecipe.
package metamorph
