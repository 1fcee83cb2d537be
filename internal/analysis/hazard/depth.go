package hazard

import "github.com/mlxc/mlxc/internal/interrupt"

// Levels returns, for each command, the length of the longest chain of conflicting
// commands that ends before it (0: it waits for nothing), and depth, the number of commands
// in the longest chain. No schedule of these commands has fewer epochs.
func (t *Table) Levels() (levels []int32, depth int) {
	s := t.sweep()
	defer t.done(s)
	levels = make([]int32, t.Len())
	var polls interrupt.Every
	floor, top := none, none // floor: the level after the last pillar; top: the max level so far
	for i := range levels {
		polls.Poll(t.ctx, 64)
		if t.commands[i].pillar {
			levels[i] = top + 1
			floor, top = levels[i], levels[i]
			s.Reset()
			continue
		}
		// The level is found before any access of this command is entered.
		level := floor
		s.Begin()
		as := t.of(i)
		for k := range as {
			for _, h := range s.Look(&as[k]) {
				c := s.Cell(h)
				level = max(level, c.W)
				if as[k].Write {
					level = max(level, c.R)
				}
			}
		}
		level++
		s.Enter(as, level)
		levels[i] = level
		top = max(top, level)
	}
	return levels, int(top + 1)
}

// ValueLevels is Levels for chains of values, whose depth is depth∞: no renaming of memory
// gets below it. A read of a byte waits for its last must-write and the may-writes since, and
// a may-write reads too. A pillar still conflicts with everything. If a must-write is strided
// or depends on params, an earlier write counts as seen unless one later write covers
// everything that they share. So the result may be too great there, but never too small.
func (t *Table) ValueLevels() (levels []int32, depth int) {
	s := t.sweep()
	defer t.done(s)
	// A crowd remembers its latest writer and the max level of all its writers, in
	// the place where other cells keep their readers.
	s.Gather = func(members []int32) (w, r int32) {
		w, r = none, none
		for _, h := range members {
			if c := s.Cell(h); c.W != none {
				w, r = max(w, c.W), max(r, c.R, levels[c.W])
			}
		}
		return w, r
	}
	levels = make([]int32, t.Len())
	var polls interrupt.Every
	floor, top := none, none
	for i := range levels {
		polls.Poll(t.ctx, 64)
		if t.commands[i].pillar {
			levels[i] = top + 1
			floor, top = levels[i], levels[i]
			s.Reset()
			continue
		}
		level := floor
		s.Begin()
		as := t.of(i)
		for k := range as {
			if a := &as[k]; !a.Write || !a.Must {
				for _, h := range s.Seen(a, s.Look(a)) {
					if c := s.Cell(h); c.W != none {
						level = max(level, levels[c.W], c.R)
					}
				}
				s.Crowd(a) // reads are not entered
			}
		}
		level++
		levels[i] = level
		top = max(top, level)
		for k := range as {
			// A cell remembers only its last writer. If that was a may-write, it has
			// read the bytes before, so its level is above that of the earlier writers.
			if as[k].Write {
				s.AddWrite(len(as), &as[k], int32(i))
			}
		}
	}
	return levels, int(top + 1)
}
