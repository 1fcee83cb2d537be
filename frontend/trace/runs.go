package trace

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Run is one run of a graph, as the log has it. Replays of all runs in their order, each behind what the host wrote before it,
// compute what the program did.
type Run struct {
	Graph  string
	Params map[string]uint64
	Writes []HostWrite
}

// HostWrite is what the host wrote into a memory before a run, in order. What a weight or state held when a graph first used it
// is its contents in the module; all that an input holds is here.
type HostWrite struct {
	Memory string
	Offset int64
	Data   []byte
}

// runs returns the runs of the graphs, in the order of the log.
func (w *world) runs(groups []*group, fits []*fitted, m *ir.Module, use *usage) []Run {
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
	begun := map[*buffer]bool{} // inputs of which all that was written before has been listed
	before := -1
	for i, r := range all {
		f := fits[r.g]
		graph := m.Graphs[r.g]
		x := Run{Graph: graph.Name, Params: map[string]uint64{}}
		for p, v := range f.values[r.nth] {
			x.Params[f.names[p]] = v
		}
		for j, b := range r.buffers {
			name := w.nameOf(groups[r.g].runs[0].buffers[j])
			input := slices.ContainsFunc(graph.Memories, func(m ir.Memory) bool { return m.Name == name && m.Kind == ir.Input })
			after := max(before, use.first[b])
			if input && !begun[b] {
				begun[b], after = true, -1
			} else if input {
				after = before
			}
			for _, h := range b.host {
				if h.before > after && h.before <= r.index {
					x.Writes = append(x.Writes, HostWrite{name, h.offset, h.data})
				}
			}
		}
		out[i], before = x, r.index
	}
	return out
}
