package trace

import (
	"cmp"
	"slices"
)

// Run is one run of a graph, as the log has it. Replays of all runs in their order, each behind what the host wrote before it,
// compute what the program did.
type Run struct {
	Graph  string
	Params map[string]uint64
	Writes []HostWrite
}

// HostWrite is what the host wrote into a memory before a run. What a memory held when a graph first used it is its contents
// in the module.
type HostWrite struct {
	Memory string
	Offset int64
	Data   []byte
}

// runs returns the runs of the graphs, in the order of the log.
func (w *world) runs(groups []*group, fits []*fitted, names []string, use *usage) []Run {
	type ran struct {
		*run
		g, nth int
	}
	var all []ran
	for i, g := range groups {
		for n, r := range g.runs {
			all = append(all, ran{r, i, n})
		}
	}
	slices.SortFunc(all, func(a, b ran) int { return cmp.Compare(a.index, b.index) })
	out := make([]Run, len(all))
	before := -1
	for i, r := range all {
		f := fits[r.g]
		x := Run{Graph: names[r.g], Params: map[string]uint64{}}
		for p, v := range f.values[r.nth] {
			x.Params[f.names[p]] = v
		}
		for j, b := range r.buffers {
			for _, h := range b.host {
				if h.before > before && h.before <= r.index && h.before > use.first[b] {
					x.Writes = append(x.Writes, HostWrite{w.nameOf(groups[r.g].runs[0].buffers[j]), h.offset, h.data})
				}
			}
		}
		out[i], before = x, r.index
	}
	return out
}
