package hazard

import (
	"context"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Stream finds the edges of an [Order] while the list is executed, for callers that
// take commands from its front. A command is entered when somebody asks for it, and
// nothing is kept of commands that have ended, or of edges from them. So it needs a few
// words for each command, where an Order has all edges.
type Stream struct {
	b     *orderBuilder
	nodes []ir.Node // of the graph
	at    []int32   // by command: its position in nodes
	next  int32     // the first command that is not entered yet
	// By node: how many nodes that have not ended it waits for, −1 once it has ended
	// itself; and the list of nodes that wait for it, 0 if there are none.
	waits, behind []int32
	waiters       []waiter // index 0 stands for none
	free          int32    // the list of unused waiters
	joins         []int32  // scratch
}

type waiter struct{ node, next int32 }

const over int32 = -1

// NewStream prepares to enter the commands of g, and enters none yet.
func NewStream(ctx context.Context, g *ir.Graph) *Stream {
	s := &Stream{nodes: g.Nodes, at: make([]int32, 0, len(g.Nodes)), waiters: make([]waiter, 1)}
	for i, x := range g.Nodes {
		if _, ok := x.(ir.Command); ok {
			s.at = append(s.at, int32(i))
		}
	}
	n := len(s.at)
	s.waits, s.behind = make([]int32, n, n+n/8), make([]int32, n, n+n/8)
	s.b = newOrderBuilder(&Table{ctx: ctx, g: g, facts: bytestate.NewFactsOfReplays(g)}, n)
	s.b.stream = s
	return s
}

// Len returns the number of commands.
func (s *Stream) Len() int { return len(s.at) }

// Node returns command i.
func (s *Stream) Node(i int) ir.Command { return s.nodes[s.at[i]].(ir.Command) }

// Pillar reports whether the effects of command i are unknown.
func (s *Stream) Pillar(i int) bool {
	d, ok := s.Node(i).(*ir.Dispatch)
	return ok && !d.Effects.Known()
}

// Entered returns the number of commands entered so far.
func (s *Stream) Entered() int32 { return s.next }

// Enter enters the next command, and reports whether it waits for nothing.
func (s *Stream) Enter() (free bool) {
	x, t := s.next, s.b.t
	s.next++
	t.accesses = t.accesses[:0]
	known := t.touch(s.Node(int(x)))
	s.b.enter(x, t.accesses, !known)
	return s.waits[x] == 0
}

// End ends command i, which must be entered and wait for nothing. It calls free with
// every command that now waits for nothing any more.
func (s *Stream) End(i int32, free func(int32)) {
	s.joins = append(s.joins[:0], i)
	for len(s.joins) > 0 {
		i := s.joins[len(s.joins)-1]
		s.joins = s.joins[:len(s.joins)-1]
		if i < s.b.commands {
			s.waits[i] = over
		}
		at := s.behind[i]
		for at != 0 {
			w := &s.waiters[at]
			x, next := w.node, w.next
			w.next, s.free = s.free, at
			at = next
			if s.waits[x]--; s.waits[x] > 0 {
				continue
			}
			if x < s.b.commands {
				free(x)
			} else { // a join ends at once
				s.joins = append(s.joins, x)
			}
		}
		s.behind[i] = 0
	}
}

// edge makes one node wait for another, unless that has ended. A join that waits for
// nothing has ended, because it was closed when something began to wait for it.
func (s *Stream) edge(from, to int32) {
	if w := s.waits[from]; w == over || w == 0 && from >= s.b.commands {
		return
	}
	at := s.free
	if at != 0 {
		s.free = s.waiters[at].next
	} else {
		s.waiters = append(s.waiters, waiter{})
		at = int32(len(s.waiters) - 1)
	}
	s.waiters[at] = waiter{to, s.behind[from]}
	s.behind[from] = at
	s.waits[to]++
}

func (s *Stream) join() { s.waits, s.behind = append(s.waits, 0), append(s.behind, 0) }

// ended reports whether all readers of a list have ended.
func (s *Stream) ended(r int32) bool {
	for ; r != none; r = s.b.links[r].next {
		x := s.b.links[r].node
		if w := s.waits[x]; w != over && (w > 0 || x < s.b.commands) {
			return false
		}
	}
	return true
}
