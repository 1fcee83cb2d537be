package record

import (
	"fmt"
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
	return e.openWith(&d.scope)
}

// openWith begins a command buffer of a scope.
func (e *Encoder) openWith(scope *backend.Scope) bool {
	d := e.device
	d.reap()
	err := d.renew()
	var cb backend.CommandBuffer
	if err == nil {
		cb, err = d.queue.CommandBuffer(e.ctx, backend.Recording{Scope: scope, Profile: e.profile})
	}
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
	commands := e.commands
	e.commands = 0
	fresh := e.g.Nodes[max(e.checked, e.committed):]
	keep := e.records() || e.captured >= 0
	end := &ir.Commit{Order: ir.OrderEvent, Label: label}
	e.follow(end)
	e.note(end)
	if keep {
		e.g.Nodes = append(e.g.Nodes, end)
	}
	if e.live() {
		err := e.check(fresh)
		if err == nil {
			err = e.checkParams(e.g)
		}
		e.submit(err, commands, ir.OrderEvent, label)
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
// errors of the command buffers that failed. Commands that are not committed yet are
// not waited for; those of a [Deferred] recording are executed at Finish.
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
	e.checked = min(e.checked, e.committed)
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

// encode1 hands a command or barrier of the recording over, where it is executed as it comes.
func (e *Encoder) encode1(n ir.Node) {
	if !e.live() || e.err != nil {
		return
	}
	d := e.device
	err := e.locate(n)
	if err == nil {
		d.scope.Params = e.params
		err = d.open.Encode(n)
	}
	if err != nil {
		e.fail("%w", err)
	}
}

// locate gives the memories that n binds their places.
func (e *Encoder) locate(n ir.Node) error {
	switch n := n.(type) {
	case *ir.Dispatch:
		for i := range n.Bindings {
			if b := &n.Bindings[i]; b.Kind == ir.BindView {
				if err := e.locateMemory(b.View.Mem); err != nil {
					return err
				}
			}
		}
	case *ir.Copy:
		if err := e.locateMemory(n.Dst.Mem); err != nil {
			return err
		}
		return e.locateMemory(n.Src.Mem)
	case *ir.Fill:
		return e.locateMemory(n.Dst.Mem)
	}
	return nil
}

func (e *Encoder) locateMemory(m ir.MemID) error {
	root, _ := e.g.Root(m)
	d := e.device
	for int(root) >= len(d.scope.Places) {
		d.scope.Places = append(d.scope.Places, backend.Place{})
	}
	p := &e.places[root]
	if p.buffer == nil || p.bytes < e.g.Memories[root].Size {
		if err := e.ensure(root); err != nil {
			return err
		}
	}
	if d.scope.Places[root].Buffer != p.buffer {
		d.scope.Places[root] = backend.At(p.buffer)
	}
	return nil
}

// check reports what is wrong with commands that were not in the recording before.
func (e *Encoder) check(nodes []ir.Node) error {
	part := *e.g
	part.Nodes = make([]ir.Node, 0, len(nodes))
	commands := false
	for _, n := range nodes {
		switch n.(type) {
		case *ir.GroupBegin, *ir.GroupEnd, *ir.Commit: // groups may reach over commits
			continue
		case ir.Command:
			commands = true
		}
		part.Nodes = append(part.Nodes, n)
	}
	if !commands {
		return nil
	}
	return part.Check()
}

// bound fills in the places of what a deferred graph binds. g's memories are the encoder's, by
// number or, of an optimized graph, by name; others are in made, which lasts as long as the
// execution of g.
func (e *Encoder) bound(g *ir.Graph, nodes []ir.Node, places []backend.Place, made map[ir.MemID]backend.Buffer) (err error) {
	each := func(v *ir.View) {
		root, _ := g.Root(v.Mem)
		if err == nil {
			var b backend.Buffer
			b, err = e.bufferOf(g, root, made)
			places[root] = backend.At(b)
		}
	}
	for _, n := range nodes {
		if c, ok := n.(ir.Command); ok {
			c.EachView(each)
		}
	}
	return err
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
	b, err := backend.AllocMemory(e.ctx, e.on, e.device.queue, m) // a memory of the passes
	if err != nil {
		return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
	}
	made[root] = b
	if m.Kind == ir.Argument {
		data := make([]byte, m.Size)
		m.WriteValues(data, e.params)
		if err := e.store(backend.At(b), data); err != nil {
			return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
		}
	}
	return b, nil
}

// submit hands the open command buffer over, unless there is an error.
func (e *Encoder) submit(err error, commands int, order ir.CommitOrder, label string) {
	d := e.device
	if e.err != nil || d.open == nil {
		return
	}
	var p backend.Pending
	if err != nil {
		d.open.Discard()
	} else {
		p, err = d.open.Commit(e.ctx, label, order)
	}
	if err != nil {
		d.abandon()
		e.counters.add(failedBuffers, 1)
		e.fail("command buffer %q: %w", label, err)
		return
	}
	d.open = nil
	for _, g := range d.grown {
		d.given = append(d.given, given{g.from, d.serial, 0})
	}
	d.grown = nil
	s := &submitted{serial: d.serial, label: label, commands: commands, buffer: p}
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
