package judge

// conflict reports whether two commands touch a byte that at least one of them writes.
func conflict(a, b *command) bool {
	if a.unknown || b.unknown {
		return true
	}
	return meet(a.writes, b.writes) || meet(a.writes, b.reads) || meet(a.reads, b.writes)
}

func meet(as, bs []area) bool {
	for _, a := range as {
		for _, b := range bs {
			if len(a.runs) == 0 || len(b.runs) == 0 || a.runs[0].mem != b.runs[0].mem {
				continue // all runs of an area lie in one memory
			}
			for _, p := range a.runs {
				for _, q := range b.runs {
					if p.lo < q.hi && q.lo < p.hi {
						return true
					}
				}
			}
		}
	}
	return false
}

// cycleRace is a race between command i of a replay with valuation v and command j of a
// replay with valuation w, `later` replays after it.
type cycleRace struct{ i, j, later, v, w int }

// racesOf lists the races of a graph, one for each pair of valuations and each distance
// between replays, which is at least `least`. Distances beyond two replays add nothing.
func racesOf(l *lowerer, vs [][]uint32, o Options, least int) (out []cycleRace) {
	if o.Replays == Waited && least > 0 || len(vs) == 0 {
		return nil
	}
	n := len(l.commands(vs[0]))
	rel := happensBefore(l.g, 3, o)
	for later := least; later < 3; later++ {
		var open [][2]int
		for i := range n {
			for j := range n {
				if (later > 0 || i < j) && !rel.after[i][later*n+j] && !rel.after[later*n+j][i] {
					open = append(open, [2]int{i, j})
				}
			}
		}
		for v := range vs {
			for w := range vs {
				if later == 0 && v != w || len(open) == 0 {
					continue
				}
				a, b := l.commands(vs[v]), l.commands(vs[w])
				for _, p := range open {
					if conflict(a[p[0]], b[p[1]]) {
						out = append(out, cycleRace{p[0], p[1], later, v, w})
						break
					}
				}
			}
		}
	}
	return out
}
