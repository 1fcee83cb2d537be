package passes

import (
	"github.com/mlxc/mlxc/internal/dataflow"
	"github.com/mlxc/mlxc/ir"
)

// dce drops each command whose results reach no output or state, however many
// commands on; then each scratch memory that nothing binds any more. A graph with
// a command of unknown effects keeps its commands: that one may read everything,
// and what it does with it nobody knows.
func dce(g *ir.Graph, _ Values, r *Report) error {
	f := r.dataflow(g)
	if i := f.Pillar(); i >= 0 {
		r.unchanged()
		r.keep(f)
		r.Not(f.Commands[i], "nothing is dropped: its effects are unknown, so it may read everything")
		return nil
	}
	dead := 0
	for i := range f.Commands {
		if !f.Live(i) {
			dead++
		}
	}
	if dead > 0 {
		out, i := g.Nodes[:0], 0
		for _, n := range g.Nodes {
			if _, ok := ir.NodeID(n); ok {
				i++
				if !f.Live(i - 1) {
					r.Did(n, "dropped: %s", whyDead(f, i-1))
					continue
				}
			}
			out = append(out, n)
		}
		clear(g.Nodes[len(out):])
		g.Nodes = out
	}
	if !dropScratch(g, r) {
		r.unchanged()
		if dead == 0 {
			r.keep(f)
		}
	}
	return nil
}

// whyDead says why what command i writes reaches nobody.
func whyDead(f *dataflow.Flow, i int) string {
	ds := f.Writes(i)
	if len(ds) == 0 {
		return "it writes nothing"
	}
	for _, d := range ds {
		if len(d.Readers) > 0 {
			return "only commands that are dropped read what it writes, as " + f.Graph.Describe(f.Commands[d.Readers[0].Command])
		}
	}
	return "no byte that it writes is read later"
}

// dropScratch removes scratch memories, aliases too, that nothing binds, and
// reports whether there were any.
func dropScratch(g *ir.Graph, r *Report) bool {
	used := make([]bool, len(g.Memories))
	use := func(m ir.MemID) {
		for m != ir.NoMem && !used[m] {
			used[m] = true
			m = g.Memories[m].Alias
		}
	}
	eachMemory(g, func(m *ir.MemID) { use(*m) })
	to := make([]ir.MemID, len(g.Memories)) // NoMem: dropped
	n := 0
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Scratch && !used[i] {
			if m.Alias == ir.NoMem {
				r.About("%"+ir.QuoteName(m.Name), "dropped: nothing binds its %d bytes", m.Size)
			}
			to[i] = ir.NoMem
			continue
		}
		to[i] = ir.MemID(n)
		n++
	}
	if n == len(g.Memories) {
		return false
	}
	eachMemory(g, func(m *ir.MemID) { *m = to[*m] })
	kept := g.Memories[:0]
	for i := range g.Memories {
		m := g.Memories[i]
		if to[i] == ir.NoMem {
			continue
		}
		if m.Alias != ir.NoMem {
			m.Alias = to[m.Alias]
		}
		kept = append(kept, m)
	}
	g.Memories = kept
	if g.Source != nil && len(g.Source.Memories) == len(to) {
		at := g.Source.Memories[:0]
		for i, p := range g.Source.Memories {
			if to[i] != ir.NoMem {
				at = append(at, p)
			}
		}
		g.Source.Memories = at
	}
	return true
}

// eachMemory calls f with each place in the commands that names a memory.
func eachMemory(g *ir.Graph, f func(*ir.MemID)) {
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Copy:
			f(&n.Src.Mem)
			f(&n.Dst.Mem)
		case *ir.Fill:
			f(&n.Dst.Mem)
		case *ir.Dispatch:
			for i := range n.Bindings {
				if n.Bindings[i].Kind == ir.BindView {
					f(&n.Bindings[i].View.Mem)
				}
			}
			if n.Effects != nil {
				for i := range n.Effects.Reads {
					f(&n.Effects.Reads[i].Mem)
				}
				for i := range n.Effects.Writes {
					f(&n.Effects.Writes[i].Mem)
				}
			}
		}
	}
}
