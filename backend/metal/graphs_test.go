//go:build linux

package metal_test

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// way is a setup in which tests run graphs: options of the backend and of the stand-in's GPU.
type way struct {
	name   string
	device metal.Options
	gpu    fakemetal.Options // of the GPU that the way needs
	live   bool              // a live recording in place of replays
	limits metal.Limits
}

var ways = []way{
	{name: "concurrent"},
	{name: "serial", device: metal.Options{Plan: metal.Serial}},
	{name: "parallel", device: metal.Options{Plan: metal.Parallel, Encoders: 3}},
	{name: "indirect", device: metal.Options{Plan: metal.Indirect}},
	{name: "indirect-barriers", device: metal.Options{Plan: metal.IndirectBarriers, Measured: keeps}, gpu: fakemetal.Options{IndirectBarriers: true}},
	{name: "concurrent, fences", device: metal.Options{Fences: true, Measured: keeps}},
	{name: "indirect, fences", device: metal.Options{Plan: metal.Indirect, Fences: true, Measured: keeps}},
}

// options returns the options of the device: without an archive, and without warnings.
func (w *way) options() metal.Options {
	o := w.device
	o.Cache, o.Warn = metal.NoCache, func(string) {}
	return o
}

// on returns the options of the way's GPU, which executes on software Metal in the order that seed chooses.
func (w *way) on(soft *softmetal.Device, seed uint64) fakemetal.Options {
	o := w.gpu
	o.Device, o.Seed = soft, seed
	o.Range, o.Samples, o.Reach = w.limits.Commands, w.limits.Samples, int(w.limits.Reach)
	return o
}

// testGraphs returns the graphs of testdata/graphs, as recorded and as optimized by the default pipeline.
// Those whose barriers leave a race are made serial.
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
		o := g.Clone()
		_, err = passes.Run(t.Context(), o, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err)
		out[name+", optimized"] = o
	}
	return out
}

// inputs returns random floats for a graph's inputs, by name.
func inputs(g *ir.Graph, seed uint64) map[string][]byte {
	r := rand.New(rand.NewPCG(seed, 2))
	out := map[string][]byte{}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Input && m.Alias == ir.NoMem {
			data := make([]byte, m.Size)
			for k := 0; k+4 <= len(data); k += 4 {
				binary.LittleEndian.PutUint32(data[k:], math.Float32bits(2*r.Float32()-1))
			}
			out[m.Name] = data
		}
	}
	return out
}

// rounds is how often a graph is replayed, with other params and inputs each time.
const rounds = 3

// param returns the value of a param in a round: from its min in the first to the middle of its range in the
// last, which the constraints of all test graphs allow.
func param(p *ir.Param, round int) float64 {
	return p.Min + math.Trunc((p.Max-p.Min)*float64(round)/(2*(rounds-1)))
}

// replayed replays a graph in each round and returns its outputs and states after each.
func replayed(t testing.TB, d backend.Device, g *ir.Graph) (out []map[string][]byte) {
	t.Helper()
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g.Clone()}}, replay.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	p, err := s.Graph(t.Context(), "")
	require.NoError(t, err)
	for round := range rounds {
		for i := range g.Params {
			require.NoError(t, p.SetParam(g.Params[i].Name, param(&g.Params[i], round)))
		}
		for name, data := range inputs(g, uint64(round)) {
			require.NoError(t, p.SetInput(name, data))
		}
		_, err := p.Run(context.Background())
		require.NoError(t, err)
		out = append(out, results(t, g, p.Output, p.State))
	}
	return out
}

func results(t testing.TB, g *ir.Graph, output, state func(name string) ([]byte, error)) map[string][]byte {
	t.Helper()
	got := map[string][]byte{}
	for i := range g.Memories {
		m := &g.Memories[i]
		get := map[ir.MemKind]func(string) ([]byte, error){ir.Output: output, ir.State: state}[m.Kind]
		if get == nil || m.Alias != ir.NoMem {
			continue
		}
		data, err := get(m.Name)
		require.NoError(t, err)
		got[m.Name] = data
	}
	return got
}

// same fails the test if two runs of a graph differ in a byte of their results.
func same(t testing.TB, want, got []map[string][]byte, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for round := range want {
		require.Len(t, got[round], len(want[round]), what)
		for name, data := range want[round] {
			for i := range data {
				if data[i] != got[round][name][i] {
					require.Fail(t, "results differ", "%s, round %d: byte %d of %%%s is %#x, want %#x", what, round, i, name, got[round][name][i], data[i])
				}
			}
		}
	}
}

// dispatched is like [replayed], but encodes the graph's commands one by one in live recordings.
func dispatched(t testing.TB, d backend.Device, g *ir.Graph) (out []map[string][]byte) {
	t.Helper()
	e := record.NewEncoder("live", record.Live(d))
	defer func() { require.NoError(t, e.Close()) }()
	for round := range rounds {
		for i := range g.Params {
			p := &g.Params[i]
			e.Param(p.Name, uint32(p.Min), uint32(p.Max))
			e.SetParam(p.Name, param(p, round))
		}
		tensors := map[string]record.Tensor{}
		for i := range g.Memories {
			m := &g.Memories[i]
			switch {
			case m.Alias != ir.NoMem:
			case m.Kind == ir.Input:
				tensors[m.Name] = e.Input(m.Name, ir.U8, m.Size)
			case m.Kind == ir.Output:
				tensors[m.Name] = e.Output(m.Name, ir.U8, m.Size)
			case m.Kind == ir.State:
				tensors[m.Name] = e.StateFrom(m.Name, m.Init, ir.U8, m.Size)
			}
		}
		for name, data := range inputs(g, uint64(round)) {
			require.NoError(t, e.Write(tensors[name], data))
		}
		e.Encode(g)
		_, err := e.Finish()
		require.NoError(t, err)
		read := func(name string) ([]byte, error) {
			m, _ := g.MemoryNamed(name)
			data := make([]byte, g.Memories[m].Size)
			return data, e.Read(tensors[name], data)
		}
		out = append(out, results(t, g, read, read))
	}
	return out
}

// TestGraphs: every test graph computes through Metal's messages the same bytes as on software Metal, and so do some of
// them in each further way, and some in live recordings. Of the whole layers of a model, whose kernels take longest, a run
// takes one, in the first way and in another.
func TestGraphs(t *testing.T) {
	sample.Long(t)
	soft, err := fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer soft.Close()
	graphs := testGraphs(t)
	assert.Greater(t, len(graphs), 20)
	names := slices.Sorted(maps.Keys(graphs))
	known := map[string][]map[string][]byte{}
	want := func(t *testing.T, name string) []map[string][]byte {
		if known[name] == nil {
			known[name] = replayed(t, soft, graphs[name])
		}
		return known[name]
	}
	all := func(t *testing.T, o fakemetal.Options, way metal.Options, names []string, run func(t testing.TB, d backend.Device, g *ir.Graph) []map[string][]byte) {
		serve(t, o)
		d := open(t, way)
		for _, name := range names {
			t.Run(name, func(t *testing.T) { same(t, want(t, name), run(t, d, graphs[name]), name) })
		}
		require.NoError(t, d.Close())
	}
	layer := func(name string) bool { return strings.HasPrefix(name, "llama_layer") }
	small := slices.DeleteFunc(slices.Clone(names), layer)
	layers := sample.Turns(t, t.Name(), slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !layer(name) }))
	further := []string{"live"}
	for _, w := range ways[1:] {
		further = append(further, w.name)
	}
	further = sample.Turns(t, t.Name()+", ways of layers", further)
	some := func(t *testing.T, way string) []string {
		out := sample.Of(t, t.Name(), small, sample.Few)
		if slices.Contains(further, way) {
			out = append(out, layers...)
		}
		return out
	}
	for i, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			graphs := slices.Concat(small, layers)
			if i > 0 {
				graphs = some(t, w.name)
			}
			all(t, w.on(soft, uint64(i)), w.options(), graphs, replayed)
		})
	}
	t.Run("live", func(t *testing.T) {
		all(t, fakemetal.Options{Device: soft, Seed: 9}, ways[0].options(), some(t, "live"), dispatched)
	})
}
