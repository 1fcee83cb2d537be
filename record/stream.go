package record

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// stream is the list of a recording: commands, barriers, and marks. A mark is a node that
// executes nothing: a commit, or the beginning or end of a group. In a live recording,
// commands and barriers are also handed to the device at once.
type stream struct {
	*settings
	counters *counters
	device   *device         // nil: nothing is executed
	ctx      context.Context // see [Encoder.SetContext]
	// g holds all declarations. Its nodes are those of the recording or, if nothing is
	// captured, those of the open command buffer alone.
	g        *ir.Graph
	next     ir.ID
	captured int // the first node of a capture that StartCapture began; −1: none
	commands int // in the open command buffer
	depth    int // open groups of [Encoder.Group]

	tracker *hazard.Tracker // knows the commands since the last barrier
	cache   *msl.Cache
	touched ir.Effects // of the last command whose kernel has a declaration
	group   int        // commands since the last barrier
	first   int        // the first node since the last barrier
	stats   GroupStats
	found   conflictLog
	races   int
	repeating

	checked int // nodes before this one were checked

	// The state at the last commit, to which Discard returns.
	committed int // nodes
	safeDepth int
	safe      GroupStats
	safeFound int
}

// renewTracker discards what was computed before a param or constraint was added, because
// the ranges of bytes depend on all of them.
func (s *stream) renewTracker() {
	if s.same {
		s.same, s.unseen = false, false
		s.found.own()
	}
	s.tracker, s.cache = nil, nil
	s.relearn()
}

// relearn tells the tracker of the commands since the last barrier.
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
			return nil // cannot happen, it was described before; nil means that it may touch anything
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

// admit prepares for the next command, which touches fx. If it conflicts with a command
// since the last barrier, admit places a barrier, or notes a race with ManualBarriers. The
// tracker then knows the command.
func (s *stream) admit(fx *ir.Effects, name string) error {
	s.ready()
	if s.inOrder && s.group > 0 {
		s.endGroup() // each command of a serial recording runs alone, without barriers
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

// add records a command after admit has prepared for it.
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

// put adds a command or a barrier to the list and, in a live recording, hands it to the
// device.
func (s *stream) put(n ir.Node) error {
	s.mark(n)
	if s.live() {
		return s.device.encode(s.ctx, n)
	}
	return nil
}

// mark adds a node to the list.
func (s *stream) mark(n ir.Node) {
	s.note(n)
	s.g.Nodes = append(s.g.Nodes, n)
}

// empty clears the list of nodes, and reuses its memory. Graphs that were captured have
// copies of the list.
func (s *stream) empty() {
	clear(s.g.Nodes)
	s.g.Nodes = s.g.Nodes[:0]
	s.checked = 0
}

// commit makes the current state the one to which discard returns.
func (s *stream) commit() {
	s.committed = len(s.g.Nodes)
	s.safe = s.stats.clone()
	s.safeFound, s.safeDepth = s.found.n, s.depth
}

// discard forgets what was added since the last commit.
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

// Barriers and ends of groups have no properties, so one node of each serves all.
var (
	theBarrier  = &ir.Barrier{}
	theGroupEnd = &ir.GroupEnd{}
)

// endGroup ends the group of commands that may run concurrently.
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
