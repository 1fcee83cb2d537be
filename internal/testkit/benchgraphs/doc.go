// Package benchgraphs makes large graphs for benchmarks: of any number of commands,
// with complete effects stored, well-formed, the same every time. Nothing
// executes them: their kernels are foreign and their dispatches bind nothing.
//
//	g := graphs.Decode(100_000) // decode steps of a 30-layer model
//	g := graphs.Arena(100_000)  // results in an arena that is used round and round
//	g := graphs.PingPong(100_000) // whole buffers read, their parts written
//
// [Families] lists them for table-driven benchmarks. It is not for tests of
// meaning: those want small graphs, drawn at random, with oracles.
package benchgraphs
