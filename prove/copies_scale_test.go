package prove

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/passes"
)

// A kernel may stand for a long chain of copies, each of which is a result that it may write. The chain is followed
// once, and not from each of them.
func TestCopiesOfAFusionAreFollowedOnce(t *testing.T) {
	pipeline, err := passes.ParsePipeline("annotate,fuse")
	require.NoError(t, err)
	for _, f := range benchgraphs.CopyFamilies() {
		if f.Name != "typed halves" {
			continue
		}
		longest := 0
		work := func(n int) float64 {
			before := f.Make(n)
			after := before.Clone()
			_, err := passes.Run(context.Background(), after, pipeline, passes.Options{})
			require.NoError(t, err)
			b := recordedModel(context.Background(), before, nil)
			p := newProof(context.Background(), b, trace(b), byProvenance(b, after), Options{})
			p.build(after)
			p.check()
			require.Equal(t, Proved, p.Verdict, "%s", p.Result)
			for i := range p.a.ops {
				longest = max(longest, len(p.sets.of(int32(i))))
			}
			return float64(p.fusion.b.steps) / float64(n)
		}
		few, many := work(500), work(4_000)
		t.Logf("%s: %.2f copies are followed for each command of 500, %.2f of 4,000", f.Name, few, many)
		require.Greater(t, longest, 1_000)
		require.Positive(t, few)
		require.Less(t, many, 1.25*few)
	}
}
