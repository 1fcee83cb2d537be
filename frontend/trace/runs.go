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
// is its contents in the module; all that an input holds is here, since the last run of its graph.
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
	last := map[*builder]int{}
	for _, b := range builders {
		last[b] = -1
	}
	seen := map[*buffer]int{} // by buffer: the step of the last run that uses it. What the host wrote before the first one are its contents
	for i, r := range all {
		g := r.b.Unfinished()
		x := Run{Graph: g.Name, Params: map[string]uint64{}}
		for p, v := range r.b.f.values[r.nth] {
			x.Params[r.b.f.names[p]] = v
		}
		for _, f := range finders(r.run, r.b) {
			b := f.buffer
			at, ok := seen[b]
			if from := last[r.b] + 1; !ok || f.inputs && from <= at {
				at = from - 1
			}
			lo, _ := slices.BinarySearchFunc(b.host, at+1, func(h hostWrite, at int) int { return cmp.Compare(h.before, at) })
			for _, h := range b.host[lo:] {
				if h.before > r.at {
					break
				}
				if h.holds {
					continue
				}
				for _, y := range f.spans[reach(f.spans, h.offset):] {
					if y.lo >= h.offset+h.n {
						break
					}
					// What states hold goes from graph to graph, what inputs hold does not.
					m := &g.Memories[r.b.number[y.of]]
					if from, used := seen[b]; m.Kind != ir.Input && (!used || h.before <= from) {
						continue
					}
					p := h.part(max(h.offset, y.lo), min(h.offset+h.n, y.hi))
					x.Writes = append(x.Writes, HostWrite{m.Name, p.offset - r.lives[y.of].base(), p.data})
				}
			}
		}
		last[r.b] = r.at
		for _, b := range r.buffers { // a buffer may have several lives
			seen[b] = r.at
		}
		out[i] = x
	}
	return out
}

// finder is the lives of a buffer that find something there when a run begins: which bytes are theirs.
type finder struct {
	buffer *buffer
	spans  []span[int]
	inputs bool // some are inputs
}

func finders(r *run, b *builder) (out []finder) {
	g := b.Unfinished()
	at := map[*buffer]int{}
	for j, buf := range r.buffers {
		id, has := b.number[j]
		if l := &r.lives[j]; has && l.finds {
			i, ok := at[buf]
			if !ok {
				i = len(out)
				at[buf] = i
				out = append(out, finder{buffer: buf})
			}
			lo, hi := int64(0), buf.size
			if l.window != nil {
				lo, hi = l.window.lo, l.window.hi
			}
			out[i].spans = append(out[i].spans, span[int]{lo, hi, j})
			out[i].inputs = out[i].inputs || g.Memories[id].Kind == ir.Input
		}
	}
	for i := range out {
		slices.SortFunc(out[i].spans, func(x, y span[int]) int { return cmp.Compare(x.lo, y.lo) })
	}
	return out
}
