package textgen_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/replay"
)

// TestTokensInABurst: 64 tokens decoded by one submission equal those of 64 submissions. The optimized
// decode graph is proved equal to the recorded one for bursts of any length.
func TestTokensInABurst(t *testing.T) {
	sample.Seldom(t)
	module := recordAdvancing(t)
	g := module.Graph("decode")
	after := g.Clone()
	_, err := passes.Run(context.Background(), after, passes.DefaultPipeline(), passes.Options{})
	require.NoError(t, err)
	r := prove.Check(context.Background(), g, after, prove.Options{Strict: true})
	require.Equal(t, prove.Proved, r.Verdict, "%s", r)
	for i := range module.Graphs {
		if module.Graphs[i] == g {
			module.Graphs[i] = after
		}
	}
	m := openModel(t, module)
	for _, x := range sample.Of(t, t.Name(), oracle(t)[:2], sample.Few) {
		submissions := 0
		count := func(g *ir.Graph, _ replay.Timing) {
			if g.Name == "decode" {
				submissions++
			}
		}
		one, err := m.Generate(context.Background(), x.PromptIDs, textgen.Options{N: 65, IgnoreEnd: true, Timing: count})
		require.NoError(t, err)
		require.Equal(t, x.IDs, one.IDs[:48], "llama.cpp's")
		require.Equal(t, 64, submissions)
		for _, burst := range []int{64, 7} {
			submissions = 0
			got, err := m.Generate(context.Background(), x.PromptIDs, textgen.Options{N: 65, IgnoreEnd: true, Burst: burst, Timing: count})
			require.NoError(t, err)
			require.Equal(t, one.IDs, got.IDs)
			require.Equal(t, (64+burst-1)/burst, submissions)
		}
	}

	// Tokens that a burst decodes after the end of an answer are dropped, and Continue goes
	// on from the end.
	x := oracle(t)[0]
	plain, err := m.Generate(context.Background(), x.PromptIDs, textgen.Options{N: 60})
	require.NoError(t, err)
	burst, err := m.Generate(context.Background(), x.PromptIDs, textgen.Options{N: 60, Burst: 16})
	require.NoError(t, err)
	require.Equal(t, plain.IDs, burst.IDs)
	require.Equal(t, plain.Stopped, burst.Stopped)
	next := append(append([]int32{}, x.PromptIDs...), burst.IDs...)
	again, err := m.Generate(context.Background(), next, textgen.Options{N: 3, Continue: true})
	require.NoError(t, err)
	require.Equal(t, len(next)-1, again.Kept)

	// What Emit stops ends there too, in a burst as token by token.
	for _, b := range []int{1, 16} {
		n := 0
		stopped, err := m.Generate(context.Background(), x.PromptIDs, textgen.Options{N: 60, Burst: b, Emit: func(int32) error {
			if n++; n == 5 {
				return textgen.ErrStop
			}
			return nil
		}})
		require.NoError(t, err)
		require.Equal(t, "stop", stopped.Stopped)
		require.Equal(t, plain.IDs[:5], stopped.IDs)
		next := append(append([]int32{}, x.PromptIDs...), stopped.IDs...)
		again, err := m.Generate(context.Background(), next, textgen.Options{N: 1, Continue: true})
		require.NoError(t, err)
		require.Equal(t, len(next)-1, again.Kept)
		require.Equal(t, plain.IDs[5], again.IDs[0])
	}

	for want, o := range map[string]textgen.Options{
		"sampling (temperature 1) needs the host after each": {N: 4, Burst: 2, Temp: 1},
		"the logits of all but the last are gone":            {N: 4, Burst: 2, Logits: func([]float32) {}},
		"-1 tokens in a burst make no sense":                 {N: 4, Burst: -1},
		"the penalty for repetitions need the host":          {N: 4, Burst: 2, Penalty: 1.1, PenaltyLast: 8},
	} {
		_, err := m.Generate(context.Background(), x.PromptIDs, o)
		require.ErrorContains(t, err, want)
	}
	_, err = openModel(t, recordModel(t, false)).Generate(context.Background(), x.PromptIDs, textgen.Options{N: 4, Burst: 2})
	require.ErrorContains(t, err, "graph decode does not advance $pos by 1 from replay to replay (mlxc record, without --no-advance)")
}

// Tokens that the device draws are those that the host draws from the same logits, one by one and many by
// a submission. The optimized graphs are proved to draw what the recorded ones do.
func TestSampledTokensInABurst(t *testing.T) {
	sample.Seldom(t)
	ctx := context.Background()
	module := recorded(t, frontend.Options{Context: 256, Advance: true, Sample: true})
	for i, g := range module.Graphs {
		after := g.Clone()
		_, err := passes.Run(ctx, after, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err)
		r := prove.Check(ctx, g, after, prove.Options{Strict: true})
		require.Equal(t, prove.Proved, r.Verdict, "%s", r)
		module.Graphs[i] = after
	}
	draws := openModel(t, module)
	host := openModel(t, recordModel(t, true))
	for i, x := range sample.Of(t, t.Name(), oracle(t)[:2], sample.Few) {
		o := textgen.Options{N: 34, IgnoreEnd: true, Temp: 0.9, TopP: 0.92, Seed: 1<<40 + uint64(i)}
		want, err := host.Generate(ctx, x.PromptIDs, o)
		require.NoError(t, err)
		require.NotEqual(t, x.IDs[:34], want.IDs, "drawn tokens are not the most likely ones")
		for _, burst := range []int{1, 16, 5} {
			o.Burst = burst
			got, err := draws.Generate(ctx, x.PromptIDs, o)
			require.NoError(t, err)
			require.Equal(t, want.IDs, got.IDs, "%d by a submission", burst)
		}
		o.Burst, o.Seed = 16, o.Seed+1
		other, err := draws.Generate(ctx, x.PromptIDs, o)
		require.NoError(t, err)
		require.NotEqual(t, want.IDs, other.IDs, "another seed")
		o.Temp = 0
		likely, err := draws.Generate(ctx, x.PromptIDs, o)
		require.NoError(t, err)
		require.Equal(t, x.IDs[:34], likely.IDs, "llama.cpp's")
	}
}
