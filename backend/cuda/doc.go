// Package cuda executes graphs on NVIDIA's GPUs, in Go without cgo (internal/cuda). Kernels are those of
// Metal: their code, from source or from a compiled library, becomes LLVM IR (backend/internal/kernelcode)
// and PTX (internal/air), which the driver compiles for the GPU.
//
//   - [Open] finds a GPU; a [Device] is a backend.Device.
//   - kernels.go makes functions of kernels; executable.go turns a graph's plan
//     (backend/internal/plan) into launches, launches.go keeps their parameters where the driver
//     reads them.
//   - hostqueue keeps the order of a queue's operations; queue.go does transfers and replays, live.go
//     the command buffers of a recording.
//
// # What orders what
//
// The launches of a queue are on one stream: each waits for all before it. Barriers need nothing more.
package cuda
