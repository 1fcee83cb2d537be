package record

import "github.com/mlxc/mlxc/ir"

// Commit ends the command buffer and, on a device, submits it without waiting for it.
// Everything before it is ordered before everything after it. If there was no command
// since the last Commit, it does nothing. label names the command buffer in errors and
// results.
//
// Call Finish from time to time even if the engine only needs commits: the lists of
// conflicts and of command buffers grow until Finish.
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

// ended reports a dispatch that was begun and not ended as a mistake, and returns the first
// mistake of the recording. before names the call that came too early.
func (e *Encoder) ended(before string) error {
	if e.building.open {
		e.building.fail("was begun and not ended (Threads, Threadgroups) before %s", before)
		e.building.open = false
	}
	return e.err
}

// CommitAndWait is [Encoder.Commit] followed by [Encoder.Wait]. The encoder must be [Live].
func (e *Encoder) CommitAndWait(label string) error {
	if e.err == nil && !e.live() {
		e.fail("CommitAndWait: %s", e.whyNot())
	}
	e.Commit(label)
	return e.Wait()
}

// Wait waits until everything that was committed has ended, and returns the errors of the
// command buffers that failed. It does not wait for commands that are not committed yet,
// such as those of a [Deferred] recording before Finish.
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
	return "nothing is executed here, because the recording is only captured"
}

// Discard abandons the commands since the last Commit, and the groups that they opened or
// closed, as if they had never been given. Declarations, allocations from the arena and
// from pools, and counters stay as they are.
func (e *Encoder) Discard() {
	e.building.open = false
	e.discard()
	if e.device != nil {
		e.device.discard()
	}
}

// check returns what is wrong with nodes that are new in the recording. The rest of it was
// checked when it was recorded.
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
