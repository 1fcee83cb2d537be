package report_test

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cmd/internal/report"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

func of(t *testing.T, g *ir.Graph) *report.Report {
	r, err := report.Of(context.Background(), g, report.Options{})
	require.NoError(t, err)
	require.Equal(t, prove.Proved, r.Proof.Verdict)
	return r
}

func count(r *report.Report, kind report.Kind) (n int) {
	for _, f := range r.Findings {
		if f.Kind == kind {
			n += f.Count
		}
	}
	return n
}

// layers are recordings whose commands do not race.
func layers(t *testing.T) (out []*ir.Graph) {
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill", "moe_layer", "norm_residual", "two_streams", "ring_buffer", "lookahead", "arena_reuse"} {
		g := recorded.Graph(t, name)
		if _, err := optimize.Run(context.Background(), g, optimize.Options{}); err != nil {
			g = g.Clone()
			g.SetOrdering(ir.Serial)
			p, err := passes.ParsePipeline("annotate,barriers")
			require.NoError(t, err)
			_, err = passes.Run(context.Background(), g, p, passes.Options{})
			require.NoError(t, err)
		}
		out = append(out, g)
	}
	return out
}

// Of barriers put anywhere into a graph that has the fewest, so many are found needless as the graph has too many.
func TestNeedlessBarriers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	found := 0
	for _, g := range layers(t) {
		p, err := passes.ParsePipeline("annotate,barriers")
		require.NoError(t, err)
		g = g.Clone()
		_, err = passes.Run(context.Background(), g, p, passes.Options{})
		require.NoError(t, err)
		require.Zero(t, count(of(t, g), report.Barrier), "%s: pass barriers leaves the fewest", g.Name)
		for range 4 {
			more := g.Clone()
			more.Nodes = nil
			at, n, put := 0, len(g.Nodes), 0
			for _, x := range g.Nodes {
				_, command := x.(ir.Command)
				if command && at > 0 && at < n-1 && rng.IntN(4) == 0 {
					put++
					more.Nodes = append(more.Nodes, &ir.Barrier{})
				}
				more.Nodes = append(more.Nodes, x)
				at++
			}
			require.Equal(t, put, count(of(t, more), report.Barrier), "%s", g.Name)
			found += put
		}
	}
	require.Greater(t, found, 50)
}

// Random commands with the fewest barriers, and some more: those are found, whatever commits stand between.
func TestNeedlessBarriersOfRandomGraphs(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		b := ir.NewBuilder("g")
		m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 64})
		for range rapid.IntRange(2, 14).Draw(t, "commands") {
			from, to := rapid.Int64Range(0, 7).Draw(t, "from"), rapid.Int64Range(0, 7).Draw(t, "to")
			if from == to {
				b.Fill(ir.ViewOf(m, 8*to, 8), 1, "")
			} else {
				b.Copy(ir.ViewOf(m, 8*to, 8), ir.ViewOf(m, 8*from, 8), "")
			}
		}
		g, err := b.Graph()
		require.NoError(t, err)
		var nodes []ir.Node
		for i, n := range g.Nodes {
			if i > 0 && rapid.IntRange(0, 6).Draw(t, "commit") == 0 {
				nodes = append(nodes, &ir.Commit{Order: ir.OrderEvent})
			}
			nodes = append(nodes, n)
		}
		g.Nodes, g.NextHost = nodes, true
		g.SetOrdering(ir.Serial)
		p, err := passes.ParsePipeline("annotate,barriers")
		require.NoError(t, err)
		_, err = passes.Run(context.Background(), g, p, passes.Options{})
		require.NoError(t, err)
		more, put, at := g.Clone(), 0, 0
		more.Nodes = nil
		for _, n := range g.Nodes {
			if _, command := n.(ir.Command); command {
				// Right behind a commit a barrier orders nothing, and nobody is told.
				if at > 0 && rapid.IntRange(0, 3).Draw(t, "more") == 0 {
					if _, commit := more.Nodes[len(more.Nodes)-1].(*ir.Commit); !commit {
						put++
						more.Nodes = append(more.Nodes, &ir.Barrier{})
					}
				}
				at++
			}
			more.Nodes = append(more.Nodes, n)
		}
		r, err := report.Of(context.Background(), more, report.Options{})
		require.NoError(t, err)
		require.Equal(t, put, count(r, report.Barrier))
		found += put
	})
	require.Greater(t, found, 50)
}

// Of barriers anywhere, as many are found as any choice of them leaves out that keeps conflicts apart.
func TestMostNeedlessBarriers(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		b := ir.NewBuilder("g")
		m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 160})
		n := rapid.IntRange(6, 14).Draw(t, "commands")
		from, to := make([]int64, n), make([]int64, n)
		conflict := func(i, j int) bool { return to[i] == to[j] || from[i] == to[j] || to[i] == from[j] }
		var before []int // by barrier: the command that it stands before
		run := 0
		for i := range n {
			from[i] = rapid.Int64Range(0, 19).Draw(t, "from")
			to[i] = (from[i] + rapid.Int64Range(1, 19).Draw(t, "to")) % 20
			needed := false
			for k := run; k < i; k++ {
				needed = needed || conflict(k, i)
			}
			if i > 0 && (needed || rapid.IntRange(0, 2).Draw(t, "barrier") == 0) {
				b.Barrier()
				before, run = append(before, i), i
			}
			b.Copy(ir.ViewOf(m, 8*to[i], 8), ir.ViewOf(m, 8*from[i], 8), "")
		}
		g, err := b.Graph()
		require.NoError(t, err)
		g.NextHost = true
		most := 0
	choices:
		for left := range 1 << len(before) { // those that stay
			for j := range n {
				for i := range j {
					apart := !conflict(i, j)
					for k, at := range before {
						apart = apart || left>>k&1 == 1 && i < at && at <= j
					}
					if !apart {
						continue choices
					}
				}
			}
			most = max(most, len(before)-bits.OnesCount(uint(left)))
		}
		r, err := report.Of(context.Background(), g, report.Options{})
		require.NoError(t, err)
		require.Equal(t, most, count(r, report.Barrier))
		found += most
	})
	require.Greater(t, found, 50)
}

// A barrier that only orders one replay and the next is needed, unless the host waits.
func TestBarriersBetweenReplays(t *testing.T) {
	for _, host := range []bool{false, true} {
		b := ir.NewBuilder("g")
		x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64})
		s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 64})
		y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 192})
		b.Copy(ir.ViewOf(s, 0, 64), ir.ViewOf(x, 0, 64), "")
		b.Barrier()
		b.Copy(ir.ViewOf(y, 0, 64), ir.ViewOf(s, 0, 64), "")
		b.Barrier()
		b.Copy(ir.ViewOf(y, 64, 64), ir.ViewOf(x, 0, 64), "")
		g, err := b.Graph()
		require.NoError(t, err)
		g.NextHost = host
		want := 0
		if host {
			want = 1
		}
		require.Equal(t, want, count(of(t, g), report.Barrier), "the host waits: %v", host)
		// Of two such barriers one is needed.
		b.Barrier()
		b.Copy(ir.ViewOf(y, 128, 64), ir.ViewOf(x, 0, 64), "")
		g, err = b.Graph()
		require.NoError(t, err)
		g.NextHost = host
		require.Equal(t, want+1, count(of(t, g), report.Barrier), "the host waits: %v", host)
	}
}

// Of a fusion whose first command stands beside another one, the epoch of the second is saved.
func TestFusionBesideOthers(t *testing.T) {
	b := ir.NewBuilder("g")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4096})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 4096})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 8192})
	arg := func(slot uint8, name string, access ir.ArgAccess) ir.Arg {
		return ir.Arg{Slot: slot, Name: name, Kind: ir.DeviceArg, Access: access, Type: ir.F32}
	}
	k := b.Kernel(ir.Kernel{Name: "add", Function: "vv_Addfloat32", Args: []ir.Arg{arg(0, "a", ir.ReadArg), arg(1, "b", ir.ReadArg), arg(2, "c", ir.WriteArg)}})
	add := func(from, to ir.View) {
		b.Dispatch(ir.Dispatch{Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, from), ir.BufferArg(1, ir.ViewOf(x, 0, 4096)), ir.BufferArg(2, to)},
			Grid: [3]ir.Extent{ir.Ext(1024), ir.Ext(1), ir.Ext(1)}, GridKind: ir.Threads, Threadgroup: [3]uint32{256, 1, 1}})
	}
	add(ir.ViewOf(x, 0, 4096), ir.ViewOf(s, 0, 4096))
	b.Fill(ir.ViewOf(y, 4096, 4096), 1, "")
	b.Barrier()
	add(ir.ViewOf(s, 0, 4096), ir.ViewOf(y, 0, 4096))
	g, err := b.Graph()
	require.NoError(t, err)
	r := of(t, g)
	require.Equal(t, 1, count(r, report.Fusion))
	m := cost.Model{}.OrDefault()
	require.Greater(t, r.Findings[0].Saves, m.Barrier.Microseconds())
	require.Less(t, r.Findings[0].Saves, 2*m.Barrier.Microseconds())
}

// The findings of a model's layer are what the pipeline does: as many commands are fused and dropped, and fusions
// save what it saves.
func TestFusionsAddUp(t *testing.T) {
	g := recorded.Graph(t, "llama_layer_decode")
	r := of(t, g)
	o, err := optimize.Run(context.Background(), g, optimize.Options{Pipeline: passes.DefaultPipeline()})
	require.NoError(t, err)
	saves := 0.0
	for _, f := range r.Findings {
		switch f.Kind {
		case report.Fusion, report.Order, report.Barrier, report.Unread:
			saves += f.Saves
		}
	}
	fused := 0
	for _, f := range o.Fused {
		fused += f.Count
	}
	require.Equal(t, fused, count(r, report.Fusion))
	// A fusion at the end saves a barrier less, because the recording has none behind it.
	assert.InDelta(t, o.Before.Modelled.GPU-o.After.Modelled.GPU, saves, 5)
	assert.InDelta(t, 1-o.After.Modelled.GPU/o.Before.Modelled.GPU, r.Saves(), 1e-12)
}

// A command that is needed is never called unread, and one that is not always.
func TestUnread(t *testing.T) {
	b := ir.NewBuilder("g")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 128})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 64})
	b.Copy(ir.ViewOf(s, 0, 64), ir.ViewOf(x, 0, 64), "read")
	b.Fill(ir.ViewOf(s, 64, 64), 1, "lost")
	b.Barrier()
	b.Copy(ir.ViewOf(y, 0, 64), ir.ViewOf(s, 0, 64), "seen")
	g, err := b.Graph()
	require.NoError(t, err)
	r := of(t, g)
	require.Equal(t, 1, count(r, report.Unread))
	for _, f := range r.Findings {
		if f.Kind == report.Unread {
			require.Equal(t, [][]report.Command{{{ID: 1, Op: "fill", Label: "lost"}}}, f.Examples)
		}
	}
}

// A report allocates in proportion to the commands.
func TestReportsAreLinear(t *testing.T) {
	for name, of := range map[string]func(int) *ir.Graph{"decode": benchgraphs.Decode, "chain": benchgraphs.Chain, "nested": benchgraphs.Nested} {
		allocated := func(n int) float64 {
			g := of(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := report.Of(context.Background(), g, report.Options{})
			require.NoError(t, err)
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		small, large := allocated(1_000), allocated(4_000)
		t.Logf("%s: %.0f and %.0f bytes a command", name, small/1_000, large/4_000)
		require.Less(t, large/small, 6.0, "%s: four times the commands", name)
	}
}

// What is dearest comes first, and has few examples, in a large graph too.
func TestLargeReport(t *testing.T) {
	work := func(n int) int {
		g := benchgraphs.Decode(n)
		r := of(t, g)
		for i, f := range r.Findings {
			require.LessOrEqual(t, len(f.Examples), 3)
			if i > 0 {
				require.GreaterOrEqual(t, r.Findings[i-1].Saves, f.Saves)
			}
		}
		return count(r, report.Barrier)
	}
	require.Greater(t, work(2_000), 0)
	// The number of barriers that the list needs says the same.
	g := benchgraphs.Decode(2_000)
	p, err := passes.ParsePipeline("barriers")
	require.NoError(t, err)
	fewest := g.Clone()
	_, err = passes.Run(context.Background(), fewest, p, passes.Options{})
	require.NoError(t, err)
	require.Equal(t, g.Stats().Barriers-fewest.Stats().Barriers, work(2_000))
	require.Equal(t, hazard.NewTable(context.Background(), fewest).Barriers(), fewest.Stats().Barriers)
}
