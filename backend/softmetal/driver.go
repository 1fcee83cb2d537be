package softmetal

import (
	"context"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
)

// Driver opens the device.
var Driver = backend.Driver{
	Name: "softmetal", What: "executes Metal kernels on the CPU",
	Options: []backend.Option{
		{Name: "threads", Type: backend.Count, Min: 1, Max: cpu.MaxWorkers, Flag: "--threads", Help: "Threads that run threadgroups.", Default: "all cores"},
		{Name: "memory", Type: backend.Bytes, Flag: "--memory", Help: "Most memory that buffers and threads may take.", Default: "what the machine has and its control group allows"},
		{Name: "library", Type: backend.File, Contents: "the library", Flag: "--library", Help: "A .metallib that builtin kernels are taken from.", Default: "their Metal source"},
		{Name: "trust", Type: backend.Switch, Flag: "--trust-kernels", Help: "Run kernels of files also where nothing confines them.", Default: "false"},
		{Name: "work", Type: backend.Duration, Flag: "--max-work", Help: "End a submission that takes one core longer.", Default: "1h"},
	},
	Open: func(ctx context.Context, s backend.Settings) (backend.Closer, error) {
		memory := s.Bytes("memory")
		if memory == 0 {
			memory = cpu.MachineMemory()
		}
		return New(ctx, Options{Workers: s.Count("threads"), Memory: memory, Work: s.Duration("work"), Library: s.Text("library"), Trust: s.On("trust")})
	},
}
