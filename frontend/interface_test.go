package frontend_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/tokenizer"
)

var spec = &tokenizer.Spec{Model: "gpt2", Pre: "smollm", Tokens: []string{"a", "b"}}

// TestInterface: what is written is read again; graphs for several tokens that are not there are left out.
func TestInterface(t *testing.T) {
	want := frontend.Interface{
		Decode: frontend.Step{Graph: "one", Tokens: "in", Position: "at", Logits: "scores", Token: "out",
			Draw: &frontend.Draw{Temperature: "t", TopP: "p", SeedLow: "s", SeedHigh: "S"}},
		Prefill: &frontend.Step{Graph: "many", Tokens: "in", Position: "at", Count: "rows", Logits: "scores", Token: "out"},
		Verify:  &frontend.Step{Graph: "each", Tokens: "in", Position: "at", Count: "rows", Logits: "scores", Token: "out"},
	}
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "one"}, {Name: "many"}, {Name: "each"}}}
	assert.False(t, frontend.IsLanguageModel(m))
	require.NoError(t, frontend.Describe(m, spec, want))
	assert.True(t, frontend.IsLanguageModel(m))
	got, err := frontend.InterfaceOf(m)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	m.Graphs = m.Graphs[:1]
	got, err = frontend.InterfaceOf(m)
	require.NoError(t, err)
	assert.Nil(t, got.Prefill)
	assert.Nil(t, got.Verify)
}

// TestUsual: a module without an interface has the names of the first version's files. A graph draws its token if it
// has all four params, each of its type.
func TestUsual(t *testing.T) {
	params := []ir.Param{{Name: "temp", Type: ir.F32}, {Name: "top_p", Type: ir.F32}, {Name: "seed_low", Type: ir.U32}, {Name: "seed_high", Type: ir.U32}}
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "decode", Params: params}}}
	got, err := frontend.InterfaceOf(m)
	require.NoError(t, err)
	assert.Equal(t, frontend.Interface{Decode: frontend.Step{Graph: "decode", Tokens: "tokens", Position: "pos", Logits: "logits", Token: "token",
		Draw: &frontend.Draw{Temperature: "temp", TopP: "top_p", SeedLow: "seed_low", SeedHigh: "seed_high"}}}, got)
	m.Graphs = append(m.Graphs, &ir.Graph{Name: "prefill", Params: params[:3]})
	params[0].Type = ir.U32
	got, err = frontend.InterfaceOf(m)
	require.NoError(t, err)
	assert.Nil(t, got.Decode.Draw, "another type")
	require.NotNil(t, got.Prefill)
	assert.Equal(t, "n", got.Prefill.Count)
	assert.Nil(t, got.Prefill.Draw, "one is missing")
	assert.Nil(t, got.Verify)
	m.Graphs = append(m.Graphs, &ir.Graph{Name: "verify"})
	got, err = frontend.InterfaceOf(m)
	require.NoError(t, err)
	require.NotNil(t, got.Verify)
	assert.Equal(t, "n", got.Verify.Count)
}

// TestHostileInterface: an interface that is not exactly one is refused, and the error says why.
func TestHostileInterface(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "EOF",
		"[]":                                  "cannot unmarshal array",
		`{"decode":{"graph":1}}`:              "cannot unmarshal number",
		`{"decode":{"graph":"a"},"encode":1}`: `unknown field "encode"`,
		`{} {}`:                               "something follows the object",
		`{"decode":{}}` + strings.Repeat(" ", 1<<16): "has 65549 bytes, at most 65536 are expected",
	} {
		m := &ir.Module{Data: []ir.Data{{Name: frontend.InterfaceData, Blob: ir.NewBlob([]byte(text))}}}
		_, err := frontend.InterfaceOf(m)
		require.ErrorContains(t, err, "interface.json")
		require.ErrorContains(t, err, want)
	}
}
