// Package fakecuda stands in for NVIDIA's driver where there is none: a table of functions, in Go, that
// internal/cuda calls as it would those of libcuda. It shares no code with what it tests and sees calls
// and bytes alone.
//
//	gpu := fakecuda.Serve(t, fakecuda.Options{}) // answers until the test ends
//
// It notes what its caller does wrong: calls without a current context, invalid or destroyed handles, arguments that
// the driver would refuse, memory that is freed too early or written out of bounds, and leaks. The test fails at its
// end by all of that which it has not fetched itself ([GPU.Failures]).
//
// # Memory
//
// Device addresses come from a reserved range of inaccessible addresses. The contents lie in buffers of software
// Metal, filled with a pattern, each allocation at the end of its buffer's last page: the page behind it ends a
// kernel that touches it, and the bytes before it are a canary. Pinned host memory has a reserved range too. No
// address of either is used twice, so that uses after a free are found.
//
// # How kernels run
//
// PTX is not read here. A module is loaded from an [Image] in its place: a kernel as LLVM IR, and how it is
// launched. Software Metal compiles that for this machine, and runs each launch as a dispatch: results are software
// Metal's, bit for bit.
//
// # How work is ordered
//
// Work is ordered by its stream, the edges of graphs and what the host waits for, and by nothing else. With an
// [Options.Seed] work runs only when a caller waits for it, and ready work runs in a random order; two kernels
// without an order between them may run concurrently, each on the memory as it was before both. Copies access the
// host's memory when they run. A program without races computes the same with every seed.
//
// A kernel behind a programmatic edge may begin early. If its image does not wait by itself, the edge orders
// nothing. If it does, it runs when its predecessors have ended, but finds its early arguments and its table of
// additions as they were when the first of these began; if that changes its result, it is a failure.
package fakecuda
