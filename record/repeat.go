package record

import (
	"bytes"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
)

// repeating recognizes a recording that repeats the one before, as an engine does for every
// token. A dispatch equal to the one that stood in its place takes over that one's node, and
// what was found out about its barrier. This is done only where nodes never leave the encoder,
// in live recordings that are not captured: whoever is given a graph may change it.
type repeating struct {
	before  []ir.Node   // the list of the recording before, marks included
	reasons conflictLog // why its automatic barriers stand
	list    []ir.Node   // of this one
	same    bool        // so far it is as before
	reason  int         // the next of reasons
	unseen  bool        // the tracker does not know the open group
	tainted bool        // this one does not serve the next
}

// repeats reports whether recordings of these settings are compared.
func (s *stream) repeats() bool {
	return invariants.Caches && s.live() && !s.keep && !s.manual && !s.inOrder && !s.clock
}

// again records d as what stood in its place, if that is the same.
func (d *Dispatch) again(kind ir.GridKind, grid *[3]ir.Extent, group [3]uint32) (ir.ID, bool) {
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
		e.found.n = e.reason // the logs are one as long as the recordings are
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

// barrierNext reports whether an automatic barrier stood before the command whose
// place is next.
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

// follow compares a mark with what stood in its place: a barrier of the caller's, a
// commit, a group.
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

// note adds to the list of this recording.
func (s *stream) note(n ir.Node) {
	if s.repeats() {
		s.list = append(s.list, n)
	}
}

// diverge goes on as for a first recording: the tracker learns the open group.
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

// taint says that the next recording must not be compared with this one.
func (s *stream) taint() {
	s.diverge()
	s.tainted = true
}

// turn makes this recording the one before; found is its log of conflicts.
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
