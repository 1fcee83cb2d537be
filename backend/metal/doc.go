// Package metal executes graphs on Apple's GPUs, in Go without cgo (internal/objc). It has not run on a
// Mac yet: its tests run on Linux, where internal/testkit/fakemetal stands in for Apple's libraries.
//
//   - [List] and [Open] find devices; a [Device] is a backend.Device.
//   - internal/plan says what an encoder is told for a graph; send.go turns that into Objective-C
//     messages, which one call from Go to C sends.
//   - hostqueue keeps the order of a queue's operations; queue.go does transfers, replay.go replays,
//     live.go command buffers of a recording. A replay is encoded and committed while those before it
//     still run.
//   - pipelines.go makes pipelines: from Metal source, compiled by the system, or from a .metallib.
//
// # What orders what
//
// Within an encoder of concurrent dispatches, memory barriers, where the graph has them. Between
// encoders, and so between the command buffers of a replay and between replays, Metal itself:
// all buffers are resources whose hazards it tracks, as wholes, so that what shares memory keeps the
// order in which it was committed.
package metal
