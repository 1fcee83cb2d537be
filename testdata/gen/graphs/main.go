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
	{"copies_and_fills", "Copies and fills between aliases of one memory.", copies},
}

// weight is a random weight: the graph runs without any file. Scales and
// biases are random too, and codes are random bytes.
func weight(r *record.Recorder, name string, t ir.DType, shape ...int64) record.Tensor {
	return r.RandomWeight(name, uint64(len(name)), t, shape...)
}

func quantized(r *record.Recorder, name string, n, k int64) record.Matrix {
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
	return r.Finish()
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
	return r.Finish()
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
