package metal

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mlxc/mlxc/cost"
)

// Options of a device. The zero value is good. The environment changes those that its variables name
// ([Open], docs/environment.md), whatever the program says: it is for who cannot change the program.
type Options struct {
	// Device names the GPU: a part of its name, as [List] has it; "" is the one that the system
	// prefers.
	Device string
	// Library is a .metallib from which the kernels of our own library are taken, such as MLX's,
	// where they have the same names and arguments. Those that it lacks, and all if it is "", are
	// compiled from their Metal source.
	Library string
	// Precompiled is a .metallib that scripts/metallib.sh has made of our own kernels, so that they
	// need not be compiled here. If it cannot be used, or lacks some, there is a warning, and they
	// are compiled from their source.
	Precompiled string
	// Cache is the folder in which compiled pipelines are kept; "" is the user's own, [NoCache] none.
	Cache string
	// Warn hears what is done in another way than was asked for, each once. Goroutines of the device
	// call it, one at a time. Nil: Log is told.
	Warn func(text string)
	// Plan is how replays are encoded.
	Plan Plan
	// Encoders is how many command buffers of a replay are encoded side by side by [Parallel], 2
	// to 8; 0 is 2.
	Encoders int
	// Measured is what `mlxreplay doctor` has found out about this GPU; nil: nothing.
	Measured *cost.Model
	// Fences has encoders ordered by fences, and Metal not track what they share. Only for GPUs of
	// which `mlxreplay doctor` has seen that fences keep that order ([Options.Measured]).
	Fences bool
	// Unretained: command buffers do not retain what they use. The device keeps it alive itself.
	Unretained bool
	// Memory is the most bytes that buffers may take together, if the system recommends no less; 0:
	// what it recommends.
	Memory int64
	// Private keeps from the host what it need not see: weights that are not mapped, states and
	// scratch. What goes to and from them is copied by the GPU.
	Private bool
	// Groups has the graph's groups and labels told to encoders, and the names of memories to
	// buffers, for captures.
	Groups bool
	// NoResidency: no residency set has the system keep buffers where the GPU finds them. Keep is how
	// long a set asks for that after the last command buffer; 0 is [DefaultKeep].
	NoResidency bool
	Keep        time.Duration
	// Profile asks for the times of commands in every graph and recording, and has Close tell them by
	// label.
	Profile bool
	// Capture names a file, "decode.gputrace", that the first replay or command buffer of a
	// recording is captured in; "decode.gputrace:10" captures the tenth. What fails is a warning.
	Capture string
	// Captures prepares the process for [Device.Capture]. Capture does so too.
	Captures bool
	// Debug is how much is told of what happens: 0 warnings, 1 the device, pipelines and sums at the
	// end, 2 command buffers, 3 dispatches. Log is who is told; nil: standard error.
	Debug int
	Log   io.Writer
	// Adopt, if not 0, is an MTLDevice that the program has already ([Object]). It is kept until the
	// device is closed.
	Adopt uintptr
}

// DefaultKeep is how long buffers are kept resident after the last use of a device.
const DefaultKeep = 180 * time.Second

// Object is a device, queue or buffer of this package that is an object of Objective-C, for programs
// that use Metal themselves beside it.
type Object interface {
	// Handle is the object's address. It is not the caller's: it is good until the device, queue or
	// buffer is closed, unless it is retained.
	Handle() uintptr
}

// NoCache as [Options.Cache] keeps no pipelines.
const NoCache = "none"

// Description is a GPU of the machine.
type Description struct {
	Name    string
	Default bool  // the one that the system prefers
	Family  int   // of Apple's GPUs: 7 is M1's; 0: none of Apple's
	Memory  int64 // bytes that the system recommends to have in use at most
	// MaxBuffer is the greatest length of a buffer, ThreadgroupBytes the memory of a threadgroup.
	MaxBuffer        int64
	ThreadgroupBytes int
	Unified          bool // its memory is the host's
	RegistryID       uint64
	Architecture     string // "applegpu_g13g"
	Families         string // that it supports: "Apple7, Mac2, Metal3"
	LowPower         bool   // it is the one of several that saves power
	Removable        bool
	Headless         bool // it has no screen
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
