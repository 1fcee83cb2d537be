package textgen_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// oracleError bounds the difference between the oracle's logits and those of float64 (testdata/gen/smollm2_oracle.py
// --check).
const oracleError = 2e-4

// TestLogitsByType: logits in f32, f16 and bf16, of matrices that are repacked and of blocks in place, are within 2 units in
// the last place of the type, times √K, of float64's, which the oracle's are up to oracleError. K is the width of the last
// product. Greedy tokens are the oracle's wherever its margin exceeds that on both sides; after another token nothing can
// be compared.
func TestLogitsByType(t *testing.T) {
	sample.Seldom(t)
	const width = 576
	for _, c := range sample.Turns(t, t.Name(), []struct {
		name   string
		o      frontend.Options
		digits int // of the type
	}{
		{"f16", frontend.Options{Type: ir.F16}, 11},
		{"bf16", frontend.Options{Type: ir.BF16}, 8},
		{"blocks", frontend.Options{Blocks: true}, 24},
		{"blocks f16", frontend.Options{Type: ir.F16, Blocks: true}, 11},
		{"blocks bf16", frontend.Options{Type: ir.BF16, Blocks: true}, 8},
		{"f32", frontend.Options{}, 24},
	}) {
		t.Run(c.name, func(t *testing.T) {
			c.o.Context = 256
			module := recorded(t, c.o)
			for _, g := range module.Graphs {
				_, err := passes.Run(context.Background(), g, passes.DefaultPipeline(), passes.Options{})
				require.NoError(t, err)
			}
			m := openModel(t, module)
			for _, r := range sample.Of(t, t.Name(), oracle(t), 8) {
				step, same := 0, true
				worst, worstBound, differs := 0.0, 0.0, 0.0
				_, err := m.Generate(t.Context(), r.PromptIDs, textgen.Options{N: len(r.IDs), IgnoreEnd: true, Logits: func(l []float32) {
					if !same {
						return
					}
					best := 0
					for i, v := range l {
						if v > l[best] {
							best = i
						}
					}
					bound := func(logit float64) float64 {
						_, e := math.Frexp(logit)
						return 2*math.Ldexp(1, e-c.digits)*math.Sqrt(width) + oracleError
					}
					for _, x := range r.Top[step] {
						d := math.Abs(float64(l[int(x[0])]) - x[1])
						require.LessOrEqual(t, d, bound(x[1]), "%s, step %d, logit of %v", r.Name, step, x[0])
						if d/bound(x[1]) > worst {
							worst, worstBound = d/bound(x[1]), bound(x[1])
						}
					}
					first, second := r.Top[step][0][1], r.Top[step][1][1]
					if same = int32(best) == r.IDs[step]; !same {
						differs = first - second
						require.LessOrEqual(t, differs, bound(first)+bound(second), "%s, step %d: token %d, not %d", r.Name, step, best, r.IDs[step])
					}
					step++
				}})
				require.NoError(t, err)
				t.Logf("%s: %d of %d tokens, greatest difference %.2g of a bound of %.2g; the first other token where the margin is %.2g", r.Name, step, len(r.IDs), worst*worstBound, worstBound, differs)
			}
		})
	}
}
