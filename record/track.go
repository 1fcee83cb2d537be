package record

import (
	"time"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// tracking finds conflicts with the commands since the last barrier.
type tracking struct {
	tracker *hazard.Tracker
	repeating
	touched ir.Effects // of a declared kernel, until the next
	group   int        // commands since the last barrier
	first   int        // the group's first node
	stats   GroupStats
	found   conflictLog
	races   int

	// What Discard goes back to: the state at the last commit.
	committed int // nodes
	checked   int // nodes up to here were in a recording that was checked
	safeDepth int
	safe      GroupStats
	safeFound int
}

// renewTracker forgets what was computed with other params: ranges depend on
// all of them.
func (e *Encoder) renewTracker() {
	if e.same {
		e.same, e.unseen = false, false
		e.found.own()
	}
	e.tracker, e.cache = nil, nil
	if e.group == 0 {
		return
	}
	e.ready()
	for _, n := range e.g.Nodes[e.first:] {
		if c, ok := n.(ir.Command); ok {
			e.tracker.Add(c.Num(), e.touches(c))
		}
	}
}

func (e *Encoder) touches(n ir.Command) *ir.Effects {
	if d, ok := n.(*ir.Dispatch); ok && msl.Declared(&e.g.Kernels[d.Kernel]) {
		fx, err := e.cache.DescribeTo(&e.touched, d)
		if err != nil {
			return nil // it was described before; a pillar is safe
		}
		return fx
	}
	return n.Touches()
}

func (e *Encoder) ready() {
	if e.tracker == nil {
		e.tracker, e.cache = hazard.NewTracker(e.g), msl.NewCache(e.g)
	}
}

// begin makes room for the next command, which touches fx: a command buffer, a
// barrier if it conflicts with one of its group, and a place in the tracker.
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
	e.ready()
	if e.inOrder && e.group > 0 {
		e.endGroup() // a group of its own, without a barrier
	}
	var start time.Time
	if e.clock {
		start = time.Now()
	}
	c, found := e.tracker.Try(e.next, fx)
	switch {
	case found && e.manual:
		if e.races++; e.races <= maxRaces {
			e.found.add(&c, e.next, e.nameInGroup(c.With), name, true)
		}
		e.tracker.AddTried(e.next, fx)
	case found:
		e.found.add(&c, e.next, e.nameInGroup(c.With), name, false)
		e.barrier()
		e.counters.add(autoBarriers, 1)
		e.tracker.AddTried(e.next, fx)
	case !e.manual:
		e.counters.add(elidedBarriers, 1)
	}
	if e.clock {
		e.counters.add(barrierTime, int64(time.Since(start)))
	}
	return true
}

// append adds a command that [Encoder.begin] has let in.
func (e *Encoder) append(n ir.Node) {
	if e.group == 0 {
		e.first = len(e.g.Nodes)
	}
	e.g.Nodes = append(e.g.Nodes, n)
	e.note(n)
	e.next++
	e.commands++
	e.group++
	e.stats.Commands++
	e.encode1(n)
}

// Barrier orders all commands before it in the command buffer before all after
// it, whether or not any two of them conflict. At the beginning of a command
// buffer there is nothing to order: it does nothing, and is not counted.
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
		e.barrier()
	}
}

func (e *Encoder) barrier() {
	e.note(theBarrier)
	e.g.Nodes = append(e.g.Nodes, theBarrier)
	e.stats.Barriers++
	e.counters.add(barriers, 1)
	e.encode1(theBarrier)
	e.endGroup()
}

// These are every barrier and every end of a group: they have no properties.
var (
	theBarrier  = &ir.Barrier{}
	theGroupEnd = &ir.GroupEnd{}
)

// endGroup closes the group of commands that may run side by side.
func (e *Encoder) endGroup() {
	if e.tracker != nil {
		e.tracker.Reset()
	}
	e.unseen = false
	if e.group == 0 {
		return
	}
	for len(e.stats.Sizes) < e.group {
		e.stats.Sizes = append(e.stats.Sizes, 0)
	}
	e.stats.Sizes[e.group-1]++
	e.stats.Groups++
	e.group = 0
}

// TrackerSize returns the number of commands that the next one is compared with.
func (e *Encoder) TrackerSize() int { return e.group }
