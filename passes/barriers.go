package passes

import (
	"context"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

var barriersPass = New(Pass{Name: "barriers", Summary: "recompute barriers: the fewest for the order of the graph", Default: true}, barriers)

// barriers replaces all barriers by as few as the order of the commands allows, for any number of
// replays in a row ([cuts] explains why fewer would not do). The next replay follows in the same
// command buffer, so conflicts between the end of a replay and the start of the next are ordered
// too. If no other barrier does that, one is placed after the last command. Params may have other
// values in the next replay.
//
// If the barriers of the list are as few and order as much, they stay where they are. Somebody,
// such as the pass schedule, chose by their places which commands run concurrently.
//
// A barrier orders only the commands of its own command buffer. If a conflict crosses only commits
// that order nothing, one of them becomes an event, which orders everything before it. As few
// commits as possible become events.
func barriers(ctx context.Context, s *State, _ struct{}) error {
	g := s.Graph
	s.changed = ir.ListChange
	t := s.hazards(ctx)
	l := layoutOf(g, t)
	l.order(s)
	n := t.Len()
	var cut []bool
	var latest []int32
	if n > 0 {
		latest = t.Latest(nil)
		cut = l.recorded(cuts(latest, n, l.begins), latest)
	}
	recorded, kept := 0, 0
	out := make([]ir.Node, 0, len(g.Nodes)+1)
	i := 0
	for _, x := range g.Nodes {
		switch x := x.(type) {
		case *ir.Barrier:
			recorded++
			continue
		case ir.Command:
			if i > 0 && cut[i] {
				out = append(out, &ir.Barrier{})
				kept++
				if with := int(latest[n+i]); with >= 0 && (t.Pillar(i) || t.Pillar(with%n)) {
					with %= n
					s.Not(x, "barrier against %s: the effects of one of them are unknown", t.Node(with).Num())
				}
			}
			i++
		}
		out = append(out, x)
	}
	if n > 0 && cut[0] {
		out = append(out, &ir.Barrier{})
		kept++
	}
	s.Changed(max(recorded-kept, kept-recorded))
	if n > 0 && !s.silent() {
		l.wrap(s, cut, latest)
	}
	g.Nodes = out
	s.stayed(t)
	return nil
}

// recorded returns the cuts at the barriers of the list, if they are as few as in cut and separate
// all conflicts. Otherwise it returns cut.
func (l *layout) recorded(cut []bool, latest []int32) []bool {
	n := len(cut)
	own := make([]bool, n)
	i := 0
	for _, x := range l.g.Nodes {
		switch x.(type) {
		case *ir.Barrier:
			own[i%n] = i > 0 && !l.begins[i%n]
		case ir.Command:
			i++
		}
	}
	own[0] = cut[0] // the barrier after the last command may be there although no conflict needs it
	fewest, have := 0, 0
	for i := range cut {
		if cut[i] && !l.begins[i] {
			fewest++
		}
		if own[i] {
			have++
		}
	}
	if have != fewest || !l.separates(own, latest) {
		return cut
	}
	return own
}

// separates reports whether a cut or the start of a command buffer lies between each command, of
// two replays in a row, and the latest earlier command with which it conflicts.
func (l *layout) separates(own []bool, latest []int32) bool {
	n := len(own)
	last := int32(-1) // the command before which the last cut lies
	for j, p := range latest {
		if own[j%n] || l.begins[j%n] {
			last = int32(j)
		}
		if p >= 0 && last <= p {
			return false
		}
	}
	return true
}

// layout says how commits divide a list of commands, seen as a circle, into command buffers.
type layout struct {
	g       *ir.Graph
	t       *hazard.Table
	begins  []bool       // by command: a commit stands directly before it
	buffer  []int        // by command: commits before it
	commits []*ir.Commit // in their order
	// earlier is set by order. For each command of two replays in a row, it has the latest command
	// of an earlier command buffer with which the command conflicts, or −1.
	earlier []int32
}

func layoutOf(g *ir.Graph, t *hazard.Table) *layout {
	l := &layout{g: g, t: t, begins: make([]bool, t.Len()), buffer: make([]int, 0, t.Len())}
	open := false
	for _, x := range g.Nodes {
		switch x := x.(type) {
		case *ir.Commit:
			l.commits = append(l.commits, x)
			open = true
		case ir.Command:
			l.begins[len(l.buffer)] = open
			l.buffer = append(l.buffer, len(l.commits))
			open = false
		}
	}
	if open && t.Len() > 0 { // the list ends in a commit
		l.begins[0] = true
	}
	return l
}

// order turns as few commits into events as the conflicts between command buffers need.
func (l *layout) order(s *State) {
	k, n := len(l.commits), l.t.Len()
	fixed := make([]bool, k) // the commit before buffer b orders already
	bare := 0
	for i, c := range l.commits {
		if c.Order == ir.OrderNone {
			bare++
		} else {
			fixed[(i+1)%k] = true
		}
	}
	if bare == 0 || n == 0 {
		return
	}
	earlier := l.t.Latest(func(i int) bool { return l.begins[(i+1)%n] })
	l.earlier = earlier
	// These are the same numbers for command buffers. The commands after the last commit are in one
	// buffer with the start of the next replay.
	latest := make([]int32, 2*k)
	why := make([]int, k) // the command whose conflict latest has; −1: none
	for b := range latest {
		latest[b] = -1
		why[b%k] = -1
	}
	buffer := func(j int) int { return l.buffer[j%n] + j/n*k }
	for j, p := range earlier {
		if p < 0 {
			continue
		}
		b, from := buffer(j), buffer(int(p))
		for b < k {
			b, from = b+k, from+k
		}
		for b >= 2*k {
			b, from = b-k, from-k
		}
		if b-from >= 2*k { // an event anywhere in the list lies between them
			from = b - 2*k + 1
		}
		if from > int(latest[b]) || latest[b] < 0 {
			latest[b], why[b-k] = int32(max(from, 0)), j
		}
	}
	for b, cut := range cuts(latest, k, fixed) {
		if !cut {
			continue
		}
		c := l.commits[(b+k-1)%k]
		c.Order = ir.OrderEvent
		j := why[b]
		if j < 0 { // no conflict ends in this buffer, but some cross the end of the list
			s.Did(l.t.Node(max(slices.Index(l.buffer, b), 0)), "conflicts between replays: the commit before it now orders by event")
			continue
		}
		p := int(earlier[j])
		s.Did(l.t.Node(j%n), "%s on %s of an earlier command buffer: the commit before it now orders by event", l.kind(p, j), l.t.Node(p%n).Num())
	}
}

// kind returns the hazard between commands p and j, counted from the start of the first of two
// replays.
func (l *layout) kind(p, j int) hazard.Kind {
	if n := l.t.Len(); p/n != j/n {
		return l.t.BetweenReplays(p%n, j%n)
	}
	return l.t.Between(p%l.t.Len(), j%l.t.Len())
}

// wrap adds the remark that says what orders the end of a replay before the start of the next one.
func (l *layout) wrap(s *State, cut []bool, latest []int32) {
	n := l.t.Len()
	last := l.t.Node(n - 1)
	if l.begins[0] {
		s.Not(last, "no barrier behind the last command: the list ends in a commit")
		return
	}
	// This is the first conflict for which a barrier after the last command is there, or would be.
	for j := range cut {
		if p := int(latest[n+j]); p >= 0 && p < n {
			id := l.t.Node(p).Num()
			next := l.t.Node(j).Num()
			if cut[0] {
				s.Did(last, "a barrier behind the last command: %s of the next replay has a %s hazard with %s", next, l.kind(p, n+j), id)
			} else {
				s.Not(last, "no barrier behind the last command: those between already order %s before %s of the next replay (%s)", id, next, l.kind(p, n+j))
			}
			return
		}
	}
	s.Not(last, "no barrier behind the last command: the next replay conflicts with nothing that is not ordered before it")
}
