// Package metal executes graphs on Apple's GPUs, in Go without cgo (internal/objc). It has not run on a
// Mac yet: its tests run on Linux, where internal/testing/fakemetal stands in for Apple's libraries.
//
//   - [List] and [Open] find devices; a [Device] is a backend.Device.
//   - internal/plan lowers a graph to encoder operations; send.go turns these into Objective-C
//     messages, which one call from Go to C sends.
//   - hostqueue keeps the order of a queue's operations; queue.go does transfers, replay.go replays,
//     live.go the command buffers of a live recording. A replay is encoded and committed while
//     earlier replays still run on the GPU.
//   - pipelines.go makes pipelines of functions that libraries.go finds; archive.go keeps them on disk.
//   - buffer.go makes buffers; staging.go copies to and from private buffers, which the host cannot see.
//   - residency.go keeps buffers resident; capture.go writes .gputrace files; flight.go lists the command
//     buffers in flight, so that a capture can wait for them at its beginning and end.
//   - environment.go lets environment variables override options (docs/environment.md); log.go,
//     labels.go and totals.go report to people what happens; handles.go is for programs that also use
//     Metal directly.
//
// # What orders what
//
// Within a concurrent encoder, memory barriers order dispatches where the graph has barriers. Between
// encoders, and so between the command buffers of a replay and between replays, Metal's hazard
// tracking does: all buffers are tracked resources, each as a whole, so that encoders that share a
// buffer which one of them writes run in the order in which they were committed.
//
// # Where kernels come from
//
// Of each Metal source only the kernels that a graph needs are compiled, all at once (msl.Only); a
// later graph compiles only the kernels that no earlier one needed. The options are always the same: no
// fast math, precise functions, Metal 3.1. A builtin kernel comes from [Options.Library] if that has it;
// else from [Options.Precompiled] if that was made of this version's sources; else from its source.
// Each library is opened once; an attempt that failed is made again when somebody asks next.
//
// Pipelines are kept in an MTLBinaryArchive, a file for each GPU, version of the system and set of
// sources ([Options.Cache]). It saves the second half of compiling, from a library to the GPU's code.
// Whatever is wrong with it is a warning.
//
// On GPUs before Apple9 a pipeline that is used only in indirect command buffers is said to need one
// ordinary dispatch first. There, for plans with indirect command buffers, each new pipeline is
// dispatched once with an empty grid (prime.go).
//
// # Memory
//
// Buffers have shared storage, and weights in files are mapped. With [Options.Private] unmapped weights,
// states and scratch have private storage: their Bytes are nil, and a kernel on a queue of its own
// copies between them and a shared staging buffer while the host waits. The sum of all buffers that a
// replay uses is checked against the GPU's recommended working set: weights when the graph is
// compiled, the rest before the first submission.
//
// On macOS 15 and later one residency set has all buffers. If it has changed it is committed with the
// next command buffers, and at once when a mapped buffer is closed: an uncommitted set may still hold
// the buffer while its caller unmaps the memory. While the device is in use, and for [Options.Keep]
// after, residency is requested every half second.
package metal
