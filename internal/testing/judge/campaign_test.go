package judge_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

var perClass = flag.Int("judge.perclass", 10, "mutations of each class in TestCampaign")

// byText is a prover that accepts a graph with the same text.
func byText(before, after *ir.Graph) (judge.Answer, string) {
	if text(before) == text(after) {
		return judge.Accepted, ""
	}
	return judge.Refused, "the texts differ"
}

// A campaign tries enough mutations of every class and both verdicts, gives the same
// report each time, and finds what an honest optimizer does harmless.
func TestCampaign(t *testing.T) {
	sample.Seldom(t)
	start := time.Now()
	o := judge.CampaignOptions{Graphs: 40, PerClass: *perClass, Seed: 1, Also: recordedGraphs(t)}
	r, err := judge.Campaign(o, byText)
	require.NoError(t, err)
	t.Logf("%v\n%s", time.Since(start).Round(time.Millisecond), r)
	for k, c := range r.Classes {
		require.GreaterOrEqual(t, c.Total(), o.PerClass, c.Name)
		if judge.Mutations[k].Honest {
			require.Zero(t, c.Of(judge.HarmfulLabel), c.Name)
		}
	}
	sum := r.Sum()
	require.Greater(t, sum.Of(judge.HarmfulLabel)*10, sum.Total()*3)
	require.Greater(t, sum.Of(judge.HarmlessLabel)*5, sum.Total())
	require.Empty(t, r.Missed)
	require.NotEmpty(t, r.Unproved)
}

// A prover that accepts everything is caught in every class that can do harm.
func TestCampaignCatches(t *testing.T) {
	sample.Seldom(t)
	r, err := judge.Campaign(judge.CampaignOptions{Graphs: 30, PerClass: 10, Seed: 2}, func(before, after *ir.Graph) (judge.Answer, string) { return judge.Accepted, "" })
	require.NoError(t, err)
	missed := map[string]bool{}
	for _, e := range r.Missed {
		missed[e.Class] = true
		require.NotEmpty(t, e.Before)
		require.NotEmpty(t, e.After)
	}
	for _, c := range r.Classes {
		require.Equal(t, c.Of(judge.HarmfulLabel) > 0, missed[c.Name], c.Name)
	}
	require.Empty(t, r.Unproved)
	require.Greater(t, len(missed), 35)
}

// The report depends on the options only, not on which worker does what.
func TestCampaignIsDeterministic(t *testing.T) {
	sample.Seldom(t)
	o := judge.CampaignOptions{Graphs: 8, PerClass: 4, Seed: 3, Workers: 1}
	a, err := judge.Campaign(o, byText)
	require.NoError(t, err)
	o.Workers = 3
	b, err := judge.Campaign(o, byText)
	require.NoError(t, err)
	require.Equal(t, a.String(), b.String())
	require.Equal(t, a, b)
}
