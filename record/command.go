package record

import "github.com/mlxc/mlxc/ir"

// openBuffer begins a command buffer, for the first command of one.
func (e *Encoder) openBuffer() bool {
	return e.device.open != nil || e.ok(e.device.beginBuffer(e.ctx, &e.device.scope))
}

// begin makes room for the next command, which touches fx: a command buffer, and what
// [stream.admit] does.
func (e *Encoder) begin(fx *ir.Effects, name string) bool {
	if e.aborted() {
		return false
	}
	if e.building.open {
		e.building.fail("was begun and not ended (Threads, Threadgroups)")
		return false
	}
	if e.commands == 0 && e.live() && !e.openBuffer() {
		return false
	}
	return e.ok(e.admit(fx, name))
}

// command adds a copy, fill or carry.
func (e *Encoder) command(n ir.Command) {
	e.diverge()
	if e.begin(n.Touches(), e.nameOf(n)) {
		e.ok(e.add(n))
	}
}

// Barrier orders all commands before it in the command buffer before all after
// it, whether or not any two of them conflict. At the beginning of a command
// buffer there is nothing to order: it does nothing, and is not counted.
func (e *Encoder) Barrier() {
	if e.err != nil {
		return
	}
	if e.building.open {
		e.building.fail("was begun and not ended (Threads, Threadgroups) before a barrier")
		return
	}
	if e.commands > 0 {
		e.follow(theBarrier)
		e.ok(e.barrier())
	}
}

// TrackerSize returns the number of commands that the next one is compared with.
func (e *Encoder) TrackerSize() int { return e.group }
