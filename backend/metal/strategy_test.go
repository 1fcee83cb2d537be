package metal

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/testing/recorded"
)

// TestProven: options that need what the profile does not show to work are refused, with what to do.
func TestProven(t *testing.T) {
	seen := &cost.Model{Device: "Apple M3", Litmus: cost.Litmus{Fences: true, IndirectBarriers: true}}
	for _, x := range []struct {
		o    Options
		want string
	}{
		{Options{}, ""},
		{Options{Plan: Auto}, ""},
		{Options{Plan: Auto, Measured: seen}, ""},
		{Options{Fences: true, Measured: seen}, ""},
		{Options{Plan: IndirectBarriers, Measured: seen}, ""},
		{Options{Plan: Concurrent, Measured: &cost.Model{Device: "Apple M1"}}, ""},
		{Options{Fences: true}, "fences were not seen to order encoders on this GPU: run `mlxreplay doctor --profile FILE`"},
		{Options{Plan: IndirectBarriers, Measured: &cost.Model{}}, "were not seen to hold on this GPU"},
		{Options{Plan: IndirectBarriers, Measured: &cost.Model{Device: "Apple M1", Litmus: seen.Litmus}}, `the profile was measured on "Apple M1", and this is "Apple M3"`},
	} {
		err := x.o.proven("Apple M3")
		if x.want == "" {
			assert.NoError(t, err, "%+v", x.o)
			continue
		}
		assert.ErrorContains(t, err, x.want, "%+v", x.o)
	}
}

// TestChoose: Auto takes the plan that is the fastest for the graph by the measured profile.
func TestChoose(t *testing.T) {
	var p *plan.Plan // of the test graph with the most dispatches
	for _, g := range recorded.Graphs(t) {
		q, err := plan.Lower(context.Background(), g, plan.Options{})
		require.NoError(t, err)
		if p == nil || q.Stats.Dispatches > p.Stats.Dispatches {
			p = q
		}
	}
	require.Greater(t, p.Stats.Barriers, 10)
	direct := cost.PlanTimes{Encode: 160e-9, Launch: 500e-9, Barrier: 4e-6}
	choose := func(litmus cost.Litmus, plans map[string]cost.PlanTimes) Plan {
		o := Options{Plan: Auto, Measured: &cost.Model{Litmus: litmus, Plans: plans}}
		return o.choose(p)
	}
	none := Options{Plan: Auto}
	assert.Equal(t, Concurrent, none.choose(p), "nothing was measured")
	assert.Equal(t, Concurrent, choose(cost.Litmus{}, nil))
	assert.Equal(t, Concurrent, choose(cost.Litmus{}, map[string]cost.PlanTimes{"serial": {}}), "nothing to compare with")
	assert.Equal(t, Concurrent, choose(cost.Litmus{}, map[string]cost.PlanTimes{"concurrent": direct, "parallel": direct}), "the same is no gain")
	slow := direct
	slow.Barrier = 100e-6
	assert.Equal(t, Serial, choose(cost.Litmus{}, map[string]cost.PlanTimes{"concurrent": slow, "serial": {Encode: 160e-9, Launch: 2e-6, Barrier: 1}}), "a serial encoder has no barriers")
	stored := cost.PlanTimes{Encode: 1e-9, Launch: 500e-9, Barrier: 4e-6}
	within := cost.PlanTimes{Encode: 1e-9, Launch: 500e-9, Barrier: 1e-6}
	all := map[string]cost.PlanTimes{"concurrent": direct, "indirect": stored, "indirect-barriers": within}
	assert.Equal(t, Indirect, choose(cost.Litmus{IndirectBarriers: true}, all), "what litmus tests have seen to hold is not documented")
	fixed := Options{Plan: Serial, Measured: &cost.Model{Plans: all}}
	assert.Equal(t, Serial, fixed.choose(p), "who says a plan gets it")
}
