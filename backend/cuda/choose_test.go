//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/testing/fakecuda"
)

// TestAuto: auto launches a graph by the plan that takes the least time by a profile, and computes what every
// plan does. What was chosen is seen in the calls of the driver: launches on the stream, edges of graphs, and
// whether programmatic ones are among them.
func TestAuto(t *testing.T) {
	const us = 1e-6
	times := func(launch, barrier cost.Seconds) cost.PlanTimes {
		return cost.PlanTimes{Encode: 0.01 * us, Launch: launch * us, Barrier: barrier * us}
	}
	// dear returns times by which one plan is the best: each of the others costs 50 µs a launch.
	dear := func(best string, t cost.PlanTimes) map[string]cost.PlanTimes {
		all := map[string]cost.PlanTimes{}
		for _, name := range []string{"stream", "chain", "chain-waiting", "edges", "edges-waiting"} {
			all[name] = times(50, 0)
		}
		all[best] = t
		return all
	}
	want := reference(t, 18, 2)
	type seen struct{ stream, programmatic, full bool }
	for name, c := range map[string]struct {
		plans    map[string]cost.PlanTimes
		order    string
		options  cuda.Options
		seen     seen
		parallel bool
	}{
		"stream":                           {dear("stream", times(1, 0)), "edges", cuda.Options{}, seen{stream: true}, false},
		"chain":                            {dear("chain", times(1, 0)), "edges", cuda.Options{}, seen{full: true}, false},
		"chain, waiting":                   {dear("chain-waiting", times(1, 0)), "edges", cuda.Options{}, seen{programmatic: true, full: true}, false},
		"edges":                            {dear("edges", times(1, 0)), "edges", cuda.Options{}, seen{full: true}, true},
		"edges, waiting":                   {dear("edges-waiting", times(1, 0)), "edges", cuda.Options{}, seen{programmatic: true, full: true}, true},
		"edges, but forks are dear":        {map[string]cost.PlanTimes{"chain": times(1, 0), "chain-waiting": times(2, 0), "edges": times(1, 90)}, "edges", cuda.Options{}, seen{full: true}, false},
		"edges, but there are none":        {map[string]cost.PlanTimes{"chain": times(2, 0), "chain-waiting": times(3, 0), "edges": times(1, 0)}, "", cuda.Options{}, seen{full: true}, false},
		"a host that is slow":              {map[string]cost.PlanTimes{"chain-waiting": times(3, 0), "stream": {Encode: 40 * us, Launch: 1 * us}}, "", cuda.Options{}, seen{programmatic: true, full: true}, false},
		"waiting is switched off":          {dear("chain-waiting", times(1, 0)), "", cuda.Options{Full: true}, seen{full: true}, false},
		"who says a plan gets it":          {dear("chain", times(1, 0)), "edges", cuda.Options{Plan: cuda.Stream}, seen{stream: true}, false},
		"nothing to compare with":          {map[string]cost.PlanTimes{"edges": times(1, 0)}, "edges", cuda.Options{}, seen{programmatic: true, full: true}, false},
		"no profile: what of H200s":        {nil, "", cuda.Options{}, seen{programmatic: true, full: true}, false},
		"a GPU that does not launch early": {nil, "", cuda.Options{}, seen{full: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := fakecuda.Options{Seed: 4}
			if name == "a GPU that does not launch early" {
				o.Major = 8
			}
			x := serve(t, o)
			if c.plans != nil {
				m, err := cost.Chip(cost.H200)
				require.NoError(t, err)
				m.Device, m.Plans = "NVIDIA H100 stand-in, compute capability 9.0", c.plans
				c.options.Measured = &m
			}
			d := standIn(t, c.options)
			got, err := run(d, newWorkload(t, c.order), 18, 2)
			require.NoError(t, err)
			require.NoError(t, d.Close())
			quit(t, x)
			assert.Equal(t, want, got)
			e := x.Edges()
			assert.Equal(t, c.seen, seen{e.Nodes == 0, e.Programmatic > 0, e.Full > 0}, "%+v", e)
			assert.Equal(t, c.parallel, e.Forks > 0, "%+v", e)
		})
	}
}

// TestProfileOfAnother: a profile of another GPU is refused.
func TestProfileOfAnother(t *testing.T) {
	serve(t, fakecuda.Options{})
	_, err := cuda.Open(t.Context(), cuda.Options{Measured: &cost.Model{Device: "NVIDIA A100, compute capability 8.0"}}.WithImages(images))
	require.ErrorContains(t, err, `the profile was measured on "NVIDIA A100, compute capability 8.0", and this is "NVIDIA H100 stand-in, compute capability 9.0"`)
}

// TestMeasured: each plan can be measured on a device, and auto chooses by the profile of these
// measurements.
func TestMeasured(t *testing.T) {
	serve(t, fakecuda.Options{})
	plans := map[string]cost.PlanTimes{}
	for _, k := range []struct {
		plan  cuda.Plan
		waits bool
	}{{cuda.Stream, false}, {cuda.Chain, false}, {cuda.Chain, true}, {cuda.Edges, false}, {cuda.Edges, true}} {
		d := standIn(t, cuda.Options{Plan: k.plan, Full: !k.waits})
		m, err := measure.Launches(16, k.plan == cuda.Edges, measure.On(t.Context(), d, 3))
		require.NoError(t, err)
		require.NoError(t, d.Close())
		assert.Positive(t, m.Costs().Launch)
		assert.Len(t, m.Barrier, map[bool]int{true: 3}[k.plan == cuda.Edges])
		plans[k.plan.Measured(k.waits)] = m.Costs()
	}
	require.Len(t, plans, 5)
	model, err := cost.Chip(cost.H200)
	require.NoError(t, err)
	measure.Believe(&model, plans, "chain-waiting")
	model.Device = "NVIDIA H100 stand-in, compute capability 9.0"
	var text bytes.Buffer
	require.NoError(t, model.WriteProfile(&text))
	back, err := cost.ParseProfile("gpu.profile", text.Bytes())
	require.NoError(t, err)
	d := standIn(t, cuda.Options{Measured: &back})
	got, err := run(d, newWorkload(t, "edges"), 2)
	require.NoError(t, err)
	assert.Equal(t, reference(t, 2), got)
	require.NoError(t, d.Close())
}
