package gpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cost"
)

// CUDAOptions choose a GPU of NVIDIA's, and how it is driven. The zero value is good.
type CUDAOptions struct {
	// Name is a part of the GPU's name; "" is the first.
	Name string
	// Library is a .metallib that builtin kernels are taken from.
	Library string
	// Trust has kernels of files compiled even where the compiler cannot be sandboxed.
	Trust bool
	// Plan is how the commands of a replay are launched, one of [CUDAPlans]; "" is the first.
	Plan string
	// Measured is what was measured of the GPU; nil: nothing.
	Measured *cost.Model
	// Full switches off programmatic dependent launches: every launch begins when those before it have ended.
	Full bool
	// NoMMA keeps products of matrices from tensor cores.
	NoMMA bool
	// Memory is the maximum of bytes that buffers may take together; 0: what the GPU has.
	Memory int64
}

// CUDAPlans are the names of ways to launch the commands of a replay.
var CUDAPlans = []string{Auto, "stream", "chain", "edges"}

// CUDAMeasured are the ways to launch replays that are measured one by one, by their names in profiles.
var CUDAMeasured = []struct {
	Name, Plan  string
	Full, Edges bool
}{
	{"chain-waiting", "chain", false, false}, {"chain", "chain", true, false},
	{"edges-waiting", "edges", false, true}, {"edges", "edges", true, true}, {"stream", "stream", true, false},
}

// CUDADescription is a GPU of NVIDIA's.
type CUDADescription struct {
	Name            string `json:"name"`
	Default         bool   `json:"default"`
	Ordinal         int    `json:"ordinal"`
	Capability      string `json:"compute_capability"` // as 9.0
	Memory          int64  `json:"memory"`
	Multiprocessors int    `json:"multiprocessors"`
}

// Counts are what a device has counted since it was opened.
type Counts struct {
	Peak int64 // maximum of bytes that buffers took at a time
	Held int64 // the same, with what was kept of closed buffers
	// Kernels is how many were loaded, Compiled for how many of them clang ran, and Why one of these was not
	// prebuilt. Find is the time that it took to get their PTX, and JIT the driver's time to compile it for the GPU:
	// sums over concurrent threads.
	Kernels, Compiled int
	Why               string
	Find, JIT         time.Duration
	// NoRanges says why the tool that the environment names gets no ranges.
	NoRanges string
}

// String returns the counts as half a line of text.
func (c Counts) String() string {
	s := fmt.Sprintf("at most %.1f MiB of memory", float64(c.Peak)/(1<<20))
	if c.Held > c.Peak {
		s += fmt.Sprintf(" (%.1f with what is kept for others)", float64(c.Held)/(1<<20))
	}
	if c.Kernels > 0 {
		s += fmt.Sprintf("; %d kernels, found in %.2f s and compiled by the driver in %.2f s", c.Kernels, c.Find.Seconds(), c.JIT.Seconds())
	}
	if c.Compiled > 0 {
		s += fmt.Sprintf("; %d by clang", c.Compiled)
	}
	if c.Why != "" {
		s += " (" + c.Why + ")"
	}
	if c.NoRanges != "" {
		s += "; no ranges: " + c.NoRanges
	}
	return s
}

// CUDADriver finds and opens GPUs of NVIDIA's.
type CUDADriver interface {
	List() ([]CUDADescription, error)
	Open(context.Context, CUDAOptions) (backend.Device, func() error, error)
	// Counts are those of a device that Open has returned; ok is false for others.
	Counts(backend.Device) (c Counts, ok bool)
}

// CUDA drives NVIDIA's GPUs. A program that does not import package cudagpu has none.
var CUDA CUDADriver = noCUDA{}

type noCUDA struct{}

// errNoCUDA says why this program cannot drive NVIDIA's GPUs, and what to do.
func errNoCUDA() error {
	if runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") {
		return errors.New("cuda: this program was built without it, to need nothing of the system at its start (tag static): build it without that tag, as go install github.com/mlxc/mlxc/cmd/mlxreplay@latest does, or use --device cpu")
	}
	return errors.New("cuda: NVIDIA's GPUs are driven on Linux alone (amd64, arm64): use --device cpu")
}

func (noCUDA) List() ([]CUDADescription, error) { return nil, errNoCUDA() }

func (noCUDA) Open(context.Context, CUDAOptions) (backend.Device, func() error, error) {
	return nil, nil, errNoCUDA()
}

func (noCUDA) Counts(backend.Device) (Counts, bool) { return Counts{}, false }
