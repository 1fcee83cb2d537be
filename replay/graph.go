package replay

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Graph is a planned graph of an instance. Besides the methods below it has those of its first
// frame.
type Graph struct {
	*Frame
	instance *Instance
	graph    *ir.Graph
	exec     backend.Executable
	frames   []*Frame // all frames, including the first
	stateful bool     // it has states
	buffers  int      // command buffers of a replay
}

// IR returns the graph that is replayed: the module's, or what the passes that the
// device wants have made of it. It must not be changed.
func (g *Graph) IR() *ir.Graph { return g.graph }

// Size returns the bytes of a memory of the given kind; ok is false if there is none.
func (g *Graph) Size(name string, kind ir.MemKind) (bytes int64, ok bool) {
	i, ok := g.graph.MemoryNamed(name)
	if !ok || g.graph.Memories[i].Kind != kind {
		return 0, false
	}
	return g.graph.Memories[i].Size, true
}

// NewFrame returns another slot for runs of the graph, so that one more can be in flight.
// Its inputs are zeros. Scratch is shared by the frames of a graph.
func (g *Graph) NewFrame(ctx context.Context) (*Frame, error) {
	if err := g.instance.errClosed(); err != nil {
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(g.graph.Name), err)
	}
	f, err := g.newFrame(ctx, 1)
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(g.graph.Name), err)
	}
	return f, nil
}

func (g *Graph) newFrame(ctx context.Context, replays int) (*Frame, error) {
	spec := backend.FrameSpec{Replays: replays}
	if len(g.frames) > 0 && replaysInOrder(g.graph) {
		spec.Places = make([]backend.Place, len(g.graph.Memories))
		for i := range g.graph.Memories {
			if m := &g.graph.Memories[i]; m.Kind == ir.Scratch && m.Alias == ir.NoMem {
				spec.Places[i] = g.frames[0].frame.Place(ir.MemID(i))
			}
		}
	}
	slot, err := g.exec.NewFrame(spec)
	if err != nil {
		return nil, err
	}
	f := &Frame{g: g, frame: slot, burst: replays, replays: 1, states: g.instance.states, params: make([]uint32, len(g.graph.Params)), given: make([]bool, len(g.graph.Params))}
	for i, q := range g.graph.Params {
		if q.Min == q.Max {
			f.params[i], f.given[i] = bitsOf(q, q.Min), true
		}
	}
	g.frames = append(g.frames, f)
	return f, f.clear()
}

// replaysInOrder reports whether all commands of a replay end before any of the next begins, so that both may use
// the same scratch. A barrier or ordered commit at the end of the list ensures that, and without one the queue
// begins a replay after the previous one has ended. In a graph ordered by edges, edges from the previous replay order
// only some commands, perhaps not those that use scratch.
func replaysInOrder(g *ir.Graph) bool { return g.Ordering != ir.ByEdges || g.NextHost }

func (g *Graph) close() error {
	var errs []error
	for i := len(g.frames) - 1; i >= 0; i-- { // the first holds the memory that all frames share
		errs = append(errs, g.frames[i].frame.Close())
	}
	if g.exec != nil {
		errs = append(errs, g.exec.Close())
	}
	g.frames, g.exec = nil, nil
	return errors.Join(errs...)
}

// checkOverlap returns an error if two memories share bytes and one is written: a graph's
// meaning requires that its root memories are disjoint.
func (g *Graph) checkOverlap(weights []backend.Place) error {
	type bytes struct {
		space   int // 0: host addresses; otherwise the number of a buffer that the host cannot see
		lo, end uintptr
		mem     int
	}
	var list []bytes
	spaces := map[backend.Buffer]int{}
	for i := range g.graph.Memories {
		m := &g.graph.Memories[i]
		p := weights[i]
		switch {
		case m.Alias != ir.NoMem:
			continue
		case m.Kind == ir.State:
			p = backend.At(g.instance.states.buffers[m.Name])
		case m.Kind != ir.Weight:
			p = g.frame.Place(ir.MemID(i))
		}
		if p.Buffer == nil {
			continue
		}
		if data := p.Bytes(m.Size); data != nil {
			lo := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
			list = append(list, bytes{0, lo, lo + uintptr(m.Size), i})
			continue
		}
		if spaces[p.Buffer] == 0 {
			spaces[p.Buffer] = len(spaces) + 1
		}
		list = append(list, bytes{spaces[p.Buffer], uintptr(p.Offset), uintptr(p.Offset + m.Size), i})
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].space != list[j].space {
			return list[i].space < list[j].space
		}
		return list[i].lo < list[j].lo
	})
	reach := bytes{mem: -1} // the memory that reaches furthest so far
	writable := bytes{mem: -1}
	for _, s := range list {
		m := &g.graph.Memories[s.mem]
		for _, prev := range []bytes{reach, writable} {
			if prev.mem < 0 || prev.space != s.space || prev.end <= s.lo {
				continue
			}
			q := &g.graph.Memories[prev.mem]
			if !m.Kind.ReadOnly() || !q.Kind.ReadOnly() {
				return fmt.Errorf("memories %%%s and %%%s overlap on the device: give each its own buffer, or make one an alias", ir.QuoteName(q.Name), ir.QuoteName(m.Name))
			}
		}
		if s.end > reach.end || s.space != reach.space {
			reach = s
		}
		if !m.Kind.ReadOnly() && (s.end > writable.end || s.space != writable.space) {
			writable = s
		}
	}
	return nil
}

// listed formats the existing names for an error message.
func listed(names []string) string {
	if len(names) == 0 {
		return " (it has none)"
	}
	return " (it has " + strings.Join(names, ", ") + ")"
}
