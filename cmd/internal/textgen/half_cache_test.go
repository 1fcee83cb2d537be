package textgen_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// halfCacheError bounds the difference between our logits and those of float64 where both round keys and values to f16. A
// number near the middle of two of f16 may become the other one of them, and so does more behind it: the largest difference
// that was seen is 0.015, by the plainest loops; that of llama.cpp with such a cache is 0.026.
const halfCacheError = 0.03

// q8CacheError is the same of a cache of 8 bits, whose codes are 8 times as far apart where an element is the greatest of its 32.
const q8CacheError = 0.5

// TestHalfCache: with a cache of f16 the demonstration model has as few dispatches as with one of f32, half the state, the
// same tokens, and the logits that float64 has with such a cache (testdata/gen/smollm2_oracle.py --half-cache), which are
// nearer, on the whole, than those with a cache of f32.
func TestHalfCache(t *testing.T) {
	sample.Seldom(t)
	whole, _ := cached(t, frontend.Options{})
	s, module := cached(t, frontend.Options{Cache: ir.F16})
	require.Equal(t, whole.Dispatches, s.Dispatches)
	require.Equal(t, whole.Bytes.State, 2*s.Bytes.State)
	nearerWithCache(t, module, "half", halfCacheError, 0)
}

// TestQ8Cache: with a cache of q8_0 the demonstration model has a dispatch a layer more than with one of f32, 17 of 64 bytes of
// state, and the logits that float64 has with gguf-py's q8_0 (testdata/gen/smollm2_oracle.py --q8-cache). As recorded and as
// optimized, logits are the same bits.
func TestQ8Cache(t *testing.T) {
	sample.Seldom(t)
	whole, _ := cached(t, frontend.Options{})
	s, module := cached(t, frontend.Options{Cache: ir.I8})
	require.Equal(t, whole.Dispatches+30, s.Dispatches)
	require.Equal(t, 17*whole.Bytes.State, 64*s.Bytes.State)
	nearerWithCache(t, module, "q8", q8CacheError, q8CacheError/5)

	prompt := oracle(t)[0].PromptIDs
	logits := func(m *ir.Module) (out []float32) {
		_, err := openModel(t, m).Generate(t.Context(), prompt, textgen.Options{N: 12, IgnoreEnd: true, Logits: func(l []float32) {
			out = append(out, l...)
		}})
		require.NoError(t, err)
		return out
	}
	require.Equal(t, logits(recorded(t, frontend.Options{Cache: ir.I8, Context: 256})), logits(module))
}

// cached records the demonstration model and optimizes it.
func cached(t *testing.T, o frontend.Options) (decode ir.Stats, module *ir.Module) {
	o.Context = 256
	module = recorded(t, o)
	for _, g := range module.Graphs {
		_, err := passes.Run(context.Background(), g, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err)
	}
	return module.Graph("decode").Stats(), module
}

// nearerWithCache: logits are those of float64 with a cache of the same kind, within a bound, and nearer to them than to those
// with a cache of f32. Tokens are the same, or a run ends with one whose logit is less by less than tie.
func nearerWithCache(t *testing.T, module *ir.Module, kind string, bound, tie float64) {
	raw, err := os.ReadFile("../../../testdata/model-oracle/smollm2_" + kind + "_cache.json")
	require.NoError(t, err)
	var with struct{ Runs []run }
	require.NoError(t, json.Unmarshal(raw, &with))
	m := openModel(t, module)
	near, moved := 0.0, 0.0 // sums of squares
	for i, r := range oracle(t) {
		top := with.Runs[i].Top
		require.Equal(t, r.Name, with.Runs[i].Name)
		if !sample.Whole() && !slices.Contains([]string{"capital", "code", "unicode"}, r.Name) {
			continue
		}
		step, worst, other := 0, 0.0, false
		_, err := m.Generate(t.Context(), r.PromptIDs, textgen.Options{N: len(top), IgnoreEnd: true, Logits: func(l []float32) {
			if step++; other {
				return
			}
			top, all, best := top[step-1], r.Top[step-1], 0
			for i, v := range l {
				if v > l[best] {
					best = i
				}
			}
			next := math.Inf(-1) // what float64 has for the token that is chosen; less than for all of these if it is not among them
			for _, x := range top {
				d := float64(l[int(x[0])]) - x[1]
				worst, near = max(worst, math.Abs(d)), near+d*d
				if int(x[0]) == best {
					next = x[1]
				}
			}
			for _, x := range all[:len(top)] {
				d := float64(l[int(x[0])]) - x[1]
				moved += d * d
			}
			if gap := top[0][1] - next; gap > 0 {
				require.Less(t, gap, tie, "%s, step %d: token %d, want %d", r.Name, step, best, int(top[0][0]))
				t.Logf("%s, step %d: another token, whose logit is %.2g less", r.Name, step, gap)
				other = true // what follows it is another text
			}
		}})
		require.NoError(t, err)
		require.Equal(t, len(top), step)
		t.Logf("%s: greatest difference %.2g", r.Name, worst)
		require.Less(t, worst, bound, r.Name)
	}
	t.Logf("sum of squares %.2g, from a cache of f32 %.2g", near, moved)
	require.Less(t, near, moved/1.5, "nothing shows what the cache is of")
}
