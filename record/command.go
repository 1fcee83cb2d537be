package record

import "github.com/mlxc/mlxc/ir"

// openBuffer begins a command buffer unless one is open.
func (e *Encoder) openBuffer() bool {
	return e.device.open != nil || e.ok(e.device.beginBuffer(e.ctx, &e.device.scope))
}

// begin prepares for the next command, which touches fx: it opens a command buffer if
// needed, and has [stream.admit] place a barrier. It returns false after a mistake.
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

// command records a copy, fill or carry.
func (e *Encoder) command(n ir.Command) {
	e.diverge()
	if e.begin(n.Touches(), e.nameOf(n)) {
		e.ok(e.add(n))
	}
}

// Barrier orders all commands before it in the command buffer before all commands after
// it, whether or not any of them conflict. At the beginning of a command buffer it does
// nothing and is not counted, because there is nothing to order.
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

// TrackerSize returns the number of commands since the last barrier or commit. The next
// command is compared with these to find conflicts.
func (e *Encoder) TrackerSize() int { return e.group }
