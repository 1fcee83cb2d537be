package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
)

// TestModelled: the modelled time is that of the kernels, measured behind launches of one plan, and that of the
// launches of the plan that is asked about.
func TestModelled(t *testing.T) {
	const us = 1e-6
	b := &bench{ctx: t.Context(), model: cost.Model{
		Bandwidth: 4e12, Rate: 1e15, Cores: 100, Launch: 0.75 * us, ConcurrentLaunch: 0.1 * us,
		Kernels: map[string]cost.Kernel{"vv_Addfloat32": {Fixed: 2.75 * us}},
		Plans: map[string]cost.PlanTimes{
			"stream": {Encode: 5 * us, Launch: 2 * us}, "chain": {Launch: 0.9 * us}, "chain-waiting": {Launch: 0.75 * us},
			"edges": {Launch: 0.9 * us, Barrier: 0.5 * us},
		},
	}}
	row, forked := measure.Row(100, false), measure.Forked(20)
	for _, c := range []struct {
		g    *ir.Graph
		p    plan
		want float64
	}{
		{row, asChain, 100 * (2 + 0.9)}, {row, waiting, 275}, {row, onStream, 500},
		{forked, asChain, 100 * (2 + 0.9)}, {forked, byEdges, 40*(2+0.9) + 20*0.5},
	} {
		assert.InDelta(t, c.want, 1e6*b.modelled(c.g, c.p, 0), 1e-6, "%s, %s", c.g.Name, c.p.name)
	}
}

// TestEach: every kernel and size of a graph is measured once, by its dispatches in a row, repeated if they are few,
// and is modelled by what was measured then.
func TestEach(t *testing.T) {
	b := &bench{ctx: t.Context(), device: "cpu", tiny: true, rounds: 1, known: map[kind]bool{}, out: &strings.Builder{}}
	b.model = cost.Model{}.OrDefault()
	b.fit = cost.NewFit(b.model)
	b.until = b.until.AddDate(9999, 0, 0)
	shape := small(demonstration)
	recorded, err := shape.Record(t.Context(), frontend.Options{Advance: true})
	require.NoError(t, err)
	m := &ir.Module{Graphs: recorded.Graphs[:1]}
	require.NoError(t, b.each(m, 2, first))
	functions := histogram(m.Graphs[0])
	for name := range functions {
		assert.Contains(t, b.model.Kernels, name)
	}
	n := len(b.rows)
	assert.GreaterOrEqual(t, n, len(functions))
	require.NoError(t, b.each(m, 2, first))
	assert.Len(t, b.rows, n, "all are known")
	for i, k := range commands(inRow(m.Graphs[0], "row", commands(m.Graphs[0])[:2])) {
		assert.EqualValues(t, i, k.ID)
	}
}

// TestSettle: kernels are measured until what is chosen has none that was not; then nothing is measured any more. If
// something new is always chosen, that is an error.
func TestSettle(t *testing.T) {
	b := &bench{ctx: t.Context(), device: "cpu", tiny: true, rounds: 1, known: map[kind]bool{}, out: &strings.Builder{}}
	b.model = cost.Model{}.OrDefault()
	b.fit = cost.NewFit(b.model)
	b.until = b.until.AddDate(9999, 0, 0)
	shape := small(demonstration)
	recorded, err := shape.Record(t.Context(), frontend.Options{Advance: true})
	require.NoError(t, err)
	m := &ir.Module{Graphs: recorded.Graphs[:1]}
	all := strings.Join(defaults(), ",")
	some := []string{"", "annotate,fuse{without=affine*}"}
	looks := 0
	require.NoError(t, b.settle(m, 2, first, func() ([]string, error) {
		if looks++; looks == 2 { // what was measured has changed the choice
			some = append(some, all)
		}
		return some, nil
	}))
	require.Equal(t, 3, looks)
	o, err := b.optimized(m, all)
	require.NoError(t, err)
	for name := range histogram(o.Graphs[0]) {
		assert.Contains(t, b.model.Kernels, name)
	}
	n := len(b.rows)
	require.NoError(t, b.settle(m, 2, first, func() ([]string, error) { return some, nil }))
	assert.Len(t, b.rows, n)
	looks, b.known = 0, map[kind]bool{}
	err = b.settle(m, 2, first, func() ([]string, error) {
		looks++
		b.known = map[kind]bool{}
		for i := range looks { // a device on which there is always one more
			b.known[kind{"another", float64(i), 0}] = true
		}
		return []string{""}, nil
	})
	require.ErrorContains(t, err, "after 8 looks")
}

// TestLooked: kernels that figures of others keep from being chosen are measured all the same, so that what is
// chosen then rests on figures of all.
func TestLooked(t *testing.T) {
	b := &bench{ctx: t.Context(), device: "cpu", rounds: 1, known: map[kind]bool{}, out: &strings.Builder{}}
	b.until = b.until.AddDate(9999, 0, 0)
	shape := small(demonstration)
	recorded, err := shape.Record(t.Context(), frontend.Options{Advance: true})
	require.NoError(t, err)
	m := &ir.Module{Graphs: recorded.Graphs[:1]}
	b.model = cost.Model{}.OrDefault()
	b.model.Kernels = map[string]cost.Kernel{}
	for name := range histogram(m.Graphs[0]) { // nothing that replaces these can gain
		b.model.Kernels[name] = cost.Kernel{Fixed: 1e-9}
	}
	b.fit = cost.NewFit(b.model)
	all := strings.Join(defaults(), ",")
	chosen, err := b.optimized(m, all)
	require.NoError(t, err)
	pipelines, fused, err := b.deeper(m, all)
	require.NoError(t, err)
	require.Len(t, pipelines, len(fused)+1)
	never := ""
	for _, f := range fused {
		if histogram(chosen.Graphs[0])[f] == 0 {
			never = f
		}
	}
	require.NotEmpty(t, never, "the figures keep nothing from being chosen: %v", fused)
	require.NotContains(t, b.model.Kernels, never)
	require.NoError(t, b.looked(m, pipelines, 2))
	for _, f := range fused {
		assert.Contains(t, b.model.Kernels, f)
	}
	for i, p := range pipelines { // a row each, whatever was measured
		g, err := b.blindly(m, p)
		require.NoError(t, err)
		for k, f := range fused {
			if k >= i {
				assert.Zero(t, histogram(g.Graphs[0])[f], "%s in row %d", f, i)
			}
		}
		if i > 0 {
			assert.Positive(t, histogram(g.Graphs[0])[fused[i-1]], "%s in its row", fused[i-1])
		}
	}
}

// TestVerdict: the table says whether a faster form was measured than the one that is chosen.
func TestVerdict(t *testing.T) {
	took := map[string]float64{"passes to all": 900e-6, "and a": 901e-6, "and b": 895e-6}
	text, lost := verdict("passes to all", took)
	assert.Zero(t, lost)
	assert.Contains(t, text, "is the fastest of these 3 forms")
	took["and b"] = 800e-6
	text, lost = verdict("passes to all", took)
	assert.InDelta(t, 100e-6, lost, 1e-9)
	assert.Contains(t, text, "takes 100.0 µs a token more than the fastest of these 3 forms (and b)")
	text, _ = verdict("passes to c", took)
	assert.Empty(t, text, "it was not measured")
}
