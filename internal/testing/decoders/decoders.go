// Package decoders makes random graphs of the kind that engines record for language
// models: layers of norms, products, rope, caches, attention, gates and residuals, of
// random sizes, with projections that are one matrix or several, heads that lie side by
// side in a wider row, values that several commands share, and scratch memory that is
// used again or not. Tests of what the optimizer makes of whole graphs use it: what a
// pass does in one place decides what it finds in the next.
package decoders

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Graph returns the graph of a seed, which is always the same one.
func Graph(seed uint64) (*ir.Graph, error) {
	d := &decoder{Session: record.New(fmt.Sprintf("decoder%d", seed)), rng: rand.New(rand.NewPCG(seed, 0xdec0de))}
	d.shape()
	d.record()
	g, err := d.Graph()
	if err != nil {
		return nil, err
	}
	return g, d.end(g)
}

// end varies what a recorder does not decide: whether a commit follows the last command and so orders the next
// replay, and whether the order of the list is binding.
func (d *decoder) end(g *ir.Graph) error {
	last := len(g.Nodes) - 1
	switch d.rng.IntN(6) {
	case 0, 1:
		if _, ok := g.Nodes[last].(*ir.Commit); ok {
			g.Nodes = g.Nodes[:last] // replays may overlap
		}
	case 2:
		g.Nodes = slices.DeleteFunc(g.Nodes, func(n ir.Node) bool { _, ok := n.(*ir.Barrier); return ok })
		g.Ordering = ir.Serial
	case 3:
		g.NextHost = true
	}
	return g.Check()
}

// decoder is a graph that is being recorded.
type decoder struct {
	*record.Session
	rng *rand.Rand

	rows, pos         ir.Affine // how many tokens, and the position of the first one
	most              int64     // maximum of rows
	context           int64
	hidden, wide      int64
	heads, kv, dim    int64
	theta             float64
	traditional       bool
	bits, group       int64 // of quantized matrices; 0 bits: dense ones
	dense             ir.DType
	weights           int
	reuse, tied       bool // scratch memory is used again; layers share their matrices
	shared            map[string]record.Matrix
	inPlace, parallel bool
	odd               bool            // see oddLayer
	left              []record.Tensor // values of odd layers, for later ones to read
}

func (d *decoder) chance(n int) bool { return d.rng.IntN(n) == 0 }

func pick[T any](d *decoder, list ...T) T { return list[d.rng.IntN(len(list))] }

// shape draws what all layers have in common.
func (d *decoder) shape() {
	d.context = pick(d, int64(16), 40, 128)
	d.pos = d.Param("pos", 0, uint32(d.context-1))
	switch d.rng.IntN(6) {
	case 0, 1:
		d.rows, d.most = ir.Const(1), 1
	case 2:
		d.most = int64(2 + d.rng.IntN(8))
		d.rows = ir.Const(d.most)
	case 3:
		d.most = int64(2 + d.rng.IntN(11))
		d.rows = d.Param("n", 1, uint32(d.most))
	default: // a param with a single value
		d.most = int64(1 + d.rng.IntN(2))
		d.rows = d.Param("n", uint32(d.most), uint32(d.most))
	}
	d.Require(d.pos.Add(d.rows), d.context)
	d.hidden, d.wide = pick(d, int64(32), 64, 96, 128, 256, 512), pick(d, int64(32), 64, 96, 160, 512)
	d.dim, d.kv = pick(d, int64(64), 64, 96, 128), int64(1+d.rng.IntN(2))
	d.heads = d.kv * int64(1+d.rng.IntN(3))
	d.theta, d.traditional = pick(d, 10000.0, 500000), d.chance(2)
	d.bits, d.group, d.dense = pick(d, int64(0), 4, 4, 8), 32, pick(d, ir.F32, ir.F16)
	if d.hidden%64 == 0 && d.wide%64 == 0 && d.dim%64 == 0 && d.chance(2) {
		d.group = 64
	}
	d.reuse, d.tied, d.inPlace, d.parallel = d.chance(2), d.chance(3), d.chance(2), d.chance(4)
	d.odd = d.chance(2)
	d.shared = map[string]record.Matrix{}
}

func (d *decoder) name(what string) string {
	d.weights++
	return fmt.Sprintf("%s.%d", what, d.weights)
}

func (d *decoder) vector(n int64) record.Tensor {
	return d.RandomWeight(d.name("v"), uint64(d.weights), ir.F32, n)
}

// matrix returns a matrix of n rows of k elements.
func (d *decoder) matrix(what string, n, k int64) record.Matrix {
	key := fmt.Sprintf("%s %d %d", what, n, k)
	if m, ok := d.shared[key]; ok && d.tied {
		return m
	}
	random := func(t ir.DType, shape ...int64) record.Tensor {
		return d.RandomWeight(d.name(what), uint64(d.weights), t, shape...)
	}
	m := record.Matrix{}
	if d.bits == 0 || d.chance(8) {
		m = record.Dense(random(d.dense, n, k))
	} else {
		m = record.Quantized(record.QTensor{
			W: random(ir.U32, n, k*d.bits/32), Scales: random(ir.F32, n, k/d.group), Biases: random(ir.F32, n, k/d.group),
			N: n, K: k, Bits: d.bits, Group: d.group,
		})
	}
	d.shared[key] = m
	return m
}

func (d *decoder) product(what string, x record.Tensor, n int64) record.Tensor {
	y := d.Matmul(x, d.matrix(what, n, x.Shape[x.Rank()-1].Const))
	if d.chance(8) { // a bias
		y = d.Add(y, d.vector(n))
	}
	return y
}

// norm records a norm and, mostly, a weight.
func (d *decoder) norm(x record.Tensor) record.Tensor {
	y := d.RMSNorm(x, 1e-5)
	if d.chance(12) {
		return y
	}
	w := d.vector(x.Shape[x.Rank()-1].Const)
	if d.inPlace && d.chance(2) {
		return d.Mul(y, w, record.Into(y))
	}
	return d.Mul(y, w)
}

// add adds to the residual stream, in place or not.
func (d *decoder) add(x, y record.Tensor) record.Tensor {
	if d.chance(10) {
		y = d.norm(y)
	}
	if d.chance(12) {
		y = d.Scale(y, record.Float(0.5))
	}
	if d.inPlace {
		return d.Add(x, y, record.Into(x))
	}
	if d.chance(2) {
		return d.Add(y, x)
	}
	return d.Add(x, y)
}

func (d *decoder) record() {
	tokens := d.Input("tokens", ir.I32, d.most)
	tokens.Shape = []ir.Affine{d.rows}
	x := d.Embed(tokens, d.matrix("embedding", 64, d.hidden))
	if d.chance(4) {
		x = d.Scale(x, record.Float(11))
	}
	for i := range 1 + d.rng.IntN(3) {
		mark := d.ScratchMark()
		if d.odd {
			x = d.oddLayer(i, x)
		} else {
			x = d.layer(i, x)
		}
		if d.reuse && d.inPlace && !d.odd {
			d.ScratchReset(mark)
		}
		if d.chance(8) {
			d.Commit("layer")
		}
	}
	if d.chance(2) {
		x = x.Row(d.rows.AddConst(-1)).Reshape(record.Dims(1, d.hidden)...)
	}
	x = d.norm(x)
	if x.Shape[0].IsConst() && d.chance(3) {
		out := d.Output("logits", ir.F32, x.Shape[0].Const, 48)
		d.Matmul(x, d.matrix("head", 48, d.hidden), record.Into(out))
		return
	}
	y := d.Matmul(x, d.matrix("head", 48, d.hidden))
	if d.chance(3) {
		y = d.Softcap(y, 30)
	}
	if d.chance(3) {
		y = d.Softmax(y)
	}
	d.result("logits", y)
}

// result makes a value an output.
func (d *decoder) result(name string, x record.Tensor) {
	shape := []int64{d.most}
	if x.Shape[0].IsConst() {
		shape[0] = x.Shape[0].Const
	}
	for _, n := range x.Shape[1:] {
		shape = append(shape, n.Const)
	}
	out := d.Output(name, ir.F32, shape...)
	out.Shape = x.Shape
	d.Copy(out, x, name)
}

// oddLayer records a layer of all kinds of commands in random order. Each value, which has the width of the stream,
// may be read by several of the commands behind it or by none, and its memory may be reused at once.
func (d *decoder) oddLayer(i int, x record.Tensor) record.Tensor {
	values := []record.Tensor{x}
	if len(d.left) > 0 && d.chance(2) { // a value of an earlier layer
		values = append(values, pick(d, d.left...))
	}
	any := func() record.Tensor { // later ones more often
		return values[max(d.rng.IntN(len(values)), d.rng.IntN(len(values)))]
	}
	caches := 0
	for range 6 + d.rng.IntN(14) {
		t := any()
		switch d.rng.IntN(14) {
		case 0, 1:
			values = append(values, d.norm(t))
		case 2:
			values = append(values, d.RMSNorm(t, 1e-6))
		case 3, 4:
			values = append(values, d.add(t, any()))
		case 5:
			values = append(values, d.Mul(t, any()))
		case 6:
			switch d.rng.IntN(3) {
			case 0:
				values = append(values, d.Mul(t, d.vector(d.hidden)))
			case 1:
				values = append(values, d.LayerNorm(t, d.vector(d.hidden), d.vector(d.hidden), 1e-5))
			default: // two results, of which one may never be read
				values = append(values, d.ElementwiseAll("v0[i] = in0[i] + in1[i]; out0[i] = round(f32, v0[i] * s0); out1[i] = round(f32, v0[i] - in0[i])",
					[]record.Tensor{t, any()}, []record.Scalar{record.Float(0.25)})...)
			}
		case 7:
			if d.chance(2) { // kernels that are generated
				term := pick(d, "out0[i] = round(f32, in0[i] * in1[i] + in0[i])", "out0[i] = round(f32, max(in0[i], 0.0) - in1[i])",
					"out0[i, j] = round(f32, in0[i, j] + in1[j])", "out0[i, j] = round(f32, in0[i, j] * in1[j] + 1.0)")
				u := any()
				if strings.Contains(term, "in1[j]") {
					u = d.vector(d.hidden)
				}
				values = append(values, d.Elementwise(term, []record.Tensor{t, u}, nil))
				continue
			}
			values = append(values, pick(d, d.Silu, d.Gelu, d.Sigmoid, d.Softmax)(t))
		case 8, 9:
			values = append(values, d.product("mix", t, d.hidden))
		case 10:
			values = append(values, d.gated(t))
		case 11:
			values = append(values, d.add(t, d.gated(d.norm(t))))
		case 12: // rotated, and projected back into the stream
			n := int64(1 + d.rng.IntN(2))
			r := d.Rope(d.product("r", t, n*d.dim).Reshape(d.rows, ir.Const(n), ir.Const(d.dim)), d.pos, d.theta, d.traditional)
			values = append(values, d.product("back", r.Reshape(d.rows, ir.Const(n*d.dim)), d.hidden))
		default:
			if d.chance(2) {
				values = append(values, d.foreign(t))
			} else if caches == 0 {
				caches++
				values = append(values, d.attention(i, t))
			}
		}
	}
	d.left = append(d.left, any())
	return d.add(any(), values[len(values)-1])
}

// foreign returns the result of a kernel without a declaration.
func (d *decoder) foreign(t record.Tensor) record.Tensor {
	k := d.Kernel(ir.Kernel{
		Name: "engine", Function: "engine", Library: ir.Library{Kind: ir.SourceFile, Path: "engine.metal", Digest: ir.Digest{1}},
		Args: []ir.Arg{{Slot: 0, Name: "x", Kind: ir.DeviceArg, Access: ir.ReadArg, Type: ir.F32}, {Slot: 1, Name: "y", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.F32}},
	})
	y := d.Scratch(ir.F32, t.Shape...)
	d.Dispatch(k).Buffer(0, t).Buffer(1, y).Reads(t).Writes(y).Threads(record.Size(1, 1, 1), [3]uint32{1, 1, 1})
	return y
}

func (d *decoder) layer(i int, x record.Tensor) record.Tensor {
	h := d.norm(x)
	a := d.attention(i, h)
	if d.parallel { // attention and the rest read the same norm
		return d.add(d.add(x, a), d.gated(h))
	}
	x = d.add(x, a)
	if d.chance(6) { // an intermediate value becomes an output
		d.result(d.name("tap"), x)
	}
	return d.add(x, d.gated(d.norm(x)))
}

// attention returns what attention adds to the stream.
func (d *decoder) attention(i int, h record.Tensor) record.Tensor {
	q, k, v := d.projections(h)
	if d.chance(4) { // norms of each head
		q, k = d.headNorm(q), d.headNorm(k)
	}
	kcache := d.State(fmt.Sprintf("k_cache.%d", i), ir.F32, d.context, d.kv, d.dim)
	vcache := d.State(fmt.Sprintf("v_cache.%d", i), ir.F32, d.context, d.kv, d.dim)
	rope := func(t record.Tensor, o ...record.Option) record.Tensor {
		return d.Rope(t, d.pos, d.theta, d.traditional, o...)
	}
	// The values are written to their cache before the keys are rotated, or after.
	early := d.chance(2)
	if early {
		d.KVWrite(vcache, v, d.pos)
	}
	q = rope(q)
	if d.chance(3) { // straight into the cache
		rope(k, record.Into(kcache.Rows(d.pos, d.rows)))
	} else {
		d.KVWrite(kcache, rope(k), d.pos)
	}
	if !early {
		d.KVWrite(vcache, v, d.pos)
	}
	a := d.SDPA(q, kcache, vcache, d.pos.Add(d.rows), 0.125).Reshape(d.rows, ir.Const(d.heads*d.dim))
	if d.chance(8) { // a gate for each head's output
		a = d.Mul(a, d.Sigmoid(d.product("gate_o", h, d.heads*d.dim)))
	}
	return d.product("o", a, d.hidden)
}

// projections returns queries, keys and values, computed with one matrix each or with one for all.
func (d *decoder) projections(h record.Tensor) (q, k, v record.Tensor) {
	split := func(t record.Tensor, n int64) record.Tensor { return t.Reshape(d.rows, ir.Const(n), ir.Const(d.dim)) }
	if !d.chance(3) {
		return split(d.product("q", h, d.heads*d.dim), d.heads), split(d.product("k", h, d.kv*d.dim), d.kv), split(d.product("v", h, d.kv*d.dim), d.kv)
	}
	// The rows of the three lie side by side.
	all := split(d.product("qkv", h, (d.heads+2*d.kv)*d.dim), d.heads+2*d.kv).Transpose(0, 1)
	part := func(from, n int64) record.Tensor {
		t := all.Rows(ir.Const(from), ir.Const(n)).Transpose(0, 1)
		if d.rows.IsConst() && d.rows.Const == 1 {
			t.Strides[0] = n * d.dim // of a single row
		}
		return t
	}
	return part(0, d.heads), part(d.heads, d.kv), part(d.heads+d.kv, d.kv)
}

func (d *decoder) headNorm(t record.Tensor) record.Tensor {
	n := t.Shape[1]
	if t.Strides[0] != n.Const*d.dim {
		return t // its rows lie beside others
	}
	flat := t.Reshape(t.Shape[0].Scale(n.Const), ir.Const(d.dim))
	return d.norm(flat).Reshape(t.Shape...)
}

// gated returns what the feed-forward half of a layer adds to the stream.
func (d *decoder) gated(h record.Tensor) record.Tensor {
	act := func(t record.Tensor) record.Tensor {
		switch d.rng.IntN(5) {
		case 0:
			return d.Gelu(t)
		case 1:
			return d.Mul(t, d.Sigmoid(t))
		case 2:
			if d.inPlace {
				return d.Silu(t, record.Into(t))
			}
		}
		return d.Silu(t)
	}
	if d.chance(6) { // without a gate
		return d.product("down", act(d.product("up", h, d.wide)), d.hidden)
	}
	if d.chance(3) { // the gate is computed last
		up := d.product("up", h, d.wide)
		return d.product("down", d.Mul(up, act(d.product("gate", h, d.wide))), d.hidden)
	}
	gate := act(d.product("gate", h, d.wide))
	return d.product("down", d.Mul(gate, d.product("up", h, d.wide)), d.hidden)
}
