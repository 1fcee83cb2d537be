//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// frame implements [backend.Frame]. As many of its replays can be in flight at a time as it has slots.
type frame struct {
	*backend.FrameMemory
	owner   *executable
	room    int // the max number of replays in a submission
	guard   *guard
	slots   []slot
	samples *samples
	fits    backend.States // the states with which a replay last fit the GPU's working set
	known   bool           // fits was set: nil is a valid set of states
}

// slot is one of the sets of argument memory and indirect command buffers of a frame. Each replay in flight
// has a slot of its own, so that the host does not overwrite what an earlier replay still reads.
type slot struct {
	arguments []backend.Place // by memory: argument memory, which the host writes for each replay; nil: the frame's
	own       []backend.Buffer
	stored    *stored
}

// ahead is the max number of replays of a submission that are in flight: one more waits for the oldest.
const ahead = 3

// inFlight returns how many replays of a frame can be in flight, if a submission has up to room replays.
func (e *executable) inFlight(room int) int {
	if e.program.Graph.NextHost || len(e.plan.Guards) > 0 || len(e.plan.Timed) > 0 { // the host has to act between two replays
		return 1
	}
	return max(1, min(room, ahead, maxUncompleted/min(2*mostEncoders, max(1, len(e.plan.Buffers)))))
}

// NewFrame implements [backend.Executable].
func (e *executable) NewFrame(s backend.FrameSpec) (_ backend.Frame, err error) {
	g := e.program.Graph
	f := &frame{owner: e, room: max(1, s.Replays)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("metal: graph %s: %w", ir.QuoteName(g.Name), err), f.Close())
		}
	}()
	if f.FrameMemory, err = e.program.Frame(e.device, s); err != nil {
		return nil, err
	}
	if f.guard, err = e.device.newGuard(e.plan); err != nil {
		return nil, err
	}
	if len(e.plan.Timed) > 0 {
		f.samples = e.device.newSamples(len(e.plan.Timed), e.how)
	}
	for n := range e.inFlight(f.room) {
		f.slots = append(f.slots, slot{})
		if err := f.slots[n].make(f, n > 0); err != nil {
			return nil, err
		}
	}
	e.device.labelAll(g, f.Place)
	return f, nil
}

// make makes the indirect command buffers of a slot and, if own is set, argument memory of its own; the
// first slot uses the frame's.
func (s *slot) make(f *frame, own bool) (err error) {
	e := f.owner
	g := e.program.Graph
	if e.stored != nil {
		if s.stored, err = e.device.newStored(&e.code); err != nil {
			return err
		}
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; !own || m.Kind != ir.Argument || f.Place(ir.MemID(i)).Buffer == nil {
			continue
		}
		b, err := e.device.Alloc(backend.Spec(&g.Memories[i]))
		if err != nil {
			return fmt.Errorf("memory %%%s: %w", ir.QuoteName(g.Memories[i].Name), err)
		}
		if s.arguments == nil {
			s.arguments = make([]backend.Place, len(g.Memories))
		}
		s.own, s.arguments[i] = append(s.own, b), backend.At(b)
	}
	return nil
}

// Close implements [backend.Frame].
func (f *frame) Close() error {
	var errs []error
	for i := range f.slots {
		f.slots[i].stored.close()
		for _, b := range f.slots[i].own {
			errs = append(errs, b.Close())
		}
	}
	f.slots = nil
	f.samples.close()
	f.guard.close()
	if f.FrameMemory != nil {
		errs = append(errs, f.FrameMemory.Close())
	}
	return errors.Join(errs...)
}
