package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

// oracle is what testdata/gen/train.py writes: MLX's gradients of this network.
type oracle struct {
	Batch, Inputs, Hidden, Outputs int64
	Rate                           float64
	Step                           struct {
		X, T       []float32
		Parameters map[string][]float32
		Loss       float32
		Gradients  map[string][]float32
	}
	Losses []float32
}

func loadOracle(t *testing.T) (o oracle) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/train.json")
	require.NoError(t, err, "make it with testdata/gen/train.py")
	require.NoError(t, json.Unmarshal(data, &o))
	require.Len(t, o.Step.Parameters, 6)
	return o
}

// optimized is what the default pipeline makes of a module: proved, without an
// assumption, to have the same outputs and states.
func optimized(t *testing.T, m *ir.Module) *ir.Module {
	t.Helper()
	out := *m
	out.Graphs = nil
	for _, g := range m.Graphs {
		r, err := optimize.Run(t.Context(), g, optimize.Options{Pipeline: passes.DefaultPipeline(), Proof: prove.Options{Strict: true}})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, r.Proof.Verdict, "%s", r.Proof)
		out.Graphs = append(out.Graphs, r.Optimized)
	}
	return &out
}

func near(t *testing.T, want, got []float32, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	size := 0.0
	for _, v := range want {
		size = max(size, math.Abs(float64(v)))
	}
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-5*size, "%s[%d]", what, i)
	}
}

// TestGradientsAgainstMLX compares loss, gradients, the parameters after the step
// and the losses of the steps that follow with MLX's, as recorded and optimized.
func TestGradientsAgainstMLX(t *testing.T) {
	o := loadOracle(t)
	n := network{o.Batch, o.Inputs, o.Hidden, o.Outputs}
	g, err := n.step(true)
	require.NoError(t, err)
	recorded := &ir.Module{Graphs: []*ir.Graph{g}}
	for name, m := range map[string]*ir.Module{"recorded": recorded, "optimized": optimized(t, recorded)} {
		t.Run(name, func(t *testing.T) {
			device := cpu.New(2)
			defer device.Close()
			s, err := replay.Open(device, m, replay.Options{Poison: true})
			require.NoError(t, err)
			defer s.Close()
			bytes := func(data []byte, err error) []byte {
				require.NoError(t, err)
				return data
			}
			g, err := s.Graph(context.Background(), "step")
			require.NoError(t, err)
			require.NoError(t, g.SetParam("rate", float64(float32(o.Rate))))
			require.NoError(t, g.SetInput("x", ir.ValueBytes(o.Step.X)))
			require.NoError(t, g.SetInput("t", ir.ValueBytes(o.Step.T)))
			for name, v := range o.Step.Parameters {
				require.Len(t, bytes(g.State(name)), 4*len(v), name)
				require.NoError(t, g.SetState(name, ir.ValueBytes(v)))
			}
			for i, loss := range o.Losses {
				_, err = g.Run(context.Background())
				require.NoError(t, err)
				assert.InEpsilon(t, loss, get(bytes(g.Output("loss")))[0], 1e-4, "step %d", i)
				if i > 0 {
					continue
				}
				assert.InEpsilon(t, o.Step.Loss, get(bytes(g.Output("loss")))[0], 1e-6)
				for name, want := range o.Step.Gradients {
					near(t, want, get(bytes(g.Output("grad_"+name))), name)
					after := append([]float32(nil), o.Step.Parameters[name]...)
					for k := range after {
						after[k] -= float32(o.Rate) * want[k]
					}
					near(t, after, get(bytes(g.State(name))), name+" after the step")
				}
			}
		})
	}
}

// TestLossFalls runs the command, and the file that it wrote.
func TestLossFalls(t *testing.T) {
	file := filepath.Join(t.TempDir(), "step.mlxg")
	var out bytes.Buffer
	require.NoError(t, run(&out, file, 100, 0.0625))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, file+": 26 commands", lines[0])
	require.Len(t, lines, 12)

	f, err := mlxg.Open(context.Background(), file, mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	var losses []float32
	n := network{batch: 32, inputs: 8, hidden: 64, outputs: 2}
	require.NoError(t, n.train(f.Module, 100, 0.0625, func(_ int, loss float32) { losses = append(losses, loss) }))
	assert.Less(t, losses[99], losses[0]/100)
	for i := 10; i < len(losses); i += 10 {
		assert.Less(t, losses[i], losses[i-10], "step %d", i)
	}
}

// TestOptimize: the step is proved; the chain between the
// second matrix and its gradient is one command; and every loss has the same bits.
func TestOptimize(t *testing.T) {
	n := network{batch: 32, inputs: 8, hidden: 64, outputs: 2}
	g, err := n.step(false)
	require.NoError(t, err)
	recorded := &ir.Module{Graphs: []*ir.Graph{g}}
	m := optimized(t, recorded)
	after := m.Graphs[0]
	assert.Less(t, after.Stats().Dispatches, g.Stats().Dispatches)
	assert.Less(t, after.Stats().Barriers, g.Stats().Barriers)

	fused := map[ir.ID]string{} // by recorded command
	for _, node := range after.Nodes {
		if d, ok := node.(*ir.Dispatch); ok && len(d.From) > 1 {
			for _, id := range d.From {
				fused[id] = after.Kernels[d.Kernel].Function
			}
		}
	}
	chain := map[string]bool{}
	for _, node := range g.Nodes {
		if d, ok := node.(*ir.Dispatch); ok && (d.Op == "elementwise_sub" || d.Op == "elementwise_mul" || d.Op == "scale" && fused[d.ID] != "") {
			require.NotEmpty(t, fused[d.ID], "%s %s is a command of its own", d.ID, d.Op)
			chain[fused[d.ID]] = true
		}
	}
	assert.Len(t, chain, 1, "error, square and its gradient are one kernel")

	var want, got []float32
	require.NoError(t, n.train(recorded, 20, 0.0625, func(_ int, loss float32) { want = append(want, loss) }))
	require.NoError(t, n.train(m, 20, 0.0625, func(_ int, loss float32) { got = append(got, loss) }))
	assert.Equal(t, want, got)
}

// TestEverySize: networks of any size, one row and one column included, are
// proved, and give the same losses as recorded.
func TestEverySize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	size := func(most int64) int64 {
		if r.IntN(4) == 0 {
			return 1
		}
		return 1 + r.Int64N(most)
	}
	for range 25 {
		n := network{batch: size(70), inputs: size(20), hidden: size(300), outputs: size(12)}
		g, err := n.step(r.IntN(2) == 0)
		require.NoError(t, err, "%+v", n)
		recorded := &ir.Module{Graphs: []*ir.Graph{g}}
		after := recorded.Clone()
		_, err = passes.Run(context.Background(), after.Graphs[0], passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err, "%+v", n)
		proof := prove.Check(context.Background(), g, after.Graphs[0], prove.Options{})
		require.Equal(t, prove.Proved, proof.Verdict, "%+v: %v", n, proof)
		var want, got []float32
		require.NoError(t, n.train(recorded, 3, 0.0625, func(_ int, loss float32) { want = append(want, loss) }))
		require.NoError(t, n.train(after, 3, 0.0625, func(_ int, loss float32) { got = append(got, loss) }))
		require.Equal(t, want, got, "%+v", n)
	}
}
