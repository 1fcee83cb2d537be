package record

import (
	"bytes"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
)

// repeating recognizes a recording that repeats the previous one, as an engine does for
// every token. A dispatch that equals the one at the same place of the previous recording
// reuses that one's node and its barrier decision. This is done only in live recordings
// that are not captured, because there the nodes never leave the encoder; whoever is given
// a graph may change its nodes.
type repeating struct {
	before  []ir.Node   // the nodes of the previous recording
	reasons conflictLog // the conflicts that placed its automatic barriers
	list    []ir.Node   // the nodes of this recording
	same    bool        // this recording equals the previous one so far
	reason  int         // the index in reasons of the next automatic barrier
	unseen  bool        // the tracker was not told of the commands of the open group
	tainted bool        // the next recording must not be compared with this one
}

// repeats reports whether a recording with these settings is compared with the previous one.
func (s *stream) repeats() bool {
	return invariants.Caches && s.live() && !s.keep && !s.manual && !s.inOrder && !s.clock
}

// again records the node of the previous recording in place of d, if the two are equal. ok
// is false if they are not, and then nothing was recorded.
func (d *Dispatch) again(kind ir.GridKind, grid *[3]ir.Extent, group [3]uint32) (id ir.ID, ok bool) {
	e := d.e
	at := len(e.list)
	automatic := e.barrierNext()
	if automatic {
		at++
	}
	if at >= len(e.before) {
		return 0, false
	}
	n, ok := e.before[at].(*ir.Dispatch)
	if !ok || n.ID != e.next || n.Kernel != d.kernel || n.GridKind != kind || n.Threadgroup != group || n.Effects != nil || n.Op != d.op || n.Label != d.label ||
		len(n.ThreadgroupMemory) != len(d.memory) || !sameBindings(n.Bindings, d.args) {
		return 0, false
	}
	for i := range grid {
		if !n.Grid[i].Equal(grid[i]) {
			return 0, false
		}
	}
	for i := range d.memory {
		if n.ThreadgroupMemory[i] != d.memory[i] {
			return 0, false
		}
	}
	if e.aborted() || e.commands == 0 && !e.openBuffer() {
		return 0, true
	}
	if automatic {
		e.reason++
		e.found.n = e.reason // found shares the blocks of reasons while the recordings are equal
		e.ok(e.barrier())
		e.counters.add(autoBarriers, 1)
	} else {
		e.counters.add(elidedBarriers, 1)
	}
	e.unseen = true
	e.ok(e.add(n))
	e.checked = len(e.g.Nodes)
	e.counters.add(dispatches, 1)
	return n.ID, true
}

// barrierNext reports whether the previous recording has an automatic barrier before the
// command at the next place.
func (s *stream) barrierNext() bool {
	return s.reason < s.reasons.n && s.reasons.at(s.reason).later == s.next
}

func sameBindings(a, b []ir.Binding) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Slot != y.Slot || x.Kind != y.Kind {
			return false
		}
		switch x.Kind {
		case ir.BindView:
			if !x.View.Equal(y.View) {
				return false
			}
		case ir.BindBytes:
			if !bytes.Equal(x.Bytes, y.Bytes) {
				return false
			}
		default:
			if x.Type != y.Type || !x.Expr.Equal(y.Expr) {
				return false
			}
		}
	}
	return true
}

// follow compares a node that is not a command (a barrier of the caller, a commit, or the
// beginning or end of a group) with the node at its place in the previous recording.
func (s *stream) follow(n ir.Node) {
	if !s.same {
		return
	}
	same := len(s.list) < len(s.before)
	if same {
		have := s.before[len(s.list)]
		switch n := n.(type) {
		case *ir.Barrier:
			_, same = have.(*ir.Barrier)
			same = same && !s.barrierNext()
		case *ir.Commit:
			x, ok := have.(*ir.Commit)
			same = ok && *x == *n
		case *ir.GroupBegin:
			x, ok := have.(*ir.GroupBegin)
			same = ok && *x == *n
		case *ir.GroupEnd:
			_, same = have.(*ir.GroupEnd)
		}
	}
	if !same {
		s.diverge()
	}
}

// note adds n to the list with which the next recording will be compared.
func (s *stream) note(n ir.Node) {
	if s.repeats() {
		s.list = append(s.list, n)
	}
}

// diverge stops comparing with the previous recording. From now on the tracker finds the
// conflicts, so it is told of the commands of the open group.
func (s *stream) diverge() {
	if !s.same {
		return
	}
	s.same = false
	s.found.own()
	if !s.unseen {
		return
	}
	s.unseen = false
	s.relearn()
}

// taint makes sure that the next recording is not compared with this one.
func (s *stream) taint() {
	s.diverge()
	s.tainted = true
}

// turn makes this recording the previous one, and begins the next.
func (s *stream) turn() {
	if s.tainted || !s.repeats() {
		s.list = s.list[:0]
	}
	clear(s.before)
	s.before, s.list = s.list, s.before[:0]
	s.reasons, s.reason, s.found = s.found, 0, conflictLog{}
	s.same, s.unseen, s.tainted = len(s.before) > 0, false, false
	if s.same {
		s.found.blocks = s.reasons.blocks
	}
}
