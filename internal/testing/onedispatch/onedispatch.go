// Package onedispatch runs single dispatches on software Metal, for stand-ins for GPU drivers, which
// have memory and kernels, but no graphs.
//
//	r, err := onedispatch.New(device)
//	err = r.Compile(ctx, kernel, described) // optional: else Run compiles it
//	err = r.Run(ctx, kernel, d, memory)     // d: the grid, and arguments that are bound by value
package onedispatch

import (
	"context"
	"errors"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// Runner runs dispatches on a device, each as a command buffer of its own. One goroutine at a time may
// use it.
type Runner struct {
	device *softmetal.Device
	queue  backend.Queue
}

// New makes a runner with a queue of the device.
func New(d *softmetal.Device) (*Runner, error) {
	q, err := d.NewQueue()
	return &Runner{d, q}, err
}

// Close closes the runner's queue.
func (r *Runner) Close() { _ = r.queue.Close() } // its error would be that of a kernel, which Run has returned

// Compile compiles a kernel, whose arguments described has, so that errors come before Run.
func (r *Runner) Compile(ctx context.Context, k ir.Kernel, described *air.Kernel) error {
	const room = 1 << 20
	g := &ir.Graph{Name: "kernel", Kernels: []ir.Kernel{k}, Memories: []ir.Memory{{Name: "m", Kind: ir.Scratch, Size: room, Alias: ir.NoMem}}}
	n := &ir.Dispatch{Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}}
	for i := range described.Args {
		if a := &described.Args[i]; a.Attribute == "" && a.Space != air.Threadgroup {
			n.Bindings = append(n.Bindings, ir.Binding{Slot: uint8(a.Index), Kind: ir.BindView, View: ir.ViewOf(0, 0, room)})
		}
	}
	g.Nodes = []ir.Node{n}
	e, err := r.device.Compile(ctx, &backend.Program{Graph: g})
	if err != nil {
		return err
	}
	return e.Close()
}

// Bound is memory that is bound to a slot of a dispatch: Size bytes of Room from Offset on.
type Bound struct {
	Slot         uint8
	Room         backend.Buffer
	Offset, Size int64
}

// RanWrong is the error of a dispatch that failed while its kernel ran, such as a bad access.
type RanWrong struct{ error }

// Unwrap returns the device's error.
func (e *RanWrong) Unwrap() error { return e.error }

// Run runs dispatch n of kernel k and waits for it. n has the grid, threadgroup memory and arguments
// that are bound by value; Run adds the bindings of memory to it.
func (r *Runner) Run(ctx context.Context, k ir.Kernel, n *ir.Dispatch, memory []Bound) error {
	g := &ir.Graph{Name: "dispatch", Kernels: []ir.Kernel{k}, Ordering: ir.Serial}
	var places []backend.Place
	known := map[backend.Buffer]ir.MemID{}
	for _, b := range memory {
		m, ok := known[b.Room]
		if !ok {
			m = ir.MemID(len(g.Memories))
			known[b.Room] = m
			g.Memories = append(g.Memories, ir.Memory{Name: "m", Kind: ir.State, Storage: ir.Shared, Size: b.Room.Size(), Alias: ir.NoMem})
			places = append(places, backend.At(b.Room))
		}
		n.Bindings = append(n.Bindings, ir.Binding{Slot: b.Slot, Kind: ir.BindView, View: ir.ViewOf(m, b.Offset, b.Size)})
	}
	slices.SortFunc(n.Bindings, func(a, b ir.Binding) int { return int(a.Slot) - int(b.Slot) })
	c, err := r.queue.CommandBuffer(ctx, backend.Recording{Scope: &backend.Scope{Graph: g, Places: places}})
	if err != nil {
		return err
	}
	if err := c.Encode(n); err != nil {
		c.Discard()
		return err
	}
	p, err := c.Commit(ctx, "", ir.OrderNone)
	if err == nil {
		err = p.Wait(ctx)
	}
	if err == nil {
		return nil
	}
	// The queue has failed and takes no more operations, so it is replaced.
	_ = r.queue.Close()
	q, again := r.device.NewQueue()
	if again == nil {
		r.queue = q
	}
	return &RanWrong{errors.Join(err, again)}
}
