// Package backend is the interface between replay and what executes graphs.
//
// A [Device] allocates buffers and compiles a [Program], a graph with a buffer
// for each of its memories, into an [Executable], which runs as often as asked
// with other params. Backends: backend/cpu (pure Go, everywhere, the
// reference). backend/conformance holds the tests that all of them pass.
//
// A device executes exactly the order that the graph writes down: what
// barriers and commits leave open it may overlap or not.
package backend
