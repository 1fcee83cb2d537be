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
func (w *world) runs(builders []*builder) []Run {
	type ran struct {
		*run
		b   *builder
		nth int
	}
	var all []ran
	for _, b := range builders {
		for n, r := range b.g.runs {
			all = append(all, ran{r, b, n})
		}
	}
	slices.SortFunc(all, func(a, b ran) int { return cmp.Compare(a.at, b.at) })
	out := make([]Run, len(all))
	seen := map[*buffer]int{} // by buffer: the step of the last run that uses it. What the host wrote before the first one are its contents
	for i, r := range all {
		g := r.b.Unfinished()
		x := Run{Graph: g.Name, Params: map[string]uint64{}}
		for p, v := range r.b.f.values[r.nth] {
			x.Params[r.b.f.names[p]] = v
		}
		for j, b := range r.buffers {
			at, ok := seen[b]
			id, has := r.b.number[j]
			if !has || !r.lives[j].finds {
				continue
			}
			if !ok && g.Memories[id].Kind == ir.Input { // which has no contents
				at, ok = -1, true
			}
			if !ok {
				continue
			}
			for _, h := range b.host {
				if !h.holds && h.before > at && h.before <= r.at {
					x.Writes = append(x.Writes, HostWrite{g.Memories[id].Name, h.offset, h.data})
				}
			}
		}
		for _, b := range r.buffers { // a buffer may have several lives
			seen[b] = r.at
		}
		out[i] = x
	}
	return out
}
