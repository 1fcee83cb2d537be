//go:build linux && (amd64 || arm64)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/backend/internal/ptxcode"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// TestTensorCores: tensor cores multiply f32 where the kernel's declaration gives each sum enough terms, and factors
// of 16 bits where nothing bounds the error of sums.
func TestTensorCores(t *testing.T) {
	for _, x := range []struct {
		function string
		depth    int32
		own      bool // a kernel of the library
		most     nvptx.MMA
		want     nvptx.MMA
	}{
		{"gemm_nt_float32", 32, true, nvptx.AllMMA, nvptx.AllMMA},
		{"gemm_nt_float32", 31, true, nvptx.AllMMA, nvptx.NoMMA},
		{"gemm_nt_silu_mul_float32", 31, true, nvptx.AllMMA, nvptx.NoMMA},
		{"gemm_nt_silu_mul_float32", 40, true, nvptx.AllMMA, nvptx.AllMMA},
		{"gemm_nt_float32", 64, true, nvptx.NoMMA, nvptx.NoMMA},
		{"gemm_nt_float32", 64, false, nvptx.AllMMA, nvptx.HalfMMA},
	} {
		b := ir.NewBuilder("products")
		k := msl.Declarations(x.function)[0].Kernel("k")
		if !x.own {
			k.Library = ir.Library{Kind: ir.SourceFile, Path: "theirs.metal"}
		}
		id := b.Kernel(k)
		floats := func(name string, kind ir.MemKind, n int32) ir.View {
			m := b.Memory(ir.Memory{Name: name, Kind: kind, Size: 4 * int64(n), Align: 256})
			return ir.View{Mem: m, Len: ir.Const(4 * int64(n))}
		}
		var bindings []ir.Binding
		for _, a := range k.Args {
			switch {
			case a.Kind == ir.ConstantArg && a.Name == "K":
				bindings = append(bindings, ir.BytesArg(a.Slot, ir.ValueBytes(x.depth)))
			case a.Kind == ir.ConstantArg:
				bindings = append(bindings, ir.BytesArg(a.Slot, ir.ValueBytes(int32(32))))
			case a.Access == ir.ReadArg:
				bindings = append(bindings, ir.BufferArg(a.Slot, floats(a.Name, ir.Input, 32*x.depth)))
			default:
				bindings = append(bindings, ir.BufferArg(a.Slot, floats(a.Name, ir.Output, 32*32)))
			}
		}
		b.Dispatch(ir.Dispatch{Kernel: id, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, GridKind: ir.Threadgroups, Threadgroup: [3]uint32{32, 2, 2}, Bindings: bindings})
		g := b.Unfinished()
		c := &code{Stored: &plan.Stored{Plan: &plan.Plan{Graph: g}}, nodes: g.Nodes, mma: x.most}
		s := &step{kernel: &kernel{code: &ptxcode.Code{Matrices: true}}}
		for i, n := range g.Nodes {
			if _, ok := n.(*ir.Dispatch); ok {
				s.node = int32(i)
			}
		}
		require.Equal(t, x.want, c.multiplied(s), "%+v", x)
		s.kernel.code.Matrices = false
		assert.Equal(t, nvptx.NoMMA, c.multiplied(s), "%+v", x)
	}
}
