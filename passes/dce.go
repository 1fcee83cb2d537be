package passes

import (
	"context"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
)

var dcePass = New(Pass{Name: "dce", Summary: "drop commands whose results nobody sees, and scratch that nothing binds", Default: true, KeepsList: true}, dce)

// dce drops each command whose results reach no output or state, directly or through other
// commands. Then it drops each scratch memory that nothing binds any more. A graph with a command
// of unknown effects keeps all commands, because that command may read everything.
func dce(ctx context.Context, s *State, _ struct{}) error {
	g := s.Graph
	f := s.dataflow(ctx)
	if i := f.Pillar(); i >= 0 {
		s.changed = ir.NoChange
		s.keep(f)
		s.Not(f.Commands[i], "nothing is dropped: %s, so it may read everything", f.Why(i))
		return nil
	}
	dropped := s.dropDead(f)
	switch to := dropScratch(g, s); {
	case to != nil:
		f.Renumber(to)
	case dropped:
		s.changed = ir.ListChange
	default:
		s.changed = ir.NoChange
	}
	s.keep(f)
	return nil
}

// dropDead drops the commands that reach no output or state, and reports whether there were any. f
// is the dataflow of the graph.
func (s *State) dropDead(f *dataflow.Flow) bool {
	g := s.Graph
	live := make([]int32, 0, len(f.Commands))
	for i := range f.Commands {
		if f.Live(i) {
			live = append(live, int32(i))
		}
	}
	if len(live) == len(f.Commands) {
		return false
	}
	out, i := g.Nodes[:0], 0
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			i++
			if !f.Live(i - 1) {
				s.Did(c, "dropped: %s", whyDead(f, i-1))
				continue
			}
		}
		out = append(out, n)
	}
	clear(g.Nodes[len(out):])
	g.Nodes = out
	f.Reorder(live)
	return true
}

// whyDead says why nobody needs what command i writes.
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

// dropScratch removes the scratch memories, also aliases, that nothing binds. It returns the new
// number of each memory, NoMem for removed ones, or nil if it removed none.
func dropScratch(g *ir.Graph, s *State) []ir.MemID {
	used := make([]bool, len(g.Memories))
	unseen := 0 // upper bound of the number of unused scratch memories
	for i := range g.Memories {
		if g.Memories[i].Kind == ir.Scratch {
			unseen++
		}
	}
	eachMemory(g, func(at *ir.MemID) bool {
		for m := *at; m != ir.NoMem && !used[m]; m = g.Memories[m].Alias {
			used[m] = true
			if g.Memories[m].Kind == ir.Scratch {
				unseen--
			}
		}
		return unseen > 0
	})
	if unseen == 0 {
		return nil
	}
	to := make([]ir.MemID, len(g.Memories)) // NoMem if it is dropped
	n := 0
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Scratch && !used[i] {
			if m.Alias == ir.NoMem {
				s.About("%"+ir.QuoteName(m.Name), "dropped: nothing binds its %d bytes", m.Size)
			}
			to[i] = ir.NoMem
			continue
		}
		to[i] = ir.MemID(n)
		n++
	}
	eachMemory(g, func(m *ir.MemID) bool {
		*m = to[*m]
		return true
	})
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
	return to
}

// eachMemory calls f with each place in the commands that names a memory. It stops after a command
// for which f returned false.
func eachMemory(g *ir.Graph, f func(*ir.MemID) bool) {
	more := true
	view := func(v *ir.View) { more = f(&v.Mem) }
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		c.EachView(view)
		if d, ok := c.(*ir.Dispatch); ok && d.Effects != nil {
			for i := range d.Effects.Reads {
				more = f(&d.Effects.Reads[i].Mem)
			}
			for i := range d.Effects.Writes {
				more = f(&d.Effects.Writes[i].Mem)
			}
		}
		if !more {
			return
		}
	}
}
