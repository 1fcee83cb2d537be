// Package metal executes graphs on Apple's GPUs, in Go without cgo (internal/objc). It has not run on a
// Mac yet: its tests run on Linux, where internal/testkit/fakemetal stands in for Apple's libraries.
//
//   - [List] and [Open] find devices; a [Device] is a backend.Device.
//   - internal/plan says what an encoder is told for a graph; send.go turns that into Objective-C
//     messages, which one call from Go to C sends.
//   - hostqueue keeps the order of a queue's operations; queue.go does transfers, replay.go replays,
//     live.go command buffers of a recording. A replay is encoded and committed while those before it
//     still run.
//   - pipelines.go makes pipelines, of functions that libraries.go finds; archive.go keeps them.
//   - buffer.go makes buffers; staging.go moves bytes of those that the host does not see.
//   - residency.go keeps buffers resident; capture.go writes .gputrace files; flight.go knows what is in
//     flight, so that a capture has all of something and nothing else.
//   - environment.go has what the environment says win over the options (docs/environment.md); log.go,
//     labels.go and totals.go tell people what happens; handles.go is for programs that use Metal
//     themselves beside this package.
//
// # What orders what
//
// Within an encoder of concurrent dispatches, memory barriers, where the graph has them. Between
// encoders, and so between the command buffers of a replay and between replays, Metal itself:
// all buffers are resources whose hazards it tracks, as wholes, so that what shares memory keeps the
// order in which it was committed.
//
// # Where kernels come from
//
// Of a Metal source the kernels that a graph needs are compiled, all at once (msl.Only), and of the
// next graph those that it needs beside them. Every source is compiled with the same options: no fast
// math, precise functions, Metal 3.1. A builtin kernel comes from [Options.Library], if that has it;
// else from [Options.Precompiled], if that is of this version's sources; else from its source. Each
// library is opened once, and what has failed is tried again by who asks next.
//
// Pipelines are kept in an MTLBinaryArchive, a file for each GPU, version of the system and set of
// sources ([Options.Cache]). It saves the second half of compiling, from a library to the GPU's code.
// Whatever is wrong with it is a warning.
//
// It is said of GPUs before Apple9 that a pipeline which is used only in indirect command buffers must
// have been dispatched once: for plans with such buffers an empty dispatch follows the making of each
// pipeline there (prime.go).
//
// # Memory
//
// Buffers are shared, and weights in files are mapped. With [Options.Private] the host does not see
// weights that are not mapped, states and scratch: their Bytes are nil, and what goes to and from them
// goes through shared memory, moved by a kernel on a queue of its own, which is waited for. All buffers
// that a replay uses are held against the GPU's recommended working set: weights when the graph is
// compiled, the rest before the first submission.
//
// A residency set has all buffers (macOS 15 and later). It is committed when command buffers are, if it
// has changed, and at once when a mapped buffer is closed: until then it may hold the buffer, and the
// memory below may be unmapped. While the device is in use, and for [Options.Keep] after, the set is
// requested every half second.
package metal
