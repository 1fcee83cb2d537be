package hazard

// Latest returns, for each command j of a replay and of the replay after it
// (numbers from [Table.Len] on), the latest command before it that it conflicts
// with; −1 if there is none. Params of the two replays are independent.
//
// With boundary, only commands that stand before the last boundary before j
// count: boundary(i) tells that a command buffer ends behind command i of a
// replay (after the last one it is asked too).
func (t *Table) Latest(boundary func(i int) bool) []int32 {
	s := newSweep(t)
	defer s.done()
	n := t.Len()
	latest := make([]int32, 2*n)
	pillar, last := none, none
	waiting := 0 // with boundary: the first command that is not entered
	later := []access(nil)
	accesses := func(j int) []access {
		as := t.of(j % max(n, 1))
		if j < n {
			return as
		}
		later = append(later[:0], as...)
		for k := range later {
			later[k].region = t.later(later[k].region)
		}
		return later
	}
	enter := func(j int) {
		last = int32(j)
		if t.commands[j%n].pillar {
			pillar = last
			s.reset()
			return
		}
		s.enter(accesses(j), last)
	}
	for j := range latest {
		p := pillar
		if t.commands[j%n].pillar {
			p = last
		} else {
			as := accesses(j)
			s.begin()
			for k := range as {
				for _, h := range s.look(&as[k]) {
					c := &s.nodes[h]
					p = max(p, c.w)
					if as[k].write {
						p = max(p, c.r)
					}
				}
			}
		}
		latest[j] = p
		if boundary == nil {
			enter(j)
		} else if boundary(j % n) {
			for ; waiting <= j; waiting++ {
				s.begin()
				enter(waiting)
			}
		}
	}
	return latest
}
