package frontend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/tokenizer"
)

// Names of data of a module.
const (
	// TokenizerData holds the tokenizer, as [tokenizer.Marshal] writes it.
	TokenizerData = "tokenizer.json"
	// InterfaceData holds an [Interface] as JSON.
	InterfaceData = "interface.json"
)

// maxInterface bounds the size of an interface, in bytes.
const maxInterface = 1 << 16

// Interface says what the graphs of a language model are for, and what their memories and params mean. All values
// are names: of a graph, or of a memory or param of that graph.
type Interface struct {
	Decode  Step  `json:"decode"`            // runs one token
	Prefill *Step `json:"prefill,omitempty"` // runs several tokens; nil: prompts go through Decode
	// Verify runs a token and guesses of those behind it. Its logits [tokens, vocabulary] and tokens [tokens] are of each of
	// them, so that they say which guesses were right. What it leaves in the states for a position that was wrong has no effect
	// on tokens up to that position, and is overwritten by the next step there. nil: nothing is guessed.
	Verify *Step `json:"verify,omitempty"`
}

// Step is the interface of a graph that runs tokens which follow one another.
type Step struct {
	Graph    string `json:"graph"`
	Tokens   string `json:"tokens"`          // input, i32 or u32: the tokens
	Position string `json:"position"`        // param, u32 from 0: the position of the first token
	Count    string `json:"count,omitempty"` // param, u32: the number of tokens, of Prefill and Verify
	Logits   string `json:"logits"`          // output, f32, f16 or bf16 [vocabulary], of the last token
	Token    string `json:"token"`           // output, u32 or i32: the token that the graph chooses
	Draw     *Draw  `json:"draw,omitempty"`  // nil: the graph chooses the most likely token
}

// Draw names the params of a graph that draws its token (record.Session.Sample).
type Draw struct {
	Temperature string `json:"temperature"` // f32
	TopP        string `json:"top_p"`       // f32
	SeedLow     string `json:"seed_low"`    // u32
	SeedHigh    string `json:"seed_high"`   // u32
}

// Params lists the names of the params and their types.
func (d *Draw) Params() []ir.Param {
	return []ir.Param{{Name: d.Temperature, Type: ir.F32}, {Name: d.TopP, Type: ir.F32}, {Name: d.SeedLow, Type: ir.U32}, {Name: d.SeedHigh, Type: ir.U32}}
}

// Describe adds a tokenizer and an interface to the data of a module.
func Describe(m *ir.Module, spec *tokenizer.Spec, x Interface) error {
	vocabulary, err := tokenizer.Marshal(spec)
	if err != nil {
		return err
	}
	names, err := json.Marshal(x)
	if err != nil {
		return err
	}
	m.Data = append(m.Data, ir.Data{Name: TokenizerData, Blob: ir.NewBlob(vocabulary)}, ir.Data{Name: InterfaceData, Blob: ir.NewBlob(names)})
	return nil
}

// IsLanguageModel reports whether a module says that it is a language model.
func IsLanguageModel(m *ir.Module) bool { return m.Lookup(TokenizerData) != nil }

// InterfaceOf returns the interface of a language model. A module without one, as the first versions of this program
// wrote them, has that of [Usual]. Graphs for several tokens that somebody has taken out of the module are left out.
func InterfaceOf(m *ir.Module) (x Interface, err error) {
	blob := m.Lookup(InterfaceData)
	if blob == nil {
		return Usual(m), nil
	}
	if blob.Length > maxInterface {
		return x, fmt.Errorf("%s has %d bytes, at most %d are expected", InterfaceData, blob.Length, maxInterface)
	}
	raw, err := blob.Bytes()
	if err != nil {
		return x, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields() // what is not known may be needed
	if err := d.Decode(&x); err != nil {
		return x, fmt.Errorf("%s: %w", InterfaceData, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return x, fmt.Errorf("%s: something follows the object", InterfaceData)
	}
	for _, several := range []**Step{&x.Prefill, &x.Verify} {
		if s := *several; s != nil && m.Graph(s.Graph) == nil {
			*several = nil
		}
	}
	return x, nil
}

// usualDraw are the usual names of params for drawing a token.
var usualDraw = Draw{Temperature: "temp", TopP: "top_p", SeedLow: "seed_low", SeedHigh: "seed_high"}

// Usual returns the interface of a module by the usual names: the graphs "decode" and, if there are such, "prefill" and
// "verify", with the input tokens, the params pos and n, and the outputs logits and token. A graph that has the params temp,
// top_p, seed_low and seed_high draws its token.
func Usual(m *ir.Module) Interface {
	step := func(graph string) Step {
		s := Step{Graph: graph, Tokens: "tokens", Position: "pos", Logits: "logits", Token: "token"}
		g := m.Graph(graph)
		if g == nil {
			return s
		}
		for _, p := range usualDraw.Params() {
			if i, ok := g.ParamNamed(p.Name); !ok || g.Params[i].Type != p.Type {
				return s
			}
		}
		draw := usualDraw
		s.Draw = &draw
		return s
	}
	x := Interface{Decode: step("decode")}
	several := func(graph string) *Step {
		if m.Graph(graph) == nil {
			return nil
		}
		s := step(graph)
		s.Count = "n"
		return &s
	}
	x.Prefill, x.Verify = several("prefill"), several("verify")
	return x
}
