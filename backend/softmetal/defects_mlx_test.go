//go:build unix

package softmetal_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/ir"
)

// compiledKernel adds a dispatch of a kernel of MLX's library. An argument is a view or a value that is bound inline;
// nil leaves its slot unbound.
func (p *plantedGraph) compiledKernel(path, function, name string, grid, group int, constants []ir.FunctionConstant, arguments []any, want ...wanted) *ir.Dispatch {
	d := ir.Dispatch{GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(int64(grid)), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{uint32(group), 1, 1}}
	for slot, a := range arguments {
		switch a := a.(type) {
		case nil:
		case ir.View:
			d.Bindings = append(d.Bindings, ir.BufferArg(uint8(slot), a))
		default:
			d.Bindings = append(d.Bindings, ir.BytesArg(uint8(slot), ir.ValueBytes(a)))
		}
	}
	p.dispatch(ir.Kernel{Library: ir.Library{Kind: ir.Metallib, Path: path}, Function: function, Constants: constants}, d, &planted{name: name, want: want})
	return p.graph.Nodes[len(p.graph.Nodes)-2].(*ir.Dispatch)
}

// in adds an input of n floats, and out adds an output.
func (p *plantedGraph) in(n int64) ir.View {
	return ir.ViewOf(p.memory(ir.Input, 4*n, floats(4*n)), 0, 4*n)
}

func (p *plantedGraph) out(n int64) ir.View {
	return ir.ViewOf(p.memory(ir.Output, 4*n, nil), 0, 4*n)
}

// The checker finds defects in kernels that Apple's compiler made: in kernels that MLX ships, and in wrong dispatches
// of sound kernels, each beside a dispatch that is right.
func TestPlantedDefectsOfCompiledKernels(t *testing.T) {
	path := metallibs.Path(t, "0.32.4")
	p := newPlanted("compiled")
	const eps = float32(1e-5)
	bounds := func(argument string) wanted { return wanted{0, "out of bounds", argument} }
	race := wanted{0, "race", ""}

	// A thread beyond the end of a row has a negative number of elements left, and clears its
	// private array from there on.
	layerNorm := func(name string, axis int64, want ...wanted) {
		group := int(32 * ((axis + 255) / 256))
		p.compiledKernel(path, "layer_normfloat32", name, 2*group, group, nil, []any{p.in(2 * axis), p.in(axis), p.in(axis), p.out(2 * axis), eps, uint32(axis), uint32(1), uint32(1)}, want...)
	}
	vjp := func(name string, axis int64, want ...wanted) {
		group := int(32 * ((axis + 255) / 256))
		p.compiledKernel(path, "vjp_layer_normfloat32", name, 2*group, group, []ir.FunctionConstant{{Index: 20, Type: ir.Bool, Bits: 1}},
			[]any{p.in(2 * axis), p.in(axis), p.in(2 * axis), p.out(2 * axis), p.out(2 * axis), eps, uint32(axis), uint32(1)}, want...)
	}
	layerNorm("layer_norm of 64", 64, bounds("private"))
	layerNorm("layer_norm of 100", 100, bounds("private"))
	layerNorm("layer_norm of 1000", 1000, bounds("private"))
	layerNorm("layer_norm of 256", 256)
	vjp("vjp_layer_norm of 64", 64, bounds("private"))
	vjp("vjp_layer_norm of 100", 100, bounds("private"))
	vjp("vjp_layer_norm of 1000", 1000, bounds("private"))
	vjp("vjp_layer_norm of 256", 256)

	rms := func(name string, x, out ir.View, axis uint32, want ...wanted) {
		p.compiledKernel(path, "rmsfloat32", name, 64, 32, nil, []any{x, p.in(128), out, eps, axis, uint32(1)}, want...)
	}
	rms("rms", p.in(256), p.out(256), 128)
	x := p.in(256)
	rms("rms of a view that is too short", ir.View{Mem: x.Mem, Len: ir.Const(1000)}, p.out(256), 128, bounds("x"))
	rms("rms with too long an axis", p.in(256), p.out(256), 140, bounds("x"), bounds("out"))
	x = p.in(256)
	rms("rms in place", x, x, 128)
	x = p.in(320)
	rms("rms on rows shifted by some elements", ir.ViewOf(x.Mem, 0, 1024), ir.ViewOf(x.Mem, 128, 1024), 128, race)

	copies := func(name string, src, dst ir.View, threads int, want ...wanted) *ir.Dispatch {
		return p.compiledKernel(path, "v_copyfloat32float32", name, threads, 32, nil, []any{src, dst, uint32(64)}, want...)
	}
	copies("copy", p.in(64), p.out(64), 64)
	x = p.in(68)
	copies("copy onto itself, shifted", ir.ViewOf(x.Mem, 0, 256), ir.ViewOf(x.Mem, 16, 256), 64, race)
	copies("copy of too large a grid", p.in(64), p.out(64), 96, bounds("src"), bounds("dst"))
	scratch := ir.ViewOf(p.memory(ir.Scratch, 256, nil), 0, 256)
	copies("copy of what nothing has written", scratch, p.out(64), 64, wanted{0, "undefined read", "src"})
	scratch = ir.ViewOf(p.memory(ir.Scratch, 256, nil), 0, 256)
	copies("copy to scratch", p.in(64), scratch, 64)
	copies("copy of scratch", scratch, p.out(64), 64)
	src, dst := p.in(64), p.out(64)
	declared := func(reads, writes int64) *ir.Effects {
		r := func(v ir.View, n int64) ir.Region { return ir.Region{Mem: v.Mem, Run: ir.Const(n)} }
		return &ir.Effects{Complete: true, Reads: []ir.Region{r(src, reads)}, Writes: []ir.Write{{Region: r(dst, writes), Must: true}}}
	}
	copies("copy that declares less", src, dst, 64, wanted{0, "undeclared read", "src"}, wanted{0, "undeclared write", "dst"}).Effects = declared(252, 128)
	src, dst = p.in(64), p.out(64)
	copies("copy with its effects", src, dst, 64).Effects = declared(256, 256)

	p.compiledKernel(path, "arangefloat32", "arange", 64, 32, nil, []any{float32(0), float32(1), p.out(64)})
	p.compiledKernel(path, "arangefloat32", "arange of too large a grid", 65, 32, nil, []any{float32(0), float32(1), p.out(64)}, bounds("out"))
	p.compiledKernel(path, "arangefloat32", "arange that overflows", 64, 32, nil, []any{float32(0), float32(math.MaxFloat32), p.out(64)}, wanted{0, "non-finite result", "out"})
	p.compiledKernel(path, "block_softmax_float32", "softmax", 64, 32, nil, []any{p.in(256), p.out(256), int32(128)})
	p.compiledKernel(path, "block_softmax_float32", "softmax with too long an axis", 64, 32, nil, []any{p.in(256), p.out(256), int32(129)}, bounds("in"), bounds("out"))
	p.compiledKernel(path, "block_softmax_float32", "softmax of large threadgroups", 2048, 2048, nil, []any{p.in(256), p.out(256), int32(128)}, wanted{0, "limit", ""})

	d, err := softmetal.New(context.Background(), softmetal.Options{Workers: 2, Check: true})
	require.NoError(t, err)
	defer d.Close()
	defective := 0
	for _, c := range p.cases {
		if len(c.want) > 0 {
			defective++
		}
	}
	t.Logf("%d planted, %d found, %d dispatches", defective, p.compare(t, p.observe(t, d)), len(p.cases))
}
