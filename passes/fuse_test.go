package passes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// fusable draws a graph of norms, sums, products and copies of one row of 64
// elements over a small arena, so that intermediates are reused, overwritten,
// shared and moved: some groups in it may be fused and most may not.
func fusable(t *rapid.T) *ir.Graph {
	b := ir.NewBuilder("g")
	kernel := func(f string) ir.KernelID { return b.Kernel(fusableKernels()[f]) }
	rms, mul, add, cp := kernel("rmsfloat32"), kernel("vv_Multiplyfloat32"), kernel("vv_Addfloat32"), kernel("v_copyfloat32float32")
	const row = 256
	memory := func(name string, kind ir.MemKind, rows int64, init ir.Init) ir.MemID {
		return b.Memory(ir.Memory{Name: name, Kind: kind, Size: rows * row, DType: ir.F32, Init: init})
	}
	x := memory("x", ir.Input, 1, ir.Init{})
	s := memory("s", ir.Weight, 1, ir.Init{Kind: ir.InitRandom, Seed: 3})
	one := memory("one", ir.Weight, 1, ir.FillU32(0x3f800000))
	st := memory("st", ir.State, 2, ir.FillU32(0x3f800000))
	y := memory("y", ir.Output, 2, ir.Init{})
	arena := memory("arena", ir.Scratch, 5, ir.Init{})
	var defined []ir.View // rows of the arena and of y that hold something
	source := func(name string) ir.View {
		all := append([]ir.View{ir.ViewOf(x, 0, row), ir.ViewOf(st, 0, row), ir.ViewOf(st, row, row)}, defined...)
		if n := len(defined); n > 0 && rapid.IntRange(0, 2).Draw(t, name+" is the last") > 0 {
			return defined[n-1]
		}
		return rapid.SampledFrom(all).Draw(t, name)
	}
	target := func() ir.View {
		switch k := rapid.IntRange(0, 9).Draw(t, "target"); {
		case k < 7:
			return ir.ViewOf(arena, row*rapid.Int64Range(0, 4).Draw(t, "row"), row)
		case k == 7:
			return ir.ViewOf(y, row*rapid.Int64Range(0, 1).Draw(t, "row"), row)
		case k == 8 && rapid.Bool().Draw(t, "between rows"):
			return ir.ViewOf(arena, row*rapid.Int64Range(0, 3).Draw(t, "row")+row/2, row)
		}
		return ir.ViewOf(st, row*rapid.Int64Range(0, 1).Draw(t, "row"), row)
	}
	meets := func(a, b ir.View) bool {
		return a.Mem == b.Mem && a.Off.Const < b.Off.Const+row && b.Off.Const < a.Off.Const+row
	}
	threads := func(k ir.KernelID, bs ...ir.Binding) {
		b.Dispatch(ir.Dispatch{Kernel: k, Bindings: bs, GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(64), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{64, 1, 1}})
	}
	for range rapid.IntRange(2, 14).Draw(t, "commands") {
		out := target()
		// In place exactly, or apart: anything else is a race within the dispatch.
		pick := func(name string) ir.View {
			for range 20 {
				if v := source(name); !meets(v, out) || v.Equal(out) {
					return v
				}
			}
			return ir.ViewOf(x, 0, row)
		}
		switch rapid.IntRange(0, 5).Draw(t, "command") {
		case 0, 1:
			w, stride := ir.ViewOf(one, 0, 4), uint32(0)
			if rapid.IntRange(0, 3).Draw(t, "scaled") == 0 {
				w, stride = ir.ViewOf(s, 0, row), 1
			}
			b.Dispatch(ir.Dispatch{Kernel: rms, Bindings: []ir.Binding{ir.BufferArg(0, pick("x")), ir.BufferArg(1, w), ir.BufferArg(2, out),
				ir.BytesArg(3, ir.ValueBytes(float32(1e-5))), ir.BytesArg(4, ir.ValueBytes(uint32(64))), ir.BytesArg(5, ir.ValueBytes(stride))},
				Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1}})
		case 2:
			a, c := pick("a"), ir.ViewOf(s, 0, row)
			if rapid.IntRange(0, 3).Draw(t, "by a value") == 0 {
				c = pick("b")
			}
			if rapid.Bool().Draw(t, "swapped") {
				a, c = c, a
			}
			threads(mul, ir.BufferArg(0, a), ir.BufferArg(1, c), ir.BufferArg(2, out))
		case 3:
			threads(add, ir.BufferArg(0, pick("a")), ir.BufferArg(1, pick("b")), ir.BufferArg(2, out))
		case 4:
			threads(cp, ir.BufferArg(0, pick("src")), ir.BufferArg(1, out))
		case 5:
			src := pick("src")
			if src.Equal(out) {
				continue
			}
			b.Copy(out, src, "")
		}
		if rapid.IntRange(0, 15).Draw(t, "commit") == 0 {
			b.Commit(ir.OrderEvent, "")
		}
		if out.Mem != st {
			defined = slices.DeleteFunc(defined, func(v ir.View) bool { return meets(v, out) })
			defined = append(defined, out)
		}
	}
	// Both rows of the output and of the state depend on what was computed last.
	for _, m := range []ir.MemID{y, st} {
		threads(add, ir.BufferArg(0, ir.ViewOf(st, row, row)), ir.BufferArg(1, source("last")), ir.BufferArg(2, ir.ViewOf(m, 0, row)))
		b.Copy(ir.ViewOf(m, row, row), ir.ViewOf(x, 0, row), "")
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// fusableKernels are the kernels of the text below, by function.
func fusableKernels() map[string]ir.Kernel {
	m, err := mlxt.Parse(context.Background(), "kernels", []byte(`mlxt 1

graph g {
  kernel @rms builtin "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @mul builtin "vv_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @cp builtin "v_copyfloat32float32" args(0 src: device f32 read, 1 dst: device f32 write)
}
`))
	if err != nil {
		panic(err) // the text is constant
	}
	out := map[string]ir.Kernel{}
	for _, k := range m.Graphs[0].Kernels {
		out[k.Function] = k
	}
	return out
}

// After fuse, a graph computes the same bits in the written order and in an
// adverse one that its barriers allow, and the prover, which shares nothing with
// the pass, agrees: with the barriers that stood in the recording, and with fresh
// ones.
func TestFuseKeepsValuesAndOrder(t *testing.T) {
	fused, graphs := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		g := fusable(rt)
		recorded := transform(t, g, "annotate,barriers").graph
		want := threeReplays(t, recorded)
		for _, p := range []string{"annotate,fuse", "annotate,fuse,barriers", "annotate,fuse{generate=true},barriers"} {
			o := transform(t, recorded, p)
			graphs++
			for _, r := range o.reports {
				if strings.HasPrefix(r.Pass, "fuse") && r.Changed > 0 {
					fused++
				}
			}
			v := prove.Check(context.Background(), recorded, o.graph, prove.Options{})
			require.Equal(rt, prove.Proved, v.Verdict, "%s: %s\n%s", p, v, dump(recorded, o.graph))
			require.Equal(rt, want, threeReplays(t, o.graph), "%s, as written\n%s", p, dump(recorded, o.graph))
			require.Equal(rt, want, threeReplays(t, adverse(o.graph)), "%s, in adverse order\n%s", p, dump(recorded, o.graph))
		}
	})
	t.Logf("%d of %d graphs had something to fuse", fused, graphs)
	require.Greater(t, fused, graphs/5)
}

func dump(gs ...*ir.Graph) (s string) {
	for _, g := range gs {
		s += mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}})
	}
	return s
}

// A second run of fuse finds nothing more, and two runs on equal graphs give equal results.
func TestFuseIsStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := fusable(rt)
		once := transform(t, g, "annotate,fuse").graph
		require.Equal(rt, dump(once), dump(transform(t, g, "annotate,fuse").graph))
		require.Equal(rt, dump(once), dump(transform(t, once, "annotate,fuse").graph))
	})
}

// A layer of a model, recorded by a careful engine in twenty dispatches.
func TestFuseOfALayer(t *testing.T) {
	for file, want := range map[string][]string{
		"llama_layer_decode": {
			"rms_norm+elementwise_mul+quantized_matmul+kv_write+rope [#0 #1 #2 #3 #4 #5 #6 #7 #8]",
			"sdpa [#9]",
			"quantized_matmul+elementwise_add [#10 #11]",
			"rms_norm+elementwise_mul+quantized_matmul+silu [#12 #13 #14 #15 #16 #17]",
			"quantized_matmul+elementwise_add [#18 #19]",
		},
		"llama_layer_prefill": {
			"rms_norm+elementwise_mul [#0 #1]",
			"quantized_matmul+kv_write+rope [#2 #3 #4 #5 #6 #7 #8]",
			"sdpa [#9]",
			"quantized_matmul [#10]", // with so few rows, a tile of 64 by 64 costs more than the residual by itself
			"elementwise_add+rms_norm+elementwise_mul [#11 #12 #13]",
			"quantized_matmul+silu+elementwise_mul [#14 #15 #16 #17]",
			"quantized_matmul [#18]",
			"elementwise_add [#19]",
		},
	} {
		layer := recorded.Graph(t, file)
		require.Equal(t, 20, layer.Stats().Dispatches)
		var got []string
		for _, n := range transform(t, layer, "annotate,fuse,barriers").graph.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				got = append(got, fmt.Sprintf("%s %v", d.Op, d.From))
			}
		}
		require.Equal(t, want, got, file)
	}
}

// What looks like a kernel and is not fused says why.
func TestFuseSaysWhyNot(t *testing.T) {
	known := map[string]*ir.Graph{}
	for _, d := range defects(t) {
		known[d.name] = d.graph
	}
	between := known["F1ok"].Clone() // its norm reads what a later copy overwrites
	between.Memories[0].Kind = ir.State
	between.Nodes = slices.Insert(between.Nodes, 1, ir.Node(&ir.Copy{ID: 7, Dst: ir.ViewOf(0, 0, 256), Src: ir.ViewOf(1, 0, 256)}))
	known["between"] = between
	stuck := between.Clone() // and another copy reads what the product will overwrite
	stuck.Memories[5].Kind = ir.State
	stuck.Memories = append(stuck.Memories, ir.Memory{Name: "seen", Kind: ir.Output, Size: 256, Alias: ir.NoMem})
	stuck.Nodes = slices.Insert(stuck.Nodes, 1, ir.Node(&ir.Copy{ID: 8, Dst: ir.ViewOf(ir.MemID(len(stuck.Memories)-1), 0, 256), Src: ir.ViewOf(5, 0, 256)}))
	known["stuck"] = stuck
	for _, k := range []struct{ graph, pipeline, want string }{
		{"F1", "annotate,fuse{generate=false}", "#1 elementwise_mul: not done: not fused with #0: intermediate read by #2"},
		{"F2", "annotate,fuse{generate=false}", "#1 elementwise_mul: not done: not fused with #0: its result is an output or a state"},
		{"stuck", "annotate,fuse{generate=false}", "#1 elementwise_mul: not done: not fused with #0: #7 stands between and touches %x[0:256]"},
		{"F13", "annotate,fuse{max-threads=512,generate=false}", "#1 elementwise_mul: not done: not fused with #0: rms_loopedfloat32 would run 1024 threads a threadgroup, its pipeline has at most 512"},
	} {
		o := transform(t, known[k.graph], k.pipeline)
		text := ""
		for _, m := range o.reports[len(o.reports)-1].Remarks {
			text += m.String() + "\n"
		}
		require.Contains(t, text, k.want, k.graph)
	}
	// The norm's input changes behind it, so the pair stands where the norm stood.
	var ids []ir.ID
	for _, n := range transform(t, between, "annotate,fuse").graph.Nodes {
		if c, ok := n.(ir.Command); ok {
			ids = append(ids, c.Num())
		}
	}
	require.Equal(t, []ir.ID{1, 7, 2}, ids)
}

// A chain whose term nests deeper than a text may is cut there, and a remark says so.
func TestFuseSaysWhatIsTooDeep(t *testing.T) {
	b := ir.NewBuilder("g")
	add, mul := b.Kernel(fusableKernels()["vv_Addfloat32"]), b.Kernel(fusableKernels()["vv_Multiplyfloat32"])
	const row = 256
	x, w := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: row}), b.Memory(ir.Memory{Name: "w", Kind: ir.Input, Size: row})
	s, y := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 2 * row}), b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: row})
	from := ir.ViewOf(x, 0, row)
	for i := range int64(250) { // (((x + w) * w + w) * w …
		to, k := ir.ViewOf(s, i%2*row, row), add
		if i%2 == 1 {
			k = mul
		}
		if i == 249 {
			to = ir.ViewOf(y, 0, row)
		}
		b.Dispatch(ir.Dispatch{Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, from), ir.BufferArg(1, ir.ViewOf(w, 0, row)), ir.BufferArg(2, to)},
			GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(64), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{64, 1, 1}})
		b.Barrier()
		from = to
	}
	g, err := b.Graph()
	require.NoError(t, err)
	before := g.Clone()
	reports := runPasses(t, g, "annotate,fuse")
	require.Equal(t, prove.Proved, prove.Check(context.Background(), before, g, prove.Options{}).Verdict)
	require.Equal(t, 2, g.Stats().Dispatches)
	said := false
	for _, m := range reports[1].Remarks {
		said = said || strings.Contains(m.String(), "a generated kernel does not fit: their term is nested deeper than 100")
		require.Less(t, len(m.String()), 300, "a remark prints no whole term")
	}
	require.True(t, said, "%v", reports[1].Remarks)
}

// A kernel that was measured to be slow is not chosen: fuse follows the model of the run,
// or that of its own step.
func TestFuseFollowsAProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"kernels": {"affine_qmv_rms_silu_mul_float_gs_32_b_4": {"fixed_ns": 1000000}}}`), 0o644))
	slow, err := cost.LoadProfile(path)
	require.NoError(t, err)
	uses := func(list string, m cost.Model) bool {
		p, err := passes.ParsePipeline(list)
		require.NoError(t, err)
		g := recorded.Graph(t, "llama_layer_decode")
		_, err = passes.Run(context.Background(), g, p, passes.Options{Model: m})
		require.NoError(t, err)
		return slices.ContainsFunc(g.Nodes, func(n ir.Node) bool {
			d, ok := n.(*ir.Dispatch)
			return ok && g.Kernels[d.Kernel].Function == "affine_qmv_rms_silu_mul_float_gs_32_b_4"
		})
	}
	require.True(t, uses("annotate,fuse", cost.Model{}))
	require.False(t, uses("annotate,fuse", slow))
	require.True(t, uses("annotate,fuse{chip=m1}", slow))
	require.False(t, uses("annotate,fuse{profile="+path+"}", cost.Model{}))
	require.False(t, uses("annotate,fuse{without=*_rms_*+add_rms*}", cost.Model{}))
	require.True(t, uses("annotate,fuse{without=add_rms*}", cost.Model{}))
}

// TestFuseLooksAhead: a sum and a norm gain most as one kernel, and are left apart where a profile says that the norm
// is worth more to the products behind it; the remark says so.
func TestFuseLooksAhead(t *testing.T) {
	fuse := func(sumAndNorm float64) (map[string]int, string) {
		text := fmt.Sprintf(`{"bandwidth_gbs": 4000, "arithmetic_gops": 100000, "cores": 132, "launch_ns": 500, "barrier_ns": 0, "latency_ns": 800, "kernels": {
			"add_rmsfloat32": {"fixed_ns": %g}, "affine_qmv_rms_silu_mul_float_gs_32_b_4": {"fixed_ns": 2500}, "affine_qmv_silu_mul_float_gs_32_b_4": {"fixed_ns": 2400},
			"rmsfloat32": {"fixed_ns": 1200}, "vv_Addfloat32": {"fixed_ns": 800}, "vv_Multiplyfloat32": {"fixed_ns": 800}, "v_Silufloat32float32": {"fixed_ns": 900},
			"affine_qmv_add_float_gs_32_b_4": {"fixed_ns": 90000}, "affine_qmv_fast_add_float_gs_32_b_4": {"fixed_ns": 90000}}}`, sumAndNorm)
		m, err := cost.ParseProfile("p", []byte(text))
		require.NoError(t, err)
		p, err := passes.ParsePipeline("annotate,fuse")
		require.NoError(t, err)
		g := recorded.Graph(t, "llama_layer_decode")
		reports, err := passes.Run(t.Context(), g, p, passes.Options{Model: m})
		require.NoError(t, err)
		of := map[string]int{}
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				of[g.Kernels[d.Kernel].Function]++
			}
		}
		said := ""
		for _, r := range reports[1].Remarks {
			if r.At == "add_rmsfloat32" {
				said = r.Text
			}
		}
		return of, said
	}
	of, said := fuse(1000) // and 2400, where 800 and 2500 are less
	require.Zero(t, of["add_rmsfloat32"], "%v", of)
	require.Equal(t, 1, of["affine_qmv_rms_silu_mul_float_gs_32_b_4"], "%v", of)
	require.Regexp(t, `^nothing becomes one: by the profile the commands take [0-9.]+ µs then, in place of [0-9.]+$`, said)
	of, said = fuse(850)
	require.Equal(t, 1, of["add_rmsfloat32"], "%v", of)
	require.Zero(t, of["affine_qmv_rms_silu_mul_float_gs_32_b_4"], "%v", of)
	require.Empty(t, said)
}
