package textgen_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/replay"
)

// TestVerifiedGuesses: with guesses verified by graphs that are proved, tokens are llama.cpp's, in fewer steps, and logits are those
// of steps of one token. So are tokens that are drawn, or chosen by the host, wherever an answer ends.
func TestVerifiedGuesses(t *testing.T) {
	sample.Seldom(t)
	module := recorded(t, frontend.Options{Context: 256, Draft: 7, Sample: true, Advance: true})
	for i, g := range module.Graphs {
		after, err := optimize.New("").Optimize(context.Background(), g) // and proved
		require.NoError(t, err)
		module.Graphs[i] = after
	}
	m := openModel(t, module)
	require.Equal(t, 7, m.Drafts())
	guessed, wrong := 0, 0
	generate := func(prompt []int32, o textgen.Options) (*textgen.Result, [][]float32, int) {
		t.Helper()
		steps := 0
		o.Timing = func(g *ir.Graph, _ replay.Timing) {
			if g.Name != "prefill" {
				steps++
			}
		}
		var logits [][]float32
		o.Logits = func(l []float32) { logits = append(logits, slices.Clone(l)) }
		r, err := m.Generate(context.Background(), prompt, o)
		require.NoError(t, err)
		require.Len(t, logits, len(r.IDs))
		guessed, wrong = guessed+r.Guessed, wrong+r.Guessed-r.Right
		return r, logits, steps
	}
	for _, x := range sample.Of(t, t.Name(), oracle(t), 2) {
		got, _, steps := generate(x.PromptIDs, textgen.Options{N: 48, IgnoreEnd: true, Draft: 7})
		require.Equal(t, x.IDs, got.IDs, "llama.cpp's")
		require.Equal(t, 47-got.Right, steps)
	}

	again := m.Tokenizer.Encode("The cat sat on the mat. The dog sat on the mat. The cat sat on the mat. The dog sat on the", true)
	for name, o := range map[string]textgen.Options{
		"most likely": {}, "drawn": {Temp: 0.7, TopP: 0.9, Seed: 5}, "by the host": {Temp: 0.5, TopK: 20, Seed: 6}, "with a penalty": {Penalty: 1.05, PenaltyLast: 16},
	} {
		o.N, o.IgnoreEnd = 60, true
		want, logits, steps := generate(again, o)
		require.Equal(t, 59, steps)
		o.Draft = 7
		got, same, fewer := generate(again, o)
		require.Equal(t, want.IDs, got.IDs, name)
		require.Equal(t, steps-got.Right, fewer, name)
		worst := 0.0
		for i, l := range logits {
			for j, v := range l {
				worst = max(worst, math.Abs(float64(v-same[i][j])))
			}
		}
		require.Less(t, worst, tolerance, name)
		if name == "most likely" {
			require.Less(t, fewer, 30, "it repeats itself")
		}
	}
	require.Greater(t, guessed-wrong, 100)
	require.Greater(t, wrong, 10, "guesses that are wrong have been tried")

	// The end of an answer, of its length and of the context are where they are without guesses, and Continue goes on there.
	plain, _, _ := generate(again, textgen.Options{N: 300, IgnoreEnd: true})
	require.Equal(t, "context", plain.Stopped)
	all, _, _ := generate(again, textgen.Options{N: 300, IgnoreEnd: true, Draft: 7})
	require.Equal(t, plain.IDs, all.IDs)
	require.Equal(t, "context", all.Stopped)
	for _, n := range []int{1, 2, 3, 4, 6, 9, 14, 23} {
		seen := 0
		part, err := m.Generate(t.Context(), again, textgen.Options{N: 30, IgnoreEnd: true, Draft: 7, Emit: func(int32) error {
			if seen++; seen == n {
				return textgen.ErrStop
			}
			return nil
		}})
		require.NoError(t, err)
		require.Equal(t, "stop", part.Stopped)
		require.Equal(t, plain.IDs[:n], part.IDs)
		if n%2 == 0 {
			part, err = m.Generate(t.Context(), again, textgen.Options{N: n, IgnoreEnd: true, Draft: 3})
			require.NoError(t, err)
		}
		next := append(append([]int32{}, again...), part.IDs...)
		rest, err := m.Generate(t.Context(), next, textgen.Options{N: 12, IgnoreEnd: true, Continue: true, Draft: 7})
		require.NoError(t, err)
		require.Equal(t, len(next)-1, rest.Kept)
		require.Equal(t, plain.IDs[n:n+12], rest.IDs)
	}

	// On a device like a GPU tokens come in bursts where nothing is guessed.
	d := cpu.New(0)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	fast, err := textgen.Open(t.Context(), hurried{d}, module, replay.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fast.Close()) })
	ran := map[string]int{}
	for _, x := range [][]int32{again, oracle(t)[0].PromptIDs} {
		want, err := m.Generate(t.Context(), x, textgen.Options{N: 60, IgnoreEnd: true})
		require.NoError(t, err)
		got, err := fast.Generate(t.Context(), x, textgen.Options{N: 60, IgnoreEnd: true, Draft: 7, Timing: func(g *ir.Graph, _ replay.Timing) { ran[g.Name]++ }})
		require.NoError(t, err)
		require.Equal(t, want.IDs, got.IDs)
	}
	require.Positive(t, ran["verify"])
	require.Positive(t, ran["decode"])
	require.Less(t, ran["verify"]+ran["decode"], 60, "of 120 tokens")

	for text, o := range map[string]textgen.Options{
		"a draft of -1 tokens makes no sense":                              {Draft: -1},
		"a draft of 8 tokens: graph verify verifies up to 7":               {Draft: 8},
		"4 tokens in a burst, and a draft of 2: the host has to see which": {Draft: 2, Burst: 4},
	} {
		o.N = 2
		_, err := m.Generate(t.Context(), again, o)
		require.ErrorContains(t, err, text)
	}
	none := openModel(t, recordModel(t, false))
	require.Zero(t, none.Drafts())
	_, err = none.Generate(t.Context(), again, textgen.Options{N: 2, Draft: 2})
	require.ErrorContains(t, err, "there is no graph that verifies guesses (mlxc record --draft 2 makes one)")
}

// hurried is a device for which bursts pay.
type hurried struct{ backend.Device }

func (d hurried) Info() backend.Info {
	info := d.Device.Info()
	info.Submits = true
	return info
}

// A graph that verifies must have outputs for each of its rows.
func TestVerifyOfOneRow(t *testing.T) {
	module := recorded(t, frontend.Options{Context: 64, Prefill: 8})
	names, err := frontend.InterfaceOf(module)
	require.NoError(t, err)
	names.Verify = names.Prefill
	describe(t, module, names)
	d := cpu.New(0)
	defer d.Close()
	_, err = textgen.Open(t.Context(), d, module, replay.Options{})
	require.ErrorContains(t, err, "want 8 rows of one vocabulary")
}

// A graph for several tokens must have decode's states.
func TestForeignStates(t *testing.T) {
	module := recorded(t, frontend.Options{Context: 64, Prefill: 8, Draft: 3})
	foreign := module.Graph("verify").Clone()
	for i := range foreign.Memories {
		if m := &foreign.Memories[i]; m.Kind == ir.State {
			m.Name = "another " + m.Name
		}
	}
	module.Graphs[2] = foreign
	d := cpu.New(0)
	defer d.Close()
	_, err := textgen.Open(t.Context(), d, module, replay.Options{})
	require.ErrorContains(t, err, "graph verify has no state of graph decode, which would not see what it leaves")
}
