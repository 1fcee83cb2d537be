package prove_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/oracle"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
)

// No harmful change is proved if everything that is read becomes a part, or if unions of strided
// writes are formed.
func TestPartsAreSound(t *testing.T) {
	sample.Long(t)
	defer prove.WithBounds(0, 0, 1<<20)()
	perClass := 1
	if sample.Whole() {
		perClass = 100
	}
	r, err := oracle.Campaign(oracle.CampaignOptions{PerClass: perClass, Seed: uint64(100 + sample.Run())}, func(before, after *ir.Graph) (oracle.Answer, string) {
		p := prove.Check(context.Background(), before, after, prove.Options{})
		switch {
		case p.Verdict == prove.Proved && len(p.Assumptions) == 0:
			return oracle.Accepted, ""
		case p.Verdict == prove.Refused:
			return oracle.Refused, p.Findings[0].Text
		}
		return oracle.CannotTell, ""
	})
	require.NoError(t, err)
	for _, e := range r.Missed {
		t.Errorf("harmful, and proved: %s", e)
	}
	sum := r.Sum()
	t.Logf("of %d harmless changes %d are proved", sum.Of(oracle.HarmlessLabel), sum[oracle.HarmlessLabel][oracle.Accepted])
	require.Greater(t, sum[oracle.HarmlessLabel][oracle.Accepted]*10, sum.Of(oracle.HarmlessLabel))
}
