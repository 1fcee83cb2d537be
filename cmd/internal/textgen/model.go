package textgen

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/replay"
	"github.com/mlxc/mlxc/tokenizer"
)

// Model is a language model ready to generate.
type Model struct {
	Tokenizer *tokenizer.Tokenizer
	Device    backend.Device
	instance  *replay.Instance
	decode    *step
	prefill   *step         // nil: prompts go through decode, token by token
	verify    *step         // nil: nothing is guessed
	batch     int           // max number of tokens of one prefill
	drafts    int           // max number of guesses of one step
	context   int           // number of positions of the KV cache
	ran       []int32       // the tokens whose keys and values the states hold
	burst     burstFrame    // frame for bursts of the decode graph
	pace      time.Duration // the time for each token of the last burst; 0: there was none

	// Larger says what has a larger context, for messages; Open sets it to what holds of any graph.
	Larger string
}

// Tokenizer returns the tokenizer of a recorded language model. It is an error if the
// module has none.
func Tokenizer(m *ir.Module) (*tokenizer.Tokenizer, error) {
	blob := m.Lookup(frontend.TokenizerData)
	if blob == nil {
		return nil, fmt.Errorf("the file has no %s: it is no recorded language model (mlxc record makes one)", frontend.TokenizerData)
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
	out := &Model{Device: d, Larger: larger}
	if out.Tokenizer, err = Tokenizer(m); err != nil {
		return nil, err
	}
	names, err := frontend.InterfaceOf(m)
	if err != nil {
		return nil, err
	}
	info := d.Info()
	if err := fits(m, &names, &info, d.Name()); err != nil {
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
	if out.decode, err = openStep(ctx, out.instance, names.Decode); err != nil {
		return nil, err
	}
	out.context = int(out.decode.position.Max) + 1
	if out.prefill, out.batch, err = out.several(ctx, names.Prefill, false); err != nil {
		return nil, err
	}
	rows := 0
	if out.verify, rows, err = out.several(ctx, names.Verify, true); err != nil {
		return nil, err
	}
	out.drafts = max(0, rows-1)
	return out, out.warm(ctx)
}

// several opens a graph that runs several tokens, with outputs for each of them or for the last, and returns how many they may be.
func (m *Model) several(ctx context.Context, names *frontend.Step, each bool) (*step, int, error) {
	if names == nil {
		return nil, 0, nil
	}
	many, err := openStep(ctx, m.instance, *names)
	if err != nil {
		return nil, 0, err
	}
	one, pos := m.decode, m.decode.position
	if other := many.position; other.Max < pos.Max {
		return nil, 0, fmt.Errorf("%s has %s up to %s, %s up to %s: both write the same cache", many, many.param(other.Name), other.Format(other.Max), one, pos.Format(pos.Max))
	}
	if states := one.states(); len(states) > 0 && !slices.ContainsFunc(many.states(), func(name string) bool { return slices.Contains(states, name) }) {
		return nil, 0, fmt.Errorf("%s has no state of %s, which would not see what it leaves", many, one)
	}
	batch, err := many.batch()
	if err != nil {
		return nil, 0, err
	}
	if each {
		many.rows = batch
	}
	if want := int64(many.rows) * one.logits; many.logits != want || many.number != one.number {
		return nil, 0, fmt.Errorf("%s has %s of %d bytes, %s of %d: want %d rows of one vocabulary", many, many.memory(many.names.Logits), many.logits, one, one.logits, many.rows)
	}
	if size, _ := many.Size(many.names.Token, ir.Output); size < 4*int64(many.rows) {
		return nil, 0, fmt.Errorf("%s has %s of %d bytes: want %d tokens", many, many.memory(many.names.Token), size, many.rows)
	}
	return many, batch, nil
}

// Close releases the device's memory.
func (m *Model) Close() error { return m.instance.Close() }

// Work returns the modelled time, in seconds on one worker, of a prompt of so many
// tokens and of the tokens generated after it. Every step counts as long as the last,
// which is the longest. It is 0 if the device does not model times.
func (m *Model) Work(prompt, tokens int) (float64, error) {
	last := max(0, min(prompt+tokens, m.context)-1)
	if err := m.decode.SetParam(m.decode.names.Position, float64(last)); err != nil {
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
	if err := m.prefill.SetParam(m.prefill.names.Count, float64(n)); err != nil {
		return 0, err
	}
	if err := m.prefill.SetParam(m.prefill.names.Position, float64(max(0, min(prompt, m.context)-n))); err != nil {
		return 0, err
	}
	batch, _, err := m.prefill.Work()
	return total + batch*float64((prompt+n-1)/n), err
}

// larger says how to get a graph with a larger context than that of a graph.
const larger = "mlxc record --context N makes a graph with N, up to what the model has"

// Context returns the number of positions of the KV cache.
func (m *Model) Context() int { return m.context }

// Options of one generation.
type Options struct {
	N    int     // max number of tokens to generate
	Temp float64 // 0: greedy
	TopP float64 // in (0, 1]; 0 means 1
	Seed uint64
	// TopK, MinP and Penalty are no part of graphs. With any of them, the host chooses each token from its logits as
	// llama.cpp's samplers do: the penalty comes first, then top-k, top-p and min-p, and the temperature last. Without
	// them top-p is of the probabilities at the temperature.
	TopK        int     // sample from as many of the most likely tokens; 0: all
	MinP        float64 // in [0, 1]: sample from tokens that have this share of the most likely one's probability
	Penalty     float64 // divides positive logits and multiplies others of tokens that were there before; 0 means 1: none
	PenaltyLast int     // of how many of the last tokens, those of the prompt included; -1: of all
	IgnoreEnd   bool    // go on after end-of-generation tokens
	// Continue keeps the states if the prompt begins with all the tokens that made
	// them, and goes on after these. Otherwise the states are cleared.
	Continue bool
	// Burst is how many tokens one submission decodes. More than one needs a
	// decode graph that carries its token to the next replay (frontend.Options.Advance), and
	// with Temp one that draws it by itself (frontend.Options.Sample). It excludes Logits, and
	// TopK, MinP and Penalty, because the host sees the tokens only when all of them are there.
	// 0 chooses: on a GPU, if all of that holds, as many as take some 40 ms, else 1.
	Burst int
	// Draft is how many tokens are guessed at most behind the next one, from what followed the same tokens before, and run with
	// it in one step: guesses that are what the step chooses cost no step of their own. It needs a graph for that
	// (frontend.Options.Draft), and excludes a Burst of more than one token. With a Burst of 0, where bursts pay, tokens come in short ones
	// while there is nothing to guess.
	Draft int
	// Emit, if not nil, is called with each token as soon as it is known. Its error
	// ends the generation, and is that of Generate unless it is ErrStop.
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
	Stopped string        // "end", "length", "context" or "stop" (see ErrStop)
	Guessed int           // how many tokens were guessed, and how many of them right
	Right   int
}

// Timed reports whether there is a speed of decoding: there was a token after the first one.
func (r *Result) Timed() bool { return r.Decode > 0 && len(r.IDs) > 1 }

// TokensPerSecond returns the speed of decoding after the first token; 0 if there was
// no second one.
func (r *Result) TokensPerSecond() float64 {
	if !r.Timed() {
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
		return nil, fmt.Errorf("the prompt has %d tokens, the context %d positions (%s)", len(prompt), m.context, m.Larger)
	}
	if o.TopP == 0 {
		o.TopP = 1
	}
	if !(o.Temp >= 0) || math.IsInf(o.Temp, 0) || !(o.TopP > 0 && o.TopP <= 1) {
		return nil, fmt.Errorf("temperature %v or top-p %v makes no sense (want temperature ≥ 0, 0 < top-p ≤ 1)", o.Temp, o.TopP)
	}
	if o.TopK < 0 || !(o.MinP >= 0 && o.MinP <= 1) || !(o.Penalty >= 0) || math.IsInf(o.Penalty, 0) || o.PenaltyLast < -1 {
		return nil, fmt.Errorf("top-k %d, min-p %v or a penalty of %v for the last %d tokens makes no sense (want top-k ≥ 0, 0 ≤ min-p ≤ 1, penalty ≥ 0, last ≥ -1)", o.TopK, o.MinP, o.Penalty, o.PenaltyLast)
	}
	vocab := int32(m.decode.logits / m.decode.number.Size())
	if err := errors.Join(m.checkBurst(o), m.checkDraft(o)); err != nil {
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
	for _, g := range []*step{m.decode, m.prefill, m.verify} {
		if g == nil {
			continue
		}
		if err := g.setDraw(g.SetParam, o); err != nil {
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
	text := newDrafter(o.Draft, prompt)
	var (
		raw     []byte  // the logits of all rows of g
		tokens  []byte  // and the tokens that g has chosen
		found   []int32 // tokens that a burst has decoded and that were not yet passed to Emit
		row     int     // of the outputs of g
		guesses []int32 // that g ran behind its first token
	)
	pos := len(prompt)
	for ; len(r.IDs) < o.N; pos++ {
		var logits []float32
		onHost := o.OnHost() || o.Temp > 0 && g.names.Draw == nil
		if o.Logits != nil || onHost {
			if row == 0 {
				raw = slices.Grow(raw[:0], (1+len(guesses))*int(m.decode.logits))[:(1+len(guesses))*int(m.decode.logits)]
				if err := g.ReadOutput(g.names.Logits, raw); err != nil {
					return nil, err
				}
			}
			logits = floats(raw[row*int(m.decode.logits):][:m.decode.logits], g.number)
		}
		if o.Logits != nil {
			o.Logits(logits)
		}
		var id int32
		switch {
		case len(found) > 0:
			id, found = found[0], found[1:]
		case onHost:
			id = sample(logits, pos-1, text.text, o)
		default:
			if row == 0 {
				tokens = make([]byte, 4*(1+len(guesses)))
				if err := g.ReadOutput(g.names.Token, tokens); err != nil {
					return nil, err
				}
			}
			id = int32(binary.LittleEndian.Uint32(tokens[4*row:]))
		}
		r.IDs = append(r.IDs, id)
		text.add(id)
		if o.Emit != nil {
			err := o.Emit(id)
			if errors.Is(err, ErrStop) {
				r.Stopped = "stop"
				break
			}
			if err != nil {
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
		if len(found) > 0 {
			continue
		}
		if row < len(guesses) {
			if guesses[row] == id { // it has been run
				row++
				r.Right++
				continue
			}
			m.ran = m.ran[:pos]
		}
		text.learn(len(guesses), row)
		row, guesses = 0, text.guess(min(o.N-len(r.IDs)-1, m.context-pos-1))
		switch {
		case len(guesses) > 0:
			r.Guessed += len(guesses)
			if g, err = m.runSeveral(ctx, m.verify, append([]int32{id}, guesses...), pos, o); err != nil {
				return nil, err
			}
		case bursts:
			n := min(m.burstLength(o), o.N-len(r.IDs), m.context-pos)
			if o.Draft > 0 { // soon there may be something to guess again
				n = min(n, max(firstBurst, text.wait))
			}
			if found, err = m.decodeBurst(ctx, id, pos, n, o); err != nil {
				return nil, err
			}
		default:
			if g, err = m.run(ctx, m.decode, []int32{id}, pos, o); err != nil {
				return nil, err
			}
		}
	}
	m.ran = m.ran[:min(len(m.ran), pos)] // guesses that are wrong, and tokens of a burst after the end
	r.Decode = time.Since(start)
	return r, nil
}

// feed runs the prompt, and returns the graph whose outputs hold the last logits.
func (m *Model) feed(ctx context.Context, prompt []int32, o Options) (g *step, err error) {
	for pos := len(m.ran); pos < len(prompt); {
		n := 1
		if m.prefill == nil {
			g, err = m.run(ctx, m.decode, prompt[pos:pos+n], pos, o)
		} else {
			n = min(m.batch, len(prompt)-pos)
			g, err = m.runSeveral(ctx, m.prefill, prompt[pos:pos+n], pos, o)
		}
		if err != nil {
			return nil, err
		}
		pos += n
	}
	return g, nil
}

// runSeveral runs a graph that is told how many tokens there are.
func (m *Model) runSeveral(ctx context.Context, g *step, tokens []int32, pos int, o Options) (*step, error) {
	if err := g.SetParam(g.names.Count, float64(len(tokens))); err != nil {
		return nil, err
	}
	return m.run(ctx, g, tokens, pos, o)
}

// run runs a graph on tokens, of which the first has position pos.
func (m *Model) run(ctx context.Context, g *step, tokens []int32, pos int, o Options) (*step, error) {
	in := make([]byte, 4*len(tokens))
	for i, id := range tokens {
		binary.LittleEndian.PutUint32(in[4*i:], uint32(id))
	}
	if err := g.SetInput(g.names.Tokens, in); err != nil {
		return nil, err
	}
	if err := g.SetParam(g.names.Position, float64(pos)); err != nil {
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

// floats returns elements of type t, which is f32, f16 or bf16, as f32.
func floats(b []byte, t ir.DType) []float32 {
	out := make([]float32, int64(len(b))/t.Size())
	for i := range out {
		switch t {
		case ir.F16:
			out[i] = float32(term.F16Value(binary.LittleEndian.Uint16(b[2*i:])))
		case ir.BF16:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
		default:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	return out
}
