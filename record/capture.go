package record

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Capturing reports whether what is given now is kept.
func (e *Encoder) Capturing() bool {
	return !e.live() || e.keep || e.captured >= 0
}

// StartCapture keeps what a live encoder executes from now on, for
// [Encoder.TakeCapture] or [Result.Graph]. What was given before is not part of the
// graph: bytes of scratch that it wrote are undefined there. Not inside a group.
func (e *Encoder) StartCapture() {
	switch {
	case e.err != nil:
	case e.Capturing():
		e.fail("StartCapture: it is capturing already")
	case e.depth > 0:
		e.fail("StartCapture: %d groups are open: a capture begins outside of them", e.depth)
	default:
		e.taint()
		e.captured = len(e.g.Nodes)
	}
}

// TakeCapture ends the capture and returns it. Of an encoder with [Capture] it
// returns what there is of the recording, which goes on. Of one that is not live it
// takes the whole recording away: Finish has nothing left of it, and what was
// [Deferred] is not executed.
func (e *Encoder) TakeCapture() (*ir.Graph, error) {
	if e.err == nil && !e.Capturing() {
		e.fail("TakeCapture: it is not capturing: StartCapture, or the setting Capture")
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

// recorded returns the graph of the nodes from index from on.
func (e *Encoder) recorded(from int) (g *ir.Graph, warnings []string, err error) {
	g = &ir.Graph{
		Name: e.g.Name, Params: slices.Clone(e.g.Params), Constraints: slices.Clone(e.g.Constraints),
		Memories: slices.Clone(e.g.Memories), Kernels: slices.Clone(e.g.Kernels), Nodes: slices.Clone(e.g.Nodes[from:]), Ordering: e.g.Ordering,
	}
	if err = g.CheckContext(e.ctx); err == nil {
		warnings, err = e.undefined(g)
		if err != nil && e.live() { // it was executed already: a warning is all that is left
			warnings, err = append(warnings, err.Error()), nil
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("record %s: %w", ir.QuoteName(e.g.Name), err)
	}
	return g, warnings, nil
}

// restart forgets the recording; what was declared stays.
func (e *Encoder) restart() {
	e.stream.restart()
	e.arena.reset(0)
	e.building.open, e.err = false, e.dead
	if e.device != nil {
		e.device.recording++
	}
}

// Encode adds the commands of a graph, under new IDs. Its params, and its
// memories but for scratch, are those of the encoder of the same names, declared
// if need be; its scratch is its own. Barriers stand where the graph has them,
// and where a command conflicts with something before it.
func (e *Encoder) Encode(g *ir.Graph) { e.encode(g, true) }

// EncodeRecomputed is [Encoder.Encode] without the graph's own barriers: one
// stands only where there is a conflict.
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
	barriers = barriers && g.Ordering == ir.ByBarriers // of the others the list is an order
	if !barriers {                                     // theirs are recomputed whoever places the others
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
		case *ir.Join: // edges are not taken along: conflicts are found anew
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
