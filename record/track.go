package record

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/internal/hazard"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Conflict is why two commands must not overlap.
type Conflict struct {
	// Kind is RAW, WAR or WAW by what the later command does to bytes of the
	// earlier one; "unknown" where one of the two may touch anything.
	Kind           string
	Earlier, Later ir.ID
	// Labels of the two commands: what the recording calls them.
	EarlierLabel, LaterLabel string
	// Bytes is what the later command touches, %name[off:end]; "" if unknown.
	Bytes string
}

func (c Conflict) String() string {
	s := fmt.Sprintf("%s: %s %s after %s %s", c.Kind, c.Later, c.LaterLabel, c.Earlier, c.EarlierLabel)
	if c.Bytes != "" {
		s += " on " + c.Bytes
	}
	return s
}

// GroupStats describes the groups of commands that may run side by side: those
// between two barriers.
type GroupStats struct {
	Commands int // dispatches, copies and fills
	Barriers int
	Groups   int
	// Sizes[i] is the number of groups of i+1 commands.
	Sizes []int
}

// Ratio is the mean size of a group.
func (s GroupStats) Ratio() float64 {
	if s.Groups == 0 {
		return 0
	}
	return float64(s.Commands) / float64(s.Groups)
}

func (s GroupStats) String() string {
	out := fmt.Sprintf("commands=%d barriers=%d groups=%d ratio=%.2f", s.Commands, s.Barriers, s.Groups, s.Ratio())
	for i, n := range s.Sizes {
		if n > 0 {
			out += fmt.Sprintf("\n  size %d: %d", i+1, n)
		}
	}
	return out
}

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
	safeDepth int
	safe      GroupStats
	safeFound int
}

func (s GroupStats) clone() GroupStats {
	s.Sizes = slices.Clone(s.Sizes)
	return s
}

// conflict is a Conflict before it is put in words.
type conflict struct {
	hazard.Conflict
	later         ir.ID
	earlier, name string
	race          bool // nothing stands between
}

// conflictLog holds conflicts in blocks, which do not move as it grows.
type conflictLog struct {
	blocks [][]conflict
	n      int
}

const logBlock = 64

func (l *conflictLog) add(c *hazard.Conflict, later ir.ID, earlier, name string, race bool) {
	if l.n/logBlock == len(l.blocks) {
		l.blocks = append(l.blocks, make([]conflict, logBlock))
	}
	x := &l.blocks[l.n/logBlock][l.n%logBlock]
	x.Conflict, x.later, x.earlier, x.name, x.race = *c, later, earlier, name, race
	l.n++
}

// own makes the log one that shares no block that may still be written.
func (l *conflictLog) own() {
	l.blocks = slices.Clone(l.blocks[:(l.n+logBlock-1)/logBlock])
	if l.n%logBlock != 0 {
		last := &l.blocks[len(l.blocks)-1]
		*last = append(make([]conflict, 0, logBlock), (*last)[:l.n%logBlock]...)[:logBlock]
	}
}

func (l *conflictLog) at(i int) *conflict { return &l.blocks[i/logBlock][i%logBlock] }

// maxRaces bounds how many conflicts without a barrier are kept.
const maxRaces = 256

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
		if id, ok := ir.NodeID(n); ok {
			e.tracker.Add(id, e.touches(n))
		}
	}
}

func (e *Encoder) touches(n ir.Node) *ir.Effects {
	if d, ok := n.(*ir.Dispatch); ok && e.g.Kernels[d.Kernel].Library.Declared() {
		fx, err := e.cache.DescribeTo(&e.touched, d)
		if err != nil {
			return nil // it was described before; a pillar is safe
		}
		return fx
	}
	return ir.NodeEffects(n)
}

func (e *Encoder) ready() {
	if e.tracker == nil {
		e.tracker, e.cache = hazard.NewTracker(e.g), msl.NewCache(e.g)
	}
}

// begin makes room for the next command, which touches fx: a command buffer, a
// barrier if it conflicts with one of its group, and a place in the tracker.
func (e *Encoder) begin(fx *ir.Effects, name string) bool {
	if e.err != nil {
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

// Groups returns the statistics of the recording so far, its open group
// included.
func (e *Encoder) Groups() GroupStats {
	s := e.stats.clone()
	if e.group > 0 {
		for len(s.Sizes) < e.group {
			s.Sizes = append(s.Sizes, 0)
		}
		s.Sizes[e.group-1]++
		s.Groups++
	}
	return s
}

// Conflicts returns why each automatic barrier of the recording stands.
func (e *Encoder) Conflicts() []Conflict { return e.found.list(e.g, false) }

func (l *conflictLog) list(g *ir.Graph, races bool) (out []Conflict) {
	for i := range l.n {
		c := l.at(i)
		if c.race != races {
			continue
		}
		x := Conflict{Kind: c.Kind.String(), Earlier: c.With, Later: c.later, EarlierLabel: c.earlier, LaterLabel: c.name}
		if c.Kind != hazard.Unknown {
			x.Bytes = g.FormatRegion(c.Bytes)
		}
		out = append(out, x)
	}
	return out
}

// nameInGroup names a command of the open group. Each barrier ends a group, so
// looking there costs no more than recording it did.
func (e *Encoder) nameInGroup(id ir.ID) string {
	for _, n := range e.g.Nodes[e.first:] {
		if have, ok := ir.NodeID(n); ok && have == id {
			return e.nameOf(n)
		}
	}
	return ""
}

// nameOf is what people call a command: its label, else its operation or kernel.
func (e *Encoder) nameOf(n ir.Node) string {
	switch n := n.(type) {
	case *ir.Dispatch:
		switch {
		case n.Label != "":
			return n.Label
		case n.Op != "":
			return n.Op
		}
		return e.g.Kernels[n.Kernel].Name
	case *ir.Copy:
		return cmp.Or(n.Label, "copy")
	case *ir.Fill:
		return cmp.Or(n.Label, "fill")
	}
	return ""
}
