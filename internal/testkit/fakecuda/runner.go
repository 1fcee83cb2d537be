//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// runner runs dispatches on software Metal, each as a command buffer.
type runner struct {
	device *softmetal.Device
	mu     sync.Mutex
	queue  backend.Queue
	// none is what kernels have for no memory: they may be given it, and may not touch it.
	none backend.Buffer
}

func newRunner(d *softmetal.Device) (r *runner, err error) {
	r = &runner{device: d}
	if r.queue, err = d.NewQueue(); err == nil {
		r.none, err = d.Alloc(backend.BufferSpec{Size: page})
	}
	return r, err
}

func (r *runner) close() {
	_ = r.queue.Close() // its error was that of a kernel
	_ = r.none.Close()
}

// compile has a kernel compiled now, and not when it first runs.
func (r *runner) compile(c *code) error {
	const room = 1 << 20
	g := &ir.Graph{Name: "module", Kernels: []ir.Kernel{c.kernel}, Memories: []ir.Memory{{Name: "m", Kind: ir.Scratch, Size: room, Alias: ir.NoMem}}}
	n := &ir.Dispatch{Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}}
	for i := range c.Input.Kernel.Args {
		if a := &c.Input.Kernel.Args[i]; a.Attribute == "" && a.Space != air.Threadgroup {
			n.Bindings = append(n.Bindings, ir.Binding{Slot: uint8(a.Index), Kind: ir.BindView, View: ir.ViewOf(0, 0, room)})
		}
	}
	g.Nodes = []ir.Node{n}
	e, err := r.device.Compile(context.Background(), &backend.Program{Graph: g})
	if err != nil {
		return err
	}
	return e.Close()
}

// bound is memory that a dispatch has at a slot.
type bound struct {
	slot uint8
	room backend.Buffer
	off  int64
}

// dispatch runs one: threads of the grid and of a threadgroup, memory, and bytes of threadgroup memory by
// slot, and constants by value. It returns a result of the driver's, and what was wrong.
func (r *runner) dispatch(c *code, grid, group [3]uint32, memory []bound, shared []ir.ThreadgroupMemory, values []ir.Binding) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := &ir.Dispatch{GridKind: ir.Threads, Threadgroup: group, ThreadgroupMemory: shared, Bindings: slices.Clone(values)}
	for i := range grid {
		n.Grid[i] = ir.Ext(int64(grid[i]))
	}
	g := &ir.Graph{Name: "launch", Kernels: []ir.Kernel{c.kernel}, Ordering: ir.Serial}
	var places []backend.Place
	known := map[backend.Buffer]ir.MemID{}
	for _, b := range memory {
		m, ok := known[b.room]
		if !ok {
			m = ir.MemID(len(g.Memories))
			known[b.room] = m
			g.Memories = append(g.Memories, ir.Memory{Name: "m", Kind: ir.State, Storage: ir.Shared, Size: b.room.Size(), Alias: ir.NoMem})
			places = append(places, backend.At(b.room))
		}
		n.Bindings = append(n.Bindings, ir.Binding{Slot: b.slot, Kind: ir.BindView, View: ir.ViewOf(m, b.off, b.room.Size()-b.off)})
	}
	slices.SortFunc(n.Bindings, func(a, b ir.Binding) int { return int(a.Slot) - int(b.Slot) })
	err := r.execute(&backend.Scope{Graph: g, Places: places}, n)
	switch {
	case err == nil:
		return success, nil
	case strings.Contains(err.Error(), "no multiple of"):
		return misaligned, err
	case strings.Contains(err.Error(), "memory that is not its own"):
		return illegalAddress, err
	}
	return launchFailed, err
}

func (r *runner) execute(s *backend.Scope, n *ir.Dispatch) error {
	ctx := context.Background()
	c, err := r.queue.CommandBuffer(ctx, backend.Recording{Scope: s})
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
	// A queue that has failed takes nothing more.
	_ = r.queue.Close()
	q, again := r.device.NewQueue()
	if again == nil {
		r.queue = q
	}
	return errors.Join(err, again)
}
