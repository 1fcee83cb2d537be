package passes_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// weighted draws commands that read weights of many sizes with many or few
// threadgroups, some of them in chains.
func weighted(t *rapid.T, n int) *ir.Graph {
	b := ir.NewBuilder("g")
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 1 << 24, Init: ir.FillU32(0)})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 64, Init: ir.FillU32(0)})
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	for i := range n {
		e := &ir.Effects{Complete: true}
		e.Reads = append(e.Reads, ir.ViewOf(w, 0, 1<<rapid.IntRange(4, 22).Draw(t, "bytes")).Contiguous())
		if i > 0 && rapid.Bool().Draw(t, "waits") {
			e.Reads = append(e.Reads, ir.ViewOf(s, 4*rapid.Int64Range(0, int64(i)-1).Draw(t, "for"), 4).Contiguous())
		}
		e.Writes = append(e.Writes, ir.Write{Region: ir.ViewOf(s, 4*int64(i), 4).Contiguous(), Must: true})
		b.Dispatch(ir.Dispatch{Kernel: k, Effects: e, Threadgroup: [3]uint32{1024, 1, 1},
			Grid: [3]ir.Extent{ir.Ext(1 << rapid.IntRange(0, 8).Draw(t, "groups")), ir.Ext(1), ir.Ext(1)}})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// With as few epochs as possible, the modelled time is close to the min over all assignments, which
// the test tries on graphs of up to eight commands.
func TestScheduleComesNearTheBest(t *testing.T) {
	worst, sum, best, count := 1.0, 0.0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := weighted(t, rapid.IntRange(2, 8).Draw(t, "n"))
		m, err := cost.Chip("m2")
		require.NoError(t, err)
		after := g.Clone()
		run(t, after, "schedule{chip=m2}")
		got := float64(m.Graph(after).Commands)

		cs := places(g)
		depth := 0
		levels := make([]int, len(cs))
		for i := range cs {
			for k := range i {
				if wordConflict(cs[k].effects, cs[i].effects) {
					levels[i] = max(levels[i], levels[k]+1)
				}
			}
			depth = max(depth, levels[i]+1)
		}
		e := m.For(g)
		at := make([]int, len(cs))
		least := float64(-1)
		var try func(i int)
		try = func(i int) {
			if i == len(cs) {
				load := make([]cost.Epoch, depth)
				for k := range cs {
					load[at[k]].Add(e.Work(g.Nodes[k]))
				}
				time := cost.Seconds(0)
				for _, p := range load {
					time += m.Of(p)
				}
				if least < 0 || float64(time) < least {
					least = float64(time)
				}
				return
			}
			lo := 0
			for k := range i {
				if wordConflict(cs[k].effects, cs[i].effects) {
					lo = max(lo, at[k]+1)
				}
			}
			for at[i] = lo; at[i] < depth; at[i]++ {
				try(i + 1)
			}
		}
		try(0)
		ratio := got / least
		require.GreaterOrEqual(t, ratio, 1-1e-9, "better than the best")
		require.LessOrEqual(t, ratio, 2.5, "a greedy choice costs something on graphs of a few commands, not this much")
		worst, sum, count = max(worst, ratio), sum+ratio, count+1
		if ratio < 1+1e-9 {
			best++
		}
	})
	t.Logf("%d of %d schedules take the least time, on average %.4f of it, at worst %.3f", best, count, sum/float64(count), worst)
	require.Less(t, sum/float64(count), 1.05)
}

// wordConflict is conflict for the graphs of weighted, whose accesses to the state
// are words.
func wordConflict(a, b *ir.Effects) bool {
	meets := func(w ir.Region, rs []ir.Region) bool {
		for _, r := range rs {
			if r.Mem == w.Mem && r.Off.Const == w.Off.Const {
				return true
			}
		}
		return false
	}
	return meets(a.Writes[0].Region, b.Reads) || meets(b.Writes[0].Region, a.Reads)
}

// Commands that were recorded together at the start, where they cost time, move beside a kernel
// that leaves bandwidth idle.
func TestScheduleFillsIdleEpochs(t *testing.T) {
	b := ir.NewBuilder("g")
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 1 << 24, Init: ir.FillU32(0)})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 64, Init: ir.FillU32(0)})
	k := b.Kernel(ir.Kernel{Name: "k", Function: "k", Library: ir.Library{Kind: ir.SourceFile, Path: "k.metal"}})
	add := func(bytes, groups, to int64, from ...int64) {
		e := &ir.Effects{Complete: true, Reads: []ir.Region{ir.ViewOf(w, 0, bytes).Contiguous()},
			Writes: []ir.Write{{Region: ir.ViewOf(s, 4*to, 4).Contiguous(), Must: true}}}
		for _, f := range from {
			e.Reads = append(e.Reads, ir.ViewOf(s, 4*f, 4).Contiguous())
		}
		b.Dispatch(ir.Dispatch{Kernel: k, Effects: e, Threadgroup: [3]uint32{1024, 1, 1}, Grid: [3]ir.Extent{ir.Ext(groups), ir.Ext(1), ir.Ext(1)}})
	}
	add(64, 1, 0)
	for i := range int64(6) {
		add(1<<16, 64, 1+i)
	}
	add(1<<20, 1, 7, 0) // one threadgroup: nine cores of ten are idle
	add(64, 1, 8, 7)
	g, err := b.Graph()
	require.NoError(t, err)
	recorded := g.Clone()
	run(t, recorded, "barriers")
	run(t, g, "schedule{chip=m2}")
	count := map[int]int{}
	for _, p := range places(g) {
		count[p.epoch]++
	}
	require.Len(t, count, 3)
	require.GreaterOrEqual(t, count[1], 5, "of six that may be anywhere")
	m, err := cost.Chip("m2")
	require.NoError(t, err)
	require.Less(t, m.Graph(g).Commands, m.Graph(recorded).Commands-2.5e-6)
}
