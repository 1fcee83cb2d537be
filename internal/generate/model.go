package generate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
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
	session   *replay.Session
	decode    *replay.Graph
	prefill   *replay.Graph // nil: prompts go through decode, token by token
	batch     int           // most tokens of one prefill
	context   int           // positions of the KV cache
}

// Open plans the module's graphs on a device.
func Open(d backend.Device, m *ir.Module) (*Model, error) { return OpenWith(d, m, replay.Options{}) }

// OpenWith is Open with options of the replays.
func OpenWith(d backend.Device, m *ir.Module, o replay.Options) (*Model, error) {
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
	out := &Model{}
	if out.Tokenizer, err = tokenizer.New(spec); err != nil {
		return nil, err
	}
	if out.session, err = replay.Open(d, m, o); err != nil {
		return nil, err
	}
	if out.decode, err = out.session.Graph("decode"); err != nil {
		return nil, err
	}
	pos, err := checkGraph(out.decode)
	if err != nil {
		return nil, err
	}
	out.context = int(pos.Max) + 1
	if m.Graph("prefill") == nil {
		return out, nil
	}
	if out.prefill, err = out.session.Graph("prefill"); err != nil {
		return nil, err
	}
	if _, err := checkGraph(out.prefill); err != nil {
		return nil, err
	}
	n, ok := out.prefill.IR().ParamNamed("n")
	if !ok {
		return nil, fmt.Errorf("graph prefill has no param $n")
	}
	out.batch = int(out.prefill.IR().Params[n].Max)
	return out, nil
}

// checkGraph reports a graph that does not have what generation needs.
func checkGraph(g *replay.Graph) (pos ir.Param, err error) {
	name := ir.QuoteName(g.IR().Name)
	i, ok := g.IR().ParamNamed("pos")
	switch {
	case !ok:
		return pos, fmt.Errorf("graph %s has no param $pos", name)
	case len(g.Input("tokens")) < 4:
		return pos, fmt.Errorf("graph %s has no input %%tokens", name)
	case len(g.Output("logits")) < 4 || len(g.Output("token")) < 4:
		return pos, fmt.Errorf("graph %s has no outputs %%logits and %%token", name)
	}
	return g.IR().Params[i], nil
}

// Close releases the device's memory.
func (m *Model) Close() error { return m.session.Close() }

// Context returns the number of positions of the KV cache.
func (m *Model) Context() int { return m.context }

// Options of one generation.
type Options struct {
	N         int     // most tokens to generate
	Temp      float64 // 0: greedy
	TopP      float64 // in (0, 1]; 0 means 1
	Seed      uint64
	IgnoreEnd bool // go on past end-of-generation tokens
	// Emit, if not nil, is told each token as it comes.
	Emit func(id int32) error
	// Logits, if not nil, is shown the logits that each token was chosen from;
	// it must copy what it keeps.
	Logits func(logits []float32)
	// Timing, if not nil, is told how long each replay took.
	Timing func(g *ir.Graph, t backend.Timing)
}

// Result of one generation.
type Result struct {
	IDs     []int32
	Prompt  time.Duration // to the first token's logits
	Decode  time.Duration // of all tokens after the first
	Stopped string        // "end", "length" or "context"
}

// TokensPerSecond is the speed of decoding after the first token; 0 if there
// was none.
func (r *Result) TokensPerSecond() float64 {
	if r.Decode <= 0 || len(r.IDs) < 2 {
		return 0
	}
	return float64(len(r.IDs)-1) / r.Decode.Seconds()
}

// Generate continues the prompt, from an empty KV cache.
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
	if err := m.session.ResetStates(); err != nil {
		return nil, err
	}
	vocab := int32(len(m.decode.Output("logits")) / 4)
	for i, id := range prompt {
		if id < 0 || id >= vocab {
			return nil, fmt.Errorf("prompt token %d has the id %d, the vocabulary has %d", i, id, vocab)
		}
	}
	r := &Result{Stopped: "length"}
	start := time.Now()
	g, err := m.feed(ctx, prompt, o)
	if err != nil {
		return nil, err
	}
	r.Prompt = time.Since(start)
	sampler := newSampler(o)
	start = time.Now()
	for pos := len(prompt); len(r.IDs) < o.N; pos++ {
		logits := floats(g.Output("logits"))
		if o.Logits != nil {
			o.Logits(logits)
		}
		id := int32(binary.LittleEndian.Uint32(g.Output("token")))
		if o.Temp > 0 {
			id = sampler.sample(logits)
		}
		r.IDs = append(r.IDs, id)
		if o.Emit != nil {
			if err := o.Emit(id); err != nil {
				return nil, err
			}
		}
		if !o.IgnoreEnd && m.Tokenizer.IsEndOfGeneration(id) {
			r.Stopped = "end"
			break
		}
		if len(r.IDs) == o.N {
			break
		}
		if pos >= m.context {
			r.Stopped = "context"
			break
		}
		if g, err = m.step(ctx, m.decode, []int32{id}, pos, o); err != nil {
			return nil, err
		}
	}
	r.Decode = time.Since(start)
	return r, nil
}

// feed runs the prompt and returns the graph that holds the last logits.
func (m *Model) feed(ctx context.Context, prompt []int32, o Options) (g *replay.Graph, err error) {
	for pos := 0; pos < len(prompt); {
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

// step runs a graph on tokens whose first one stands at pos.
func (m *Model) step(ctx context.Context, g *replay.Graph, tokens []int32, pos int, o Options) (*replay.Graph, error) {
	in := g.Input("tokens")
	for i, id := range tokens {
		binary.LittleEndian.PutUint32(in[4*i:], uint32(id))
	}
	if err := g.SetParam("pos", float64(pos)); err != nil {
		return nil, err
	}
	t, err := g.Run(ctx)
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
