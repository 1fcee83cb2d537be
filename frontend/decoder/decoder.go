package decoder

import (
	"cmp"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Decoder is a model whose weights are ready to be bound, for an engine that dispatches
// by itself.
type Decoder struct {
	Config
	weights map[string]Weight
	options frontend.Options
}

// New returns the decoder of a model with its weights, by their names ([Config.LayerTensors]). o has been filled by
// [Config.Fill].
func New(c Config, weights map[string]Weight, o frontend.Options) *Decoder {
	if c.LongPeriods != nil && o.Context > c.Trained {
		c.RopePeriods = c.LongPeriods
	}
	table := func(name string, t ir.DType, v []float32) {
		weights[name] = Weight{Name: name, K: int64(len(v)), Type: t, Blob: ir.NewBlob(record.Elements(t, v))}
	}
	if c.RopePeriods != nil {
		table(ropePeriods, ir.F32, c.RopePeriods)
	}
	if c.partMagnified() {
		v := make([]float32, c.HeadDim)
		for i := range v {
			v[i] = 1
			if int64(i) < c.RopeDims {
				v[i] = c.RopeMagnitude * c.RopeMagnitude
			}
		}
		table(ropeMagnitudes, o.Type, v)
	}
	return &Decoder{c, weights, o}
}

// Weights of rope: periods of pairs, and what elements of queries are multiplied by for their magnitude and that of keys.
const ropePeriods, ropeMagnitudes = "rope.periods", "rope.magnitudes"

// partMagnified reports whether a part of the elements of a head has a magnitude; that of all is a factor of scores.
func (c Config) partMagnified() bool {
	return cmp.Or(c.RopeMagnitude, 1) != 1 && c.Turned() < c.HeadDim
}

// cacheGroup is how many elements of a head have one scale in a cache of q8_0.
const cacheGroup = 32

// Step holds the inputs and outputs of one step of a model.
type Step struct {
	Tokens record.Tensor // input, i32
	Logits record.Tensor // output [vocab], of the last token; of Verify [n, vocab]
	Token  record.Tensor // output, u32 [1], of Verify [n]: the index of the max logit, or a drawn one with frontend.Options.Sample
}

// Fill sets the defaults of the options for a model, and says what of them is not for it.
func (c Config) Fill(o *frontend.Options) error {
	if o.Context == 0 {
		o.Context = min(c.Context, 2048)
	}
	if o.Context < 1 || o.Context > c.Context {
		return fmt.Errorf("context of %d positions: the model has %d", o.Context, c.Context)
	}
	if o.Type == ir.Invalid {
		o.Type = ir.F32
	}
	if !o.Type.Float() {
		return fmt.Errorf("activations of type %s: want f32, f16 or bf16", o.Type)
	}
	if o.Cache == ir.Invalid {
		o.Cache = o.Type
	}
	if o.Cache == ir.I8 {
		if c.HeadDim%cacheGroup != 0 {
			return fmt.Errorf("a cache of q8_0 is for heads of a multiple of %d elements, and this model's have %d", cacheGroup, c.HeadDim)
		}
	} else if o.Cache != o.Type && (o.Type != ir.F32 || o.Cache != ir.F16) {
		return fmt.Errorf("a cache of type %s beside activations of type %s: want the same type, f16 beside f32, or q8_0", o.Cache, o.Type)
	}
	if o.Prefill == 0 {
		o.Prefill = min(128, o.Context)
	}
	if o.Prefill < 1 || o.Prefill > o.Context {
		return fmt.Errorf("prefill of %d tokens does not fit a context of %d positions", o.Prefill, o.Context)
	}
	if o.Draft < 0 || o.Draft > mostDrafted || o.Draft >= o.Context {
		return fmt.Errorf("a draft of %d tokens: want 0 to %d, and fewer than the context's %d positions", o.Draft, mostDrafted, o.Context)
	}
	return nil
}

// mostDrafted bounds guesses: products of up to 64 rows are those that read the weights once.
const mostDrafted = 63

// Module returns a module with the graphs "decode" (one token) and "prefill" (n tokens at once), which share weights
// and KV cache, and with [frontend.Options].Draft "verify". The params are pos, the position of the first token; of prefill and
// verify also n, the number of tokens; and with [frontend.Options].Sample, of decode and prefill, temp, top_p, seed_low and seed_high. The input is
// tokens, i32. The outputs are logits, of [frontend.Options].Type, and token, u32: of decode and prefill [vocab] and [1], for the last token, and of
// verify [n, vocab] and [n], for each token.
func (m *Decoder) Module() (*ir.Module, error) {
	out := &ir.Module{}
	type step struct {
		name   string
		record func(*record.Session) Step
	}
	steps := []step{{"decode", m.Decode}, {"prefill", m.Prefill}}
	if guesses := m.options.Draft; guesses > 0 {
		steps = append(steps, step{"verify", func(s *record.Session) Step { return m.Verify(s, guesses) }})
	}
	for _, f := range steps {
		s := record.New(f.name, record.WeightsOnce())
		f.record(s)
		g, err := s.Graph()
		if err != nil {
			return nil, err
		}
		out.Graphs = append(out.Graphs, g)
	}
	return out, nil
}

// recording is one step that is being recorded.
type recording struct {
	*record.Session
	*Decoder
}

// Decode records a step of one token.
func (m *Decoder) Decode(s *record.Session) Step {
	l := &recording{s, m}
	step := l.step(l.position(), ir.Const(1), 1, false)
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
	return l.several(m.options.Prefill, false)
}

// Verify records a step of a token and up to so many guesses of what follows it, n tokens, where n is a param, with logits and a
// chosen token for each of them: these say which guesses are right. It never draws: at a temperature the token of row i must be drawn
// for the position of that row, as Decode would draw it, which is left to the host.
func (m *Decoder) Verify(s *record.Session, guesses int64) Step {
	l := &recording{s, m}
	return l.several(guesses+1, true)
}

// several records a step of up to capacity tokens, whose number is the param n.
func (l *recording) several(capacity int64, each bool) Step {
	pos, rows := l.position(), l.Param("n", 1, uint32(capacity))
	l.Require(pos.Add(rows), l.options.Context)
	return l.step(pos, rows, capacity, each)
}

// embed looks up rows of the type of activations.
func (l *recording) embed(tokens record.Tensor, table record.Matrix, label record.Option) record.Tensor {
	if blocks := table.GGML; blocks != nil {
		return l.EmbedGGML(tokens, *blocks, l.options.Type, label)
	}
	if l.options.Type != ir.F32 && table.Q == nil {
		return l.EmbedNarrow(tokens, table.Dense, label)
	}
	return l.Embed(tokens, table, label)
}

func (l *recording) position() ir.Affine { return l.Param("pos", 0, uint32(l.options.Context-1)) }

// step records a step of `rows` tokens, at most capacity, from position pos on, with outputs for the last or for each of them.
func (l *recording) step(pos, rows ir.Affine, capacity int64, each bool) Step {
	tokens := l.Input("tokens", ir.I32, capacity)
	tokens.Shape = []ir.Affine{rows}

	embedding := l.matrix("token_embd.weight")
	head := embedding
	if l.has("output.weight") {
		head = l.matrix("output.weight")
	}
	x := l.embed(tokens, embedding, record.Label("token_embd"))
	if f := l.EmbeddingScale; f != 0 {
		x = l.Scale(x, record.Float(f), record.Label("token_embd.scale"))
	}
	for i := range l.Layers {
		l.layer(i, x, pos, rows)
	}
	l.Group("head")
	last := pos.Add(rows).AddConst(-1)
	var logits, token record.Tensor
	if each {
		logits, token = l.Output("logits", l.options.Type, capacity, l.Vocab), l.Output("token", ir.U32, capacity)
		logits.Shape[0], token.Shape[0] = rows, rows
	} else {
		rows, x = ir.Const(1), x.Row(rows.AddConst(-1)).Reshape(Dims(1, l.Config.Embedding)...)
		logits, token = l.Output("logits", l.options.Type, l.Vocab), l.Output("token", ir.U32, 1)
	}
	row := logits.Reshape(rows, ir.Const(l.Vocab))
	h := l.norm("output_norm", x, l.vector("output_norm.weight"))
	l.logits(h, head, row)
	if l.options.Sample && !each {
		l.Sample(row, record.Sampling{
			Temp: l.ParamF32("temp", 0, math.MaxFloat32), TopP: l.ParamF32("top_p", 0, 1),
			SeedLow: l.Param("seed_low", 0, math.MaxUint32), SeedHigh: l.Param("seed_high", 0, math.MaxUint32),
			Position: last,
		}, record.Label("token"), record.Into(token))
	} else {
		l.Argmax(row, record.Label("token"), record.Into(token))
	}
	l.EndGroup()
	return Step{tokens, logits, token}
}

// logits records the products with the head, scaled and bounded, into rows.
func (l *recording) logits(h record.Tensor, head record.Matrix, into record.Tensor) {
	// last adds what makes an operation the last one.
	last := func(is bool, label string) []record.Option {
		o := []record.Option{record.Label(label)}
		if is {
			o = append(o, record.Into(into))
		}
		return o
	}
	scaled, bounded := l.LogitScale != 0, l.LogitCap != 0
	y := l.Matmul(h, head, last(!scaled && !bounded, "output")...)
	if scaled {
		y = l.Scale(y, record.Float(1/l.LogitScale), last(!bounded, "output.scale")...)
	}
	if bounded {
		l.Softcap(y, l.LogitCap, last(true, "output.cap")...)
	}
}

// Dims returns constant dimensions.
func Dims(ns ...int64) []ir.Affine { return record.Dims(ns...) }

// norm records RMSNorm and the multiplication by its weight, which are two dispatches.
func (l *recording) norm(label string, x, w record.Tensor) record.Tensor {
	return l.Mul(l.RMSNorm(x, l.NormEps, record.Label(label)), w, record.Label(label+".weight"))
}

// rope rotates the heads of x, whose first row has the position pos, in a layer with a window of its own rope or in another one.
func (l *recording) rope(label string, x record.Tensor, pos ir.Affine, local bool) record.Tensor {
	by := record.Rope{Dims: l.Turned(), Traditional: !l.RopeHalves, Base: float32(l.RopeTheta), Scale: cmp.Or(l.RopeScale, 1)}
	var freqs record.Tensor
	if local {
		by.Base, by.Scale = float32(l.LocalTheta), 1
	} else if l.has(ropePeriods) {
		freqs = l.vector(ropePeriods)
	}
	o := []record.Option{record.Label(label)}
	if by.Dims < l.HeadDim {
		o = append(o, record.Into(x))
	}
	return l.RopeBy(x, pos, freqs, by, o...)
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
	add := func(y record.Tensor, label, norm string) {
		if l.PostNorms {
			y = l.norm(norm, y, l.vector(at+norm+".weight"))
		}
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
	scale := cmp.Or(l.AttentionScale, float32(1/math.Sqrt(float64(l.HeadDim))))
	if l.NoRope == 0 || (i+1)%l.NoRope != 0 {
		local := l.windowed(i) && l.LocalTheta != 0
		q = l.rope("rope_q", q, pos, local)
		k = l.rope("rope_k", k, pos, local)
		if l.partMagnified() {
			q = l.Mul(q, l.vector(ropeMagnitudes), record.Label("rope_magnitude"))
		} else if m := l.RopeMagnitude; m != 0 {
			scale *= m * m
		}
	}
	kcache := l.State(fmt.Sprintf("k_cache.%d", i), l.options.Cache, l.options.Context, l.KVHeads, l.HeadDim)
	vcache := l.State(fmt.Sprintf("v_cache.%d", i), l.options.Cache, l.options.Context, l.KVHeads, l.HeadDim)
	by := record.Attention{Scale: scale, Cap: l.AttentionCap}
	if l.windowed(i) && l.Window < l.options.Context { // else it takes nothing away
		by.Window = l.Window
	}
	if l.Sinks {
		by.Sinks = l.vector(at + "attn_sinks.weight")
	}
	var a record.Tensor
	switch label := record.Label("attention"); l.options.Cache {
	case ir.I8:
		scales := func(of string) record.Tensor {
			return l.State(fmt.Sprintf("%s_scales.%d", of, i), ir.F16, l.options.Context, l.KVHeads, l.HeadDim/cacheGroup)
		}
		keys, values := record.QuantizedCache{Codes: kcache, Scales: scales("k")}, record.QuantizedCache{Codes: vcache, Scales: scales("v")}
		l.KVWriteQuantized(keys, values, k, v, pos, record.Label("kv_cache"))
		a = l.SDPAQuantized(q, keys, values, pos.Add(rows), by, label)
	case l.options.Type:
		l.KVWrite(kcache, k, pos, record.Label("k_cache"))
		l.KVWrite(vcache, v, pos, record.Label("v_cache"))
		a = l.SDPABy(q, kcache, vcache, pos.Add(rows), by, label)
	default:
		l.KVWriteRounded(kcache, vcache, k, v, pos, record.Label("kv_cache"))
		a = l.SDPABy(q, kcache, vcache, pos.Add(rows), by, label)
	}
	a = a.Reshape(rows, ir.Const(l.Heads*l.HeadDim))
	add(project(a, "attn_output"), "attn_residual", "post_attention_norm")

	h = l.norm("ffn_norm", x, l.vector(at+"ffn_norm.weight"))
	if l.Experts > 0 {
		add(l.experts(h, rows, at, project), "ffn_residual", "post_ffw_norm")
	} else {
		gate := project(h, "ffn_gate")
		up := project(h, "ffn_up")
		if l.GeluGates {
			gate = l.Gelu(gate, record.Label("ffn_gelu"))
		} else {
			gate = l.Silu(gate, record.Label("ffn_silu"))
		}
		act := l.Mul(gate, up, record.Label("ffn_mul"))
		add(project(act, "ffn_down"), "ffn_residual", "post_ffw_norm")
	}
	l.ScratchReset(mark)
	l.EndGroup()
}
