package passes_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/decoders"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// layer16 is part of a layer of a decoder in a 16-bit type, T, named N by kernels and N_t by products: a sum, its norm
// by a weight of its own, gate and up, silu and product, and the residual.
const layer16 = `mlxt 1

graph layer {
  memory %x input 1024 T[512]
  memory %r input 1024 T[512]
  memory %one weight 4 T[2] = fill ONES
  memory %w weight 1024 T[512] = random seed 7
  memory %codes weight 131072 u32[32768] = random seed 7
  memory %scales weight 8192 T[4096] = random seed 7
  memory %y output 1024 T[512]
  memory %h scratch 1024 T[512]
  memory %n scratch 1024 T[512]
  memory %v scratch 1024 T[512]
  memory %g scratch 1024 T[512]
  memory %u scratch 1024 T[512]
  memory %s scratch 1024 T[512]
  memory %a scratch 1024 T[512]
  memory %d scratch 1024 T[512]
  kernel @add builtin "vv_AddN" args(0 a: device T read, 1 b: device T read, 2 c: device T write)
  kernel @mul builtin "vv_MultiplyN" args(0 a: device T read, 1 b: device T read, 2 c: device T write)
  kernel @silu builtin "v_SiluNN" args(0 in: device T read, 1 out: device T write)
  kernel @rms builtin "rmsN" args(0 x: device T read, 1 w: device T read, 2 out: device T write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @qmv builtin "affine_qmv_fast_N_t_gs_64_b_4_batch_0_pr_0_hgs_0_r_4" args(0 w: device u32 read, 1 scales: device T read, 2 biases: device T read, 3 x: device T read, 4 y: device T write, 5 in_vec_size: constant i32, 6 out_vec_size: constant i32)

  #0 @add (a = %x[0:1024], b = %r[0:1024], c = %h[0:1024]) grid threads [512, 1, 1] of [256, 1, 1]
  barrier
  #1 @rms (x = %h[0:1024], w = %one[0:2], out = %n[0:1024], eps = 1e-05, axis_size = 512, w_stride = 0) grid threadgroups [1, 1, 1] of [128, 1, 1]
  barrier
  #2 @mul (a = %w[0:1024], b = %n[0:1024], c = %v[0:1024]) grid threads [512, 1, 1] of [256, 1, 1]
  barrier
  #3 @qmv (w = %codes[0:131072], scales = %scales[0:8192], biases = %scales[0:8192], x = %v[0:1024], y = %g[0:1024], in_vec_size = 512, out_vec_size = 512) grid threadgroups [1, 64, 1] of [32, 2, 1]
  #4 @qmv (w = %codes[0:131072], scales = %scales[0:8192], biases = %scales[0:8192], x = %v[0:1024], y = %u[0:1024], in_vec_size = 512, out_vec_size = 512) grid threadgroups [1, 64, 1] of [32, 2, 1]
  barrier
  #5 @silu (in = %g[0:1024], out = %s[0:1024]) grid threads [512, 1, 1] of [256, 1, 1]
  barrier
  #6 @mul (a = %s[0:1024], b = %u[0:1024], c = %a[0:1024]) grid threads [512, 1, 1] of [256, 1, 1]
  barrier
  #7 @qmv (w = %codes[0:131072], scales = %scales[0:8192], biases = %scales[0:8192], x = %a[0:1024], y = %d[0:1024], in_vec_size = 512, out_vec_size = 512) grid threadgroups [1, 64, 1] of [32, 2, 1]
  barrier
  #8 @add (a = %h[0:1024], b = %d[0:1024], c = %y[0:1024]) grid threads [512, 1, 1] of [256, 1, 1]
}
`

// TestLayersOf16BitsAreFused: fuse makes of a layer in f16 or bf16 what it makes of one in f32, and the result is
// proved to have the same bits.
func TestLayersOf16BitsAreFused(t *testing.T) {
	for _, c := range []struct{ typ, name, ones string }{{"f16", "float16", "0x3c003c00"}, {"bf16", "bfloat16", "0x3f803f80"}} {
		layer := func(ones string) *ir.Graph {
			text := strings.NewReplacer("T[", c.typ+"[", "device T", "device "+c.typ, "ONES", ones, "_N_t", "_"+c.name+"_t",
				"AddN", "Add"+c.name, "MultiplyN", "Multiply"+c.name, "SiluNN", "Silu"+c.name+c.name, "rmsN", "rms"+c.name).Replace(layer16)
			m, err := mlxt.Parse(context.Background(), "test", []byte(text))
			require.NoError(t, err)
			require.NoError(t, m.Check())
			return m.Graphs[0]
		}
		recorded := layer(c.ones)
		g := recorded.Clone()
		p, err := passes.ParsePipeline("annotate,fuse,dce")
		require.NoError(t, err)
		_, err = passes.Run(context.Background(), g, p, passes.Options{})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, prove.Check(context.Background(), recorded, g, prove.Options{}).Verdict)
		require.NotEqual(t, prove.Proved, prove.Check(context.Background(), layer("0x40004000"), g, prove.Options{}).Verdict, "a norm by another weight")
		var kernels []string
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				kernels = append(kernels, g.Kernels[d.Kernel].Function)
			}
		}
		require.Equal(t, []string{
			"add_rms" + c.name, "affine_qmv_fast_silu_mul_" + c.name + "_t_gs_64_b_4", "affine_qmv_fast_add_" + c.name + "_t_gs_64_b_4",
		}, kernels)
	}
}

// halved is an offset or a length in bytes of elements that have half as many.
func halved(a ir.Affine) ir.Affine {
	terms := slices.Clone(a.Terms())
	for i := range terms {
		terms[i].Coeff /= 2
	}
	return ir.Linear(a.Const/2, terms...)
}

// narrowed is a graph of library kernels with all f32 in memory in place of a 16-bit type. ok is false if the library
// lacks a kernel of that type.
func narrowed(t *testing.T, g *ir.Graph, typ ir.DType, word string) (out *ir.Graph, ok bool) {
	t.Helper()
	g = g.Clone()
	names := strings.NewReplacer("float32float32", word+word, "float32", word, "_float_", "_"+word+"_t_")
	narrow := map[ir.MemID]bool{}
	place := func(v *ir.View) {
		if root, _ := g.Root(v.Mem); narrow[root] {
			v.Off, v.Len = halved(v.Off), halved(v.Len)
		}
	}
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		k := &g.Kernels[d.Kernel]
		for _, b := range d.Bindings {
			if a, ok := k.Arg(b.Slot); ok && a.Type == ir.F32 && a.Kind == ir.DeviceArg {
				if b.Kind != ir.BindView {
					return nil, false
				}
				root, _ := g.Root(b.View.Mem)
				narrow[root] = true
			}
		}
	}
	for range g.Nodes { // what is copied to or from such a memory is of the type too
		for _, n := range g.Nodes {
			if c, ok := n.(*ir.Copy); ok {
				src, _ := g.Root(c.Src.Mem)
				dst, _ := g.Root(c.Dst.Mem)
				narrow[src], narrow[dst] = narrow[src] || narrow[dst], narrow[src] || narrow[dst]
			}
		}
	}
	for i := range g.Kernels {
		k := &g.Kernels[i]
		ds := msl.Declarations(names.Replace(k.Function))
		if ds == nil || k.Function == "embed_float32" { // embed_float16 makes f32 of rows in f16
			return nil, false
		}
		*k = ds[0].Kernel(k.Name, k.Constants...)
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if root, _ := g.Root(ir.MemID(i)); !narrow[root] {
			continue
		}
		m.Size, m.AliasOff = m.Size/2, m.AliasOff/2
		if m.DType == ir.F32 {
			m.DType = typ
		}
		if p := m.Init.Pattern; m.Init.Kind == ir.InitFill && p == [4]byte{0, 0, 0x80, 0x3f} {
			m.Init.Pattern = [4]byte{0, 0x3c, 0, 0x3c}
			if typ == ir.BF16 {
				m.Init.Pattern = [4]byte{0x80, 0x3f, 0x80, 0x3f}
			}
		}
	}
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Dispatch:
			n.Effects = nil
			for i := range n.Bindings {
				if n.Bindings[i].Kind == ir.BindView {
					place(&n.Bindings[i].View)
				}
			}
		case *ir.Copy:
			place(&n.Src)
			place(&n.Dst)
		case *ir.Carry:
			place(&n.Src)
			place(&n.Dst)
		case *ir.Fill:
			place(&n.Dst)
		}
	}
	require.NoError(t, g.Check())
	return g, true
}

// TestDecodersOf16BitsAreFusedAsThoseOfF32: of random decoders whose kernels the library has in 16 bits, fuse leaves no
// more dispatches in f16 and in bf16 than in f32. What it leaves is proved. It can leave fewer: in 16 bits a number times
// its sigmoid is silu to the bit, and in f32, where silu is one division, it is not.
func TestDecodersOf16BitsAreFusedAsThoseOfF32(t *testing.T) {
	fused := func(g *ir.Graph) int {
		p, err := passes.ParsePipeline("annotate,fuse,dce")
		require.NoError(t, err)
		after := g.Clone()
		_, err = passes.Run(context.Background(), after, p, passes.Options{})
		require.NoError(t, err)
		require.Equal(t, prove.Proved, prove.Check(context.Background(), g, after, prove.Options{}).Verdict)
		return after.Stats().Dispatches
	}
	tried := 0
	for seed := uint64(0); tried < 4 && seed < 200; seed++ {
		g, err := decoders.Graph(seed)
		require.NoError(t, err)
		half, ok := narrowed(t, g, ir.F16, "float16")
		if !ok {
			continue
		}
		tried++
		want := fused(g)
		require.LessOrEqual(t, fused(half), want, "seed %d, f16", seed)
		bfloat, ok := narrowed(t, g, ir.BF16, "bfloat16")
		require.True(t, ok)
		require.LessOrEqual(t, fused(bfloat), want, "seed %d, bf16", seed)
		t.Logf("seed %d: %d dispatches", seed, want)
	}
	require.Equal(t, 4, tried)
}
