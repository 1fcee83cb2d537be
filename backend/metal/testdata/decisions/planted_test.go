//go:build linux

package metal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestPlantedDecisions: the workload notices each wrong decision in each of its ways.
func TestPlantedDecisions(t *testing.T) {
	p := newPlanting(t)
	for _, x := range sample.Of(t, "TestWrongDecisions", wrongDecisions, sample.Few) {
		for _, name := range x.ways[:many(len(x.ways))] {
			w := wayNamed(name)
			require.Empty(t, p.once(t, w, 1, calm, func(*fakemetal.Metal) {}), name)
			var wrong []string
			for seed := uint64(1); seed <= 30 && len(wrong) == 0; seed++ {
				wrong = p.once(t, w, seed, hasty, func(*fakemetal.Metal) { metal.Planted, plan.Planted = x.name, x.name })
				metal.Planted, plan.Planted = "", ""
			}
			if assert.NotEmpty(t, wrong, "%s, %s: nobody can tell", x.name, name) {
				t.Logf("%s, %s: %s", x.name, name, wrong[0])
			}
		}
	}
}
