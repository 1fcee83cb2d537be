package metal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mlxc/mlxc/cost"
)

// Options of a device. The zero value is a good default. Environment variables override the options that
// they name (docs/environment.md), for users who cannot change the program.
type Options struct {
	// Device is a part of the GPU's name as [List] returns it, in any case; "" is the system's
	// default GPU.
	Device string
	// Library is the path of a .metallib, such as MLX's, from which builtin kernels are taken that
	// have the same name and arguments there. Those that it lacks, and all if it is "", are
	// compiled from their Metal source.
	Library string
	// Precompiled is a .metallib that scripts/metallib.sh has made of our own kernels, so that they
	// need not be compiled here. If it cannot be used, or lacks some, there is a warning, and they
	// are compiled from their source.
	Precompiled string
	// Cache is the folder in which compiled pipelines are kept; "" is the user's own, [NoCache] none.
	Cache string
	// Warn is called once for each thing that the device does otherwise than it was asked to. Its
	// goroutines call it, one at a time. If nil, warnings go to Log.
	Warn func(text string)
	// Plan is how replays are encoded.
	Plan Plan
	// Encoders is the number of command buffers of a replay that [Parallel] encodes at the same time, 2
	// to 8; 0 is 2.
	Encoders int
	// Measured is the profile that `mlxreplay doctor` has made of this GPU; nil: there is none.
	Measured *cost.Model
	// Fences orders encoders by an MTLFence and switches hazard tracking off. Only for GPUs on which
	// `mlxreplay doctor` has seen fences keep that order ([Options.Measured]).
	Fences bool
	// Unretained: command buffers do not retain what they use. The device keeps it alive itself.
	Unretained bool
	// Memory is the max sum of bytes of all buffers but mapped ones. 0, or more than
	// recommendedMaxWorkingSetSize, means that size.
	Memory int64
	// Private gives unmapped weights, states and scratch private storage, which the host cannot see.
	// The GPU copies what goes to and from them.
	Private bool
	// Groups sends the graph's groups and labels to encoders as debug groups and labels buffers with
	// the names of memories, for captures.
	Groups bool
	// NoResidency: no residency set is used. Keep is for how long after the last command buffer
	// residency is still requested; 0 is [DefaultKeep].
	NoResidency bool
	Keep        time.Duration
	// Profile takes the times of commands in every graph and recording; Close logs their sums by
	// label.
	Profile bool
	// Capture is the path of a file, such as "decode.gputrace", to which the device's first replay,
	// or live command buffer, is captured; "decode.gputrace:10" captures the tenth. Failures are warnings.
	Capture string
	// Captures sets MTL_CAPTURE_ENABLED before Metal is loaded, for [Device.Capture]. Capture does so too.
	Captures bool
	// Debug is the level of logging: 0 warnings, 1 also the device, pipelines and totals at the end,
	// 2 also command buffers, 3 also dispatches. Log is where it is written; nil: standard error.
	Debug int
	Log   io.Writer
	// Adopt, if not 0, is the address of an MTLDevice that the program already has; it is used
	// whatever Device says, and retained until the device is closed ([Object]).
	Adopt uintptr
}

// DefaultKeep is how long buffers are kept resident after the last use of a device.
const DefaultKeep = 180 * time.Second

// Object is implemented by devices, queues and buffers of this package: it gives access to the
// Objective-C object behind them, for programs that also use Metal directly.
type Object interface {
	// Handle is the object's address. The caller does not own it: it is valid until the device,
	// queue or buffer is closed, unless the caller retains it.
	Handle() uintptr
}

// NoCache as [Options.Cache] means that compiled pipelines are not kept on disk.
const NoCache = "none"

// Description describes a GPU of the machine.
type Description struct {
	Name      string `json:"name"`
	Default   bool   `json:"default"`      // the system's default GPU
	Family    int    `json:"apple_family"` // the highest MTLGPUFamilyApple number: 7 is M1's; 0: no GPU of Apple's
	Memory    int64  `json:"working_set"`  // recommendedMaxWorkingSetSize, in bytes
	MaxBuffer int64  `json:"max_buffer"`   // max length of a buffer, in bytes
	// ThreadgroupBytes is the max threadgroup memory, in bytes.
	ThreadgroupBytes int    `json:"threadgroup_bytes"`
	Unified          bool   `json:"unified_memory"` // CPU and GPU share one memory
	RegistryID       uint64 `json:"registry_id"`
	Architecture     string `json:"architecture"` // "applegpu_g13g"
	Families         string `json:"families"`     // all MTLGPUFamily that it supports: "Apple7, Mac2, Metal3"
	LowPower         bool   `json:"low_power"`    // the integrated one of several GPUs
	Removable        bool   `json:"removable"`
	Headless         bool   `json:"headless"` // it has no screen
}

// String is the description in one line.
func (x Description) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s), %s", x.Name, x.Architecture, x.Families)
	fmt.Fprintf(&b, "; working set %d MiB, buffers of at most %d MiB, %d KiB of threadgroup memory", x.Memory>>20, x.MaxBuffer>>20, x.ThreadgroupBytes>>10)
	for _, f := range []struct {
		on   bool
		what string
	}{{x.Unified, "unified memory"}, {x.LowPower, "low power"}, {x.Removable, "removable"}, {x.Headless, "headless"}} {
		if f.on {
			b.WriteString(", " + f.what)
		}
	}
	return b.String()
}
