package bind_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
)

const unknownDigest = "0000000000000000000000000000000000000000000000000000000000000000"

// named expands the names of libraries.
var named = strings.NewReplacer("A.metallib", `metallib "a.metallib" sha256 `+unknownDigest, "B.metallib", `metallib "b.metallib" sha256 `+unknownDigest)

// graphText binds everything as the compiled kernels require.
var graphText = named.Replace(`mlxt 1

graph g {
  param $n u32 in [1, 8]
  memory %x input 4096
  memory %w weight 4096 = fill 0x00000000
  memory %y output 4096
  memory %s scratch 4096
  memory %v alias %s + 1024 size 2048
  kernel @rms B.metallib "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @old A.metallib "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 readwrite, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32, 0 mean: threadgroup f32, 1 sums: threadgroup f32)
  kernel @add B.metallib "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @gemv B.metallib "gemv_wide_bfloat16_nv2_kl16" constants(0 gemv_wide_has_batch: bool false, 1 gemv_wide_do_axpby: bool false) args(0 mat: device bf16 read, 1 in_vec: device bf16 read, 2 bias: device bf16 read, 3 out_vec: device bf16 write, 4 in_vec_size: constant i32, 5 out_vec_size: constant i32, 6 M: constant i32, 7 matrix_ld: constant i32, 8 vector_ld: constant i32, 9 alpha: constant f32, 10 beta: constant f32, 11 batch_ndim: constant i32, 12 batch_shape: constant i32[], 13 vector_batch_stride: constant i64[], 14 matrix_batch_stride: constant i64[], 15 bias_batch_stride: constant i64[], 16 bias_ld: constant i32, 17 bias_fd: constant i32)
  kernel @tile B.metallib "winograd_conv_2d_weight_transform_float32_bc32" args(0 wt_in: device f32 read, 1 wt_out: device f32 write, 2 C: constant i32, 3 O: constant i32)

  #0 @rms (x = %x[0:256], w = %w[0:256], out = %s[0:256], eps = 1e-05, axis_size = 64, w_stride = $n) grid threadgroups [1, 1, 1] of [32, 1, 1]
      effects complete reads %x[0:256], %w[0:256] writes must %s[0:256]
  barrier
  #1 @old (x = %s[0:256], w = %w[0:256], out = %v[0:256], eps = 1e-05, axis_size = 64, w_stride = %w[16*$n:16*$n + 4]) threadgroup(mean = 16, sums = 128) grid threadgroups [1, 1, 1] of [32, 1, 1]
      effects complete reads %s[0:256], %w[0:256] writes may %v[0:256]
  barrier
  #2 @add (a = %v[0:256], b = %v[0:256], c = %y[0:256]) grid threads [64, 1, 1] of [64, 1, 1]
      effects complete reads %v[0:256] writes must %y[0:256]
  #3 @gemv (mat = %w[0:2048], in_vec = %x[0:64], out_vec = %y[1024:1088], in_vec_size = 32, out_vec_size = 32, M = 1, matrix_ld = 32, vector_ld = 32, batch_ndim = 1, batch_shape = [1], vector_batch_stride = [0], matrix_batch_stride = [0]) grid threadgroups [1, 1, 1] of [32, 1, 1]
  #4 @tile (wt_in = %w[0:1024], wt_out = %y[2048:4096], C = 1, O = 1) grid threadgroups [1, 1, 1] of [32, 4, 1]
      effects partial reads %w[0:1024]
  barrier
}
`)

// find returns the function that finds the libraries that graphText names.
func find(t *testing.T) bind.Find {
	libraries := map[string]bind.Library{"a.metallib": metallibs.Open(t, "0.16.3"), "b.metallib": metallibs.Open(t, "0.32.4")}
	return func(k *ir.Kernel) bind.Library { return libraries[k.Library.Path] }
}

func parse(t *testing.T, text string) *ir.Graph {
	m, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(text))
	require.NoError(t, err)
	return m.Graphs[0]
}

func TestRightBindings(t *testing.T) {
	for _, edit := range []*strings.Replacer{
		strings.NewReplacer(),
		// Effects may name the memory that an alias lies in, and a view the alias.
		strings.NewReplacer("writes may %v[0:256]", "writes may %s[1024:1280]", "reads %s[0:256], %w[0:256]", "reads %s[0:256], %w[0:4096]"),
		strings.NewReplacer("out = %v[0:256]", "out = %s[1024:1280]"),
		// What the kernel does not use need not be long enough, or be bound at all.
		strings.NewReplacer("2 c: device f32 write)", "2 c: device f32 write, 3 size: constant u32[])", "c = %y[0:256])", "c = %y[0:256], size = %w[0:1])"),
		// A conditional argument may be bound although its condition is false.
		strings.NewReplacer("in_vec = %x[0:64], ", "in_vec = %x[0:64], bias = %w[1:2], "),
	} {
		r, err := bind.Check(context.Background(), parse(t, edit.Replace(graphText)), find(t))
		require.NoError(t, err)
		assert.Empty(t, r.Faults)
		assert.Empty(t, r.Doubts)
		assert.Equal(t, 5, r.Dispatches)
	}
}

// Each wrong binding is found, and nothing else is.
func TestWrongBindings(t *testing.T) {
	const fault, doubt = false, true
	for _, c := range []struct {
		name     string
		doubt    bool
		old, new string // in graphText; behind it further pairs, cut by |
		want     string
	}{
		{"an unknown kernel", fault, `"vv_Addfloat32"`, `"vv_Add"`, `kernel @add: mlx-0.32.4.metallib has no kernel "vv_Add"`},
		{"a slot too many", fault, `2 c: device f32 write)`, `2 c: device f32 write, 4 d: device f32 read)| c = %y[0:256])| c = %y[0:256], d = %x[0:4])`, "graph g: kernel @add: slot 4 (d): the compiled kernel has no buffer argument of this number"},
		{"a threadgroup argument too many", fault, "5 w_stride: constant u32)\n  kernel @old", "5 w_stride: constant u32, 0 t: threadgroup f32)\n  kernel @old", "kernel @rms: slot 0 (t): the compiled kernel has no threadgroup argument of this number"},
		{"an argument left out of the table", fault, `, 5 w_stride: constant u32, 0 mean`, `, 0 mean|, w_stride = %w[16*$n:16*$n + 4])|)`, "kernel @old: slot 5 (w_stride): the compiled kernel takes constant uint here, and the graph's table has no such argument"},
		{"an argument that is not bound", fault, `matrix_ld = 32, `, ``, "#3 gemv_wide_bfloat16_nv2_kl16: kernel @gemv: slot 7 (matrix_ld): binds nothing, the compiled kernel takes constant int here"},
		{"a pointer that is not bound", fault, `in_vec = %x[0:64], `, ``, "kernel @gemv: slot 1 (in_vec): binds nothing, the compiled kernel takes device bfloat here"},
		{"a conditional argument that exists", fault, `gemv_wide_do_axpby: bool false`, `gemv_wide_do_axpby: bool true|batch_ndim = 1|bias = %w[0:64], alpha = 1.0, beta = 1.0, batch_ndim = 1|matrix_batch_stride = [0])|matrix_batch_stride = [0], bias_batch_stride = [0], bias_ld = 1)`, "slot 17 (bias_fd): binds nothing, the compiled kernel takes constant int here, because gemv_wide_do_axpby is true"},
		{"too short a view", fault, `%w[16*$n:16*$n + 4]`, `%w[16*$n:16*$n + 2]`, "#1 rmsfloat32: kernel @old: slot 5 (w_stride): binds %w[16*$n:16*$n + 2], 2 bytes, the compiled kernel reads 4 (uint)"},
		{"a view too short for some params", fault, `%w[16*$n:16*$n + 4]`, `%w[0:$n]`, "slot 5 (w_stride): binds %w[0:$n], as few as 1 bytes for some params, the compiled kernel reads 4 (uint)"},
		{"too few bytes", fault, "4 axis_size: constant u32, 5 w_stride: constant u32)\n  kernel @old", "4 axis_size: constant u32[], 5 w_stride: constant u32)\n  kernel @old|axis_size = 64, w_stride = $n|axis_size = hex\"4000\", w_stride = $n", "#0 rmsfloat32: kernel @rms: slot 4 (axis_size): binds 2 bytes inline, the compiled kernel reads 4 (uint)"},
		{"a scalar of another size", fault, `2 C: constant i32`, `2 C: constant u64`, "kernel @tile: slot 2 (C): the graph's table says u64, the compiled kernel takes int"},
		{"a scalar of another kind", fault, "3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)\n  kernel @old", "3 eps: constant u32, 4 axis_size: constant u32, 5 w_stride: constant u32)\n  kernel @old|eps = 1e-05, axis_size = 64, w_stride = $n|eps = 925353388, axis_size = 64, w_stride = $n", "kernel @rms: slot 3 (eps): the graph's table says u32, the compiled kernel takes float"},
		{"a read that is written", fault, `2 c: device f32 write)`, `2 c: device f32 read)|complete reads %v[0:256] writes must %y[0:256]|partial reads %v[0:256]`, "kernel @add: slot 2 (c): the graph's table says device read, the compiled kernel writes it (device readwrite)"},
		{"a constant that is written", fault, `2 c: device f32 write)`, `2 c: constant f32)|complete reads %v[0:256] writes must %y[0:256]|partial reads %v[0:256]`, "kernel @add: slot 2 (c): the graph's table says constant, the compiled kernel writes it (device readwrite)"},
		{"a write that is only read", fault, `1 b: device f32 read, 2 c`, `1 b: device f32 readwrite, 2 c`, "kernel @add: slot 1 (b): the graph's table says device readwrite, the compiled kernel only reads it (device read)"},
		{"a declared write through a read", fault, `b = %v[0:256], c`, `b = %s[512:768], c|1 b: device f32 read, 2 c|1 b: device f32 readwrite, 2 c|reads %v[0:256] writes must %y[0:256]|reads %v[0:256], %s[512:768] writes must %y[0:256], may %s[512:516]`, "kernel @add: slot 1 (b): the graph's table says device readwrite, the compiled kernel only reads it (device read)|#2 vv_Addfloat32: kernel @add: slot 1 (b): declares a write of %s[512:516], and the compiled kernel only reads this argument"},
		{"a declared write through an argument that is not there", fault, `in_vec = %x[0:64], `, `in_vec = %x[0:64], bias = %s[0:64], |of [32, 1, 1]
  #4|of [32, 1, 1] effects partial writes may %s[0:64]
  #4|2 bias: device bf16 read|2 bias: device bf16 readwrite`, "#3 gemv_wide_bfloat16_nv2_kl16: kernel @gemv: slot 2 (bias): declares a write of %s[0:64], and the compiled kernel does not have this argument, because gemv_wide_do_axpby is false"},
		{"a declared write through an unused argument", fault, `2 c: device f32 write)`, `2 c: device f32 write, 3 size: device u32 readwrite)|c = %y[0:256])|c = %y[0:256], size = %s[0:4])|must %y[0:256]|must %y[0:256], may %s[0:4]`, "kernel @add: slot 3 (size): declares a write of %s[0:4], and the compiled kernel does not use this argument"},
		{"a declared write of what nothing binds", fault, `writes must %s[0:256]`, `writes must %s[0:256], may %y[0:4]`, "#0 rmsfloat32: kernel @rms: declares a write of %y[0:4], which no argument binds"},
		{"too many threads", fault, `of [32, 4, 1]`, `of [32, 4, 2]`, "#4 winograd_conv_2d_weight_transform_float32_bc32: kernel @tile: a threadgroup has 256 threads, the kernel was compiled for 128 at most"},
		{"a threadgroup argument without a length", fault, `threadgroup(mean = 16, sums = 128)`, `threadgroup(mean = 16)`, "#1 rmsfloat32: kernel @old: threadgroup argument 1 (local_sums, float) has no length"},
		{"a threadgroup argument left out of the table", fault, `, 1 sums: threadgroup f32)`, `)|threadgroup(mean = 16, sums = 128)|threadgroup(mean = 16)`, "kernel @old: slot 1 (local_sums): the compiled kernel takes threadgroup float here"},
		{"a function constant without a value", fault, `, 1 gemv_wide_do_axpby: bool false`, ``, "kernel @gemv: function constant 1 (gemv_wide_do_axpby, bool) has no value"},
		{"a function constant of another type", fault, `gemv_wide_do_axpby: bool false`, `gemv_wide_do_axpby: u32 0`, "kernel @gemv: function constant 1 (gemv_wide_do_axpby) is of type bool, the graph gives u32"},
		{"a function constant of another name", fault, `1 gemv_wide_do_axpby: bool false`, `1 axpby: bool false`, "kernel @gemv: function constant 1 is gemv_wide_do_axpby, the graph calls it axpby"},
		{"a function constant too many", doubt, `1 gemv_wide_do_axpby: bool false`, `1 gemv_wide_do_axpby: bool false, 7 more: bool true`, "kernel @gemv: the compiled kernel has no function constant 7 (more)"},
		{"a place between elements", fault, `a = %v[0:256]`, `a = %v[2:256]`, "#2 vv_Addfloat32: kernel @add: slot 0 (a): binds %v[2:256], which begins at byte 1026 of %s: float begins at multiples of 4"},
		{"a place between elements of an alias", fault, `a = %v[0:256]`, "a = %u[0:256]|\n  kernel @rms|\n  memory %u alias %v + 6 size 512\n  kernel @rms|complete reads %v[0:256] writes must %y|complete reads %v[0:256], %u[0:256] writes must %y", "#2 vv_Addfloat32: kernel @add: slot 0 (a): binds %u[0:256], which begins at byte 1030 of %s: float begins at multiples of 4"},
		{"a table of another type", doubt, `0 wt_in: device f32 read`, `0 wt_in: device f16 read`, "kernel @tile: slot 0 (wt_in): the graph's table says f16, the compiled kernel takes a pointer to float"},
		{"inline bytes shorter than an element", doubt, `vector_batch_stride = [0]`, `vector_batch_stride = hex"00000000"`, "kernel @gemv: slot 13 (vector_batch_stride): binds 4 bytes inline, one long has 8"},
		{"a view shorter than an element", doubt, `in_vec = %x[0:64]`, `in_vec = %x[0:1]`, "slot 1 (in_vec): binds %x[0:1], 1 bytes, one bfloat has 2"},
		{"a write that the effects lack", doubt, `writes may %v[0:256]`, ``, "#1 rmsfloat32: kernel @old: slot 2 (out): the compiled kernel may write %v[0:256], and the effects, which claim to be complete, list no write of it"},
		{"a read that the effects lack", doubt, `reads %s[0:256], %w[0:256]`, `reads %w[0:256]`, "#1 rmsfloat32: kernel @old: slot 0 (x): the compiled kernel reads %s[0:256], and the effects, which claim to be complete, list no read of it"},
		{"much threadgroup memory", doubt, "\n  #0", `
  kernel @attention B.metallib "steel_attention_float32_bq32_bk16_bd192_bv192_wm4_wn1_maskbool_" constants(200 align_Q: bool true, 201 align_K: bool true, 300 has_mask: bool false, 301 do_causal: bool false, 302 has_sinks: bool false, 303 save_lse: bool false) args(0 Q: device f32 read, 1 K: device f32 read, 2 V: device f32 read, 3 O: device f32 write, 4 params: constant u8[])
  #9 @attention (Q = %w, K = %w, V = %w, O = %y, params = %w[0:160]) grid threadgroups [1, 1, 1] of [32, 4, 1]
  barrier
  #0`, "#9 steel_attention_float32_bq32_bk16_bd192_bv192_wm4_wn1_maskbool_: kernel @attention: 40448 bytes of threadgroup memory, 40448 of them the kernel's own: many devices have 32768"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := graphText
			pairs := append([]string{c.old}, strings.Split(c.new, "|")...)
			for i := 0; i+1 < len(pairs); i += 2 {
				require.Equal(t, 1, strings.Count(text, pairs[i]), pairs[i])
				text = strings.Replace(text, pairs[i], pairs[i+1], 1)
			}
			text = named.Replace(text)
			r, err := bind.Check(context.Background(), parse(t, text), find(t))
			require.NoError(t, err)
			got, none := r.Faults, r.Doubts
			if c.doubt {
				got, none = none, got
			}
			wants := strings.Split(c.want, "|")
			require.Len(t, got, len(wants), "%v", got)
			for i, want := range wants {
				assert.Contains(t, got[i].String(), want)
			}
			assert.Empty(t, none)
		})
	}
}

// compiled makes those kernels of a graph that MLX's library has refer to that library.
func compiled(t *testing.T, g *ir.Graph) *ir.Graph {
	lib := metallibs.Open(t, "0.32.4")
	for i := range g.Kernels {
		if _, err := lib.Kernel(g.Kernels[i].Function); err == nil {
			g.Kernels[i].Library = ir.Library{Kind: ir.Metallib, Path: "b.metallib"}
		}
	}
	return g
}

// Recordings with kernels named like MLX's bind what MLX's compiled kernels require, and their declarations list no
// byte that the compiled kernel cannot touch.
func TestRecordings(t *testing.T) {
	find := find(t)
	dispatches := 0
	for _, name := range recorded.Names(t) {
		g := compiled(t, recorded.Graph(t, name))
		r, err := bind.Check(context.Background(), g, find)
		require.NoError(t, err)
		assert.Empty(t, r.Faults, name)
		assert.Empty(t, r.Doubts, name)
		dispatches += r.Dispatches

		declared := recorded.Graph(t, name)
		cache := msl.NewCache(declared)
		for i, n := range declared.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok || g.Kernels[d.Kernel].Library.Kind != ir.Metallib {
				continue
			}
			e, err := cache.Describe(d)
			require.NoError(t, err)
			k, err := find(&g.Kernels[d.Kernel]).Describe(g.Kernels[d.Kernel].Function)
			require.NoError(t, err)
			bound := bind.Effects(g, g.Nodes[i].(*ir.Dispatch), k)
			require.True(t, bound.Complete)
			var writes []ir.Region
			for _, w := range bound.Writes {
				assert.False(t, w.Must)
				writes = append(writes, w.Region)
			}
			for _, r := range e.Reads {
				assert.True(t, inside(g, r, bound.Reads), "%s of %s reads %s", g.Describe(d), name, g.FormatRegion(r))
			}
			for _, w := range e.Writes {
				assert.True(t, inside(g, w.Region, writes), "%s of %s writes %s", g.Describe(d), name, g.FormatRegion(w.Region))
			}
		}
	}
	assert.Greater(t, dispatches, 50)
}

// inside reports whether one of the regions contains r, at sample values of the params.
func inside(g *ir.Graph, r ir.Region, regions []ir.Region) bool {
	root, off := g.Root(r.Mem)
	lo, end := r.Hull()
	for _, b := range regions {
		in, at := g.Root(b.Mem)
		from, to := b.Hull()
		contains := in == root
		for _, p := range g.Samples(8) {
			contains = contains && from.Eval(p)+at <= lo.Eval(p)+off && end.Eval(p)+off <= to.Eval(p)+at
		}
		if contains {
			return true
		}
	}
	return false
}

// A bound is as narrow as the arguments allow.
func TestEffects(t *testing.T) {
	g := parse(t, graphText)
	find := find(t)
	n, err := bind.Bound(context.Background(), g, find)
	require.NoError(t, err)
	assert.Equal(t, 2, n, "of two dispatches the effects are not known")
	text := func(id ir.ID) (out []string) {
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok && d.ID == id {
				assert.True(t, d.Effects.Complete)
				for _, r := range d.Effects.Reads {
					out = append(out, "read "+g.FormatRegion(r))
				}
				for _, w := range d.Effects.Writes {
					out = append(out, "write "+g.FormatRegion(w.Region))
				}
			}
		}
		return out
	}
	assert.Equal(t, []string{"read %w[0:4096]", "read %x[0:4096]", "read %y[0:4096]", "write %y[0:4096]"}, text(3))
	assert.Equal(t, []string{"read %w[0:4096]", "read %y[0:4096]", "write %y[0:4096]"}, text(4))
	require.NoError(t, g.Check())

	// Given effects are kept. A reference touches only its own bytes.
	assert.Equal(t, []string{"read %s[0:256]", "read %w[0:256]", "write %v[0:256]"}, text(1))
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			d.Effects = nil
		}
	}
	n, err = bind.Bound(context.Background(), g, find)
	require.NoError(t, err)
	assert.Equal(t, 5, n)
	assert.Equal(t, []string{"read %s[0:4096]", "read %w[0:4096]", "read %w[16*$n:16*$n + 4]", "write %s[0:4096]"}, text(1))
	require.NoError(t, g.Check())

	// Nothing is touched through an argument that is unused, or that does not exist.
	g = parse(t, strings.NewReplacer("2 c: device f32 write)", "2 c: device f32 write, 3 size: device u32 read)", "c = %y[0:256])", "c = %y[0:256], size = %x[0:4])",
		"in_vec = %x[0:64], ", "in_vec = %x[0:64], bias = %s[0:64], ").Replace(graphText))
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			d.Effects = nil
		}
	}
	_, err = bind.Bound(context.Background(), g, find)
	require.NoError(t, err)
	assert.Equal(t, []string{"read %s[0:4096]", "read %y[0:4096]", "write %y[0:4096]"}, text(2))
	assert.Equal(t, []string{"read %w[0:4096]", "read %x[0:4096]", "read %y[0:4096]", "write %y[0:4096]"}, text(3))
}

// Of many findings only some are listed, and the others counted. Check ends with its context.
func TestMany(t *testing.T) {
	text, dispatch := strings.CutSuffix(graphText, "}\n")
	require.True(t, dispatch)
	for i := range 300 {
		text += fmt.Sprintf("  #%d @tile (wt_in = %%w[0:1024], wt_out = %%y[2048:4096], C = 1, O = 1) grid threadgroups [1, 1, 1] of [32, 8, 1]\n", 100+i)
	}
	g := parse(t, text+"}\n")
	r, err := bind.Check(context.Background(), g, find(t))
	require.NoError(t, err)
	assert.Len(t, r.Faults, 100)
	assert.Equal(t, 200, r.More)
	assert.Equal(t, 305, r.Dispatches)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = bind.Check(ctx, g, find(t))
	assert.ErrorIs(t, err, context.Canceled)
	_, err = bind.Bound(ctx, g, find(t))
	assert.ErrorIs(t, err, context.Canceled)

	r, err = bind.Check(context.Background(), g, func(*ir.Kernel) bind.Library { return nil })
	require.NoError(t, err)
	assert.Zero(t, *r)
}

// The graph's kernel that is made from a compiled one is valid and contradicts it nowhere, for every kernel of both
// libraries.
func TestKernels(t *testing.T) {
	sample.Seldom(t)
	find := find(t)
	for path, version := range map[string]string{"a.metallib": "0.16.3", "b.metallib": "0.32.4"} {
		lib := metallibs.Open(t, version)
		g := &ir.Graph{Name: "g"}
		for i := range lib.Kernels {
			compiled, err := lib.Describe(lib.Kernels[i].Name)
			require.NoError(t, err)
			k, err := bind.Kernel(compiled, ir.Library{Kind: ir.Metallib, Path: path})
			require.NoError(t, err, compiled.Name)
			g.Kernels = append(g.Kernels, k)
		}
		require.NoError(t, g.Check())
		r, err := bind.Check(context.Background(), g, find)
		require.NoError(t, err)
		assert.Equal(t, bind.Report{}, *r)
	}

	rms, err := metallibs.Open(t, "0.16.3").Describe("rmsfloat32")
	require.NoError(t, err)
	k, err := bind.Kernel(rms, ir.Library{Kind: ir.Metallib, Path: "a.metallib"})
	require.NoError(t, err)
	assert.Equal(t, []ir.Arg{
		{Slot: 0, Name: "x", Type: ir.F32}, {Slot: 1, Name: "w", Type: ir.F32}, {Slot: 2, Name: "out", Type: ir.F32, Access: ir.ReadWriteArg},
		{Slot: 3, Name: "eps", Kind: ir.ConstantArg, Type: ir.F32, Count: 1}, {Slot: 4, Name: "axis_size", Kind: ir.ConstantArg, Type: ir.U32, Count: 1},
		{Slot: 5, Name: "w_stride", Kind: ir.ConstantArg, Type: ir.U32, Count: 1},
		{Slot: 0, Name: "local_inv_mean", Kind: ir.ThreadgroupArg, Type: ir.F32, Access: ir.ReadWriteArg},
		{Slot: 1, Name: "local_sums", Kind: ir.ThreadgroupArg, Type: ir.F32, Access: ir.ReadWriteArg},
	}, k.Args)

	for _, c := range []struct {
		k    air.Kernel
		want string
	}{
		{air.Kernel{Args: []air.Arg{{Name: "x", Index: 31, Space: air.Device}}}, "argument 0 (x) is at slot 31, a graph can bind slots 0 to 30"},
		{air.Kernel{Args: []air.Arg{{Name: "x", Space: air.Device}, {Name: "y", Space: air.Constant}}}, "arguments x and y are at one slot, 0"},
		{air.Kernel{Constants: []air.FunctionConstant{{Name: "c", Index: 3, Type: "float4"}}}, "function constant 3 (c) is of type float4, which a graph cannot give"},
	} {
		_, err := bind.Kernel(&c.k, ir.Library{Kind: ir.Metallib, Path: "p"})
		assert.EqualError(t, err, c.want)
	}
	k, err = bind.Kernel(&air.Kernel{Name: "k", Args: []air.Arg{{Index: 2, Space: air.Device, Access: air.Write, Type: "S"}, {Name: "x", Index: 1, Space: air.Device, Access: air.Read}, {Name: "x", Index: 0, Space: air.Constant, Size: 12, Type: "packed_int3"}}}, ir.Library{})
	require.NoError(t, err)
	assert.Equal(t, []ir.Arg{{Slot: 0, Name: "constant0", Kind: ir.ConstantArg, Type: ir.I32, Count: 3}, {Slot: 1, Name: "x", Type: ir.U8}, {Slot: 2, Name: "device2", Type: ir.U8, Access: ir.WriteArg}}, k.Args)
}
