// Package cuda executes graphs on NVIDIA's GPUs, in Go without cgo (internal/cuda). Kernels are those of
// Metal: their code, from source or from a compiled library, becomes LLVM IR (backend/internal/kernelcode)
// and PTX (internal/air), which the driver compiles for the GPU.
//
//   - [Open] finds a GPU; a [Device] is a backend.Device.
//   - kernels.go finds kernels and has them compiled; executable.go turns a graph's plan
//     (backend/internal/plan) into steps (steps.go), launches.go keeps their parameters where the driver
//     reads them, graph.go makes a CUDA graph of them.
//   - rules.go leaves what depends on params to the GPU: a first kernel (backend/internal/advance) writes the numbers
//     to where other kernels read them, and advances the params. For the host one replay is like the next.
//   - hostqueue keeps the order of a queue's operations; queue.go does transfers, replay.go replays,
//     live.go the command buffers of a recording.
//
// # How work is ordered
//
// The work of a queue is on one stream: a launch, or a graph, waits for all before it. Within a CUDA graph a command
// waits for the one before it ([Chain]), or for those that the graph's own edges name ([Edges]). From compute
// capability 9.0 on, a kernel can begin before the one before it has ended (programmatic dependent launch): all its
// threads then execute griddepcontrol.wait before they touch anything but weights (nvptx.Launch). Each kernel of a row
// of such launches waits for its predecessor, and none of them may have an empty grid, so whatever waits for the
// last has waited for all.
package cuda
