package textgen

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
	"github.com/mlxc/mlxc/tokenizer"
)

// Model is a language model ready to generate.
type Model struct {
	Tokenizer *tokenizer.Tokenizer
	Device    backend.Device
	instance  *replay.Instance
	decode    *replay.Graph
	prefill   *replay.Graph // nil: prompts go through decode, token by token
	batch     int           // max number of tokens of one prefill
	context   int           // number of positions of the KV cache
	ran       []int32       // the tokens whose keys and values the states hold
	burst     burstFrame    // frame for bursts of the decode graph
	pace      time.Duration // the time for each token of the last burst; 0: there was none
}

// Tokenizer returns the tokenizer of a recorded language model. It is an error if the
// module has none.
func Tokenizer(m *ir.Module) (*tokenizer.Tokenizer, error) {
	blob := m.Lookup(gguf.VocabularyData)
	if blob == nil {
		return nil, fmt.Errorf("the file has no %s: it is no recorded language model (mlxc record makes one)", gguf.VocabularyData)
	}
	raw, err := blob.Bytes()
	if err != nil {
		return nil, err
	}
	spec, err := tokenizer.Unmarshal(raw)
	if err != nil {
		return nil, err
	}
	return tokenizer.New(spec)
}

// Open prepares the module's graphs to run on a device. Model.Close must be called.
func Open(ctx context.Context, d backend.Device, m *ir.Module, o replay.Options) (_ *Model, err error) {
	out := &Model{Device: d}
	if out.Tokenizer, err = Tokenizer(m); err != nil {
		return nil, err
	}
	if out.instance, err = replay.Open(d, m, o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = out.instance.Close() // the error of Open matters, not this one
		}
	}()
	if out.decode, err = out.instance.Graph(ctx, "decode"); err != nil {
		return nil, err
	}
	pos, err := checkGraph(out.decode)
	if err != nil {
		return nil, err
	}
	out.context = int(pos.Max) + 1
	if err := setSampling(out.decode.IR(), out.decode.SetParam, Options{TopP: 1}); err != nil {
		return nil, err
	}
	if m.Graph("prefill") == nil {
		return out, out.warm(ctx)
	}
	if out.prefill, err = out.instance.Graph(ctx, "prefill"); err != nil {
		return nil, err
	}
	other, err := checkGraph(out.prefill)
	if err != nil {
		return nil, err
	}
	if err := setSampling(out.prefill.IR(), out.prefill.SetParam, Options{TopP: 1}); err != nil {
		return nil, err
	}
	if other.Max < pos.Max {
		return nil, fmt.Errorf("graph prefill has $pos up to %s, graph decode up to %s: both write the same cache", other.Format(other.Max), pos.Format(pos.Max))
	}
	a, _ := out.prefill.Size("logits", ir.Output)
	if b, _ := out.decode.Size("logits", ir.Output); a != b {
		return nil, fmt.Errorf("graph prefill has %%logits of %d bytes, graph decode of %d: want one vocabulary", a, b)
	}
	if out.batch, err = batchOf(out.prefill.IR()); err != nil {
		return nil, err
	}
	if room, _ := out.prefill.Size("tokens", ir.Input); int64(out.batch) > room/4 {
		return nil, fmt.Errorf("graph prefill takes $n up to %d tokens, its input %%tokens has room for %d", out.batch, room/4)
	}
	return out, out.warm(ctx)
}

// batchOf returns the max number of tokens that a prefill graph takes.
func batchOf(g *ir.Graph) (int, error) {
	i, ok := g.ParamNamed("n")
	if !ok {
		return 0, fmt.Errorf("graph prefill has no param $n")
	}
	n := g.Params[i]
	if n.Type != ir.U32 || n.Min > 1 || n.Max < 1 {
		return 0, fmt.Errorf("graph prefill: $n, the number of tokens, is a %s in [%s, %s]: want a u32 that may be 1", n.Type, n.Format(n.Min), n.Format(n.Max))
	}
	return int(n.Max), nil
}

// maxContext bounds the number of positions, because the sum of a position and a batch
// is a u32.
const maxContext = 1 << 31

// checkGraph returns an error if a graph lacks what generation needs: an input of token
// IDs, outputs for logits and the token found, and a position that begins at 0. It also
// refuses any other param that varies, because generation would not know its value.
func checkGraph(g *replay.Graph) (pos ir.Param, err error) {
	name := ir.QuoteName(g.IR().Name)
	i, ok := g.IR().ParamNamed("pos")
	if !ok {
		return pos, fmt.Errorf("graph %s has no param $pos", name)
	}
	pos = g.IR().Params[i]
	if pos.Type != ir.U32 || pos.Min != 0 || pos.Max >= maxContext {
		return pos, fmt.Errorf("graph %s: $pos, the position, is a %s in [%s, %s]: want a u32 from 0 to less than %d", name, pos.Type, pos.Format(pos.Min), pos.Format(pos.Max), maxContext)
	}
	for _, q := range g.IR().Params {
		if _, known := sampling[q.Name]; known && samples(g.IR()) {
			continue
		}
		if q.Name != "pos" && q.Name != "n" && q.Min != q.Max {
			return pos, fmt.Errorf("graph %s has a param $%s in [%v, %v], for which generation has no value", name, ir.QuoteName(q.Name), q.Min, q.Max)
		}
	}
	if g.IR().Name == "decode" {
		if i, ok := g.IR().ParamNamed("n"); ok && g.IR().Params[i].Min != g.IR().Params[i].Max {
			return pos, fmt.Errorf("graph decode has a param $n, for which generation has no value: it decodes one token")
		}
	}
	tokens, _ := g.Size("tokens", ir.Input)
	logits, _ := g.Size("logits", ir.Output)
	token, _ := g.Size("token", ir.Output)
	switch {
	case tokens < 4:
		return pos, fmt.Errorf("graph %s has no input %%tokens", name)
	case logits < 4 || token < 4:
		return pos, fmt.Errorf("graph %s has no outputs %%logits and %%token", name)
	case logits%4 != 0:
		return pos, fmt.Errorf("graph %s has %%logits of %d bytes: want f32", name, logits)
	}
	for _, want := range []struct {
		memory string
		types  []ir.DType
	}{{"tokens", []ir.DType{ir.I32, ir.U32}}, {"logits", []ir.DType{ir.F32}}, {"token", []ir.DType{ir.I32, ir.U32}}} {
		i, _ := g.IR().MemoryNamed(want.memory)
		if t := g.IR().Memories[i].DType; t.Valid() && !slices.Contains(want.types, t) {
			return pos, fmt.Errorf("graph %s: %%%s is %s, want %s", name, want.memory, t, want.types[0])
		}
	}
	return pos, nil
}

// Close releases the device's memory.
func (m *Model) Close() error { return m.instance.Close() }

// Work returns the modelled time, in seconds on one worker, of a prompt of so many
// tokens and of the tokens generated after it. Every step counts as long as the last,
// which is the longest. It is 0 if the device does not model times.
func (m *Model) Work(prompt, tokens int) (float64, error) {
	last := max(0, min(prompt+tokens, m.context)-1)
	if err := m.decode.SetParam("pos", float64(last)); err != nil {
		return 0, err
	}
	step, ok, err := m.decode.Work()
	if err != nil || !ok {
		return 0, err
	}
	total := step * float64(tokens)
	if m.prefill == nil {
		return total + step*float64(prompt), nil
	}
	n := max(1, min(prompt, m.batch))
	if err := m.prefill.SetParam("n", float64(n)); err != nil {
		return 0, err
	}
	if err := m.prefill.SetParam("pos", float64(max(0, min(prompt, m.context)-n))); err != nil {
		return 0, err
	}
	batch, _, err := m.prefill.Work()
	return total + batch*float64((prompt+n-1)/n), err
}

// Context returns the number of positions of the KV cache.
func (m *Model) Context() int { return m.context }

// Options of one generation.
type Options struct {
	N         int     // max number of tokens to generate
	Temp      float64 // 0: greedy
	TopP      float64 // in (0, 1]; 0 means 1
	Seed      uint64
	IgnoreEnd bool // go on after end-of-generation tokens
	// Continue keeps the states if the prompt begins with all the tokens that made
	// them, and goes on after these. Otherwise the states are cleared.
	Continue bool
	// Burst is how many tokens one submission decodes. More than one needs a
	// decode graph that carries its token to the next replay (gguf.Options.Advance), and
	// with Temp one that draws it by itself (gguf.Options.Sample). It excludes Logits,
	// because the host sees the tokens only when all of them are there.
	// 0 chooses: on a GPU, if all of that holds, as many as take some 40 ms, else 1.
	Burst int
	// Emit, if not nil, is called with each token as soon as it is known. Its error
	// ends the generation.
	Emit func(id int32) error
	// Logits, if not nil, is called with the logits that each token was chosen from. It
	// must copy what it keeps.
	Logits func(logits []float32)
	// Timing, if not nil, is called with the time of each replay.
	Timing func(g *ir.Graph, t replay.Timing)
}

// Result of one generation.
type Result struct {
	IDs     []int32
	Kept    int           // number of tokens of the prompt that the states had already
	Prompt  time.Duration // time until the first token's logits were known
	Decode  time.Duration // time of all tokens after the first
	Stopped string        // "end", "length" or "context"
}

// TokensPerSecond returns the speed of decoding after the first token; 0 if there was
// no second one.
func (r *Result) TokensPerSecond() float64 {
	if r.Decode <= 0 || len(r.IDs) < 2 {
		return 0
	}
	return float64(len(r.IDs)-1) / r.Decode.Seconds()
}

// Generate continues the prompt. It begins with an empty KV cache or, with
// Options.Continue, with the one that the last call left.
func (m *Model) Generate(ctx context.Context, prompt []int32, o Options) (*Result, error) {
	if len(prompt) == 0 {
		return nil, fmt.Errorf("the prompt has no tokens")
	}
	if len(prompt) > m.context {
		return nil, fmt.Errorf("the prompt has %d tokens, the context %d positions (record with a larger --context)", len(prompt), m.context)
	}
	if o.TopP == 0 {
		o.TopP = 1
	}
	if !(o.Temp >= 0) || math.IsInf(o.Temp, 0) || !(o.TopP > 0 && o.TopP <= 1) {
		return nil, fmt.Errorf("temperature %v or top-p %v makes no sense (want temperature ≥ 0, 0 < top-p ≤ 1)", o.Temp, o.TopP)
	}
	size, _ := m.decode.Size("logits", ir.Output)
	vocab := int32(size / 4)
	var raw []byte
	if err := m.checkBurst(o); err != nil {
		return nil, err
	}
	bursts := o.Burst > 1 || o.Burst == 0 && m.inBursts(o)
	for i, id := range prompt {
		if id < 0 || id >= vocab {
			return nil, fmt.Errorf("prompt token %d has the id %d, the vocabulary has %d", i, id, vocab)
		}
	}
	r := &Result{Stopped: "length"}
	r.Kept = len(m.ran)
	if !o.Continue || r.Kept == 0 || len(prompt) <= r.Kept || !slices.Equal(m.ran, prompt[:r.Kept]) {
		m.ran, r.Kept = nil, 0
		if err := m.instance.ResetStates(); err != nil {
			return nil, err
		}
	}
	for _, g := range []*replay.Graph{m.decode, m.prefill} {
		if g == nil {
			continue
		}
		if err := setSampling(g.IR(), g.SetParam, o); err != nil {
			return nil, err
		}
	}
	start := time.Now()
	g, err := m.feed(ctx, prompt, o)
	if err != nil {
		return nil, err
	}
	r.Prompt = time.Since(start)
	start = time.Now()
	var found []int32 // tokens that a burst has decoded and that were not yet passed to Emit
	for pos := len(prompt); len(r.IDs) < o.N; pos++ {
		var logits []float32
		onHost := o.Temp > 0 && !samples(g.IR())
		if o.Logits != nil || onHost {
			if raw == nil {
				raw = make([]byte, size)
			}
			if err := g.ReadOutput("logits", raw); err != nil {
				return nil, err
			}
			logits = floats(raw)
		}
		if o.Logits != nil {
			o.Logits(logits)
		}
		var id int32
		switch {
		case len(found) > 0:
			id, found = found[0], found[1:]
		case onHost:
			id = sample(logits, pos-1, o)
		default:
			if id, err = tokenOf(g.ReadOutput); err != nil {
				return nil, err
			}
		}
		r.IDs = append(r.IDs, id)
		if o.Emit != nil {
			if err := o.Emit(id); err != nil {
				return nil, err
			}
		}
		if !o.IgnoreEnd && m.Tokenizer.IsEndOfGeneration(id) {
			r.Stopped = "end"
			m.ran = m.ran[:min(len(m.ran), pos)] // a burst may have decoded tokens after the end
			break
		}
		if len(r.IDs) == o.N {
			break
		}
		if pos >= m.context {
			r.Stopped = "context"
			break
		}
		switch {
		case len(found) > 0:
		case bursts:
			if found, err = m.decodeBurst(ctx, id, pos, min(m.burstLength(o), o.N-len(r.IDs), m.context-pos), o); err != nil {
				return nil, err
			}
		default:
			if g, err = m.step(ctx, m.decode, []int32{id}, pos, o); err != nil {
				return nil, err
			}
		}
	}
	r.Decode = time.Since(start)
	return r, nil
}

// feed runs the prompt, and returns the graph whose outputs hold the last logits.
func (m *Model) feed(ctx context.Context, prompt []int32, o Options) (g *replay.Graph, err error) {
	for pos := len(m.ran); pos < len(prompt); {
		n, graph := 1, m.decode
		if m.prefill != nil {
			n, graph = min(m.batch, len(prompt)-pos), m.prefill
			if err := graph.SetParam("n", float64(n)); err != nil {
				return nil, err
			}
		}
		if g, err = m.step(ctx, graph, prompt[pos:pos+n], pos, o); err != nil {
			return nil, err
		}
		pos += n
	}
	return g, nil
}

// step runs a graph on tokens, of which the first has position pos.
func (m *Model) step(ctx context.Context, g *replay.Graph, tokens []int32, pos int, o Options) (*replay.Graph, error) {
	in := make([]byte, 4*len(tokens))
	for i, id := range tokens {
		binary.LittleEndian.PutUint32(in[4*i:], uint32(id))
	}
	if err := g.SetInput("tokens", in); err != nil {
		return nil, err
	}
	if err := g.SetParam("pos", float64(pos)); err != nil {
		return nil, err
	}
	ran := m.ran
	m.ran = nil // until the run has succeeded, the states are unknown
	t, err := g.Run(ctx)
	if err == nil {
		m.ran = append(ran, tokens...)
	}
	if err == nil && o.Timing != nil {
		o.Timing(g.IR(), t)
	}
	return g, err
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}
