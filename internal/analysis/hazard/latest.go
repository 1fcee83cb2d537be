package hazard

import "github.com/mlxc/mlxc/internal/analysis/bytestate"

// Latest returns, for each command j of two replays in a row, the latest earlier
// command that it conflicts with; −1 if there is none. The commands of the second
// replay are numbered from [Table.Len] on. The params of the two replays are
// independent.
//
// With boundary, only commands before the last boundary before j count: boundary(i)
// says that a command buffer ends after command i of a replay. It is also asked for the
// last command.
func (t *Table) Latest(boundary func(i int) bool) []int32 {
	s := t.sweep()
	defer t.done(s)
	n := t.Len()
	latest := make([]int32, 2*n)
	pillar, last := none, none
	later := []bytestate.Access(nil)
	// accesses returns the accesses of command i in the given turn: 0 for the first
	// replay, 1 for the second.
	accesses := func(turn, i int) []bytestate.Access {
		as := t.of(i)
		if turn == 0 || !t.moves(as) {
			return as
		}
		later = append(later[:0], as...)
		for k := range later {
			later[k].Region = t.facts.Later(later[k].Region)
		}
		return later
	}
	enter := func(turn, i int, as []bytestate.Access) {
		last = int32(turn*n + i)
		if t.commands[i].pillar {
			pillar = last
			s.Reset()
			return
		}
		s.Enter(as, last)
	}
	waiting := 0 // with boundary: the first command that is not entered yet
	for turn := range 2 {
		for i := range n {
			p, as := pillar, accesses(turn, i)
			if t.commands[i].pillar {
				p = last
			} else {
				s.Begin()
				for k := range as {
					for _, h := range s.Look(&as[k]) {
						c := s.Cell(h)
						p = max(p, c.W)
						if as[k].Write {
							p = max(p, c.R)
						}
					}
					if boundary != nil { // many commands look before one is entered
						s.Crowd(&as[k])
					}
				}
			}
			j := turn*n + i
			latest[j] = p
			if boundary == nil {
				enter(turn, i, as)
			} else if boundary(i) {
				for ; waiting <= j; waiting++ {
					s.Begin()
					enter(waiting/n, waiting%n, accesses(waiting/n, waiting%n))
				}
			}
		}
	}
	return latest
}

// moves reports whether params move an access: that of a later replay is another.
func (t *Table) moves(as []bytestate.Access) bool {
	for k := range as {
		if n := as[k].Region; n != 0 && t.facts.At(n).Moves {
			return true
		}
	}
	return false
}
