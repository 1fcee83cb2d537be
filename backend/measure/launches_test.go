package measure

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// TestMeasure: a device whose launches take known times is measured to take them, whatever a submission
// takes by itself.
func TestMeasure(t *testing.T) {
	const us = 1e-6
	device := func(g *ir.Graph) (Sample, error) {
		require.NoError(t, g.Check())
		took := 30 * us
		s := cost.Model{Bandwidth: 1e12, Rate: 1e12, Cores: 1}.Shape(g)
		took += float64(s.Epochs)*0.8*us + float64(s.Forks)*0.5*us
		return Sample{[]float64{took, took + 1*us, took}, []float64{float64(s.Commands) * 0.1 * us, 0, 1}}, nil
	}
	for _, edges := range []bool{false, true} {
		m, err := Launches(512, edges, device)
		require.NoError(t, err)
		c := m.Costs()
		assert.InDelta(t, 0.8*us, float64(c.Launch), 1e-12)
		assert.InDelta(t, 0.1*us, float64(c.Encode), 1e-12)
		if edges {
			assert.InDelta(t, 0.5*us, float64(c.Barrier), 1e-12)
		} else {
			assert.Zero(t, c.Barrier)
		}
	}
	// If the clock shows no difference between a long and a short graph, the cost of a launch is
	// the whole time divided by the number of launches.
	still, err := Launches(64, true, func(*ir.Graph) (Sample, error) { return Sample{Device: []float64{64 * us}}, nil })
	require.NoError(t, err)
	assert.InDelta(t, us, float64(still.Costs().Launch), 1e-12)
	broken := errors.New("it is gone")
	_, err = Launches(64, true, func(*ir.Graph) (Sample, error) { return Sample{}, broken })
	require.ErrorIs(t, err, broken)
}

// TestBelieve: a model's launches are those of the plan that replays run by.
func TestBelieve(t *testing.T) {
	m, err := cost.Chip("")
	require.NoError(t, err)
	plans := map[string]cost.PlanTimes{"chain": {Launch: 9e-7, Encode: 4e-8}, "edges": {Launch: 9e-7, Barrier: 6e-7}}
	Believe(&m, plans, "chain")
	assert.Equal(t, plans, m.Plans)
	assert.InDelta(t, 9e-7, float64(m.Launch), 1e-15)
	assert.InDelta(t, 2e-7, float64(m.ConcurrentLaunch), 1e-15)
	assert.Zero(t, m.Barrier)
	// A stream that the host cannot fill: an H200's figures.
	plans = map[string]cost.PlanTimes{"stream": {Encode: 2.971e-6, Launch: 2.872e-6}, "chain": {Encode: 1.1e-8, Launch: 8.05e-7}, "chain-waiting": {Encode: 1.1e-8, Launch: 5.6e-7}}
	Believe(&m, plans, "chain-waiting")
	assert.InDelta(t, 8.05e-7, float64(m.Plans["stream"].Launch), 1e-15)
	assert.InDelta(t, 2.971e-6, float64(m.Plans["stream"].Encode), 1e-15)
	assert.InDelta(t, 5.6e-7, float64(m.Plans["chain-waiting"].Launch), 1e-15)
	assert.InDelta(t, 2.872e-6, float64(plans["stream"].Launch), 1e-15, "what was measured stays")
	Believe(&m, map[string]cost.PlanTimes{"stream": plans["stream"]}, "stream")
	assert.InDelta(t, 2.872e-6, float64(m.Launch), 1e-15, "nothing else is known")
	before := m
	Believe(&m, nil, "chain")
	before.Plans = nil
	assert.Equal(t, before, m, "nothing was measured")
}
