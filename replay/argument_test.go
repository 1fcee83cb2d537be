package replay_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/replay"
)

// lazy is a device whose runs happen when somebody waits for them, as late as a
// GPU may.
type lazy struct{ *cpu.Device }

type lazyExecutable struct{ backend.Executable }

type lazyRun struct {
	e      backend.Executable
	params []uint32
	ran    bool
}

func (d lazy) Compile(p *backend.Program) (backend.Executable, error) {
	e, err := d.Device.Compile(p)
	return lazyExecutable{e}, err
}

func (e lazyExecutable) Submit(_ context.Context, params []uint32) (backend.Pending, error) {
	return &lazyRun{e: e.Executable, params: slices.Clone(params)}, nil
}

func (r *lazyRun) Wait() (backend.Timing, error) {
	if r.ran {
		panic("a run is waited for twice")
	}
	r.ran = true
	p, err := r.e.Submit(context.Background(), r.params)
	if err != nil {
		return backend.Timing{}, err
	}
	return p.Wait()
}

// norm is a norm whose eps is a param, bound by way of argument memory.
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

// A run reads the arguments of its own params, though the next one is submitted
// before it has begun.
func TestArgumentsOfRunsInFlight(t *testing.T) {
	d := lazy{cpu.New(1)}
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{norm(t)}}, replay.Options{})
	require.NoError(t, err)
	defer s.Close()
	p := graph(t, s, "norm")
	put(p.Input("x"), 1, 1, 1, 1)
	require.NoError(t, p.SetParam("eps", 0))
	first, err := p.Submit(context.Background())
	require.NoError(t, err)
	require.NoError(t, p.SetParam("eps", 3))
	second, err := p.Submit(context.Background())
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1, 1, 1}, get(p.Output("y")), "1 / sqrt(1 + 0), before the arguments of the second run are written")
	for range 2 { // whoever submitted may wait, once more or not
		_, err = first.Wait()
		require.NoError(t, err)
	}
	_, err = second.Wait()
	require.NoError(t, err)
	require.Equal(t, []float32{0.5, 0.5, 0.5, 0.5}, get(p.Output("y")), "1 / sqrt(1 + 3)")
}
