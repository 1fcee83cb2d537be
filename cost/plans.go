package cost

import "github.com/mlxc/mlxc/ir"

// PlanTimes are what one way of encoding or launching replays was measured to cost.
type PlanTimes struct {
	Encode  Seconds // a dispatch, on the host
	Launch  Seconds // a dispatch among others that run beside it; where none does, behind another
	Barrier Seconds // a barrier between two dispatches, with the overlap that it takes away
	Replay  Seconds // a replay, beside its dispatches
}

// Way is one of the plans by which a device could do replays of a graph, and how much of what a plan's times
// are about one replay would have.
type Way struct {
	Plan     string
	Encoded  int     // dispatches that the host encodes, or launches, anew
	Host     Seconds // what it does besides
	Launches int     // dispatches that begin one after another
	Barriers int     // waits among them that cost more than a launch
	Work     Seconds // of kernels, launches left out; 0 where it is the same in all ways
	// Beside: the host encodes while the GPU works, so that a replay takes the longer of both.
	Beside bool
}

// Of is what a replay takes by w, whose plan has these times.
func (t PlanTimes) Of(w Way) Seconds {
	host := t.Encode*Seconds(w.Encoded) + w.Host
	gpu := t.Launch*Seconds(w.Launches) + t.Barrier*Seconds(w.Barriers) + t.Replay + w.Work
	if w.Beside {
		return max(host, gpu)
	}
	return host + gpu
}

// Fastest returns which of some ways takes the least time by the measured times of plans; the first of equal
// ones. Ways whose plan was not measured are not chosen, and if that of the first way was not, which is the
// one without a profile, it is chosen all the same.
func (m *Model) Fastest(ways []Way) int {
	best := 0
	t, ok := m.Plans[ways[0].Plan]
	if !ok {
		return best
	}
	least := t.Of(ways[0])
	for i, w := range ways[1:] {
		if t, ok := m.Plans[w.Plan]; ok {
			if took := t.Of(w); took < least {
				best, least = i+1, took
			}
		}
	}
	return best
}

// Shape is what one replay of a graph consists of, for plans that do its commands one after another, and for
// those that let overlap what its order does not forbid.
type Shape struct {
	Commands int
	// Serial is the work of all commands, launches left out.
	Serial Seconds
	// Epochs are sets of commands that run together, Forks those of several; Overlapped is the work of all
	// epochs, a launch for each left out.
	Epochs, Forks int
	Overlapped    Seconds
}

// Shape returns that of g, with each param in the middle of its bounds.
func (m Model) Shape(g *ir.Graph) Shape { return m.For(g).Shape() }

// Shape returns that of the estimator's graph.
func (e *Estimator) Shape() (s Shape) {
	var p Epoch
	add := func(n ir.Node) {
		w := e.Work(n)
		s.Commands++
		s.Serial += max(0, w.Alone-e.Launch)
		p.Add(w)
	}
	end := func() {
		if p.Len() == 0 {
			return
		}
		s.Epochs++
		if p.Len() > 1 {
			s.Forks++
		}
		s.Overlapped += max(0, e.Of(p)-e.Launch)
		p = Epoch{}
	}
	if e.g.Ordering == ir.ByEdges {
		for _, level := range e.g.Levels() {
			for _, k := range level {
				add(e.g.Nodes[k])
			}
			end()
		}
		return s
	}
	for _, n := range e.g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier, *ir.Commit:
			end()
		case ir.Command:
			add(n)
			if e.g.Ordering == ir.Serial {
				end()
			}
		}
	}
	end()
	return s
}

// InRow is the way by which a plan does all commands of a shape one after another.
func (s Shape) InRow(plan string) Way {
	return Way{Plan: plan, Launches: s.Commands, Work: s.Serial}
}

// Together is the way by which a plan lets commands overlap.
func (s Shape) Together(plan string) Way {
	return Way{Plan: plan, Launches: s.Epochs, Barriers: s.Forks, Work: s.Overlapped}
}
