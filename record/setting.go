package record

import (
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/environ"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// Setting configures an encoder.
type Setting func(*settings)

type settings struct {
	on       backend.Device // nil: nothing is executed
	deferred bool           // set by Deferred
	keep     bool           // set by Capture
	manual   bool           // set by ManualBarriers
	inOrder  bool           // set by Serial
	profile  bool           // set by TimeDispatches
	clock    bool           // set by TimeBarriers
	err      error          // why these settings are wrong
	chip     routes.Chip    // set by Chip
	compiled func(function string) (ir.Kernel, bool)
	version  routes.Version // set by Dialect
	once     bool           // set by WeightsOnce
}

// device sets where an encoder executes.
func (s *settings) device(name string, d backend.Device, deferred bool) {
	switch {
	case d == nil:
		s.err = fmt.Errorf("%s: the device is nil", name)
	case s.on != nil:
		s.err = fmt.Errorf("%s: want one of Live and Deferred, and only once", name)
	}
	s.on, s.deferred = d, deferred
}

// Live executes on d each command buffer when it is committed. The recording is not kept,
// unless [Capture] or [Encoder.StartCapture] asks for it.
func Live(d backend.Device) Setting { return func(s *settings) { s.device("Live", d, false) } }

// Capture keeps the whole recording of an encoder that is [Live], so that Finish returns it
// as a graph.
func Capture() Setting { return func(s *settings) { s.keep = true } }

// Deferred records first, and executes the recording on d at Finish. [Optimize] may rewrite
// it before.
func Deferred(d backend.Device) Setting { return func(s *settings) { s.device("Deferred", d, true) } }

// BarriersVariable is the environment variable that, set to "automatic", makes encoders place barriers on conflicts
// even if the program asked for [ManualBarriers]. If that changes what the program computes, the program lacks a
// barrier. The program's own barriers stay.
const BarriersVariable = "MLXC_BARRIERS"

// environment applies the settings that environment variables ask for.
func (s *settings) environment() {
	_, automatic, err := environ.Choice(BarriersVariable, "automatic")
	if err != nil && s.err == nil {
		s.err = err
	}
	if automatic {
		s.manual = false
	}
}

// ManualBarriers leaves the barriers to the caller ([Encoder.Barrier]). Conflicts without a barrier are listed in
// [Result.Races], and the commands are executed without one all the same. [Encoder.EncodeRecomputed] still places
// barriers on conflicts, and [BarriersVariable] turns automatic barriers back on for all commands.
func ManualBarriers() Setting { return func(s *settings) { s.manual = true } }

// Serial records what a serial encoder does, in which each command begins when the one
// before it has ended. No barriers are placed, and conflicts are not races. The graph has
// the ordering [ir.Serial], and passes find out how much of that order is needed.
func Serial() Setting { return func(s *settings) { s.inOrder = true } }

// TimeDispatches asks the device for the time of each dispatch. On a device that can take
// times only at the end of an encoder, dispatches do not overlap then. [Result.Warnings]
// says so.
func TimeDispatches() Setting { return func(s *settings) { s.profile = true } }

// TimeBarriers measures the host's time for finding and placing barriers, which
// [Counters.BarrierTime] returns. It costs two clock readings for each dispatch.
func TimeBarriers() Setting { return func(s *settings) { s.clock = true } }

// usualChip is whose kernels MLX's operations take without the setting [Chip]: a first chip of the M series.
var usualChip = routes.Chip{Generation: 13, Letter: 'g'}

// Chip makes operations take the kernels that MLX takes on a GPU, by the name of its architecture, such as
// "applegpu_g16s". Without it they are those of applegpu_g13g.
func Chip(architecture string) Setting {
	return func(s *settings) {
		var c routes.Chip
		if n, err := fmt.Sscanf(architecture, "applegpu_g%d%c", &c.Generation, &c.Letter); err != nil || n != 2 {
			s.err = fmt.Errorf("Chip: %q is not the architecture of an Apple GPU, such as applegpu_g16s", architecture)
		}
		s.chip = c
	}
}

// WeightsOnce has products of several rows with a quantized matrix take the kernel that reads the matrix once for all of them, however
// few rows there are. MLX takes a kernel of vectors up to a number of rows that depends on the chip, which reads it for each row.
func WeightsOnce() Setting { return func(s *settings) { s.once = true } }

// dialects are the versions of MLX by what [Dialect] calls them.
var dialects = map[string]routes.Version{"mlx-0.16": routes.August2024, "mlx-0.32": routes.Release0_32_4}

// Dialect says whose names, arguments and routes operations take: mlx-0.32, as without it, or mlx-0.16, of August 2024. In
// the latter quantized products and quantization are those of that time; its kernels are in no library of ours ([Compiled]).
func Dialect(name string) Setting {
	return func(s *settings) {
		v, ok := dialects[name]
		if !ok {
			s.err = fmt.Errorf("Dialect: there is no dialect %q: there are mlx-0.16 and mlx-0.32", name)
		}
		s.version = v
	}
}

// Compiled names kernels of a library other than ours, such as mlx.metallib: kernel returns where the code of a function is,
// the table of its arguments, and its function constants, of any value. Operations take ours, which passes and proofs understand, where MLX's routes lead to one,
// and else the kernel that MLX takes.
func Compiled(kernel func(function string) (ir.Kernel, bool)) Setting {
	return func(s *settings) { s.compiled = kernel }
}

// live reports whether command buffers are executed when they are committed.
func (s *settings) live() bool { return s.on != nil && !s.deferred }

// records reports whether the whole recording is kept until Finish.
func (e *Encoder) records() bool { return e.on == nil || e.deferred || e.keep || e.dump != "" }
