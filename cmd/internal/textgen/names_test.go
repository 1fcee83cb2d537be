package textgen_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// renamed returns a module in which every graph, param, input and output that generation uses has another name.
func renamed(m *ir.Module) *ir.Module {
	out := &ir.Module{Data: m.Data}
	for _, g := range m.Graphs {
		g = g.Clone()
		g.Name = "x " + g.Name
		for i := range g.Params {
			g.Params[i].Name = "x " + g.Params[i].Name
		}
		for i := range g.Memories {
			if k := g.Memories[i].Kind; k == ir.Input || k == ir.Output {
				g.Memories[i].Name = "x " + g.Memories[i].Name
			}
		}
		out.Graphs = append(out.Graphs, g)
	}
	return out
}

// describe replaces the interface of a module.
func describe(t *testing.T, m *ir.Module, x frontend.Interface) {
	text, err := json.Marshal(x)
	require.NoError(t, err)
	m.Data = []ir.Data{{Name: frontend.TokenizerData, Blob: m.Lookup(frontend.TokenizerData)}, {Name: frontend.InterfaceData, Blob: ir.NewBlob(text)}}
}

// TestNames: generation knows graphs, params and memories by the module's interface alone, one by one and in rows, and
// with a graph that draws its token. A module of a time when there was no interface has the usual names. A name that
// leads nowhere is an error.
func TestNames(t *testing.T) {
	module := recorded(t, frontend.Options{Context: 64, Prefill: 8, Advance: true, Sample: true})
	prompt := oracle(t)[0].PromptIDs
	o := textgen.Options{N: 6, IgnoreEnd: true, Temp: 0.9, TopP: 0.9, Seed: 3, Burst: 3}
	want, err := openModel(t, module).Generate(t.Context(), prompt, o)
	require.NoError(t, err)

	old := &ir.Module{Graphs: module.Graphs, Data: module.Data[:1]}
	require.Nil(t, old.Lookup(frontend.InterfaceData))
	got, err := openModel(t, old).Generate(t.Context(), prompt, o)
	require.NoError(t, err)
	require.Equal(t, want.IDs, got.IDs)

	other := renamed(module)
	step := func(graph, count string) frontend.Step {
		return frontend.Step{Graph: graph, Tokens: "x tokens", Position: "x pos", Count: count, Logits: "x logits", Token: "x token",
			Draw: &frontend.Draw{Temperature: "x temp", TopP: "x top_p", SeedLow: "x seed_low", SeedHigh: "x seed_high"}}
	}
	prefill := step("x prefill", "x n")
	names := frontend.Interface{Decode: step("x decode", ""), Prefill: &prefill}
	describe(t, other, names)
	got, err = openModel(t, other).Generate(t.Context(), prompt, o)
	require.NoError(t, err)
	require.Equal(t, want.IDs, got.IDs)

	d := cpu.New(0)
	defer d.Close()
	for text, change := range map[string]func(x *frontend.Step){
		`graph "x decode" has no param $pos`:     func(x *frontend.Step) { x.Position = "pos" },
		`graph "x decode" has no input %tokens`:  func(x *frontend.Step) { x.Tokens = "tokens" },
		`graph "x decode" has no output %logits`: func(x *frontend.Step) { x.Logits = "logits" },
		`graph "x decode" has no output %token`:  func(x *frontend.Step) { x.Token = "token" },
		`graph "x decode" has no f32 param $temp, by which it would draw its token`: func(x *frontend.Step) {
			x.Draw = &frontend.Draw{Temperature: "temp", TopP: "x top_p", SeedLow: "x seed_low", SeedHigh: "x seed_high"}
		},
		`graph "x decode" has a param $"x seed_high" in [0, 4.294967295e+09], for which generation has no value`: func(x *frontend.Step) {
			x.Draw = &frontend.Draw{Temperature: "x temp", TopP: "x top_p", SeedLow: "x seed_low", SeedHigh: "x seed_low"}
		},
		`the module has no graph "decode" (it has ["x decode" "x prefill"])`: func(x *frontend.Step) { x.Graph = "decode" },
	} {
		wrong := names
		change(&wrong.Decode)
		describe(t, other, wrong)
		_, err := textgen.Open(t.Context(), d, other, replay.Options{})
		require.ErrorContains(t, err, text)
	}
}
