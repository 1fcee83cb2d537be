package record

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// stream is the list of a recording: commands, the barriers that their conflicts need, and
// marks. What is executed as it comes goes on to the device.
type stream struct {
	*settings
	counters *counters
	device   *device         // nil: nothing is executed
	ctx      context.Context // see [Encoder.SetContext]
	// g holds what was declared; its nodes are those of the recording, or of the
	// open command buffer alone where nothing is captured.
	g        *ir.Graph
	next     ir.ID
	captured int // the first node of a capture that began late; -1: none
	commands int // of the open command buffer
	depth    int // open groups

	tracker *hazard.Tracker // of the commands since the last barrier
	cache   *msl.Cache
	touched ir.Effects // of a declared kernel, until the next
	group   int        // commands since the last barrier
	first   int        // the group's first node
	stats   GroupStats
	found   conflictLog
	races   int
	repeating

	// What Discard goes back to: the state at the last commit.
	committed int // nodes
	checked   int // nodes up to here were in a recording that was checked
	safeDepth int
	safe      GroupStats
	safeFound int
}

// renewTracker forgets what was computed with other params: ranges depend on
// all of them.
func (s *stream) renewTracker() {
	if s.same {
		s.same, s.unseen = false, false
		s.found.own()
	}
	s.tracker, s.cache = nil, nil
	s.relearn()
}

// relearn has the tracker know the open group.
func (s *stream) relearn() {
	if s.group == 0 {
		return
	}
	s.ready()
	s.tracker.Reset()
	for _, n := range s.g.Nodes[s.first:] {
		if c, ok := n.(ir.Command); ok {
			s.tracker.Add(c.Num(), s.touches(c))
		}
	}
}

func (s *stream) touches(n ir.Command) *ir.Effects {
	if d, ok := n.(*ir.Dispatch); ok && msl.Declared(&s.g.Kernels[d.Kernel]) {
		fx, err := s.cache.DescribeTo(&s.touched, d)
		if err != nil {
			return nil // it was described before; a pillar is safe
		}
		return fx
	}
	return n.Touches()
}

func (s *stream) ready() {
	if s.tracker == nil {
		s.tracker, s.cache = hazard.NewTracker(s.g), msl.NewCache(s.g)
	}
}

// admit makes room for the next command, which touches fx: a barrier if it conflicts with one
// of its group, and a place in the tracker.
func (s *stream) admit(fx *ir.Effects, name string) error {
	s.ready()
	if s.inOrder && s.group > 0 {
		s.endGroup() // a group of its own, without a barrier
	}
	var start time.Time
	if s.clock {
		start = time.Now()
	}
	var err error
	c, found := s.tracker.Try(s.next, fx)
	switch {
	case found && s.manual:
		if s.races++; s.races <= maxRaces {
			s.found.add(&c, s.next, s.nameInGroup(c.With), name, true)
		}
		s.tracker.AddTried(s.next, fx)
	case found:
		s.found.add(&c, s.next, s.nameInGroup(c.With), name, false)
		err = s.barrier()
		s.counters.add(autoBarriers, 1)
		s.tracker.AddTried(s.next, fx)
	case !s.manual:
		s.counters.add(elidedBarriers, 1)
	}
	if s.clock {
		s.counters.add(barrierTime, int64(time.Since(start)))
	}
	return err
}

// add adds a command that was admitted.
func (s *stream) add(n ir.Command) error {
	if s.group == 0 {
		s.first = len(s.g.Nodes)
	}
	s.next++
	s.commands++
	s.group++
	s.stats.Commands++
	return s.put(n)
}

func (s *stream) barrier() error {
	s.stats.Barriers++
	s.counters.add(barriers, 1)
	err := s.put(theBarrier)
	s.endGroup()
	return err
}

// put adds a command or a barrier to the list, and to what is executed as it comes.
func (s *stream) put(n ir.Node) error {
	s.mark(n)
	if s.live() {
		return s.device.encode(s.ctx, n)
	}
	return nil
}

// mark adds a node to the list alone: a mark that executes nothing, or what put hands on.
func (s *stream) mark(n ir.Node) {
	s.note(n)
	s.g.Nodes = append(s.g.Nodes, n)
}

// empty makes room for other nodes; who needs them has a list of their own.
func (s *stream) empty() {
	clear(s.g.Nodes)
	s.g.Nodes = s.g.Nodes[:0]
	s.checked = 0
}

// commit makes the end of the list what discard goes back to.
func (s *stream) commit() {
	s.committed = len(s.g.Nodes)
	s.safe = s.stats.clone()
	s.safeFound, s.safeDepth = s.found.n, s.depth
}

// discard forgets what was added since commit.
func (s *stream) discard() {
	s.taint()
	s.g.Nodes = s.g.Nodes[:s.committed]
	s.checked = min(s.checked, s.committed)
	s.captured = min(s.captured, s.committed)
	s.group, s.commands, s.depth = 0, 0, s.safeDepth
	s.stats, s.found.n = s.safe.clone(), s.safeFound
	if s.tracker != nil {
		s.tracker.Reset()
	}
}

// restart begins another recording.
func (s *stream) restart() {
	s.empty()
	s.next, s.commands, s.depth, s.group, s.first, s.races, s.captured = 0, 0, 0, 0, 0, 0, -1
	if s.tracker != nil {
		s.tracker.Reset()
	}
	s.turn()
	s.stats = GroupStats{}
	s.commit()
}

// These are every barrier and every end of a group: they have no properties.
var (
	theBarrier  = &ir.Barrier{}
	theGroupEnd = &ir.GroupEnd{}
)

// endGroup closes the group of commands that may run side by side.
func (s *stream) endGroup() {
	if s.tracker != nil {
		s.tracker.Reset()
	}
	s.unseen = false
	if s.group == 0 {
		return
	}
	s.stats.count(s.group)
	s.group = 0
}
