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
	cb, err := d.queue.CommandBuffer()
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
// since the last Commit it does nothing. What a recording knows of itself, its
// conflicts and command buffers, grows until Finish, also in an engine that lives
// on commits alone.
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
	end := &ir.Commit{Order: ir.OrderEvent, Label: label}
	e.follow(end)
	e.note(end)
	if keep {
		e.g.Nodes = append(e.g.Nodes, end)
	}
	if e.live() {
		e.submit(e.g, nodes, nil, ir.OrderEvent, label)
	}
	if !keep {
		e.emptyNodes()
	}
	e.committed = len(e.g.Nodes)
	e.safe = e.stats.clone()
	e.safeFound, e.safeDepth = e.found.n, e.depth
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
// stay so. those of a [Deferred] recording until Finish.
func (e *Encoder) Wait() error {
	if e.err == nil && !e.live() && !(e.deferred && e.device.serial > 0) {
		e.fail("Wait: %s", e.whyNot())
	}
	if e.err != nil {
		return e.err
	}
	e.counters.add(syncs, 1)
	if err := e.device.wait(); err != nil {
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

// Discard abandons the commands since the last Commit, and their groups: it is as
// if they had not been given. What was declared, taken from the arena or a pool,
// and counted stays.
func (e *Encoder) Discard() {
	e.building.open = false
	e.taint()
	e.g.Nodes = e.g.Nodes[:e.committed]
	e.captured = min(e.captured, e.committed)
	e.group, e.commands, e.depth = 0, 0, e.safeDepth
	e.stats, e.found.n = e.safe.clone(), e.safeFound
	if e.tracker != nil {
		e.tracker.Reset()
	}
	if e.device != nil && e.device.open != nil {
		e.device.open.Discard()
		e.device.abandon()
		e.counters.add(discardedBuffers, 1)
	}
}

// bound returns buffers for what nodes of g bind, by memory. g's memories are the
// encoder's, by number or, of an optimized graph, by name; others are in made,
// which lasts as long as the execution of g.
func (e *Encoder) bound(g *ir.Graph, nodes []ir.Node, made map[ir.MemID]backend.Buffer) ([]backend.Buffer, error) {
	out := make([]backend.Buffer, len(g.Memories))
	var err error
	each := func(v *ir.View) {
		root, _ := g.Root(v.Mem)
		if out[root] == nil && err == nil {
			out[root], err = e.bufferOf(g, root, made)
		}
	}
	for _, n := range nodes {
		if c, ok := n.(ir.Command); ok {
			c.EachView(each)
		}
	}
	return out, err
}

func (e *Encoder) bufferOf(g *ir.Graph, root ir.MemID, made map[ir.MemID]backend.Buffer) (backend.Buffer, error) {
	m := &g.Memories[root]
	id, ok := root, true
	if g != e.g {
		id, ok = e.names[m.Name]
		ok = ok && e.g.Memories[id].Kind == m.Kind && e.g.Memories[id].Size >= m.Size && m.Kind != ir.Argument
	}
	if ok {
		e.device.use(&e.places[id])
		err := e.ensure(id)
		return e.places[id].buffer, err
	}
	if b := made[root]; b != nil {
		return b, nil
	}
	b, err := backend.AllocMemory(e.on, m) // a memory of the passes
	if err != nil {
		return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
	}
	if m.Kind == ir.Argument {
		m.WriteValues(b.Bytes(), e.params)
	}
	made[root] = b
	return b, nil
}

// submit hands commands of g over as the open command buffer.
func (e *Encoder) submit(g *ir.Graph, nodes []ir.Node, made map[ir.MemID]backend.Buffer, order ir.CommitOrder, label string) {
	if e.err != nil {
		return
	}
	d := e.device
	cb := d.open
	part := *g
	part.Memories, part.Nodes = slices.Clone(g.Memories), make([]ir.Node, 0, len(nodes))
	commands := 0
	for _, n := range nodes {
		switch n.(type) {
		case *ir.GroupBegin, *ir.GroupEnd: // groups may reach over commits
			continue
		case *ir.Barrier:
		default:
			commands++
		}
		part.Nodes = append(part.Nodes, n)
	}
	err := part.Check()
	if err == nil {
		err = e.checkParams(g)
	}
	var buffers []backend.Buffer
	if err == nil {
		buffers, err = e.bound(g, part.Nodes, made)
	}
	if err != nil {
		cb.Discard()
	} else {
		err = cb.Commit(context.Background(), backend.Submission{
			Label: label, Program: &backend.Program{Graph: &part, Buffers: buffers, Profile: e.profile}, Params: e.params, Order: order,
		})
	}
	if err != nil {
		d.abandon()
		e.counters.add(failedBuffers, 1)
		e.fail("command buffer %q: %w", label, err)
		return
	}
	d.open = nil
	s := &submitted{serial: d.serial, label: label, commands: commands, buffer: cb}
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
