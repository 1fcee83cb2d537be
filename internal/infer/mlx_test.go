//go:build unix

package infer

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/kernelcases"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// narrow are kernels whose proposal says too much for shapes of the other seed, and why.
var narrow = map[string]string{
	"affine_gather_qvm_float_gs_64_b_4": "how many columns are written was seen in few shapes with several rows and more threadgroups than a row needs",
}

// A kernel of each family of MLX's library, as Apple compiled it, gets a proposal that holds for shapes of another seed than
// those that it was made from and held against.
func TestMLXKernels(t *testing.T) {
	sample.Seldom(t)
	cases, err := kernelcases.Load(filepath.Join("..", "..", "testdata", "kernelcases"))
	require.NoError(t, err)
	first := map[int]*kernelcases.Case{}
	var numbers []int
	for _, c := range cases {
		n, err := kernelcases.FamilyOf(c.Kernel)
		require.NoError(t, err)
		if first[n] == nil {
			first[n], numbers = c, append(numbers, n)
		}
	}
	if sample.Whole() {
		numbers = sample.Parted(numbers)
	} else {
		numbers = sample.Of(t, "effects of MLX", numbers, sample.Runs)
	}
	lib := metallibs.Open(t, "0.32.4")
	library := ir.Library{Kind: ir.Metallib, Path: metallibs.Path(t, "0.32.4")}
	x := observer(t, Options{Shapes: 48, HeldOut: 24, Seed: 1})
	others := observer(t, Options{Shapes: 9, Seed: 3})
	var all tally
	for _, n := range numbers {
		f := first[n].Kernel
		kernel, err := lib.Describe(f)
		require.NoError(t, err, f)
		g, err := first[n].Graph(library, kernel)
		require.NoError(t, err, f)
		described(t, g, kernel, library)
		d := g.Nodes[0].(*ir.Dispatch)
		for i := range d.Bindings { // room behind what the case has, so that larger shapes stay within the views
			if b := &d.Bindings[i]; b.Kind == ir.BindView {
				g.Memories[b.View.Mem].Size += 1 << 16
				b.View.Len = ir.Const(g.Memories[b.View.Mem].Size).Sub(b.View.Off)
			}
		}
		for _, p := range all.propose(t, x, f, g) {
			ds, err := parsed(p.Text)
			require.NoError(t, err, p.Text)
			cs, left := classes(g, nil, every)
			require.Empty(t, left)
			c, err := others.against(t.Context(), cs[0], "the proposal", func(g *ir.Graph, d *ir.Dispatch) (*ir.Effects, error) { return accepts(ds[0], g, d) })
			require.NoError(t, err, f)
			if why, ok := narrow[f]; ok && len(c.Broken) > 0 {
				t.Logf("%s: too narrow: %s", f, why)
				continue
			}
			assert.Empty(t, c.Broken, "%s:\n%s", f, p.Text)
		}
	}
	all.log(t, len(numbers))
	if sample.Whole() { // 11 of 165 have none, for the reasons that docs/effects.md gives
		assert.LessOrEqual(t, 10*all.none, len(numbers))
	}
}
