package gguf_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio"
	"github.com/mlxc/mlxc/frontend/gguf/ggufio/ggufwrite"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
	"github.com/mlxc/mlxc/tokenizer"
)

// The dimensions of a Llama model that is small enough to compute in plain float64.
const (
	tinyEmb, tinyFFN, tinyHeads, tinyKV, tinyDim, tinyVocab, tinyLayers = 128, 192, 2, 1, 64, 40, 2
	tinyEps                                                             = 1e-5
	tinyTheta                                                           = 10000
)

// tiny is a small model: its file and its weights as float64.
type tiny struct {
	file    ggufwrite.File
	weights map[string][]float64
	rng     *rand.Rand
}

// newTiny makes random weights. Matrices and the embedding have the given type. The
// head shares the embedding's weights unless untied is set.
func newTiny(typ ggufio.Type, untied bool) *tiny {
	t := &tiny{weights: map[string][]float64{}, rng: rand.New(rand.NewPCG(1, uint64(typ)))}
	f := &t.file
	f.KV("general.architecture", "llama")
	f.KV("llama.block_count", uint32(tinyLayers))
	f.KV("llama.embedding_length", uint32(tinyEmb))
	f.KV("llama.feed_forward_length", uint32(tinyFFN))
	f.KV("llama.attention.head_count", uint32(tinyHeads))
	f.KV("llama.attention.head_count_kv", uint32(tinyKV))
	f.KV("llama.context_length", uint32(32))
	f.KV("llama.attention.layer_norm_rms_epsilon", float32(tinyEps))
	f.KV("tokenizer.ggml.model", "gpt2")
	f.KV("tokenizer.ggml.pre", "smollm")
	tokens := make([]string, tinyVocab)
	for i := range tokens {
		tokens[i] = string(rune('A' + i))
	}
	f.KV("tokenizer.ggml.tokens", tokens)
	f.KV("tokenizer.ggml.merges", []string{"A B"}[:0])
	t.matrix("token_embd.weight", typ, tinyVocab, tinyEmb)
	if untied {
		t.matrix("output.weight", typ, tinyVocab, tinyEmb)
	}
	t.vector("output_norm.weight")
	for i := range tinyLayers {
		at := "blk." + string(rune('0'+i)) + "."
		t.vector(at + "attn_norm.weight")
		t.vector(at + "ffn_norm.weight")
		t.matrix(at+"attn_q.weight", typ, tinyHeads*tinyDim, tinyEmb)
		t.matrix(at+"attn_k.weight", typ, tinyKV*tinyDim, tinyEmb)
		t.matrix(at+"attn_v.weight", typ, tinyKV*tinyDim, tinyEmb)
		t.matrix(at+"attn_output.weight", typ, tinyEmb, tinyHeads*tinyDim)
		t.matrix(at+"ffn_gate.weight", typ, tinyFFN, tinyEmb)
		t.matrix(at+"ffn_up.weight", typ, tinyFFN, tinyEmb)
		t.matrix(at+"ffn_down.weight", typ, tinyEmb, tinyFFN)
	}
	return t
}

func (t *tiny) vector(name string) {
	var data []byte
	w := make([]float64, tinyEmb)
	for i := range w {
		v := float32(1 + 0.2*t.rng.NormFloat64())
		w[i] = float64(v)
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	t.weights[name] = w
	t.file.Tensor(name, ggufio.F32, []uint64{tinyEmb}, data)
}

// half rounds v to a value that an f16 holds, and returns it with its bits: 1+10 bits
// of a normal number.
func half(v float64) (float64, uint16) {
	f, e := math.Frexp(math.Abs(v)) // v = f·2^e, ½ ≤ f < 1
	m := math.RoundToEven(f * 2048) // 11 bits
	if m == 2048 {
		m, e = 1024, e+1
	}
	bits := uint16(e+14)<<10 | uint16(m)&1023
	if v < 0 {
		bits |= 0x8000
	}
	return math.Copysign(math.Ldexp(m, e-11), v), bits
}

// matrix writes n×k random weights in the block format of a type, and keeps their exact
// values.
func (t *tiny) matrix(name string, typ ggufio.Type, n, k int) {
	var data []byte
	var w []float64
	scale := 1 / math.Sqrt(float64(k))
	for range n * k / 32 {
		d, dbits := half(scale * (0.1 + 0.1*t.rng.Float64()))
		m, mbits := half(-scale * (0.7 + 0.3*t.rng.Float64()))
		var q [32]int
		for j := range q {
			q[j] = t.rng.IntN(16)
		}
		switch typ {
		case ggufio.F32:
			for range q {
				v := float32(scale * t.rng.NormFloat64())
				w = append(w, float64(v))
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			}
		case ggufio.F16:
			for range q {
				v, bits := half(scale * (0.01 + t.rng.Float64()) * float64(1-2*t.rng.IntN(2)))
				w = append(w, v)
				data = binary.LittleEndian.AppendUint16(data, bits)
			}
		case ggufio.BF16:
			for range q {
				bits := uint16(math.Float32bits(float32(scale*t.rng.NormFloat64())) >> 16)
				w = append(w, float64(math.Float32frombits(uint32(bits)<<16)))
				data = binary.LittleEndian.AppendUint16(data, bits)
			}
		case ggufio.Q8_0:
			data = binary.LittleEndian.AppendUint16(data, dbits)
			for range q {
				c := int8(t.rng.IntN(32) - 16)
				w = append(w, d*float64(c))
				data = append(data, byte(c))
			}
		default:
			data = binary.LittleEndian.AppendUint16(data, dbits)
			if typ == ggufio.Q4_1 {
				data = binary.LittleEndian.AppendUint16(data, mbits)
			} else {
				m = -8 * d
			}
			for j := range 16 {
				data = append(data, byte(q[j]|q[j+16]<<4))
			}
			for _, c := range q {
				w = append(w, d*float64(c)+m)
			}
		}
	}
	t.weights[name] = w
	t.file.Tensor(name, typ, []uint64{uint64(k), uint64(n)}, data)
}

// logits computes the model in float64, written from the formulas, and returns the
// logits of the last token.
func (t *tiny) logits(tokens []int32) []float64 {
	matvec := func(name string, x []float64) []float64 {
		w := t.weights[name]
		y := make([]float64, len(w)/len(x))
		for i := range y {
			for j, v := range x {
				y[i] += w[i*len(x)+j] * v
			}
		}
		return y
	}
	norm := func(name string, x []float64) []float64 {
		s := 0.0
		for _, v := range x {
			s += v * v
		}
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = v / math.Sqrt(s/float64(len(x))+tinyEps) * t.weights[name][i]
		}
		return y
	}
	rope := func(x []float64, pos int) {
		for h := 0; h < len(x); h += tinyDim {
			for i := range tinyDim / 2 {
				s, c := math.Sincos(float64(pos) * math.Pow(tinyTheta, -2*float64(i)/tinyDim))
				a, b := x[h+2*i], x[h+2*i+1]
				x[h+2*i], x[h+2*i+1] = a*c-b*s, a*s+b*c
			}
		}
	}
	var keys, values [tinyLayers][][]float64
	var x []float64
	for pos, id := range tokens {
		x = append([]float64(nil), t.weights["token_embd.weight"][int(id)*tinyEmb:(int(id)+1)*tinyEmb]...)
		for l := range tinyLayers {
			at := "blk." + string(rune('0'+l)) + "."
			h := norm(at+"attn_norm.weight", x)
			q, k := matvec(at+"attn_q.weight", h), matvec(at+"attn_k.weight", h)
			rope(q, pos)
			rope(k, pos)
			keys[l] = append(keys[l], k)
			values[l] = append(values[l], matvec(at+"attn_v.weight", h))
			a := make([]float64, tinyHeads*tinyDim)
			for head := range tinyHeads {
				kv := head / (tinyHeads / tinyKV) * tinyDim
				sum := 0.0
				for j := range keys[l] {
					s := 0.0
					for i := range tinyDim {
						s += q[head*tinyDim+i] * keys[l][j][kv+i]
					}
					p := math.Exp(s / math.Sqrt(tinyDim))
					sum += p
					for i := range tinyDim {
						a[head*tinyDim+i] += p * values[l][j][kv+i]
					}
				}
				for i := range tinyDim {
					a[head*tinyDim+i] /= sum
				}
			}
			for i, v := range matvec(at+"attn_output.weight", a) {
				x[i] += v
			}
			h = norm(at+"ffn_norm.weight", x)
			gate, up := matvec(at+"ffn_gate.weight", h), matvec(at+"ffn_up.weight", h)
			for i, g := range gate {
				up[i] *= g / (1 + math.Exp(-g))
			}
			for i, v := range matvec(at+"ffn_down.weight", up) {
				x[i] += v
			}
		}
	}
	head := "output.weight"
	if t.weights[head] == nil {
		head = "token_embd.weight"
	}
	return matvec(head, norm("output_norm.weight", x))
}

func (t *tiny) write(tb testing.TB) string {
	data, err := t.file.Bytes()
	require.NoError(tb, err)
	path := filepath.Join(tb.TempDir(), "tiny.gguf")
	require.NoError(tb, os.WriteFile(path, data, 0o600))
	return path
}

// number returns element i of type t.
func number(t ir.DType, b []byte, i int) float64 {
	switch t {
	case ir.F16:
		return term.F16Value(binary.LittleEndian.Uint16(b[2*i:]))
	case ir.BF16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
}

// Prefill and decode are compared with float64 for every tensor type, with tied and
// untied heads, and with activations of 16 bits too.
func TestTinyModels(t *testing.T) {
	tokens := []int32{3, 1, 39, 0, 17, 17, 5, 22, 8}
	for _, kind := range []struct {
		typ        ggufio.Type
		activation ir.DType
		tolerance  float64 // of a logit
	}{
		{ggufio.F32, ir.F32, 1e-4}, {ggufio.F16, ir.F32, 1e-4}, {ggufio.Q4_0, ir.F32, 1e-4}, {ggufio.Q4_1, ir.F32, 1e-4}, {ggufio.Q8_0, ir.F32, 1e-4},
		{ggufio.BF16, ir.F32, 1e-4}, {ggufio.BF16, ir.F16, 2e-2}, {ggufio.BF16, ir.BF16, 1.6e-1},
		{ggufio.F32, ir.F16, 2e-2}, {ggufio.F16, ir.F16, 2e-2}, {ggufio.F32, ir.BF16, 1.6e-1}, {ggufio.F16, ir.BF16, 1.6e-1},
		{ggufio.Q4_0, ir.F16, 2e-2}, {ggufio.Q4_1, ir.F16, 2e-2}, {ggufio.Q8_0, ir.F16, 2e-2},
		{ggufio.Q4_0, ir.BF16, 1.6e-1}, {ggufio.Q4_1, ir.BF16, 1.6e-1}, {ggufio.Q8_0, ir.BF16, 1.6e-1},
	} {
		typ := kind.typ
		for _, way := range []struct{ untied, blocks bool }{{false, false}, {true, false}, {true, true}} {
			if way.blocks && (typ == ggufio.F32 || typ == ggufio.F16 || typ == ggufio.BF16 || kind.activation != ir.F32) {
				continue // they have no blocks, or no kernel takes them with such activations
			}
			tm := newTiny(typ, way.untied)
			m, err := gguf.Load(tm.write(t))
			require.NoError(t, err, typ)
			module, err := m.Record(context.Background(), frontend.Options{Prefill: 8, Type: kind.activation, Blocks: way.blocks})
			require.NoError(t, err, typ)
			for _, g := range module.Graphs {
				_, err := passes.Run(context.Background(), g, passes.DefaultPipeline(), passes.Options{})
				require.NoError(t, err)
				require.Zero(t, g.Stats().Unannotated, "%s %s", typ, g.Name)
			}
			d := cpu.New(2)
			s, err := replay.Open(d, module, replay.Options{Poison: true})
			require.NoError(t, err)
			// Six tokens at once, then two, then one by the decode graph.
			for _, part := range []struct {
				graph    string
				pos, end int
			}{{"prefill", 0, 6}, {"prefill", 6, 8}, {"decode", 8, 9}} {
				g, err := s.Graph(context.Background(), part.graph)
				require.NoError(t, err)
				require.NoError(t, g.SetInput("tokens", ir.ValueBytes(tokens[part.pos:part.end])))
				require.NoError(t, g.SetParam("pos", float64(part.pos)))
				if part.graph == "prefill" {
					require.NoError(t, g.SetParam("n", float64(part.end-part.pos)))
				}
				_, err = g.Run(context.Background())
				require.NoError(t, err)
				want := tm.logits(tokens[:part.end])
				best := 0
				logits, err := g.Output("logits")
				require.NoError(t, err)
				token, err := g.Output("token")
				require.NoError(t, err)
				for i, w := range want {
					got := number(kind.activation, logits, i)
					require.InDelta(t, w, got, kind.tolerance, "%s %s %+v %s logit %d", typ, kind.activation, way, part.graph, i)
					if w > want[best] {
						best = i
					}
				}
				chosen := binary.LittleEndian.Uint32(token)
				require.InDelta(t, want[best], want[chosen], 2*kind.tolerance, "%s %s: token %d for %d", typ, kind.activation, chosen, best)
				if kind.activation == ir.F32 {
					require.Equal(t, uint32(best), chosen)
				}
			}
			require.NoError(t, s.Close())
			require.NoError(t, d.Close())
			require.NoError(t, m.Close())
		}
	}
}

// The frontend refuses what it does not support, and names it.
func TestRefusals(t *testing.T) {
	cases := []struct {
		name   string
		change func(t *tiny)
		want   string
	}{
		{"sinks", func(t *tiny) { t.vector("blk.0.attn_sinks.weight") }, "tensor blk.0.attn_sinks.weight is not part of a model of llama that is supported"},
		{"scaling", func(t *tiny) { t.file.KV("llama.rope.scaling.type", "ntk") }, `rope scaling "ntk" is not supported`},
		{"yarn", func(t *tiny) {
			t.file.KV("llama.rope.scaling.type", "yarn")
			t.file.KV("llama.rope.scaling.factor", float32(0.5))
		}, "yarn: factor 0.5, 32 positions trained, pairs that turn more than 32 times, less than 1"},
		{"factor of attention", func(t *tiny) { t.file.KV("llama.rope.scaling.attn_factor", float32(-1)) }, "key llama.rope.scaling.attn_factor is -1, want more than 0"},
		{"partial rope", func(t *tiny) { t.file.KV("llama.rope.dimension_count", uint32(32)) }, "partial rope (32 of 64 dimensions) is not supported"},
		{"several", func(t *tiny) {
			t.file.KV("llama.rope.scaling.type", "ntk")
			t.file.KV("llama.attention.causal", false)
			t.file.KV("llama.rope.dimension_count", uint32(32))
		}, `key llama.attention.causal is false: attention to what follows is not supported; partial rope (32 of 64 dimensions) is not supported; rope scaling "ntk" is not supported`},
		{"tensors", func(t *tiny) {
			t.vector("blk.1.attn_sinks.weight")
			t.vector("blk.0.post_attention_norm.weight")
		}, "tensor blk.1.attn_sinks.weight is not part of a model of llama that is supported; tensor blk.0.post_attention_norm.weight is not part of a model of llama that is supported"},
		{"groups of experts", func(t *tiny) { t.file.KV("llama.expert_group_count", uint32(4)) }, "key llama.expert_group_count is 4, which is not supported, only 0 or 1 is"},
		{"layers that predict more", func(t *tiny) { t.file.KV("llama.nextn_predict_layers", uint32(1)) }, "key llama.nextn_predict_layers is 1, which is not supported, only 0 is"},
		{"other heads in windows", func(t *tiny) { t.file.KV("llama.attention.key_length_swa", uint32(32)) }, "key llama.attention.key_length_swa is 32, which is not supported, only 64 is"},
		{"classifier", func(t *tiny) { t.file.KV("llama.classifier.output_labels", []string{"good"}) }, "key llama.classifier.output_labels is there: a model that sorts texts is not supported"},
		{"token without an embedding", func(t *tiny) { t.file.KV("tokenizer.ggml.eos_token_id", uint32(40)) }, "tokenizer.ggml.eos_token_id is 40, the vocabulary has 0 to 39"},
		{"part", func(t *tiny) {
			t.file.KV("split.count", uint16(3))
			t.file.KV("split.no", uint16(1))
		}, "it is part 2 of 3 of a model (keys split.no and split.count): join them first, with llama-gguf-split --merge FIRST-PART OUTPUT, which is a tool of llama.cpp's"},
		{"of all kinds", func(t *tiny) {
			t.file.KV("llama.attention.causal", false)
			for i := range 20 {
				t.vector(fmt.Sprintf("blk.1.other%d.weight", i))
			}
			t.matrix("blk.1.attn_sinks.weight", ggufio.F32, 1, tinyEmb)
			t.file.KV("tokenizer.ggml.bos_token_id", uint32(40))
		}, "key llama.attention.causal is false: attention to what follows is not supported; " + others(10) + "tokenizer.ggml.bos_token_id is 40, the vocabulary has 0 to 39; and 11 more"},
		{"experts", func(t *tiny) {
			t.file.KV("llama.expert_count", uint32(8))
			t.file.KV("llama.expert_used_count", uint32(9))
		}, "9 of 8 experts: want at most as many as there are, and there are at most 4096"},
	}
	for _, c := range cases {
		tm := newTiny(ggufio.F32, false)
		c.change(tm)
		path := tm.write(t)
		_, err := gguf.Load(path)
		require.EqualError(t, err, path+": "+c.want, c.name)
	}
}

// others names so many tensors that are not part of a model.
func others(n int) (s string) {
	for i := range n {
		s += fmt.Sprintf("tensor blk.1.other%d.weight is not part of a model of llama that is supported; ", i)
	}
	return s
}

// What has no effect in llama.cpp has none here, and is said: keys that it does not read of an architecture, those whose values
// change nothing, and tokens that the vocabulary does not have.
func TestWithoutEffect(t *testing.T) {
	tm := newTiny(ggufio.F32, false)
	tm.file.KV("split.count", uint16(1))
	for key, v := range map[string]any{
		"attention.causal": true, "expert_group_count": uint32(1), "nextn_predict_layers": uint32(0), "attention.key_length_swa": uint32(64),
		"pooling_type": uint32(0), "rope.scaling.alpha": float32(0), "expert_count": uint32(0),
	} {
		tm.file.KV("llama."+key, v)
	}
	m, err := gguf.Load(tm.write(t))
	require.NoError(t, err)
	require.Empty(t, m.Remarks())
	plain := m.Config
	require.NoError(t, m.Close())
	for key, v := range map[string]any{
		"something": uint32(0), "attention.sliding_window": uint32(8), "expert_feed_forward_length": uint32(7), "final_logit_softcapping": float32(30),
	} {
		tm.file.KV("llama."+key, v)
	}
	tm.file.KV("tokenizer.ggml.padding_token_id", uint32(40))
	m, err = gguf.Load(tm.write(t))
	require.NoError(t, err)
	require.Equal(t, plain, m.Config)
	require.Equal(t, []string{
		"without effect, as in llama.cpp, which reads no such keys of this architecture: llama.attention.sliding_window, llama.expert_feed_forward_length, llama.final_logit_softcapping, llama.something",
		"without effect, as in llama.cpp: tokenizer.ggml.padding_token_id is 40, the vocabulary has 0 to 39",
	}, m.Remarks())
	require.NoError(t, m.Close())
}

// A tensor of a known name but a type that is not supported, which is named once however many there are, beside what else is wrong.
func TestUnsupportedType(t *testing.T) {
	var f ggufwrite.File
	f.KV("general.architecture", "llama")
	for k, v := range map[string]uint32{"block_count": 1, "embedding_length": 256, "feed_forward_length": 256, "attention.head_count": 4, "context_length": 8} {
		f.KV("llama."+k, v)
	}
	f.KV("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	f.KV("tokenizer.ggml.model", "gpt2")
	f.KV("tokenizer.ggml.pre", "falcon")
	f.KV("tokenizer.ggml.tokens", []string{"a"})
	f.KV("tokenizer.ggml.merges", []string{})
	f.Tensor("token_embd.weight", ggufio.IQ2_XS, []uint64{256, 1}, make([]byte, 74))
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
		f.Tensor("blk.0."+name+".weight", ggufio.IQ2_XS, []uint64{256, 256}, make([]byte, 256*74))
	}
	data, err := f.Bytes()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	_, err = gguf.Load(path)
	require.EqualError(t, err, path+": tensor token_embd.weight and 7 more: type IQ2_XS is not supported (F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL and MXFP4 are); "+
		"tensor blk.0.attn_norm.weight is missing; tensor blk.0.ffn_norm.weight is missing; tensor output_norm.weight is missing; "+
		`pre-tokenizer "falcon" (tokenizer.ggml.pre) is not supported; of llama.cpp's these are: `+strings.Join(tokenizer.PreTokenizers(), ", "))
}

func TestArchitecture(t *testing.T) {
	var f ggufwrite.File
	f.KV("general.architecture", "mamba")
	data, err := f.Bytes()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	_, err = gguf.Load(path)
	require.EqualError(t, err, path+`: architecture "mamba" is not supported (gemma2, gemma3, gpt-oss, granite, granitemoe, llama, phi3, qwen2, qwen2moe, qwen3, qwen3moe, smollm3 are); key tokenizer.ggml.model is missing: the file has no tokenizer`)
}
