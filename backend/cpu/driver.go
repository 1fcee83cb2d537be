package cpu

import (
	"context"

	"github.com/mlxc/mlxc/backend"
)

// Driver opens the device.
var Driver = backend.Driver{
	Name: "cpu",
	Options: []backend.Option{
		{Name: "threads", Type: backend.Count, Min: 1, Max: MaxWorkers, Flag: "--threads", Help: "Threads that run kernels.", Default: "all cores"},
		{Name: "memory", Type: backend.Bytes, Flag: "--memory", Help: "Most memory that buffers may take.", Default: "what the machine has and its control group allows"},
	},
	Open: func(_ context.Context, s backend.Settings) (backend.Closer, error) {
		return NewLimited(s.Count("threads"), s.Bytes("memory")), nil
	},
}
