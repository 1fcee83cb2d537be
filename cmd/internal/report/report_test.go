package report_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/report"
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
