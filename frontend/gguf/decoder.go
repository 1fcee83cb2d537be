package gguf

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Record returns a module with the graphs "decode" (one token) and "prefill" (n tokens at once), which share weights
// and KV cache. If ctx is cancelled, it returns its error. The params are pos, the
// position of the first token; for prefill n, the number of tokens; and with [frontend.Options].Sample temp, top_p,
// seed_low and seed_high. The input is tokens, i32. The outputs are logits [vocab], of [frontend.Options].Type, and token, u32 [1], both for the last
// token.
func (m *Model) Record(ctx context.Context, o frontend.Options) (_ *ir.Module, err error) {
	defer mmap.Catch(&err)() // it reads the model's file
	l, err := m.Decoder(ctx, o)
	if err != nil {
		return nil, err
	}
	out, err := l.module()
	if err != nil {
		return nil, err
	}
	spec, err := m.Tokenizer()
	if err != nil {
		return nil, err
	}
	return out, frontend.Describe(out, spec, frontend.Usual(out))
}

// Decoder is a model whose weights are ready to be bound, for an engine that dispatches
// by itself. Params, inputs and outputs are those of [Model.Record].
type Decoder struct {
	Config
	weights map[string]tensor
	options frontend.Options
}

// Step holds the inputs and outputs of one step of a model.
type Step struct {
	Tokens record.Tensor // input, i32
	Logits record.Tensor // output [vocab], of the last token
	Token  record.Tensor // output, u32 [1]: the index of the max logit, or a drawn one with frontend.Options.Sample
}

// Decoder gets the model's weights ready. If ctx is cancelled, it returns its error.
func (m *Model) Decoder(ctx context.Context, o frontend.Options) (*Decoder, error) {
	if err := fill(&o, m.Config.Context); err != nil {
		return nil, err
	}
	w, err := m.weights(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Decoder{m.Config, w, o}, nil
}

// fill sets the defaults for a model that was trained for `model` positions.
func fill(o *frontend.Options, model int64) error {
	if o.Context == 0 {
		o.Context = min(model, 2048)
	}
	if o.Context < 1 || o.Context > model {
		return fmt.Errorf("context of %d positions: the model has %d", o.Context, model)
	}
	if o.Type == ir.Invalid {
		o.Type = ir.F32
	}
	if !o.Type.Float() {
		return fmt.Errorf("activations of type %s: want f32, f16 or bf16", o.Type)
	}
	if o.Prefill == 0 {
		o.Prefill = min(128, o.Context)
	}
	if o.Prefill < 1 || o.Prefill > o.Context {
		return fmt.Errorf("prefill of %d tokens does not fit a context of %d positions", o.Prefill, o.Context)
	}
	return nil
}

// tensor is one weight, ready to be bound by a recorder.
type tensor struct {
	name    string
	n, k    int64 // n rows of k elements; n == 0: a vector
	experts int64 // so many matrices; 0: one
	dtype   ir.DType
	format  record.GGMLFormat // of blocks that stay as they are; 0: none
	blob    *ir.Blob          // what is not repacked
	codes   *ir.Blob
	scales  *ir.Blob
	biases  *ir.Blob
	bits    int64
}

// weights gets every tensor ready, once for both graphs: repacked, or as it lies in the file.
func (m *Model) weights(ctx context.Context, o frontend.Options) (map[string]tensor, error) {
	out := map[string]tensor{}
	for i, t := range m.File.Tensors {
		for _, part := range m.Config.parts(t) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			out[part.Name] = m.weight(part, o)
		}
		if o.Progress != nil {
			o.Progress(float64(i+1) / float64(len(m.File.Tensors)))
		}
	}
	return out, nil
}

// weight gets a tensor ready, or a part of one.
func (m *Model) weight(t ggufio.Tensor, o frontend.Options) tensor {
	w := tensor{name: t.Name, k: int64(t.Dims[0]), dtype: o.Type}
	if len(t.Dims) > 1 {
		w.n = int64(t.Dims[1])
	}
	if len(t.Dims) > 2 {
		w.experts = int64(t.Dims[2])
	}
	repack := repacked[t.Type]
	switch {
	case t.Name == ropeFactors:
		w.dtype, w.blob = ir.F32, ir.NewBlob(periods(m.File.Data(t), m.Config))
	case t.Type == ggufio.F32 || t.Type == ggufio.F16:
		w.dtype, w.blob = m.dense(t, o)
	case repack == nil || o.Blocks:
		w.format, _ = record.GGMLFormatNamed(t.Type.String())
		w.blob = m.contents(t, o)
	default:
		a := repack(m.File.Data(t))
		w.bits = a.bits
		w.codes, w.scales, w.biases = ir.NewBlob(a.codes), ir.NewBlob(convert(a.scales, o.Type)), ir.NewBlob(convert(a.biases, o.Type))
	}
	return w
}

// periods are what MLX's rope divides positions by, for factors of the frequencies: base^(2i/dim) · factor of pair i.
func periods(factors []byte, c Config) []byte {
	out := make([]byte, len(factors))
	for i := range len(factors) / 4 {
		f := math.Float32frombits(binary.LittleEndian.Uint32(factors[4*i:]))
		put(out, i, float32(math.Pow(c.RopeTheta, 2*float64(i)/float64(c.HeadDim))*float64(f)))
	}
	return out
}

// recording is one step that is being recorded.
type recording struct {
	*record.Session
	*Decoder
}

func (l *recording) has(name string) bool {
	_, ok := l.weights[name]
	return ok
}

func (l *recording) vector(name string) record.Tensor {
	w := l.weights[name]
	return l.Weight(name, w.blob, w.dtype, w.k)
}

func (l *recording) matrix(name string) record.Matrix {
	w := l.weights[name]
	shape := func(row int64) []int64 {
		if w.experts > 0 {
			return []int64{w.experts, w.n, row}
		}
		return []int64{w.n, row}
	}
	if w.format != 0 {
		blocks := l.Weight(name, w.blob, ir.U8, shape(w.format.RowBytes(w.k))...)
		return record.Blocks(record.GGMLMatrix{Format: w.format, Blocks: blocks, N: w.n, K: w.k})
	}
	if w.blob != nil {
		return record.Dense(l.Weight(name, w.blob, w.dtype, shape(w.k)...))
	}
	return record.Quantized(record.QTensor{
		W:      l.Weight(name, w.codes, ir.U32, shape(w.k*w.bits/32)...),
		Scales: l.Weight(name+".scales", w.scales, w.dtype, shape(w.k/blockElements)...),
		Biases: l.Weight(name+".biases", w.biases, w.dtype, shape(w.k/blockElements)...),
		N:      w.n, K: w.k, Bits: w.bits, Group: blockElements,
	})
}

// Decode records a step of one token.
func (m *Decoder) Decode(s *record.Session) Step {
	l := &recording{s, m}
	step := l.step(l.position(), ir.Const(1), 1)
	if m.options.Advance {
		l.Advance("pos", 1)
		l.Every(step.Token)
		l.Carry(step.Tokens, step.Token, "next token")
	}
	return step
}

// Prefill records a step of n tokens, where n is a param.
func (m *Decoder) Prefill(s *record.Session) Step {
	l := &recording{s, m}
	pos, rows := l.position(), l.Param("n", 1, uint32(m.options.Prefill))
	l.Require(pos.Add(rows), m.options.Context)
	return l.step(pos, rows, m.options.Prefill)
}

// embed looks up rows of the type of activations.
func (l *recording) embed(tokens record.Tensor, table record.Matrix) record.Tensor {
	label := record.Label("token_embd")
	if blocks := table.GGML; blocks != nil {
		return l.EmbedGGML(tokens, *blocks, l.options.Type, label)
	}
	if l.options.Type != ir.F32 && table.Q == nil {
		return l.EmbedNarrow(tokens, table.Dense, label)
	}
	return l.Embed(tokens, table, label)
}

func (l *recording) position() ir.Affine { return l.Param("pos", 0, uint32(l.options.Context-1)) }

// step records a step of `rows` tokens, at most capacity, from position pos on.
func (l *recording) step(pos, rows ir.Affine, capacity int64) Step {
	tokens := l.Input("tokens", ir.I32, capacity)
	tokens.Shape = []ir.Affine{rows}

	embedding := l.matrix("token_embd.weight")
	head := embedding
	if l.has("output.weight") {
		head = l.matrix("output.weight")
	}
	x := l.embed(tokens, embedding)
	if f := l.EmbeddingScale; f != 0 {
		x = l.Scale(x, record.Float(f), record.Label("token_embd.scale"))
	}
	for i := range l.Layers {
		l.layer(i, x, pos, rows)
	}
	l.Group("head")
	last := x.Row(rows.AddConst(-1)).Reshape(Dims(1, l.Config.Embedding)...)
	h := l.norm("output_norm", last, l.vector("output_norm.weight"))
	logits := l.Output("logits", l.options.Type, l.Vocab)
	if into := logits.Reshape(Dims(1, l.Vocab)...); l.LogitScale == 0 {
		l.Matmul(h, head, record.Label("output"), record.Into(into))
	} else {
		y := l.Matmul(h, head, record.Label("output"))
		l.Scale(y, record.Float(1/l.LogitScale), record.Label("output.scale"), record.Into(into))
	}
	token := l.Output("token", ir.U32, 1)
	row := logits.Reshape(Dims(1, l.Vocab)...)
	if l.options.Sample {
		l.Sample(row, record.Sampling{
			Temp: l.ParamF32("temp", 0, math.MaxFloat32), TopP: l.ParamF32("top_p", 0, 1),
			SeedLow: l.Param("seed_low", 0, math.MaxUint32), SeedHigh: l.Param("seed_high", 0, math.MaxUint32),
			Position: pos.Add(rows).AddConst(-1),
		}, record.Label("token"), record.Into(token))
	} else {
		l.Argmax(row, record.Label("token"), record.Into(token))
	}
	l.EndGroup()
	return Step{tokens, logits, token}
}

// Dims returns constant dimensions.
func Dims(ns ...int64) []ir.Affine { return record.Dims(ns...) }

// norm records RMSNorm and the multiplication by its weight, which are two dispatches.
func (l *recording) norm(label string, x, w record.Tensor) record.Tensor {
	return l.Mul(l.RMSNorm(x, l.NormEps, record.Label(label)), w, record.Label(label+".weight"))
}

// rope rotates the heads of x, whose first row has the position pos.
func (l *recording) rope(label string, x record.Tensor, pos ir.Affine) record.Tensor {
	by := record.Rope{Dims: l.HeadDim, Traditional: !l.RopeHalves, Base: float32(l.RopeTheta), Scale: cmp.Or(l.RopeScale, 1)}
	var freqs record.Tensor
	if l.has(ropeFactors) {
		freqs = l.vector(ropeFactors)
	}
	return l.RopeBy(x, pos, freqs, by, record.Label(label))
}

// layer records one transformer layer; it changes x in place.
func (l *recording) layer(i int64, x record.Tensor, pos, rows ir.Affine) {
	at := fmt.Sprintf("blk.%d.", i)
	l.Group(fmt.Sprintf("layer %d", i))
	mark := l.ScratchMark()
	weight := func(name string) record.Matrix { return l.matrix(at + name + ".weight") }
	project := func(x record.Tensor, name string) record.Tensor {
		y := l.Matmul(x, weight(name), record.Label(name))
		if bias := at + name + ".bias"; l.has(bias) {
			y = l.Add(y, l.vector(bias), record.Label(name+".bias"))
		}
		return y
	}
	// add adds what a half of the layer has computed to x.
	add := func(y record.Tensor, label string) {
		if f := l.ResidualScale; f != 0 {
			y = l.Scale(y, record.Float(f), record.Label(label+".scale"))
		}
		l.Add(x, y, record.Label(label), record.Into(x))
	}
	heads := func(t record.Tensor, n int64) record.Tensor {
		return t.Reshape(rows, ir.Const(n), ir.Const(l.HeadDim))
	}

	h := l.norm("attn_norm", x, l.vector(at+"attn_norm.weight"))
	q := heads(project(h, "attn_q"), l.Heads)
	k := heads(project(h, "attn_k"), l.KVHeads)
	v := heads(project(h, "attn_v"), l.KVHeads)
	if l.HeadNorms {
		q = l.norm("attn_q_norm", q, l.vector(at+"attn_q_norm.weight"))
		k = l.norm("attn_k_norm", k, l.vector(at+"attn_k_norm.weight"))
	}
	if l.NoRope == 0 || (i+1)%l.NoRope != 0 {
		q = l.rope("rope_q", q, pos)
		k = l.rope("rope_k", k, pos)
	}
	kcache := l.State(fmt.Sprintf("k_cache.%d", i), l.options.Type, l.options.Context, l.KVHeads, l.HeadDim)
	vcache := l.State(fmt.Sprintf("v_cache.%d", i), l.options.Type, l.options.Context, l.KVHeads, l.HeadDim)
	l.KVWrite(kcache, k, pos, record.Label("k_cache"))
	l.KVWrite(vcache, v, pos, record.Label("v_cache"))
	scale := float32(1 / math.Sqrt(float64(l.HeadDim)))
	if l.AttentionScale != 0 {
		scale = l.AttentionScale
	}
	a := l.SDPA(q, kcache, vcache, pos.Add(rows), scale, record.Label("attention"))
	a = a.Reshape(rows, ir.Const(l.Heads*l.HeadDim))
	add(project(a, "attn_output"), "attn_residual")

	h = l.norm("ffn_norm", x, l.vector(at+"ffn_norm.weight"))
	if l.Experts > 0 {
		add(l.experts(h, rows, at, project), "ffn_residual")
	} else {
		gate := project(h, "ffn_gate")
		up := project(h, "ffn_up")
		act := l.Mul(l.Silu(gate, record.Label("ffn_silu")), up, record.Label("ffn_mul"))
		add(project(act, "ffn_down"), "ffn_residual")
	}
	l.ScratchReset(mark)
	l.EndGroup()
}
