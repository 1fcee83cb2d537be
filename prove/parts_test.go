package prove_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
)

// No harmful change is proved if everything that is read becomes a part, or if unions of strided
// writes are formed.
func TestPartsAreSound(t *testing.T) {
	sample.Seldom(t)
	defer prove.WithBounds(0, 0, 1<<20)()
	perClass := 1
	if sample.Whole() {
		perClass = 100
	}
	r, err := judge.Campaign(judge.CampaignOptions{PerClass: perClass, Seed: uint64(100 + sample.Run())}, func(before, after *ir.Graph) (judge.Answer, string) {
		p := prove.Check(context.Background(), before, after, prove.Options{})
		switch {
		case p.Verdict == prove.Proved && len(p.Assumptions) == 0:
			return judge.Accepted, ""
		case p.Verdict == prove.Refused:
			return judge.Refused, p.Findings[0].Text
		}
		return judge.CannotTell, ""
	})
	require.NoError(t, err)
	for _, e := range r.Missed {
		t.Errorf("harmful, and proved: %s", e)
	}
	sum := r.Sum()
	t.Logf("of %d harmless changes %d are proved", sum.Of(judge.HarmlessLabel), sum[judge.HarmlessLabel][judge.Accepted])
	require.Greater(t, sum[judge.HarmlessLabel][judge.Accepted]*10, sum.Of(judge.HarmlessLabel))
}
