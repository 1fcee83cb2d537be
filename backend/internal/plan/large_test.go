package plan

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// TestLarge: the size of a plan is linear in that of its graph, also if groups are nested deeply and every command
// has an encoder of its own.
func TestLarge(t *testing.T) {
	const n = 20000
	for _, o := range []Options{{Groups: true, Most: 1}, {Groups: true, Times: ByEncoder}, {Whole: true, Most: 2}} {
		b := ir.NewBuilder("g")
		m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 64})
		for range n {
			b.Group("deep")
			b.Fill(ir.ViewOf(m, 0, 16), 1, "")
		}
		for range n {
			b.EndGroup()
		}
		g, err := b.Graph()
		require.NoError(t, err)
		p, err := Lower(context.Background(), g, o)
		require.NoError(t, err)
		assert.Equal(t, n, p.Stats.Dispatches)
		assert.Less(t, len(p.Ops), n*(3*deepest+16), "%+v", o)
		if o.Whole {
			s := Store(p, 100, true)
			assert.Len(t, s.Commands, n)
			assert.LessOrEqual(t, len(s.Steps), 2*n)
		}
	}
}
