//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testkit/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
)

// testGraphs are the graphs of testdata/graphs: as recorded, as the default pipeline leaves them, and
// ordered by edges.
func testGraphs(t testing.TB) map[string]*ir.Graph {
	t.Helper()
	out := map[string]*ir.Graph{}
	for _, name := range recorded.Names(t) {
		g := recorded.Runnable(t, recorded.Graph(t, name))
		r, err := meaning.Of(t.Context(), g)
		require.NoError(t, err)
		if r.Err() != nil {
			g.SetOrdering(ir.Serial)
		}
		out[name] = g
		for _, edges := range []bool{false, true} {
			p, what := passes.DefaultPipeline(), ", optimized"
			if edges {
				p, err = passes.All().Parse("annotate,fuse,dce,rename,schedule,plan,edges")
				require.NoError(t, err)
				what = ", edges"
			}
			o := g.Clone()
			_, err := passes.Run(t.Context(), o, p, passes.Options{})
			require.NoError(t, err)
			out[name+what] = o
		}
	}
	return out
}

// opened is a graph that is replayed many times.
type opened struct {
	t testing.TB
	g *ir.Graph
	s *replay.Instance
	p *replay.Graph
}

func open(t testing.TB, d *cuda.Device, g *ir.Graph) *opened {
	t.Helper()
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g.Clone()}}, replay.Options{})
	require.NoError(t, err)
	p, err := s.Graph(t.Context(), "")
	require.NoError(t, err)
	o := &opened{t, g, s, p}
	for i := range g.Params {
		m := &g.Params[i]
		require.NoError(t, p.SetParam(m.Name, m.Min+math.Trunc((m.Max-m.Min)/4)))
	}
	return o
}

// run replays with inputs by a seed, from states of zeros, and returns what the outputs and states hold.
func (o *opened) run(seed uint64) map[string]string {
	o.t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	out := map[string]string{}
	for i := range o.g.Memories {
		m := &o.g.Memories[i]
		if m.Alias != ir.NoMem {
			continue
		}
		data := make([]byte, m.Size)
		switch m.Kind {
		case ir.Input:
			for k := 0; k+4 <= len(data); k += 4 {
				binary.LittleEndian.PutUint32(data[k:], math.Float32bits(2*r.Float32()-1))
			}
			require.NoError(o.t, o.p.SetInput(m.Name, data))
		case ir.State:
			require.NoError(o.t, o.p.SetState(m.Name, data))
		}
	}
	_, err := o.p.Run(context.Background())
	require.NoError(o.t, err)
	for i := range o.g.Memories {
		m := &o.g.Memories[i]
		get := map[ir.MemKind]func(string) ([]byte, error){ir.Output: o.p.Output, ir.State: o.p.State}[m.Kind]
		if get == nil || m.Alias != ir.NoMem {
			continue
		}
		data, err := get(m.Name)
		require.NoError(o.t, err)
		out[m.Name] = string(data)
	}
	return out
}

// differs reports whether replays with two inputs in turn have other results, ever. What a replay has left
// is not what the next one should find.
func (o *opened) differs(want [2]map[string]string) bool {
	for i := range 20 {
		if !maps.Equal(want[i%2], o.run(uint64(i%2))) {
			return true
		}
	}
	return false
}

func (o *opened) close() { require.NoError(o.t, o.s.Close()) }

func device(t testing.TB, o cuda.Options) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(t.Context(), o)
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

// TestReplaysEqual: each test graph has the same bytes by all plans as launched one by one, each after the
// end of the one before, in 1,000 replays, and in 200 in which blocks take random times.
func TestReplaysEqual(t *testing.T) {
	full := device(t, cuda.Options{Plan: cuda.Stream, Full: true})
	graph, chain, late := device(t, cuda.Options{}), device(t, cuda.Options{Plan: cuda.Chain}), device(t, cuda.Options{})
	late.Disturb(8000, "")
	all := testGraphs(t)
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

// TestEdgesNeeded: a graph of CUDA's without any one of its edges is seen to have other results, when blocks
// take random times. What is not seen is listed: the edge keeps an order that others keep too, or one that
// this GPU does not break.
func TestEdgesNeeded(t *testing.T) {
	late := device(t, cuda.Options{Full: true})
	late.Disturb(30000, "")
	all := testGraphs(t)
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

// TestWaitsNeeded: a kernel that does not wait, launched before the one before it has ended, is seen to have
// other results. What is not seen is listed.
func TestWaitsNeeded(t *testing.T) {
	all := testGraphs(t)
	seen, unseen := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		g := all[name]
		calm := device(t, cuda.Options{Plan: cuda.Chain})
		o := open(t, calm, g)
		want := [2]map[string]string{o.run(0), o.run(1)}
		o.close()
		require.NoError(t, calm.Close())
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
				unseen++
				t.Logf("%s: nothing differs when %s does not wait", name, k)
			}
		}
	}
	t.Logf("%d waits are seen to be needed, %d are not", seen, unseen)
	assert.Positive(t, seen)
}
