package trace

import "encoding/binary"

// split returns the runs of a group by their numbers, each with the same, as groups of their own: a program does the same steps again and again,
// and then others of the same shape, as when a cache is looked at in larger pieces. It returns nothing if that makes no fewer groups than
// half of the runs: then the numbers follow something that was not found.
func (g *group) split() (out []*group) {
	by := map[string]*group{}
	for _, r := range g.runs {
		if len(r.params) > 0 { // the program has said what its numbers follow
			return nil
		}
		key := make([]byte, 0, 8*g.hard)
		for _, v := range r.numbers[:g.hard] {
			key = binary.LittleEndian.AppendUint64(key, uint64(v))
		}
		part := by[string(key)]
		if part == nil {
			if 2*(len(out)+1) > len(g.runs) {
				return nil
			}
			part = &group{name: g.name}
			by[string(key)] = part
			out = append(out, part)
		}
		part.runs = append(part.runs, r)
	}
	return out
}
