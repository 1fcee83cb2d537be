package passes_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// The remaining commands are those on which some output or state depends, byte by byte, and the
// result is proved.
func TestDCEKeepsWhatIsSeen(t *testing.T) {
	dropped, exact := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := scratchGraph(t, rapid.Bool().Draw(t, "simple"))
		h := g.Clone()
		afterPasses(t, h, "dce,barriers")
		requireProved(t, g, h, "")
		want := needed(g)
		got := map[ir.ID]bool{}
		for _, n := range h.Nodes {
			if c, ok := n.(ir.Command); ok {
				got[c.Num()] = true
			}
		}
		for id := range want {
			require.True(t, got[id], "%s is needed", id)
		}
		if constant(g) {
			require.Equal(t, want, got)
			exact++
		}
		for i, m := range h.Memories {
			bound := m.Kind != ir.Scratch
			for _, n := range h.Nodes {
				c, ok := n.(ir.Command)
				if !ok {
					continue
				}
				if e := c.Touches(); e != nil {
					for _, x := range e.Reads {
						bound = bound || within(h, x.Mem, ir.MemID(i))
					}
					for _, x := range e.Writes {
						bound = bound || within(h, x.Mem, ir.MemID(i))
					}
				}
			}
			require.True(t, bound, "scratch %s stays, but nothing binds it", m.Name)
		}
		dropped += len(touchesOf(g)) - len(touchesOf(h))
	})
	require.Positive(t, dropped)
	require.Positive(t, exact)
}

// within reports whether m is the memory in, or an alias inside it.
func within(g *ir.Graph, m, in ir.MemID) bool {
	for m != ir.NoMem {
		if m == in {
			return true
		}
		m = g.Memories[m].Alias
	}
	return false
}

// needed finds the needed commands by walking backwards over single bytes, for each value of the
// param.
func needed(g *ir.Graph) map[ir.ID]bool {
	var commands []ir.Node
	for _, n := range g.Nodes {
		if _, ok := n.(ir.Command); ok {
			commands = append(commands, n)
		}
	}
	out := map[ir.ID]bool{}
	for n := uint32(1); n <= 3; n++ {
		each := func(r ir.Region, f func([2]int64)) {
			r = bytestate.Rooted(g, r)
			r.Runs([]uint32{n}, func(lo, end int64) bool {
				for ; lo < end; lo++ {
					f([2]int64{int64(r.Mem), lo})
				}
				return true
			})
		}
		live := map[[2]int64]bool{}
		for i := range g.Memories {
			if m := &g.Memories[i]; m.Alias == ir.NoMem && (m.Kind == ir.Output || m.Kind == ir.State) {
				for b := range m.Size {
					live[[2]int64{int64(i), b}] = true
				}
			}
		}
		for _, c := range slices.Backward(commands) {
			e := c.(ir.Command).Touches()
			keep := false
			for _, w := range e.Writes {
				each(w.Region, func(b [2]int64) { keep = keep || live[b] })
			}
			if !keep {
				continue
			}
			id := c.(ir.Command).Num()
			out[id] = true
			for _, w := range e.Writes { // every write is a must-write
				each(w.Region, func(b [2]int64) { delete(live, b) })
			}
			for _, r := range e.Reads {
				each(r, func(b [2]int64) { live[b] = true })
			}
		}
	}
	return out
}

// constant reports whether no length depends on a param.
func constant(g *ir.Graph) bool {
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if !ok || c.Touches() == nil {
			continue
		}
		e := c.Touches()
		for _, r := range e.Reads {
			if !r.IsConst() {
				return false
			}
		}
		for _, w := range e.Writes {
			if !w.Region.IsConst() {
				return false
			}
		}
	}
	return true
}

// A command of unknown effects may read everything: nothing is dropped.
func TestDCEKeepsAllBesideUnknownEffects(t *testing.T) {
	g := small(t)
	g.Kernels[g.Nodes[0].(*ir.Dispatch).Kernel].Function = "nobody_knows"
	rs := afterPasses(t, g, "annotate,dce")
	require.Equal(t, "dce #0 rms_norm: not done: nothing is dropped: its effects are unknown, so it may read everything\n", remarks(rs[1:]))
}
