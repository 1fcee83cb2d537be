package oracle_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/oracle"
	"github.com/mlxc/mlxc/ir"
)

var perClass = flag.Int("oracle.perclass", 30, "mutations of each class in TestCampaign")

// byText is a prover that accepts what prints alike.
func byText(before, after *ir.Graph) (oracle.Answer, string) {
	if text(before) == text(after) {
		return oracle.Accepted, ""
	}
	return oracle.Refused, "the texts differ"
}

// The campaign's promises: enough of every class, of both verdicts, the same
// each time; what an honest optimizer does is harmless.
func TestCampaign(t *testing.T) {
	start := time.Now()
	o := oracle.CampaignOptions{Graphs: 80, PerClass: *perClass, Seed: 1, Also: recordedGraphs(t)}
	r, err := oracle.Campaign(o, byText)
	require.NoError(t, err)
	t.Logf("%v\n%s", time.Since(start).Round(time.Millisecond), r)
	for k, c := range r.Classes {
		require.GreaterOrEqual(t, c.Total(), o.PerClass, c.Name)
		if oracle.Mutations[k].Honest {
			require.Zero(t, c.Of(oracle.HarmfulLabel), c.Name)
		}
	}
	sum := r.Sum()
	require.Greater(t, sum.Of(oracle.HarmfulLabel)*10, sum.Total()*3)
	require.Greater(t, sum.Of(oracle.HarmlessLabel)*5, sum.Total())
	require.Empty(t, r.Missed)
	require.NotEmpty(t, r.Unproved)
}
