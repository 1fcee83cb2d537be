package record

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Capturing reports whether commands that are given now become part of a captured graph.
func (e *Encoder) Capturing() bool {
	return !e.live() || e.keep || e.captured >= 0
}

// StartCapture keeps what a live encoder executes from now on, for [Encoder.TakeCapture] or
// [Result.Graph]. Earlier commands are not part of the graph, so scratch memory that they
// wrote is undefined in it. It is a mistake to call StartCapture inside a group.
func (e *Encoder) StartCapture() {
	switch {
	case e.err != nil:
	case e.Capturing():
		e.fail("StartCapture: the encoder is capturing already")
	case e.depth > 0:
		e.fail("StartCapture: %d groups are open: call EndGroup for each before a capture begins", e.depth)
	default:
		e.taint()
		e.captured = len(e.g.Nodes)
	}
}

// TakeCapture ends a capture that StartCapture began, and returns it as a graph. If the
// encoder has the setting [Capture], it returns the recording so far, which goes on. If the
// encoder is not live, it returns the recording so far and begins a new one: Finish does
// not return that part again and, if it was [Deferred], does not execute it.
func (e *Encoder) TakeCapture() (*ir.Graph, error) {
	if e.err == nil && !e.Capturing() {
		e.fail("TakeCapture: the encoder is not capturing: call StartCapture before, or use the setting Capture")
	}
	if e.ended("TakeCapture") != nil {
		return nil, e.err
	}
	g, _, err := e.recorded(max(e.captured, 0))
	if err != nil {
		return nil, err
	}
	e.captured = -1
	if !e.live() {
		e.restart()
	}
	return g, nil
}

// recorded returns a graph of the nodes from index `from` on, and warnings about it.
func (e *Encoder) recorded(from int) (g *ir.Graph, warnings []string, err error) {
	g = &ir.Graph{
		Name: e.g.Name, Params: slices.Clone(e.g.Params), Constraints: slices.Clone(e.g.Constraints),
		Memories: slices.Clone(e.g.Memories), Kernels: slices.Clone(e.g.Kernels), Nodes: slices.Clone(e.g.Nodes[from:]), Ordering: e.g.Ordering,
	}
	if err = g.CheckContext(e.ctx); err == nil {
		warnings, err = e.undefined(g)
		if err != nil && e.live() { // it was executed already, so a warning is all that helps
			warnings, err = append(warnings, err.Error()), nil
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("record %s: %w", ir.QuoteName(e.g.Name), err)
	}
	return g, warnings, nil
}

// restart forgets the recording, but not what was declared.
func (e *Encoder) restart() {
	e.stream.restart()
	e.arena.reset(0)
	e.building.open, e.err = false, e.dead
	if e.device != nil {
		e.device.recording++
	}
}

// Encode records the commands of a graph, with new IDs. Params and memories of the graph
// become those of the encoder with the same names, which are declared if they are missing.
// Scratch memory of the graph is kept apart from the encoder's by a name that begins with
// the graph's. Barriers stand where the graph has them, and where a command conflicts with
// an earlier one.
func (e *Encoder) Encode(g *ir.Graph) { e.encode(g, true) }

// EncodeRecomputed is [Encoder.Encode] without the graph's own barriers, so that barriers
// stand only where commands conflict.
func (e *Encoder) EncodeRecomputed(g *ir.Graph) { e.encode(g, false) }

func (e *Encoder) encode(g *ir.Graph, barriers bool) {
	if e.err != nil || e.ended("Encode") != nil {
		return
	}
	if g == nil {
		e.fail("Encode of no graph")
		return
	}
	if err := g.Check(); err != nil {
		e.fail("Encode: %w", err)
		return
	}
	barriers = barriers && g.Ordering == ir.ByBarriers
	if !barriers {
		// The barriers are found from conflicts, even with the setting ManualBarriers. This
		// is right for every ordering, because the list of nodes is always a valid order.
		defer func(manual bool) { e.manual = manual }(e.manual)
		e.manual = false
	}
	t, err := e.translation(g)
	if err != nil {
		e.fail("Encode %s: %w", ir.QuoteName(g.Name), err)
		return
	}
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			if barriers {
				e.Barrier()
			}
		case *ir.Commit:
			e.Commit(n.Label)
		case *ir.GroupBegin:
			e.Group(n.Label)
		case *ir.GroupEnd:
			e.EndGroup()
		case *ir.Join: // edges are replaced by the barriers that conflicts need
		case ir.Command:
			e.encodeCommand(t.command(n, e.next))
		}
	}
}

func (e *Encoder) encodeCommand(n ir.Command) {
	e.diverge()
	e.ready()
	if e.err != nil {
		return
	}
	if e.device != nil {
		n.EachView(func(v *ir.View) { e.device.touch(v.Mem) })
	}
	if !e.begin(e.touches(n), e.nameOf(n)) {
		return
	}
	e.ok(e.add(n))
	if _, ok := n.(*ir.Dispatch); ok {
		e.counters.add(dispatches, 1)
	}
}
