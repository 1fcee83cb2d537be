//go:build linux && (amd64 || arm64)

package cuda_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/recorded"
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

// tokens is how many rows tables have at least that inputs pick rows of.
const tokens = 64

// opened is a graph that is replayed many times.
type opened struct {
	t testing.TB
	g *ir.Graph
	s *replay.Instance
	p *replay.Graph
	// written are the bytes of each memory that a replay writes.
	written [][]bool
}

// open instantiates a graph whose outputs and scratch are filled with other bytes before each replay: what is read
// before it is written is then not what the replay before has left.
func open(t testing.TB, d *cuda.Device, g *ir.Graph) *opened {
	t.Helper()
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g.Clone()}}, replay.Options{Poison: true})
	require.NoError(t, err)
	p, err := s.Graph(t.Context(), "")
	require.NoError(t, err)
	o := &opened{t: t, g: g, s: s, p: p}
	var params []uint32
	for i := range g.Params {
		m := &g.Params[i]
		v := m.Min + math.Trunc((m.Max-m.Min)/4)
		require.NoError(t, p.SetParam(m.Name, v))
		require.Equal(t, ir.U32, m.Type)
		params = append(params, uint32(v))
	}
	o.written = written(t, g, params)
	return o
}

// written are the bytes of each memory that a replay of g writes whatever it reads, with its params. An
// output's other bytes are undefined after it (ir.Output): they hold whatever the memory has held before.
func written(t testing.TB, g *ir.Graph, params []uint32) [][]bool {
	t.Helper()
	a := g.Clone() // annotated with what its dispatches write
	p, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	_, err = passes.Run(t.Context(), a, p, passes.Options{})
	require.NoError(t, err)
	out := make([][]bool, len(a.Memories))
	write := func(r ir.Region) {
		root, base := a.Root(r.Mem)
		if out[root] == nil {
			out[root] = make([]bool, a.Memories[root].Size)
		}
		r.Runs(params, func(lo, hi int64) bool {
			for i := lo; i < hi; i++ {
				out[root][base+i] = true
			}
			return true
		})
	}
	for _, n := range a.Nodes {
		switch n := n.(type) {
		case *ir.Copy:
			write(n.Dst.Contiguous())
		case *ir.Fill:
			write(n.Dst.Contiguous())
		case *ir.Dispatch:
			if n.Effects == nil { // of a kernel by recorded.Runnable, which then writes all that it may
				for i := range n.Bindings {
					b := &n.Bindings[i]
					if arg, _ := a.Kernels[n.Kernel].Arg(b.Slot); b.Kind == ir.BindView && arg.Access != ir.ReadArg {
						write(b.View.Contiguous())
					}
				}
				continue
			}
			for _, w := range n.Effects.Writes {
				if w.Must {
					write(w.Region)
				}
			}
		}
	}
	return out
}

// TestWritten: a replay writes a part at least of every output of the test graphs; where that is not all, the rest
// is not compared.
func TestWritten(t *testing.T) {
	var partly []string
	for name, g := range testGraphs(t) {
		params := make([]uint32, len(g.Params))
		for i := range g.Params {
			params[i] = uint32(g.Params[i].Min + math.Trunc((g.Params[i].Max-g.Params[i].Min)/4))
		}
		of := written(t, g, params)
		for i := range g.Memories {
			m := &g.Memories[i]
			if m.Kind != ir.Output || m.Alias != ir.NoMem {
				continue
			}
			assert.Contains(t, of[i], true, "%s: %%%s", name, m.Name)
			if slices.Contains(of[i], false) {
				partly = append(partly, name)
			}
		}
	}
	var want []string // graphs whose params determine how much is written
	for _, name := range []string{"llama_layer_prefill", "ring_buffer"} {
		want = append(want, name, name+", edges", name+", optimized")
	}
	assert.ElementsMatch(t, want, partly)
}

// run replays with random inputs by a seed, from states of zeros, and returns what the states hold, and what is
// written of the outputs.
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
				word := math.Float32bits(2*r.Float32() - 1)
				if m.DType == ir.I32 { // numbers of rows of a table
					word = uint32(r.IntN(tokens))
				}
				binary.LittleEndian.PutUint32(data[k:], word)
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
		if m.Kind == ir.Output {
			for k, ok := range o.written[i] {
				if !ok {
					data[k] = 0
				}
			}
		}
		out[m.Name] = string(data)
	}
	return out
}

func (o *opened) close() { require.NoError(o.t, o.s.Close()) }
