package cost_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// TestShape: the sizes of a replay, for serial plans and for plans that overlap commands.
func TestShape(t *testing.T) {
	m := cost.Model{Bandwidth: 1e9, Rate: 1e12, Cores: 1, Launch: 1e-6}
	for _, edges := range []bool{false, true} {
		b := ir.NewBuilder("g")
		w := b.Memory(ir.Memory{Name: "w", Kind: ir.State, Size: 1 << 20})
		var last, beside []ir.Command
		for epoch := range int64(3) { // epochs of one, two and three commands
			for i := range epoch + 1 {
				f := b.Fill(ir.ViewOf(w, 1000*(3*epoch+i), 1000), 1, "")
				if edges && epoch > 0 {
					b.After(f, last...)
				}
				beside = append(beside, f)
			}
			last, beside = beside, nil
			if !edges && epoch < 2 {
				b.Barrier()
			}
		}
		s := m.Shape(b.Unfinished())
		require.Equal(t, []int{6, 3, 2}, []int{s.Commands, s.Epochs, s.Forks})
		require.InDelta(t, 6e-6, float64(s.Serial), 1e-12)
		require.InDelta(t, 1e-6+2e-6+3e-6-2e-6, float64(s.Overlapped), 1e-12, "of a bandwidth that all share; epochs of several hide their launches")

		row, both := s.InRow("chain"), s.Together("edges")
		times := cost.PlanTimes{Encode: 5e-6, Launch: 2e-6, Barrier: 3e-6, Replay: 7e-6}
		require.InDelta(t, 6*2e-6+7e-6+6e-6, float64(times.Of(row)), 1e-12)
		require.InDelta(t, 3*2e-6+2*3e-6+7e-6+4e-6, float64(times.Of(both)), 1e-12)
		row.Encoded, row.Host = 6, 1e-6
		require.InDelta(t, 31e-6+25e-6, float64(times.Of(row)), 1e-12)
		row.Beside = true
		require.InDelta(t, 31e-6, float64(times.Of(row)), 1e-12, "the host takes longer")
	}
}

// TestFastest: without a profile the first way is chosen, and a way that was not measured never replaces it.
func TestFastest(t *testing.T) {
	ways := []cost.Way{{Plan: "a", Launches: 10}, {Plan: "b", Launches: 5}, {Plan: "c", Launches: 1}}
	of := func(plans map[string]cost.PlanTimes) int {
		m := cost.Model{Plans: plans}
		return m.Fastest(ways)
	}
	one := cost.PlanTimes{Launch: 1e-6}
	require.Equal(t, 0, of(nil))
	require.Equal(t, 0, of(map[string]cost.PlanTimes{"b": one, "c": one}), "nothing to compare with")
	require.Equal(t, 1, of(map[string]cost.PlanTimes{"a": one, "b": one}))
	require.Equal(t, 2, of(map[string]cost.PlanTimes{"a": one, "b": one, "c": one}))
	require.Equal(t, 0, of(map[string]cost.PlanTimes{"a": one, "b": {Launch: 2e-6}}), "as long is no gain")
}
