// Package metamorph tests that passes keep what a graph computes, by running it:
// random graphs of builtin kernels go through random pipelines, and the CPU
// backend must give the same bits before and after.
//
// # What is run
//
// [Recipe.Graph] makes a graph: aliases, partial overlaps, strided reads and
// writes, offsets, lengths and scalars that are params, states, several command
// buffers, groups that look fusible, dead commands, carries. Every read is of defined
// bytes, and the list is free of races around the cycle of replays. Some graphs
// store the effects of all dispatches, some of a few: to a pipeline that does not
// begin with annotate the others are of unknown effects. The library has no
// kernel that writes a range only perhaps; commands that write a part of a value
// stand in for that.
//
// Three consecutive replays with other params and inputs each (of a graph that carries,
// with the first one's inputs and what is carried to them) run twice: one
// after another, scratch and outputs poisoned in between, through package replay;
// and as one stream ([NewStream]), whose commands run in written order, in the
// most adverse order and in random orders, all of them orders that the barriers
// and commits of the cycle allow. Every defined byte of every output and state is
// compared.
//
// # Pipelines
//
// [Recipe.Pipeline] draws from the table of passes as it is: a new pass is
// tested from the day that it has a row. Barriers are placed after passes that
// change commands or their order; everything else is left out at random.
//
// # The long form
//
// go test ./internal/testkit/metamorph tries a few hundred graphs. For more:
//
//	go test ./internal/testkit/metamorph -metamorph.graphs=10000
//
// A failing graph is reduced by rapid and printed as text, with its pipeline.
//
// # Values
//
// TestOddValues attacks what values become: random terms of every operation that
// a generated kernel has, norms, softmax, rope and copies, in f32, f16 and bf16,
// on zeros of both signs, NaNs with payloads, subnormals, infinities and
// extremes. Each graph runs as recorded, as optimized by default, and changed by
// hand wherever the prover says that the change is none: no bit may differ. The
// long form, from another graph on:
//
//	go test ./internal/testkit/metamorph -run OddValues -timeout 60m -metamorph.values=100000 -metamorph.first=1000000
//
// # What it is not
//
// It sees bits, not reasons: a missing barrier shows only where some order of
// whole commands gives other bits. Package oracle judges bytes that interleave.
//
// The smallest example is ExampleRecipe.
package metamorph
