package record

import (
	"fmt"

	"github.com/mlxc/mlxc/backend"
)

// Setting says what an encoder does with what it is given.
type Setting func(*settings)

type settings struct {
	on       backend.Device // nil: only captured
	deferred bool           // executed at Finish
	keep     bool           // captured although it is executed
	manual   bool
	inOrder  bool // the recording is serial
	profile  bool
	clock    bool
	err      error // settings that no encoder can have
}

// device sets where an encoder executes.
func (s *settings) device(name string, d backend.Device, deferred bool) {
	switch {
	case d == nil:
		s.err = fmt.Errorf("%s of a nil device", name)
	case s.on != nil:
		s.err = fmt.Errorf("%s: one of Live and Deferred, once", name)
	}
	s.on, s.deferred = d, deferred
}

// Live executes on d, command buffer by command buffer as they are committed.
// Nothing is kept of the recording, unless [Capture] or [Encoder.StartCapture] asks for it.
func Live(d backend.Device) Setting { return func(s *settings) { s.device("Live", d, false) } }

// Capture keeps the whole recording of an encoder that is live.
func Capture() Setting { return func(s *settings) { s.keep = true } }

// Deferred records, and executes on d at Finish, after the passes that Finish
// is given.
func Deferred(d backend.Device) Setting { return func(s *settings) { s.device("Deferred", d, true) } }

// ManualBarriers leaves the barriers to the caller ([Encoder.Barrier]). A conflict that no
// barrier orders is listed in [Result.Races], and the commands are executed without one.
// [Encoder.EncodeRecomputed] places its own barriers all the same.
func ManualBarriers() Setting { return func(s *settings) { s.manual = true } }

// Serial records what a serial encoder does: each command begins when the one before
// it has ended. No barrier is placed, conflicts are no races, and the graph says of
// itself that its list is its order ([ir.Serial]). Passes find out which of
// that order is needed.
func Serial() Setting { return func(s *settings) { s.inOrder = true } }

// TimeDispatches asks the device for the time of each dispatch. Devices that can
// take times only where an encoder ends change what overlaps; their
// [Result.Warnings] say so.
func TimeDispatches() Setting { return func(s *settings) { s.profile = true } }

// TimeBarriers measures what finding and placing barriers costs on the host,
// two clock readings a dispatch: [Counters.BarrierTime].
func TimeBarriers() Setting { return func(s *settings) { s.clock = true } }

// live reports whether command buffers are executed when they are committed.
func (s *settings) live() bool { return s.on != nil && !s.deferred }

// records reports whether the whole recording is kept until Finish.
func (e *Encoder) records() bool { return e.on == nil || e.deferred || e.keep || e.dump != "" }
