package campaign

import (
	"context"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/prove"
)

var perClass = flag.Int("prove.perclass", map[bool]int{false: 40, true: 300}[sample.Whole()], "mutations of each class in TestMutationCampaign")

// trusts reports whether a proof assumes that a command of unknown effects reads only
// what it binds. The judge lets such a command read everything, so it may call the
// change harmful.
func trusts(r *prove.Result) bool {
	return slices.ContainsFunc(r.Assumptions, func(a string) bool { return strings.HasSuffix(a, "reads no memory that it does not bind") })
}

// No harmful mutation may be proved, and nearly every harmless one must be. The judge
// and the mutations were written without sight of package prove.
func TestMutationCampaign(t *testing.T) {
	sample.Long(t)
	start := time.Now()
	r, err := judge.Campaign(judge.CampaignOptions{Graphs: map[bool]int{false: 30, true: 80}[sample.Whole()], PerClass: *perClass, Seed: uint64(1 + sample.Run()), Also: recorded.Graphs(t)}, func(before, after *ir.Graph) (judge.Answer, string) {
		p := prove.Check(context.Background(), before, after, prove.Options{})
		reason := ""
		if len(p.Findings) > 0 {
			reason = p.Findings[0].Text
		}
		switch {
		case p.Verdict == prove.Proved && trusts(p):
			return judge.CannotTell, p.Assumptions[0]
		case p.Verdict == prove.Proved:
			return judge.Accepted, reason
		case p.Verdict == prove.Refused:
			return judge.Refused, reason
		}
		return judge.CannotTell, reason
	})
	require.NoError(t, err)
	t.Logf("%v\n%s", time.Since(start).Round(time.Millisecond), r)
	t.Logf("harmless, and not proved:\n%s", r.Unaccepted())
	for _, e := range r.Missed {
		t.Errorf("harmful, and proved: %s", e)
	}
	sum := r.Sum()
	if *perClass >= 300 { // the share of proved ones is only stable over many mutations
		require.GreaterOrEqual(t, sum.Total(), 10000)
	}
	for _, c := range r.Classes {
		require.GreaterOrEqual(t, c.Total(), *perClass, c.Name)
	}
	require.GreaterOrEqual(t, sum.Of(judge.HarmfulLabel)*10, sum.Total()*3)
	require.GreaterOrEqual(t, sum.Of(judge.HarmlessLabel)*5, sum.Total())
	require.GreaterOrEqual(t, sum[judge.HarmlessLabel][judge.Accepted]*100, sum.Of(judge.HarmlessLabel)*95)
}
