package replay_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// After Close every method returns an error, and nothing runs.
func TestNothingRunsAfterClose(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{sum(t, "sum"), sum(t, "other")}}, replay.Options{})
	require.NoError(t, err)
	g, err := s.Graph(context.Background(), "sum")
	require.NoError(t, err)
	_, err = g.Run(context.Background())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "a second Close")
	_, err = g.Run(context.Background())
	require.EqualError(t, err, "graph sum: its instance is closed: its memory is gone (open another one)")
	_, err = g.Submit(context.Background())
	require.ErrorContains(t, err, "closed")
	for _, name := range []string{"sum", "other"} {
		_, err = s.Graph(context.Background(), name)
		require.ErrorContains(t, err, "closed")
	}
	require.ErrorContains(t, s.ResetStates(), "closed")
	require.ErrorContains(t, g.SetInput("x", nil), "closed")
	_, err = g.Output("y")
	require.ErrorContains(t, err, "closed")
	_, err = g.State("acc")
	require.ErrorContains(t, err, "closed")
}

// A decimal that is not exactly an f32 is accepted for an f32 param, whose bounds are f32 values too.
func TestDecimalParam(t *testing.T) {
	third := float64(float32(0.3))
	g := &ir.Graph{
		Name:     "g",
		Params:   []ir.Param{{Name: "eps", Type: ir.F32, Min: third, Max: 1}},
		Memories: []ir.Memory{{Name: "c", Kind: ir.Argument, Alias: ir.NoMem, Size: 4, Init: ir.Init{Kind: ir.InitValues, Values: []ir.Value{{Type: ir.F32, Expr: ir.Linear(0, ir.Term{Param: 0, Coeff: 1})}}}}, {Name: "y", Kind: ir.Output, Alias: ir.NoMem, Size: 4}},
		Nodes:    []ir.Node{&ir.Copy{ID: 0, Src: ir.View{Mem: 0, Len: ir.Const(4)}, Dst: ir.View{Mem: 1, Len: ir.Const(4)}}},
	}
	p := graph(t, open(t, replay.Options{}, g), "g")
	for _, k := range []struct {
		give float64
		want float32
	}{{0.3, 0.3}, {0.7, 0.7}, {1 + 1e-9, 1}, {third, 0.3}} {
		require.NoError(t, p.SetParam("eps", k.give), "%v", k.give)
		_, err := p.Run(context.Background())
		require.NoError(t, err)
		require.Equal(t, k.want, get(p.Output("y"))[0])
	}
	for _, v := range []float64{0.29, 1.1, 1e300, math.NaN(), math.Inf(1)} {
		require.ErrorContains(t, p.SetParam("eps", v), "is outside its bound")
	}
}
