//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/bound"
	"github.com/mlxc/mlxc/backend/internal/plan"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// executable is a graph with its launches.
type executable struct {
	device  *Device
	program *bound.Program
	code
}

// planning is for what kind of encoder plans are made: a stream runs one launch after another, and a
// launch takes all its arguments.
var planning = plan.Options{Serial: true, Whole: true}

// noLimit of commands that are stored together.
const noLimit = 1 << 30

func specOf(n int64) backend.BufferSpec { return backend.BufferSpec{Size: n, Use: ir.Scratch} }

// Compile implements [backend.Device].
func (d *Device) Compile(ctx context.Context, p *backend.Program) (_ backend.Executable, err error) {
	g := p.Graph
	e := &executable{device: d}
	fail := func(err error) (backend.Executable, error) {
		return nil, fmt.Errorf("cuda: graph %s: %w", ir.QuoteName(g.Name), err)
	}
	lowered, err := plan.Lower(ctx, g, planning)
	if err != nil {
		return fail(err)
	}
	if err := d.compile(ctx, &e.code, lowered, p.Progress); err != nil {
		return fail(err)
	}
	if e.program, err = bound.New(p, d.owns); err != nil {
		return fail(err)
	}
	return e, nil
}

// compile makes the kernels and steps of a plan, and holds what is dispatched against them.
func (d *Device) compile(ctx context.Context, c *code, p *plan.Plan, progress func(float64)) error {
	var errs []error
	c.kernels, errs = d.prepare(ctx, p, progress)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := p.Check(func(i int32) (plan.Limits, error) {
		if errs[i] != nil {
			return plan.Limits{}, errs[i]
		}
		return c.kernels[i].limits(d), nil
	})
	if err != nil {
		return err
	}
	c.Stored = plan.Store(p, noLimit, false)
	c.nodes, c.describe = p.Graph.Nodes, func(node int32) string { return p.Graph.DescribeNode(int(node)) }
	c.arrange()
	return nil
}

// limits are what the GPU takes of a kernel's dispatches.
func (k *kernel) limits(d *Device) plan.Limits {
	return plan.Limits{Threads: k.threads, Own: k.static, Memory: d.limits.optin}
}

// Close implements [backend.Executable].
func (*executable) Close() error { return nil }

// frame implements [backend.Frame]. As many of its replays are in flight at a time as it has slots.
type frame struct {
	*backend.FrameMemory
	owner *executable
	room  int
	slots []slot
}

// slot is what a replay in flight has of its own.
type slot struct {
	launches  *launches
	end       driver.Event
	arguments []byte // of the host's, whose contents the GPU copies to argument memory; nil: there is none
}

// ahead is how many replays of a submission are launched before the first of them is waited for.
const ahead = 3

// NewFrame implements [backend.Executable].
func (e *executable) NewFrame(s backend.FrameSpec) (_ backend.Frame, err error) {
	g := e.program.Graph
	f := &frame{owner: e, room: max(1, s.Replays)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cuda: graph %s: %w", ir.QuoteName(g.Name), err), f.Close())
		}
	}()
	if f.FrameMemory, err = e.program.Frame(e.device, s); err != nil {
		return nil, err
	}
	arguments := int64(0)
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Argument && f.Place(ir.MemID(i)).Buffer != nil {
			arguments += (m.Size + 15) &^ 15
		}
	}
	count := min(f.room, ahead)
	if g.NextHost || len(e.Guards) > 0 || e.program.Profile {
		count = 1
	}
	for range count {
		f.slots = append(f.slots, slot{})
		x := &f.slots[len(f.slots)-1]
		if x.launches, err = e.device.newLaunches(&e.code); err != nil {
			return nil, err
		}
		err = e.device.gpu.Do(func() (err error) {
			if arguments > 0 {
				if x.arguments, err = driver.AllocHost(int(arguments)); err != nil {
					return err
				}
			}
			x.end, err = driver.NewEvent(true)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Close implements [backend.Frame].
func (f *frame) Close() error {
	var errs []error
	for i := range f.slots {
		x := &f.slots[i]
		errs = append(errs, x.launches.close(), f.owner.device.gpu.Do(func() (err error) {
			if x.end != 0 {
				err = x.end.Destroy()
			}
			if x.arguments != nil {
				err = errors.Join(err, driver.FreeHost(x.arguments))
			}
			return err
		}))
	}
	f.slots = nil
	if f.FrameMemory != nil {
		errs = append(errs, f.FrameMemory.Close())
	}
	return errors.Join(errs...)
}

// NewStates implements [backend.Executable].
func (e *executable) NewStates(places []backend.Place) (backend.States, error) {
	s, err := e.program.States(places)
	if err != nil {
		return nil, fmt.Errorf("cuda: graph %s: %w", ir.QuoteName(e.program.Graph.Name), err)
	}
	return s, nil
}
