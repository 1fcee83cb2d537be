package hazard

import (
	"context"

	"github.com/mlxc/mlxc/ir"
)

// Depth returns the number of commands in the longest chain of conflicting
// commands of g as it stands: no schedule of these commands has fewer epochs.
func Depth(ctx context.Context, g *ir.Graph) int {
	_, depth := NewTable(ctx, g).Levels()
	return depth
}

// ValueDepth returns depth∞: the same with value edges alone, from the commands
// that wrote a byte to one that reads it. No renaming of memory gets below it.
func ValueDepth(ctx context.Context, g *ir.Graph) int {
	_, depth := NewTable(ctx, g).ValueLevels()
	return depth
}

// Levels returns for each command the length of the longest chain of
// conflicting commands that ends before it (0: it waits for nothing), and the
// length of the longest chain of all.
func (t *Table) Levels() (levels []int32, depth int) {
	s := newSweep(t)
	defer s.done()
	levels = make([]int32, t.Len())
	floor, top := none, none // of the last pillar; of all so far
	for i := range levels {
		s.polls.Poll(t.ctx, 64)
		if t.commands[i].pillar {
			levels[i] = top + 1
			floor, top = levels[i], levels[i]
			s.reset()
			continue
		}
		// What was there before any access of this command is entered.
		level := floor
		s.begin()
		as := t.of(i)
		for k := range as {
			for _, h := range s.look(&as[k]) {
				c := &s.nodes[h]
				level = max(level, c.w)
				if as[k].write {
					level = max(level, c.r)
				}
			}
		}
		level++
		s.enter(as, level)
		levels[i] = level
		top = max(top, level)
	}
	return levels, int(top + 1)
}

// ValueLevels is Levels with value edges alone. A read of a byte sees its last
// must-write and the may-writes since; a may-write reads too. A pillar still
// conflicts with everything. Where a must-write is strided or depends on
// params, an earlier write counts as seen unless one later write covers what
// they share, so the result may be too great there, never too small.
func (t *Table) ValueLevels() (levels []int32, depth int) {
	s := newSweep(t)
	defer s.done()
	// A crowd remembers its latest writer, and the greatest level of all of them
	// where other cells have readers.
	s.gather = func(members []int32) (w, r int32) {
		w, r = none, none
		for _, h := range members {
			if c := &s.nodes[h]; c.w != none {
				w, r = max(w, c.w), max(r, c.r, levels[c.w])
			}
		}
		return w, r
	}
	levels = make([]int32, t.Len())
	floor, top := none, none
	for i := range levels {
		s.polls.Poll(t.ctx, 64)
		if t.commands[i].pillar {
			levels[i] = top + 1
			floor, top = levels[i], levels[i]
			s.reset()
			continue
		}
		level := floor
		s.begin()
		as := t.of(i)
		for k := range as {
			if a := &as[k]; !a.write || !a.must {
				level = max(level, s.seen(a, levels))
				s.crowd(a) // reads are not entered
			}
		}
		level++
		levels[i] = level
		top = max(top, level)
		for k := range as {
			// A cell holds the command that wrote it last: one that only may
			// write has read what was there, so its level is above.
			if as[k].write {
				s.addWrite(len(as), &as[k], int32(i))
			}
		}
	}
	return levels, int(top + 1)
}

// seen returns the greatest level of the writers whose bytes a may see.
func (s *sweep) seen(a *access, levels []int32) int32 {
	met := s.look(a)
	// The last writer that covers all of a hides everything before it.
	hidden := none
	loose := false
	for _, h := range met {
		c := &s.nodes[h]
		loose = loose || c.region != 0
		if c.w > hidden && s.contains(c, a) {
			hidden = c.w
		}
	}
	level := none
	for k, h := range met {
		c := &s.nodes[h]
		if c.w < hidden || c.region != 0 && loose && s.behind(met, k, a) {
			continue
		}
		level = max(level, levels[c.w], c.r)
	}
	return level
}

// contains reports whether cell c holds every byte of a, whatever the params.
func (s *sweep) contains(c *cell, a *access) bool {
	switch {
	case c.region == 0:
		return c.lo <= a.lo && a.end <= c.end
	case a.region == 0:
		x := &s.t.regions.all[c.region]
		return x.coreLo <= a.lo && a.end <= x.coreEnd
	}
	return s.t.regions.covers(c.region, a.region)
}

// behind reports whether solid cells written later hide all that a shares with
// the loose cell met[k].
func (s *sweep) behind(met []int32, k int, a *access) bool {
	c := &s.nodes[met[k]]
	at, end := max(a.lo, c.lo), min(a.end, c.end)
	for _, h := range met {
		d := &s.nodes[h]
		if d.region != 0 || d.end <= at {
			continue
		}
		if d.lo > at || d.w < c.w {
			return false
		}
		if at = d.end; at >= end {
			return true
		}
	}
	return false
}
