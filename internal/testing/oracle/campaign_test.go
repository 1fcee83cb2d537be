package oracle_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/oracle"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

var perClass = flag.Int("oracle.perclass", 10, "mutations of each class in TestCampaign")

// byText is a prover that accepts a graph with the same text.
func byText(before, after *ir.Graph) (oracle.Answer, string) {
	if text(before) == text(after) {
		return oracle.Accepted, ""
	}
	return oracle.Refused, "the texts differ"
}

// A campaign tries enough mutations of every class and both verdicts, gives the same
// report each time, and finds what an honest optimizer does harmless.
func TestCampaign(t *testing.T) {
	sample.Long(t)
	start := time.Now()
	o := oracle.CampaignOptions{Graphs: 40, PerClass: *perClass, Seed: 1, Also: recordedGraphs(t)}
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

// A prover that accepts everything is caught in every class that can do harm.
func TestCampaignCatches(t *testing.T) {
	sample.Long(t)
	r, err := oracle.Campaign(oracle.CampaignOptions{Graphs: 30, PerClass: 10, Seed: 2}, func(before, after *ir.Graph) (oracle.Answer, string) { return oracle.Accepted, "" })
	require.NoError(t, err)
	missed := map[string]bool{}
	for _, e := range r.Missed {
		missed[e.Class] = true
		require.NotEmpty(t, e.Before)
		require.NotEmpty(t, e.After)
	}
	for _, c := range r.Classes {
		require.Equal(t, c.Of(oracle.HarmfulLabel) > 0, missed[c.Name], c.Name)
	}
	require.Empty(t, r.Unproved)
	require.Greater(t, len(missed), 35)
}

// The report depends on the options only, not on which worker does what.
func TestCampaignIsDeterministic(t *testing.T) {
	sample.Long(t)
	o := oracle.CampaignOptions{Graphs: 8, PerClass: 4, Seed: 3, Workers: 1}
	a, err := oracle.Campaign(o, byText)
	require.NoError(t, err)
	o.Workers = 3
	b, err := oracle.Campaign(o, byText)
	require.NoError(t, err)
	require.Equal(t, a.String(), b.String())
	require.Equal(t, a, b)
}

// A norm and a product equal one norm with a weight if nothing comes between; the judge
// sees that by terms, not by tokens alone.
func TestTerms(t *testing.T) {
	recorded := recordedGraphs(t)
	at := slices.IndexFunc(recorded, func(g *ir.Graph) bool { return g.Name == "norm_residual" })
	before := recorded[at]
	before.Nodes = append(before.Nodes, &ir.Barrier{})
	after, norm := fuse(t, before)
	norm.Effects = nil
	require.Equal(t, oracle.Harmful, oracle.Judge(before, after, oracle.Options{}).Verdict)
	j := oracle.Judge(before, after, oracle.Options{Terms: true})
	require.Equal(t, oracle.Harmless, j.Verdict, j.Reason)
	require.Empty(t, j.Remarks)
	same, err := oracle.SameBits(before, after, oracle.Options{})
	require.NoError(t, err)
	require.True(t, same)
	for name, change := range map[string]func(){
		"eps":    func() { norm.Binding(3).Bytes = ir.ValueBytes(float32(1e-3)) },
		"weight": func() { norm.Binding(1).View = ir.ViewOf(0, 0, 256) }, // the input
		"input":  func() { norm.Binding(0).View = norm.Binding(2).View },
	} {
		after, norm = fuse(t, before)
		norm.Effects = nil
		change()
		require.NoError(t, after.Check(), name)
		require.Equal(t, oracle.Harmful, oracle.Judge(before, after, oracle.Options{Terms: true}).Verdict, name)
		same, err := oracle.SameBits(before, after, oracle.Options{})
		require.NoError(t, err, name)
		require.False(t, same, name)
	}
}
