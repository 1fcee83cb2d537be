package prebuilt_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// TestRecordings: whatever kernel of our library recordings use, and passes choose for them, is compiled
// beforehand, with its constants.
func TestRecordings(t *testing.T) {
	wanted, _, err := prebuilt.Wanted()
	require.NoError(t, err)
	all := make([]prebuilt.Compiled, len(wanted))
	for i, r := range wanted {
		all[i] = prebuilt.Compiled{Request: r, Kernel: prebuilt.Kernel{Description: &air.Kernel{Name: r.Function}}}
	}
	data, err := prebuilt.Write("", all)
	require.NoError(t, err)
	a, err := prebuilt.Read(data)
	require.NoError(t, err)
	codes := map[string]prebuilt.Request{}
	for _, r := range wanted {
		codes[r.Function] = r
	}
	used := map[string]bool{}
	look := func(g *ir.Graph) {
		for _, n := range g.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok || g.Kernels[d.Kernel].Library.Kind != ir.Builtin {
				continue
			}
			k := &g.Kernels[d.Kernel]
			used[k.Function] = true
			r := codes[k.Function]
			r.Function, r.Constants = k.Function, nil
			for _, c := range k.Constants {
				r.Constants = append(r.Constants, air.ConstantValue{Index: int(c.Index), Bits: c.Bits})
			}
			for _, r.Launch = range prebuilt.Launches {
				if r.Launch.Moving != moves(g, d) {
					continue
				}
				if r.Matrices {
					r.Launch.MMA = nvptx.AllMMA
				}
				_, err := a.Find(r)
				assert.NoError(t, err, "%s: %s %v %+v", g.Name, k.Function, k.Constants, r.Launch)
			}
		}
	}
	for _, g := range recorded.Graphs(t) {
		look(g)
		_, err := passes.Run(t.Context(), g, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err, g.Name)
		look(g)
	}
	assert.Greater(t, len(used), 15, "%v", used)
}

// moves reports whether params of a graph decide where an argument of a dispatch lies.
func moves(g *ir.Graph, d *ir.Dispatch) bool {
	for i := range d.Bindings {
		if b := g.Resolve(d.Bindings[i]); b.Kind == ir.BindView && !b.View.Off.IsConst() {
			return true
		}
	}
	return false
}
