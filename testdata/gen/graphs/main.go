// Command graphs records the graphs of testdata/graphs: one txtar each, whose
// comment says what it shows and whose file recorded.mlxt is the graph. The
// outputs of the passes beside it are written by
// `go test ./passes -run Golden -update`.
//
//	go run ./testdata/gen/graphs testdata/graphs
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/record"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: graphs DIR")
		os.Exit(2)
	}
	for _, x := range graphs {
		g, err := x.make()
		if err == nil {
			err = write(filepath.Join(os.Args[1], x.name+".txtar"), x.comment, g)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "graphs: %s: %v\n", x.name, err)
			os.Exit(1)
		}
	}
}

// write replaces recorded.mlxt and keeps the other files of the archive.
func write(path, comment string, g *ir.Graph) error {
	a := &txtar.Archive{}
	if old, err := txtar.ParseFile(path); err == nil {
		a = old
	}
	a.Comment = []byte(comment + "\n\n")
	f := txtar.File{Name: "recorded.mlxt", Data: []byte(mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}))}
	if len(a.Files) == 0 {
		a.Files = append(a.Files, f)
	}
	a.Files[0] = f
	return os.WriteFile(path, txtar.Format(a), 0o644)
}

var graphs = []struct {
	name, comment string
	make          func() (*ir.Graph, error)
}{
	{"norm_residual", "A norm, its weight and a residual over two rows: three dispatches that depend on one another.", normResidual},
	{"llama_layer_decode", "One layer of a small Llama, one token. Scratch is reused within the layer; the KV cache is written at $pos.", func() (*ir.Graph, error) { return layer("decode") }},
	{"llama_layer_prefill", "The same layer for $n tokens at once: views, grids and scalars depend on $pos and $n.", func() (*ir.Graph, error) { return layer("prefill") }},
	{"two_streams", "Two independent chains, recorded one after the other's step with a barrier after every dispatch: half the barriers are needless.", twoStreams},
	{"ring_buffer", "Columns of one matrix, written and read interleaved: strided effects do not meet where their hulls do.", interleaved},
	{"unannotated", "Kernels of a foreign library: one with complete effects, one with incomplete ones, one with none. Nothing crosses the unknown.", unannotated},
	{"commits", "Three command buffers; a hazard crosses the first commit, which orders nothing, and none crosses the second.", commits},
	{"moe_layer", "A mixture of experts: a norm, a router, and two of four experts whose weights foreign kernels gather by index.", mixture},
	{"norm_mul", "What the reference fuses: two norms and their scales. The first is fused; the second's intermediate is read again, so it is not.", normMul},
	{"lookahead", "What the reference reorders: a chain with a barrier after each step, and independent dispatches behind it.", lookahead},
	{"arena_reuse", "Eight short chains through the same bytes of one arena: only false dependences order them.", arenaReuse},
	{"copies_and_fills", "Copies and fills between aliases of one memory.", copies},
}

// weight is a random weight: the graph runs without any file. Scales and
// biases are random too, and codes are random bytes.
func weight(r *record.Session, name string, t ir.DType, shape ...int64) record.Tensor {
	return r.RandomWeight(name, uint64(len(name)), t, shape...)
}

func quantized(r *record.Session, name string, n, k int64) record.Matrix {
	return record.Quantized(record.QTensor{
		W: weight(r, name, ir.U32, n, k/8), Scales: weight(r, name+".scales", ir.F32, n, k/32), Biases: weight(r, name+".biases", ir.F32, n, k/32),
		N: n, K: k, Bits: 4, Group: 32,
	})
}

func normResidual() (*ir.Graph, error) {
	r := record.New("norm_residual")
	x := r.Input("x", ir.F32, 2, 64)
	y := r.Output("y", ir.F32, 2, 64)
	r.Add(r.Mul(r.RMSNorm(x, 1e-5), weight(r, "w", ir.F32, 64)), x, record.Into(y))
	return r.Graph()
}

func layer(kind string) (*ir.Graph, error) {
	const heads, kvHeads, dim, embedding, ffn, context = 4, 2, 64, 256, 512, 32
	r := record.New(kind)
	pos, rows, capacity := r.Param("pos", 0, context-1), ir.Const(1), int64(1)
	if kind == "prefill" {
		rows, capacity = r.Param("n", 1, 16), 16
		r.Require(pos.Add(rows), context)
	}
	in := r.Input("x", ir.F32, capacity, embedding)
	in.Shape[0] = rows
	out := r.Output("y", ir.F32, capacity, embedding)
	out.Shape = in.Shape
	split := func(t record.Tensor, n int64) record.Tensor { return t.Reshape(rows, ir.Const(n), ir.Const(dim)) }

	h := r.Mul(r.RMSNorm(in, 1e-5), weight(r, "attn_norm", ir.F32, embedding))
	q := split(r.Matmul(h, quantized(r, "attn_q", heads*dim, embedding)), heads)
	k := split(r.Matmul(h, quantized(r, "attn_k", kvHeads*dim, embedding)), kvHeads)
	v := split(r.Matmul(h, quantized(r, "attn_v", kvHeads*dim, embedding)), kvHeads)
	q, k = r.Rope(q, pos, 10000, true), r.Rope(k, pos, 10000, true)
	kc, vc := r.State("k_cache", ir.F32, context, kvHeads, dim), r.State("v_cache", ir.F32, context, kvHeads, dim)
	r.KVWrite(kc, k, pos)
	r.KVWrite(vc, v, pos)
	a := r.SDPA(q, kc, vc, pos.Add(rows), 0.125).Reshape(rows, ir.Const(heads*dim))
	x := r.Add(in, r.Matmul(a, quantized(r, "attn_output", embedding, heads*dim)))

	h = r.Mul(r.RMSNorm(x, 1e-5), weight(r, "ffn_norm", ir.F32, embedding))
	gate := r.Matmul(h, quantized(r, "ffn_gate", ffn, embedding))
	up := r.Matmul(h, quantized(r, "ffn_up", ffn, embedding))
	act := r.Mul(r.Silu(gate), up)
	r.Add(x, r.Matmul(act, quantized(r, "ffn_down", embedding, ffn)), record.Into(out))
	return r.Graph()
}

// foreign adds a kernel that has no declaration.
func foreign(b *ir.Builder) ir.KernelID {
	return b.Kernel(ir.Kernel{
		Name: "user", Function: "user_kernel", Library: ir.Library{Kind: ir.SourceFile, Path: "user.metal"},
		Args: []ir.Arg{{Slot: 0, Name: "src", Type: ir.F32}, {Slot: 1, Name: "dst", Access: ir.WriteArg, Type: ir.F32}},
	})
}

func dispatch(b *ir.Builder, k ir.KernelID, src, dst ir.View, e *ir.Effects) {
	b.Dispatch(ir.Dispatch{
		Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, src), ir.BufferArg(1, dst)},
		Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1}, Effects: e,
	})
}

func exact(src, dst ir.View) *ir.Effects {
	return &ir.Effects{Complete: true, Reads: []ir.Region{src.Contiguous()}, Writes: []ir.Write{{Region: dst.Contiguous(), Must: true}}}
}

func twoStreams() (*ir.Graph, error) {
	b := ir.NewBuilder("two_streams")
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: 256})
	out := b.Memory(ir.Memory{Name: "out", Kind: ir.Output, Size: 512})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 1024})
	k := foreign(b)
	step := func(src, dst ir.View) {
		dispatch(b, k, src, dst, exact(src, dst))
		b.Barrier()
	}
	step(ir.ViewOf(in, 0, 256), ir.ViewOf(s, 0, 256))
	step(ir.ViewOf(in, 0, 256), ir.ViewOf(s, 512, 256))
	step(ir.ViewOf(s, 0, 256), ir.ViewOf(s, 256, 256))
	step(ir.ViewOf(s, 512, 256), ir.ViewOf(s, 768, 256))
	step(ir.ViewOf(s, 256, 256), ir.ViewOf(out, 0, 256))
	step(ir.ViewOf(s, 768, 256), ir.ViewOf(out, 256, 256))
	return b.Graph()
}

func interleaved() (*ir.Graph, error) {
	b := ir.NewBuilder("ring_buffer")
	m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 8 * 64, Init: ir.FillU32(0)})
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: 512})
	out := b.Memory(ir.Memory{Name: "out", Kind: ir.Output, Size: 512})
	k := foreign(b)
	column := func(off, run int64) ir.Region {
		return ir.Region{Mem: m, Off: ir.Const(off), Run: ir.Const(run), Dims: []ir.Dim{{Count: ir.Const(8), Stride: 64}}}
	}
	whole := ir.ViewOf(m, 0, 512)
	write := func(off, run int64) {
		src := ir.ViewOf(in, 0, 8*run)
		dispatch(b, k, src, whole, &ir.Effects{Complete: true, Reads: []ir.Region{src.Contiguous()}, Writes: []ir.Write{{Region: column(off, run), Must: true}}})
	}
	read := func(off, run int64) {
		dst := ir.ViewOf(out, 8*off, 8*run)
		dispatch(b, k, whole, dst, &ir.Effects{Complete: true, Reads: []ir.Region{column(off, run)}, Writes: []ir.Write{{Region: dst.Contiguous(), Must: true}}})
	}
	write(0, 16)
	b.Barrier()
	write(16, 16)
	b.Barrier()
	read(0, 16)
	b.Barrier()
	write(32, 16)
	b.Barrier()
	read(16, 16)
	return b.Graph()
}

func unannotated() (*ir.Graph, error) {
	b := ir.NewBuilder("unannotated")
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: 256})
	out := b.Memory(ir.Memory{Name: "out", Kind: ir.Output, Size: 768})
	k := foreign(b)
	src := ir.ViewOf(in, 0, 256)
	at := func(i int64) ir.View { return ir.ViewOf(out, 256*i, 256) }
	dispatch(b, k, src, at(0), exact(src, at(0)))
	dispatch(b, k, src, at(1), exact(src, at(1)))
	partial := exact(src, at(2))
	partial.Complete = false
	dispatch(b, k, src, at(2), partial)
	dispatch(b, k, src, at(0), exact(src, at(0)))
	dispatch(b, k, src, at(1), nil)
	return b.Graph()
}

func commits() (*ir.Graph, error) {
	b := ir.NewBuilder("commits")
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: 256})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 256})
	out := b.Memory(ir.Memory{Name: "out", Kind: ir.Output, Size: 512})
	k := foreign(b)
	step := func(src, dst ir.View) { dispatch(b, k, src, dst, exact(src, dst)) }
	step(ir.ViewOf(in, 0, 256), ir.ViewOf(s, 0, 256))
	b.Commit(ir.OrderNone, "first")
	b.Barrier()
	step(ir.ViewOf(s, 0, 256), ir.ViewOf(out, 0, 256))
	b.Commit(ir.OrderNone, "second")
	step(ir.ViewOf(in, 0, 256), ir.ViewOf(out, 256, 256))
	return b.Graph()
}

func copies() (*ir.Graph, error) {
	b := ir.NewBuilder("copies_and_fills")
	in := b.Memory(ir.Memory{Name: "in", Kind: ir.Input, Size: 256})
	out := b.Memory(ir.Memory{Name: "out", Kind: ir.Output, Size: 512})
	low := b.Alias("low", out, 0, 256)
	high := b.Alias("high", out, 256, 256)
	b.Fill(ir.ViewOf(out, 0, 512), 0, "clear")
	b.Copy(ir.ViewOf(low, 0, 128), ir.ViewOf(in, 0, 128), "")
	b.Copy(ir.ViewOf(high, 0, 128), ir.ViewOf(low, 0, 128), "")
	b.Copy(ir.ViewOf(high, 128, 128), ir.ViewOf(in, 128, 128), "")
	return b.Graph()
}

// builtin adds a dispatch of a declared kernel.
func builtin(b *ir.Builder, kernels map[string]ir.KernelID, function string, grid, group [3]int64, args ...ir.Binding) {
	k, ok := kernels[function]
	if !ok {
		k = b.Kernel(msl.Declarations(function)[0].Kernel(function))
		kernels[function] = k
	}
	d := ir.Dispatch{Kernel: k, Bindings: args, GridKind: ir.Threads}
	for i := range grid {
		d.Grid[i], d.Threadgroup[i] = ir.Ext(grid[i]), uint32(group[i])
	}
	b.Dispatch(d)
	b.Barrier()
}

func mixture() (*ir.Graph, error) {
	const hidden, ffn, experts, used = 64, 128, 4, 2
	b, kernels := ir.NewBuilder("moe_layer"), map[string]ir.KernelID{}
	f32 := func(name string, kind ir.MemKind, n int64) ir.MemID {
		m := ir.Memory{Name: name, Kind: kind, Size: 4 * n, DType: ir.F32, Shape: []int64{n}}
		if kind == ir.Weight {
			m.Init = ir.Init{Kind: ir.InitRandom, Seed: uint64(len(name))}
		}
		return b.Memory(m)
	}
	view := func(m ir.MemID, at, n int64) ir.View { return ir.ViewOf(m, 4*at, 4*n) }
	buffer := func(slot uint8, v ir.View) ir.Binding { return ir.BufferArg(slot, v) }
	x, y := f32("x", ir.Input, hidden), f32("y", ir.Output, hidden)
	norm, router := f32("ffn_norm", ir.Weight, hidden), f32("router", ir.Weight, experts*hidden)
	gate, up, down := f32("gate_exps", ir.Weight, experts*ffn*hidden), f32("up_exps", ir.Weight, experts*ffn*hidden), f32("down_exps", ir.Weight, experts*hidden*ffn)
	one := b.Memory(ir.Memory{Name: "one", Kind: ir.Weight, Size: 4, DType: ir.F32, Shape: []int64{1}, Init: ir.FillU32(0x3f800000)})
	s := b.Memory(ir.Memory{Name: "scratch", Kind: ir.Scratch, Size: 4 * 4096, Align: 256})
	at := int64(0)
	scratch := func(n int64) ir.View {
		v := view(s, at, n)
		at += (n + 63) / 64 * 64
		return v
	}
	user := func(name string, dst ir.View, srcs ...ir.View) {
		k := ir.Kernel{Name: name, Function: name, Library: ir.Library{Kind: ir.SourceFile, Path: "moe.metal"}}
		e := &ir.Effects{Complete: true, Writes: []ir.Write{{Region: dst.Contiguous(), Must: true}}}
		var args []ir.Binding
		for i, v := range srcs {
			k.Args = append(k.Args, ir.Arg{Slot: uint8(i), Name: fmt.Sprintf("src%d", i), Type: ir.F32})
			args = append(args, buffer(uint8(i), v))
			e.Reads = append(e.Reads, v.Contiguous())
		}
		k.Args = append(k.Args, ir.Arg{Slot: uint8(len(srcs)), Name: "dst", Access: ir.WriteArg, Type: ir.F32})
		args = append(args, buffer(uint8(len(srcs)), dst))
		id, ok := kernels[name]
		if !ok {
			id = b.Kernel(k)
			kernels[name] = id
		}
		b.Dispatch(ir.Dispatch{Kernel: id, Bindings: args, Effects: e, Op: name,
			Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1}})
		b.Barrier()
	}
	t, h, logits, ids, weights := scratch(hidden), scratch(hidden), scratch(experts), scratch(used), scratch(used)
	builtin(b, kernels, "rmsfloat32", [3]int64{32, 1, 1}, [3]int64{32, 1, 1}, buffer(0, view(x, 0, hidden)), buffer(1, ir.ViewOf(one, 0, 4)), buffer(2, t),
		ir.BytesArg(3, ir.ValueBytes(float32(1e-5))), ir.BytesArg(4, ir.ValueBytes(uint32(hidden))), ir.BytesArg(5, ir.ValueBytes(uint32(0))))
	vv := func(function string, a, c, out ir.View, n int64) {
		builtin(b, kernels, function, [3]int64{n, 1, 1}, [3]int64{min(n, 256), 1, 1}, buffer(0, a), buffer(1, c), buffer(2, out))
	}
	vv("vv_Multiplyfloat32", t, view(norm, 0, hidden), h, hidden)
	user("gemv_router", logits, view(router, 0, experts*hidden), h)
	user("topk", ids, logits)
	user("topk_weights", weights, logits, ids)
	var parts []ir.View
	for e := range int64(used) {
		id := ids
		id.Off, id.Len = ids.Off.AddConst(4*e), ir.Const(4)
		g, u, a, p := scratch(ffn), scratch(ffn), scratch(ffn), scratch(hidden)
		user("gather_mv", g, view(gate, 0, experts*ffn*hidden), h, id)
		user("gather_mv", u, view(up, 0, experts*ffn*hidden), h, id)
		act := scratch(ffn)
		builtin(b, kernels, "v_Silufloat32float32", [3]int64{ffn, 1, 1}, [3]int64{ffn, 1, 1}, buffer(0, g), buffer(1, act))
		vv("vv_Multiplyfloat32", act, u, a, ffn)
		user("gather_mv", p, view(down, 0, experts*hidden*ffn), a, id)
		parts = append(parts, p)
	}
	sum := scratch(hidden)
	user("weighted_sum", sum, parts[0], parts[1], weights)
	vv("vv_Addfloat32", view(x, 0, hidden), sum, view(y, 0, hidden), hidden)
	return b.Graph()
}

func normMul() (*ir.Graph, error) {
	r := record.New("norm_mul")
	x := r.Input("x", ir.F32, 1, 64)
	y, z := r.Output("y", ir.F32, 1, 64), r.Output("z", ir.F32, 1, 64)
	a := r.Mul(r.RMSNorm(x, 1e-5), weight(r, "w", ir.F32, 64))
	t := r.RMSNorm(a, 1e-5)
	r.Mul(t, weight(r, "scale", ir.F32, 64), record.Into(y))
	r.Add(t, x, record.Into(z))
	return r.Graph()
}

func lookahead() (*ir.Graph, error) {
	b, kernels := ir.NewBuilder("lookahead"), map[string]ir.KernelID{}
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 256})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 8 * 256})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 4 * 256})
	at := func(m ir.MemID, i int64) ir.View { return ir.ViewOf(m, 256*i, 256) }
	add := func(a, c, out ir.View) {
		builtin(b, kernels, "vv_Addfloat32", [3]int64{64, 1, 1}, [3]int64{64, 1, 1}, ir.BufferArg(0, a), ir.BufferArg(1, c), ir.BufferArg(2, out))
	}
	add(at(x, 0), at(x, 0), at(s, 0))
	for i := range int64(3) {
		add(at(s, i), at(s, i), at(s, i+1))
		add(at(s, i), at(x, 0), at(y, i))
	}
	add(at(s, 3), at(x, 0), at(y, 3))
	for i := range int64(4) {
		add(at(x, 0), at(x, 0), at(y, 4+i))
	}
	return b.Graph()
}

func arenaReuse() (*ir.Graph, error) {
	b, kernels := ir.NewBuilder("arena_reuse"), map[string]ir.KernelID{}
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 8 * 256})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 8 * 256})
	z := b.Memory(ir.Memory{Name: "z", Kind: ir.Output, Size: 8 * 256})
	arena := b.Memory(ir.Memory{Name: "arena", Kind: ir.Scratch, Size: 256, Align: 256})
	at := func(m ir.MemID, i int64) ir.View { return ir.ViewOf(m, 256*i, 256) }
	for i := range int64(8) {
		builtin(b, kernels, "v_Silufloat32float32", [3]int64{64, 1, 1}, [3]int64{64, 1, 1}, ir.BufferArg(0, at(x, i)), ir.BufferArg(1, at(arena, 0)))
		builtin(b, kernels, "vv_Addfloat32", [3]int64{64, 1, 1}, [3]int64{64, 1, 1}, ir.BufferArg(0, at(arena, 0)), ir.BufferArg(1, at(x, i)), ir.BufferArg(2, at(y, i)))
		builtin(b, kernels, "vv_Multiplyfloat32", [3]int64{64, 1, 1}, [3]int64{64, 1, 1}, ir.BufferArg(0, at(arena, 0)), ir.BufferArg(1, at(x, i)), ir.BufferArg(2, at(z, i)))
	}
	return b.Graph()
}
