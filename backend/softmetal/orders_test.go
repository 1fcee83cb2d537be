//go:build unix

package softmetal_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
)

// runOnce runs a graph once, with initial contents and the same random inputs each time, and returns the contents of
// its outputs and states. The graph is not verified before.
func runOnce(t *testing.T, d backend.Device, g *ir.Graph, params []uint32) map[string][]byte {
	t.Helper()
	ctx := t.Context()
	q, err := d.NewQueue()
	require.NoError(t, err)
	var buffers []backend.Buffer
	defer func() {
		require.NoError(t, q.Close())
		for _, b := range buffers {
			require.NoError(t, b.Close())
		}
	}()
	weights, states := make([]backend.Place, len(g.Memories)), make([]backend.Place, len(g.Memories))
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem || m.Kind != ir.Weight && m.Kind != ir.State {
			continue
		}
		b, err := backend.AllocMemory(ctx, d, q, m)
		require.NoError(t, err)
		buffers = append(buffers, b)
		if m.Kind == ir.Weight {
			weights[i] = backend.At(b)
		} else {
			states[i] = backend.At(b)
		}
	}
	e, err := d.Compile(ctx, &backend.Program{Graph: g, Places: weights})
	require.NoError(t, err)
	defer e.Close()
	f, err := e.NewFrame(backend.FrameSpec{})
	require.NoError(t, err)
	defer f.Close()
	set, err := e.NewStates(states)
	require.NoError(t, err)
	defer set.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Input && m.Alias == ir.NoMem {
			data := make([]byte, m.Size)
			for k := 0; (m.DType == ir.F32 || !m.DType.Valid()) && k+4 <= len(data); k += 4 {
				binary.LittleEndian.PutUint32(data[k:], math.Float32bits(2*r.Float32()-1))
			}
			require.NoError(t, backend.Wait(ctx)(q.Upload(ctx, f.Place(ir.MemID(i)), data)))
		}
	}
	require.NoError(t, backend.Wait(ctx)(q.Submit(ctx, backend.Submission{Executable: e, Frame: f, States: set, Params: params})))
	out := map[string][]byte{}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem || m.Kind != ir.Output && m.Kind != ir.State {
			continue
		}
		p := f.Place(ir.MemID(i))
		if m.Kind == ir.State {
			p = states[i]
		}
		data := make([]byte, m.Size)
		require.NoError(t, backend.Wait(ctx)(q.Download(ctx, data, p)))
		out[m.Name] = data
	}
	return out
}

// goldens returns those graphs of testdata/graphs that use only kernels of our library, as recorded and as the
// default pipeline optimizes them.
func goldens(t *testing.T) map[string]*ir.Graph {
	t.Helper()
	out := map[string]*ir.Graph{}
	for _, name := range []string{"arena_reuse", "llama_layer_decode", "llama_layer_prefill", "lookahead", "norm_mul", "norm_residual"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "graphs", name+".txtar"))
		require.NoError(t, err)
		for _, f := range txtar.Parse(text).Files {
			if f.Name != "recorded.mlxt" {
				continue
			}
			m, err := mlxt.Parse(t.Context(), name, f.Data)
			require.NoError(t, err)
			g := m.Graphs[0]
			out[name+"/recorded"] = g
			o := g.Clone()
			_, err = passes.Run(t.Context(), o, passes.DefaultPipeline(), passes.Options{})
			require.NoError(t, err)
			out[name+"/optimized"] = o
		}
	}
	require.Len(t, out, 12)
	return out
}

// For each barrier of the test graphs: without it, either the checker reports a conflict and the results of random
// orders differ, or the checker reports nothing and the barrier is redundant. Optimized graphs have no redundant
// barriers.
func TestBarriers(t *testing.T) {
	sample.Seldom(t)
	checker, err := softmetal.New(context.Background(), softmetal.Options{Check: true})
	require.NoError(t, err)
	defer checker.Close()
	d, err := softmetal.New(context.Background(), softmetal.Options{})
	require.NoError(t, err)
	defer d.Close()
	needed, redundant := 0, 0
	all := goldens(t)
	for _, name := range sample.Of(t, t.Name(), slices.Sorted(maps.Keys(all)), sample.Few) {
		g := all[name]
		params := g.Greatest()
		runOnce(t, checker, g, params)
		effects := map[ir.ID]*ir.Effects{}
		for _, o := range checker.Observed() {
			for _, f := range o.Findings {
				t.Errorf("%s: %s: %v", name, f.Kernel, &f)
			}
			effects[o.Command] = &o.Effects
		}
		judge := func(g *ir.Graph) []string {
			r, err := meaning.OfEffects(t.Context(), g, func(d *ir.Dispatch) *ir.Effects { return effects[d.ID] })
			require.NoError(t, err)
			return r.Lines()
		}
		require.Empty(t, judge(g), name)
		want := runOnce(t, d, g, params)
		for seed := range uint64(6) {
			d.SetOrder(seed + 1)
			assert.Equal(t, want, runOnce(t, d, g, params), "%s: order of seed %d", name, seed+1)
		}
		d.SetOrder(0)
		for i, n := range g.Nodes {
			if _, ok := n.(*ir.Barrier); !ok || i == len(g.Nodes)-1 {
				continue // the last barrier orders the next replay
			}
			without := g.Clone()
			without.Nodes = slices.Delete(without.Nodes, i, i+1)
			if len(judge(without)) == 0 {
				redundant++
				if strings.HasSuffix(name, "/optimized") {
					t.Errorf("%s: nothing needs the barrier at place %d", name, i)
				}
				continue
			}
			needed++
			differs := false
			for seed := uint64(1); seed < 60 && !differs; seed++ {
				d.SetOrder(seed)
				got := runOnce(t, d, without, params)
				for m := range want {
					differs = differs || !bytes.Equal(want[m], got[m])
				}
			}
			d.SetOrder(0)
			if !differs {
				t.Errorf("%s: no order shows that the barrier at place %d is gone: %s", name, i, fmt.Sprint(judge(without)))
			}
		}
	}
	t.Logf("%d barriers are needed, %d of recordings are not", needed, redundant)
	switch {
	case sample.Whole():
		assert.Greater(t, needed, 20)
	case needed+redundant > 0: // a run takes few graphs, and some have no barrier but the last
		assert.Positive(t, needed)
	}
}
