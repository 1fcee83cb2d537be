//go:build gpu && linux && (amd64 || arm64)

package textgen_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
)

// TestCUDA runs on a machine with a GPU: MODEL=… go test -tags gpu -run TestCUDA ./cmd/internal/textgen.
// The demonstration model, as recorded and optimized, gives llama.cpp's tokens and logits: prompts go
// through prefill, tokens through decode. Logits are near those of the CPU's kernels, and tokens are the
// same. One by one, or 16 in a submission, decoding gives the same tokens. The bits of logits are the same
// by every plan and in each of three runs.
func TestCUDA(t *testing.T) {
	const tokens = 48
	for name, optimized := range map[string]bool{"recorded": false, "optimized": true} {
		t.Run(name, func(t *testing.T) {
			module := recorded(t, frontend.Options{Context: 256, Advance: true})
			if optimized {
				for _, g := range module.Graphs {
					_, err := passes.Run(t.Context(), g, passes.DefaultPipeline(), passes.Options{})
					require.NoError(t, err)
				}
			}
			on := cpu.New(0)
			want := answers(t, on, module, tokens)
			require.NoError(t, on.Close())
			var first []answer
			for plan, o := range map[string]cuda.Options{
				"auto": {}, "full": {Full: true}, "chain": {Plan: cuda.Chain}, "stream": {Plan: cuda.Stream},
			} {
				t.Run(plan, func(t *testing.T) {
					d, err := cuda.Open(t.Context(), o)
					require.NoError(t, err)
					got := answers(t, d, module, tokens)
					require.NoError(t, d.Close())
					for i, r := range oracle(t)[:2] {
						require.Equal(t, r.IDs[:min(tokens, len(r.IDs))], got[i].ids[:min(tokens, len(r.IDs))], r.Name)
						require.Equal(t, want[i].ids, got[i].ids, r.Name)
						worst, oracles := 0.0, 0.0
						for k := range want[i].logits {
							worst = max(worst, math.Abs(float64(want[i].logits[k])-float64(got[i].logits[k])))
						}
						size := len(got[i].logits) / tokens
						for step := range min(tokens, len(r.Top)) {
							for _, x := range r.Top[step] {
								oracles = max(oracles, math.Abs(float64(got[i].logits[step*size+int(x[0])])-x[1]))
							}
						}
						t.Logf("%s: greatest difference of a logit to the CPU's %.1e, of a top-20 logit to llama.cpp's %.1e; at most %d bytes", r.Name, worst, oracles, d.Peak())
						require.Less(t, worst, tolerance, r.Name)
						require.Less(t, oracles, tolerance, r.Name)
						if first != nil {
							require.True(t, slices.EqualFunc(first[i].logits, got[i].logits, sameBits), "%s: another plan gives other bits", r.Name)
						}
					}
					if first == nil {
						first = got
					}
				})
			}
		})
	}
}

// TestCUDASampling: tokens that the GPU draws, one by one and several in a submission, are those that the host draws
// from the GPU's logits with the same seed; another seed draws other tokens.
func TestCUDASampling(t *testing.T) {
	d, err := cuda.Open(t.Context(), cuda.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	open := func(sample bool) *textgen.Model {
		module := recorded(t, frontend.Options{Context: 256, Advance: true, Sample: sample})
		for _, g := range module.Graphs {
			_, err := passes.Run(t.Context(), g, passes.DefaultPipeline(), passes.Options{})
			require.NoError(t, err)
		}
		m, err := textgen.Open(t.Context(), d, module, replay.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		return m
	}
	draws, host := open(true), open(false)
	for i, x := range oracle(t)[:2] {
		o := textgen.Options{N: 34, IgnoreEnd: true, Temp: 0.9, TopP: 0.92, Seed: 1<<40 + uint64(i)}
		want, err := host.Generate(t.Context(), x.PromptIDs, o)
		require.NoError(t, err)
		require.NotEqual(t, x.IDs[:34], want.IDs, "drawn tokens are not the most likely ones")
		for _, burst := range []int{1, 16, 5} {
			o.Burst = burst
			got, err := draws.Generate(t.Context(), x.PromptIDs, o)
			require.NoError(t, err)
			require.Equal(t, want.IDs, got.IDs, "%d by a submission", burst)
		}
		o.Burst, o.Seed = 16, o.Seed+1
		other, err := draws.Generate(t.Context(), x.PromptIDs, o)
		require.NoError(t, err)
		require.NotEqual(t, want.IDs, other.IDs, "another seed")
		o.Temp = 0
		likely, err := draws.Generate(t.Context(), x.PromptIDs, o)
		require.NoError(t, err)
		require.Equal(t, x.IDs[:34], likely.IDs, "llama.cpp's")
	}
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// answer is the tokens and logits that a model generates for a prompt.
type answer struct {
	ids    []int32
	logits []float32
}

// answers decodes n tokens after each of two prompts: one by one, three times with the same bits, and then
// 16 in each submission.
func answers(t *testing.T, d backend.Device, module *ir.Module, n int) (all []answer) {
	m, err := textgen.Open(t.Context(), d, module, replay.Options{})
	require.NoError(t, err)
	for _, r := range oracle(t)[:2] {
		var a answer
		for turn := range 3 {
			var logits []float32
			x, err := m.Generate(context.Background(), r.PromptIDs, textgen.Options{N: n, IgnoreEnd: true, Logits: func(l []float32) { logits = append(logits, l...) }})
			require.NoError(t, err)
			if turn == 0 {
				a = answer{x.IDs, logits}
				continue
			}
			require.Equal(t, a.ids, x.IDs, "%s, again", r.Name)
			require.True(t, slices.EqualFunc(a.logits, logits, sameBits), "%s: other bits in another run", r.Name)
		}
		x, err := m.Generate(context.Background(), r.PromptIDs, textgen.Options{N: n, IgnoreEnd: true, Burst: 16})
		require.NoError(t, err)
		require.Equal(t, a.ids, x.IDs, "%s, 16 by a submission", r.Name)
		all = append(all, a)
	}
	require.NoError(t, m.Close())
	return all
}
