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
	later := []access(nil)
	// accesses returns those of command i of the given turn.
	accesses := func(turn, i int) []access {
		as := t.of(i)
		if turn == 0 || !t.moves(as) {
			return as
		}
		later = append(later[:0], as...)
		for k := range later {
			later[k].region = t.later(later[k].region)
		}
		return later
	}
	enter := func(turn, i int, as []access) {
		last = int32(turn*n + i)
		if t.commands[i].pillar {
			pillar = last
			s.reset()
			return
		}
		s.enter(as, last)
	}
	waiting := 0 // with boundary: the first command that is not entered
	for turn := range 2 {
		for i := range n {
			p, as := pillar, accesses(turn, i)
			if t.commands[i].pillar {
				p = last
			} else {
				s.begin()
				for k := range as {
					for _, h := range s.look(&as[k]) {
						c := &s.nodes[h]
						p = max(p, c.w)
						if as[k].write {
							p = max(p, c.r)
						}
					}
					if boundary != nil { // many look before one is entered
						s.crowd(&as[k])
					}
				}
			}
			j := turn*n + i
			latest[j] = p
			if boundary == nil {
				enter(turn, i, as)
			} else if boundary(i) {
				for ; waiting <= j; waiting++ {
					s.begin()
					enter(waiting/n, waiting%n, accesses(waiting/n, waiting%n))
				}
			}
		}
	}
	return latest
}

// moves reports whether params move an access: that of a later replay is another.
func (t *Table) moves(as []access) bool {
	for k := range as {
		if n := as[k].region; n != 0 && t.regions.all[n].params {
			return true
		}
	}
	return false
}
