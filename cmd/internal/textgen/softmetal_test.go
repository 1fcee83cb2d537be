//go:build unix

package textgen_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/replay"
)

// TestSoftwareMetalAgainstLlamaCpp: the Metal kernels themselves, our own for the optimized model and
// those of MLX's compiled library for the recorded one, give llama.cpp's tokens and logits. Prompts go
// through prefill, tokens through decode.
func TestSoftwareMetalAgainstLlamaCpp(t *testing.T) {
	sample.Long(t)
	for name, o := range map[string]struct {
		optimized bool
		library   string
	}{
		"ours":  {true, ""},
		"MLX's": {false, metallibs.Path(t, "0.32.4")},
	} {
		if o.library != "" && !sample.Takes(t.Name(), 0, 4) || o.library == "" && !sample.Takes(t.Name(), 2, 4) {
			continue // one run in four takes our kernels, and another one MLX's
		}
		t.Run(name, func(t *testing.T) {
			d, err := softmetal.New(t.Context(), softmetal.Options{Library: o.library})
			require.NoError(t, err)
			m, err := textgen.Open(t.Context(), d, recordModel(t, o.optimized), replay.Options{})
			require.NoError(t, err)
			defer func() {
				require.NoError(t, m.Close())
				require.NoError(t, d.Close())
			}()
			const tokens = 2 // the test on the CPU compares all tokens; here each takes a second
			for _, r := range oracle(t)[:1] {
				step, worst := 0, 0.0
				result, err := m.Generate(context.Background(), r.PromptIDs, textgen.Options{N: tokens, IgnoreEnd: true, Logits: func(l []float32) {
					for _, x := range r.Top[step] {
						worst = max(worst, math.Abs(float64(l[int(x[0])])-x[1]))
					}
					step++
				}})
				require.NoError(t, err)
				require.Equal(t, r.IDs[:tokens], result.IDs, r.Name)
				require.Equal(t, tokens, step)
				require.Less(t, worst, tolerance, "%s: greatest difference of a top-20 logit", r.Name)
				t.Logf("%s: greatest difference of a top-20 logit: %.1e", r.Name, worst)
			}
		})
	}
}
