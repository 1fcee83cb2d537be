package replay_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/replay"
)

// norm records a norm whose eps is a param that the dispatch reads from argument memory.
func norm(t *testing.T) *ir.Graph {
	b := ir.NewBuilder("norm")
	eps := ir.Linear(0, ir.Term{Param: b.ParamF32("eps", 0, 4), Coeff: 1})
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 16})
	one := b.Memory(ir.Memory{Name: "one", Kind: ir.Weight, Size: 4, Init: ir.FillU32(0x3f800000)})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 16})
	a := b.Memory(ir.Memory{Name: "arguments", Kind: ir.Argument, Size: 96, Init: ir.Init{Kind: ir.InitValues, Values: []ir.Value{
		{Off: 0, Type: ir.F32, Expr: eps}, {Off: 32, Type: ir.U32, Bytes: ir.ValueBytes(uint32(4))}, {Off: 64, Type: ir.U32, Bytes: ir.ValueBytes(uint32(0))},
	}}})
	b.Dispatch(ir.Dispatch{
		Kernel: b.Kernel(msl.Declarations("rmsfloat32")[0].Kernel("rms")), Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1},
		Bindings: []ir.Binding{
			ir.BufferArg(0, ir.ViewOf(x, 0, 16)), ir.BufferArg(1, ir.ViewOf(one, 0, 4)), ir.BufferArg(2, ir.ViewOf(y, 0, 16)),
			ir.BufferArg(3, ir.ViewOf(a, 0, 4)), ir.BufferArg(4, ir.ViewOf(a, 32, 4)), ir.BufferArg(5, ir.ViewOf(a, 64, 4)),
		},
	})
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// Runs in flight use the params, inputs and outputs of their own frames. Setting something in a frame waits for the
// frame's run in flight.
func TestFramesInFlight(t *testing.T) {
	c := cpu.New(1)
	defer c.Close()
	for _, private := range []bool{false, true} {
		d := testdevice.New(c, testdevice.Options{Hold: true, Private: private})
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{norm(t)}}, replay.Options{})
		require.NoError(t, err)
		g := graph(t, s, "norm")
		var frames []*replay.Frame
		var runs []*replay.Run
		for i := range 3 {
			f := g.Frame
			if i > 0 {
				f, err = g.NewFrame(context.Background())
				require.NoError(t, err)
			}
			require.NoError(t, f.SetInput("x", ir.ValueBytes([]float32{1, 1, 1, float32(i + 1)})))
			require.NoError(t, f.SetParam("eps", float64(i)))
			r, err := f.Submit(context.Background())
			require.NoError(t, err)
			frames, runs = append(frames, f), append(runs, r)
		}
		again := make(chan error)
		require.NoError(t, frames[0].SetParam("eps", 3)) // for the next run of this frame
		go func() {
			_, err := frames[0].Run(context.Background())
			again <- err
		}()
		select {
		case <-again:
			t.Fatal("a frame in flight was submitted")
		case <-time.After(20 * time.Millisecond):
		}
		for i, r := range runs {
			require.Equal(t, backend.Committed, r.Status())
			d.Release(1)
			for range 2 { // Wait may be called repeatedly
				_, err := r.Wait(context.Background())
				require.NoError(t, err)
			}
			if i > 0 {
				m := float32(i + 1)
				want := float32(1 / math.Sqrt(float64(3+m*m)/4+float64(i)))
				require.InDeltaSlice(t, []float32{want, want, want, m * want}, get(frames[i].Output("y")), 1e-6)
			}
		}
		d.ReleaseAll()
		require.NoError(t, <-again)
		require.Equal(t, []float32{0.5, 0.5, 0.5, 0.5}, get(frames[0].Output("y")), "1 / sqrt(1 + 3)")
		require.NoError(t, s.Close())
		require.Empty(t, d.Leaks())
	}
}
