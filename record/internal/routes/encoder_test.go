package routes

import (
	"testing"

	"github.com/mlxc/mlxc/ir"
)

// A barrier stands before a dispatch that reads or writes what was written since the last barrier, or writes what was
// read since. Captures have no write after a read alone, as MLX holds what was read.
func TestBarriers(t *testing.T) {
	four := func(name string) Array { return operandOf(name, ir.F32, ir.Const(4)) }
	a, b, c := four("a"), four("b"), four("c")
	e := &Encoder{}
	for _, d := range []struct {
		from, to Array
		barrier  bool
	}{
		{a, b, false},
		{a, c, false}, // reads again
		{b, a, true},  // reads what was written
		{c, b, true},  // writes what was read
		{c, b, true},  // writes what was written
	} {
		e.copy(copyVector, d.from, d.to, nil, nil, nil)
		if got := e.Sent[len(e.Sent)-1].Barrier; got != d.barrier {
			t.Errorf("%s to %s: a barrier is %t", d.from.Buffer.Name, d.to.Buffer.Name, got)
		}
	}
}

// A command buffer ends between operations, after as many dispatches as the chip takes, and hazards end with it.
func TestCommandBuffers(t *testing.T) {
	e := &Encoder{Chip: Chip{Generation: 16, Letter: 'p'}}
	x := operandOf("x", ir.F32, ir.Const(4))
	for range 50 {
		x = e.Elementwise("abs", x)
	}
	for i, d := range e.Sent {
		if commit := i == 21 || i == 42; d.Commit != commit || d.Barrier != (i > 0 && !commit) {
			t.Errorf("dispatch %d: commit %t, barrier %t", i, d.Commit, d.Barrier)
		}
	}
}
