//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

func device(t testing.TB, o cuda.Options) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(t.Context(), o.WithBrought(t))
	require.NoError(t, err)
	return d
}

func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// halfGraphs are the steps of a small model with activations of 16 bits, which package ptxmatrix has code for: of a token, of a few rows and of verified guesses, as they are recorded, as
// the default pipeline leaves them, and ordered by edges; and of a token with weights that are no codes.
func halfGraphs(t testing.TB) map[string]*ir.Graph {
	t.Helper()
	shape := decoder.Synthetic{Config: decoder.Config{
		Name: "half", Layers: 2, Embedding: 512, FFN: 1024, Heads: 8, KVHeads: 8, HeadDim: 64, Vocab: tokens, Context: 64, RopeTheta: 10000, NormEps: 1e-5,
	}, Bits: 4, EmbeddingBits: 4, Untied: true}
	m, err := shape.Record(t.Context(), frontend.Options{Context: shape.Context, Prefill: 16, Draft: 7, Type: ir.F16})
	require.NoError(t, err)
	out := map[string]*ir.Graph{}
	for _, g := range m.Graphs {
		out[g.Name] = g
		edges, err := passes.All().Parse("annotate,fuse,dce,rename,schedule,plan,edges")
		require.NoError(t, err)
		for what, p := range map[string]passes.Pipeline{"optimized": passes.DefaultPipeline(), "edges": edges} {
			o := g.Clone()
			_, err = passes.Run(t.Context(), o, p, passes.Options{})
			require.NoError(t, err)
			out[g.Name+", "+what] = o
		}
	}
	shape.Bits, shape.EmbeddingBits = 16, 16
	m, err = shape.Record(t.Context(), frontend.Options{Context: shape.Context, Type: ir.F16})
	require.NoError(t, err)
	dense := m.Graphs[0]
	_, err = passes.Run(t.Context(), dense, passes.DefaultPipeline(), passes.Options{})
	require.NoError(t, err)
	out[dense.Name+", weights of 16 bits, optimized"] = dense
	return out
}

// allGraphs are those of testGraphs and of halfGraphs.
func allGraphs(t testing.TB) map[string]*ir.Graph {
	all := testGraphs(t)
	maps.Copy(all, halfGraphs(t))
	return all
}

// TestReplaysEqual: each test graph leaves the same bytes by all plans as when it is launched one by one without any
// overlap, in 1,000 replays, and in 200 in which blocks are delayed at random.
func TestReplaysEqual(t *testing.T) {
	full := device(t, cuda.Options{Plan: cuda.Stream, Full: true})
	graph, chain, late := device(t, cuda.Options{Plan: cuda.Edges}), device(t, cuda.Options{Plan: cuda.Chain}), device(t, cuda.Options{Plan: cuda.Edges})
	late.Disturb(8000, "")
	all := allGraphs(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			o := open(t, full, all[name])
			var want [8]map[string]string
			for seed := range want {
				want[seed] = o.run(uint64(seed))
			}
			o.close()
			for _, x := range []struct {
				name  string
				d     *cuda.Device
				times int
			}{{"graph", graph, number(t, "MLXC_REPLAYS", 1000)}, {"chain", chain, 50}, {"late", late, number(t, "MLXC_SEEDS", 200)}} {
				o := open(t, x.d, all[name])
				wrong := 0
				for i := range x.times {
					if !maps.Equal(want[i%len(want)], o.run(uint64(i%len(want)))) {
						wrong++
					}
				}
				assert.Zero(t, wrong, "%s: of %d replays", x.name, x.times)
				o.close()
			}
		})
	}
	for _, d := range []*cuda.Device{full, graph, chain, late} {
		require.NoError(t, d.Close())
	}
}

// TestEdgesNeeded: a CUDA graph without any one of its edges has other results when blocks are delayed at random.
// Edges for which that is not seen are logged: other edges imply their order, or this GPU does not break it.
func TestEdgesNeeded(t *testing.T) {
	sample.Long(t)
	late := device(t, cuda.Options{Plan: cuda.Edges, Full: true})
	late.Disturb(30000, "")
	all := allGraphs(t)
	seen, unseen := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		if g.Ordering != ir.ByEdges {
			continue
		}
		edges := late.Without(-1)
		o := open(t, late, g)
		want := [2]map[string]string{o.run(0), o.run(1)}
		o.close()
		for n := range *edges {
			late.Without(n)
			o := open(t, late, g)
			differs := o.differs(want)
			o.close()
			if differs {
				seen++
				continue
			}
			unseen++
			t.Logf("%s: without edge %v nothing differs", name, (*edges)[n])
		}
	}
	t.Logf("%d edges are seen to be needed, %d are not", seen, unseen)
	assert.Positive(t, seen)
	require.NoError(t, late.Close())
}

// TestWaitsNeeded: a kernel whose wait is removed, launched before the one before it has ended, has other results.
// Waits for which that is not seen are logged, as a table for docs/cuda.md, with what each is for.
func TestWaitsNeeded(t *testing.T) {
	sample.Seldom(t)
	graphs := allGraphs(t)
	all, runs := 0, 0 // waits that are seen to be needed, and graphs that were run
	for _, name := range slices.Sorted(maps.Keys(graphs)) {
		t.Run(name, func(t *testing.T) {
			g := graphs[name]
			calm := device(t, cuda.Options{Plan: cuda.Chain})
			o := open(t, calm, g)
			want := [2]map[string]string{o.run(0), o.run(1)}
			o.close()
			require.NoError(t, calm.Close())
			seen := 0
			var rows []string
			for i := range g.Kernels {
				k := g.Kernels[i].Function
				d := device(t, cuda.Options{Plan: cuda.Chain})
				removed := d.Disturb(30000, k)
				o := open(t, d, g)
				differs := o.differs(want)
				o.close()
				require.NoError(t, d.Close())
				switch {
				case *removed == 0:
				case differs:
					seen++
				default:
					rows = append(rows, unseenRow(name, annotated(t, g), k))
				}
			}
			t.Logf("%d waits are seen to be needed, %d are not:\n| graph | kernel that did not wait | what its wait is for |\n|---|---|---|\n%s", seen, len(rows), strings.Join(rows, "\n"))
			all, runs = all+seen, runs+1
		})
	}
	assert.True(t, all > 0 || runs == 0)
}

// differs reports whether a replay has other results than it should, with two inputs in turn, so that what a replay
// has left is wrong for the next one.
func (o *opened) differs(want [2]map[string]string) bool {
	for i := range 20 {
		if !maps.Equal(want[i%2], o.run(uint64(i%2))) {
			return true
		}
	}
	return false
}
