package cost

import "github.com/mlxc/mlxc/ir"

// PlanTimes are the measured times of one plan: one way of encoding or launching replays.
type PlanTimes struct {
	Encode  Seconds // the host's time per dispatch
	Launch  Seconds // per dispatch that overlaps with others or, in a serial plan, per dispatch
	Barrier Seconds // per barrier between two dispatches, with the overlap that it prevents
	Replay  Seconds // per replay, beyond its dispatches
}

// Way is a plan by which a device could run replays of a graph, together with the quantities of one
// replay that the plan's times are multiplied by.
type Way struct {
	Plan     string
	Encoded  int     // dispatches that the host encodes, or launches, anew
	Host     Seconds // the host's time beyond that
	Launches int     // dispatches that begin one after another
	Barriers int     // waits between them that cost more than a launch
	Work     Seconds // time of kernels without launches; 0 where all ways have the same
	// Beside says that the host encodes while the GPU works, so that a replay takes the longer of both times.
	Beside bool
}

// Of returns the time of one replay by way w, whose plan has the times t.
func (t PlanTimes) Of(w Way) Seconds {
	host := t.Encode*Seconds(w.Encoded) + w.Host
	gpu := t.Launch*Seconds(w.Launches) + t.Barrier*Seconds(w.Barriers) + t.Replay + w.Work
	if w.Beside {
		return max(host, gpu)
	}
	return host + gpu
}

// Fastest returns the index of the way that takes the least time by the measured times of its plan, the lowest
// index among equal ones. Ways whose plan was not measured are skipped. The first way is the default without
// a profile: if its plan was not measured, it is chosen.
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

// Shape is the size of one replay of a graph, both for plans that run its commands in series and for plans
// that let independent commands overlap.
type Shape struct {
	Commands int
	// Serial is the summed time of all commands alone, without their launches.
	Serial Seconds
	// Epochs counts the sets of commands that run together, and Forks those of more than one command. Overlapped
	// is the summed time of all epochs, without one launch for each.
	Epochs, Forks int
	Overlapped    Seconds
}

// Shape returns the shape of g, with each param in the middle of its bounds.
func (m Model) Shape(g *ir.Graph) Shape { return m.For(g).Shape() }

// Shape returns the shape of the estimator's graph, at the estimator's params.
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

// InRow returns the way by which a plan runs all commands of a shape in series.
func (s Shape) InRow(plan string) Way {
	return Way{Plan: plan, Launches: s.Commands, Work: s.Serial}
}

// Together returns the way by which a plan lets the commands of an epoch overlap.
func (s Shape) Together(plan string) Way {
	return Way{Plan: plan, Launches: s.Epochs, Barriers: s.Forks, Work: s.Overlapped}
}
