// Package cuda executes graphs on NVIDIA's GPUs, in Go without cgo (internal/cuda). Kernels are those of
// Metal: their code, from source or from a compiled library, becomes LLVM IR (backend/internal/kernelcode)
// and PTX (internal/air), which the driver compiles for the GPU.
//
//   - [Open] finds a GPU; a [Device] is a backend.Device.
//   - kernels.go finds kernels and has them compiled; executable.go turns a graph's plan
//     (backend/internal/plan) into steps (steps.go), launches.go keeps their parameters where the driver
//     reads them, graph.go makes a graph of CUDA's of them.
//   - rules.go leaves what depends on params to the GPU: a first launch (backend/internal/advance) writes the numbers
//     to where kernels take them from, and counts params on. One replay is like the next for the host.
//   - hostqueue keeps the order of a queue's operations; queue.go does transfers, replay.go replays,
//     live.go the command buffers of a recording.
//
// # What orders what
//
// The work of a queue is on one stream: a launch, or a graph, waits for all before it. Within a graph a
// command waits for the one before it ([Chain]), or for those that the graph's own edges name ([Edges]).
// Where a GPU can launch a kernel before the one before it has ended (compute capability 9.0), the kernel
// waits by itself, in all threads, before it touches anything but weights (air.Launch). As each kernel of a
// row of such waits, and a launch that may have no threadgroup is never in it, what waits for the last has
// waited for all of them.
package cuda
