//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

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
