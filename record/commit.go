package record

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// openBuffer begins a command buffer, for the first command of one.
func (e *Encoder) openBuffer() bool {
	d := e.device
	if d.open != nil {
		return true
	}
	cb, err := d.queue.CommandBuffer(e.g.Name)
	if err != nil {
		e.fail("%w", err)
		return false
	}
	if d.begin.IsZero() {
		d.begin = time.Now()
	}
	d.open = cb
	d.serial++
	e.counters.add(commandBuffers, 1)
	return true
}

// Commit ends the command buffer and, on a device, submits it; it does not wait.
// Everything before it is ordered before everything after it. Without a command
// since the last Commit it does nothing.
func (e *Encoder) Commit(label string) {
	if e.err != nil || e.ended("Commit") != nil {
		return
	}
	if e.commands == 0 {
		return
	}
	e.endGroup()
	e.commands = 0
	nodes := e.g.Nodes[e.committed:]
	keep := e.records() || e.captured >= 0
	if keep {
		e.g.Nodes = append(e.g.Nodes, &ir.Commit{Order: ir.OrderEvent, Label: label})
	}
	if e.live() {
		e.submit(e.g, nodes, e.buffers(e.g, 0), ir.OrderEvent, label)
	}
	if !keep {
		e.g.Nodes = nil
	}
	e.committed = len(e.g.Nodes)
	e.safe = e.stats.clone()
	e.safeFound = len(e.found)
}

// ended reports a dispatch that was begun and not ended.
func (e *Encoder) ended(before string) error {
	if e.building.open {
		e.building.fail("was begun and not ended (Threads, Threadgroups) before %s", before)
		e.building.open = false
	}
	return e.err
}

// CommitAndWait commits, and waits until everything that was committed has
// ended.
func (e *Encoder) CommitAndWait(label string) error {
	if e.err == nil && !e.live() {
		e.fail("CommitAndWait: %s", e.whyNot())
	}
	e.Commit(label)
	return e.Wait()
}

// Wait waits until everything that was committed has ended, and returns the
// errors of the command buffers that failed. Commands that are not committed yet
// stay so.
func (e *Encoder) Wait() error {
	if e.err == nil && !e.live() {
		e.fail("Wait: %s", e.whyNot())
	}
	if e.err != nil {
		return e.err
	}
	e.counters.add(syncs, 1)
	if err := e.device.wait(e.device.serial); err != nil {
		e.fail("%w", err)
	}
	return e.err
}

func (e *Encoder) whyNot() string {
	if e.deferred {
		return "nothing is executed before Finish"
	}
	return "nothing is executed here, the recording is captured only"
}

// Discard abandons the commands since the last Commit: it is as if they had not
// been given.
func (e *Encoder) Discard() {
	e.building.open = false
	e.g.Nodes = e.g.Nodes[:e.committed]
	e.captured = min(e.captured, e.committed)
	e.group, e.commands = 0, 0
	e.stats, e.found = e.safe.clone(), e.found[:e.safeFound]
	if e.tracker != nil {
		e.tracker.Reset()
	}
	if e.device != nil && e.device.open != nil {
		e.device.open.Discard()
		e.device.abandon()
		e.counters.add(discardedBuffers, 1)
	}
}

// buffers allocates what g declares, and returns the buffers by memory. g's
// memories are the encoder's, by number or, of an optimized graph, by name; that
// one uses them until the command buffer of the given serial ends.
func (e *Encoder) buffers(g *ir.Graph, until uint64) []backend.Buffer {
	out := make([]backend.Buffer, len(g.Memories))
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem {
			continue
		}
		id, ok := ir.MemID(i), true
		if g != e.g {
			id, ok = e.names[m.Name]
			ok = ok && e.g.Memories[id].Kind == m.Kind && e.g.Memories[id].Size >= m.Size && m.Kind != ir.Argument
		}
		var err error
		if ok {
			if err = e.ensure(id); err == nil {
				out[i] = e.places[id].buffer
				e.places[id].used = max(e.places[id].used, until)
			}
		} else if out[i], err = backend.AllocMemory(e.on, m); err == nil {
			// A memory of the passes: it lives as long as this execution.
			m.WriteValues(out[i].Bytes(), e.params)
			e.device.given = append(e.device.given, given{out[i], until})
		} else {
			err = fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
		}
		if err != nil {
			e.fail("%w", err)
			return nil
		}
	}
	return out
}

// submit hands commands of g over as the open command buffer.
func (e *Encoder) submit(g *ir.Graph, nodes []ir.Node, buffers []backend.Buffer, order ir.CommitOrder, label string) {
	d := e.device
	cb := d.open
	part := *g
	part.Memories, part.Nodes = slices.Clone(g.Memories), make([]ir.Node, 0, len(nodes))
	for _, n := range nodes {
		switch n.(type) {
		case *ir.GroupBegin, *ir.GroupEnd: // groups may reach over commits
		default:
			part.Nodes = append(part.Nodes, n)
		}
	}
	err := e.err
	if err == nil {
		err = part.Check()
	}
	if err == nil {
		err = e.checkParams(g)
	}
	if err != nil {
		cb.Discard()
	} else {
		err = cb.Commit(context.Background(), backend.Submission{
			Program: &backend.Program{Graph: &part, Buffers: buffers, Profile: e.profile}, Params: e.params, Order: order,
		})
	}
	if err != nil {
		d.abandon()
		e.counters.add(failedBuffers, 1)
		e.fail("command buffer %q: %w", label, err)
		return
	}
	d.open = nil
	s := &submitted{serial: d.serial, label: label, commands: len(part.Nodes), buffer: cb}
	d.flight, d.pending = append(d.flight, s), append(d.pending, s)
	d.last = time.Now()
	d.reap()
}

func (e *Encoder) checkParams(g *ir.Graph) error {
	for i, p := range g.Params {
		if !e.set[i] {
			return fmt.Errorf("param $%s has no value: SetParam before the recording (it is a %s in [%v, %v])", ir.QuoteName(p.Name), p.Type, p.Min, p.Max)
		}
	}
	for _, c := range g.Constraints {
		if v := c.LHS.Eval(e.params); v > c.Max {
			return fmt.Errorf("params break %s <= %d: it is %d", g.FormatAffine(c.LHS), c.Max, v)
		}
	}
	return nil
}
