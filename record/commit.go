package record

import "github.com/mlxc/mlxc/ir"

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
	e.mark(end)
	if e.live() {
		err := e.check(fresh)
		if err == nil {
			err = e.values.check(e.g)
		}
		e.ok(e.device.submit(e.ctx, err, commands, ir.OrderEvent, label))
	}
	if !keep {
		e.empty()
	}
	e.commit()
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
	e.discard()
	if e.device != nil {
		e.device.discard()
	}
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
