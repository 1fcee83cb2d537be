// Package benchgraphs makes large graphs for benchmarks: valid graphs with any number
// of commands and with complete effects, the same every time. They cannot be executed:
// except for the elementwise families, their kernels have no code and their dispatches
// bind nothing.
//
//	g := benchgraphs.Decode(100_000)   // decode steps of a 30-layer model
//	g := benchgraphs.Arena(100_000)    // results in an arena that is reused again and again
//	g := benchgraphs.PingPong(100_000) // buffers written in parts and read as a whole
//
// [Families] lists them for table-driven benchmarks. They are not meant for tests of
// what a graph computes, which need small random graphs and an oracle.
package benchgraphs
