package prove_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// The counts of these grids are written by a copy. %c and %d hold the same counts where
// they are read.
const counting = `mlxt 1

graph g {
  memory %x input 256 f32[64]
  memory %n input 32 u32[8]
  memory %c scratch 32
  memory %d scratch 32
  memory %y state 256 f32[64]
  memory %z output 256 f32[64]
  kernel @k KERNEL

  #0 copy %n[0:16] -> %c[0:16]
  #1 copy %n[0:16] -> %d[0:16]
  #2 copy %n[16:32] -> %c[16:32]
  barrier
  #3 @k (a = %x[0:256], b = %x[0:256], c = %y[0:256]) grid threadgroups [2, 1, 1] of [32, 1, 1] at %c[0:12]
      effects complete reads %x[0:256], EFFECTS%c[0:12] writes may %y[0:256]
  barrier
  #4 copy %y -> %z
  barrier
}
`

func TestChecksCounts(t *testing.T) {
	for name, r := range map[string]*strings.Replacer{
		"declared": strings.NewReplacer("KERNEL", `builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)`, "EFFECTS", "%x[0:256], "),
		"foreign":  strings.NewReplacer("KERNEL", `metallib "k" sha256 0000000000000000000000000000000000000000000000000000000000000000 "k" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)`, "EFFECTS", ""),
	} {
		m, err := mlxt.Parse(context.Background(), "g", []byte(r.Replace(counting)))
		require.NoError(t, err)
		before := m.Graphs[0]
		d := func(g *ir.Graph) *ir.Dispatch { return g.Nodes[4].(*ir.Dispatch) }
		moved := func(g *ir.Graph, to ir.View) {
			*d(g).Indirect.Grid = to
			e := d(g).Effects
			e.Reads[len(e.Reads)-1] = to.Contiguous()
		}
		for what, c := range map[string]struct {
			change   func(g *ir.Graph)
			declared prove.Verdict
			foreign  prove.Verdict
		}{
			"nothing":          {func(g *ir.Graph) {}, prove.Proved, prove.Proved},
			"equal counts":     {func(g *ir.Graph) { moved(g, ir.ViewOf(3, 0, 12)) }, prove.Proved, prove.Refused}, // nobody knows what a kernel without declaration makes of the address
			"other counts":     {func(g *ir.Graph) { moved(g, ir.ViewOf(2, 16, 12)) }, prove.Refused, prove.Refused},
			"the greatest":     {func(g *ir.Graph) { d(g).Grid[0] = ir.Ext(1) }, prove.Refused, prove.Refused},
			"always all":       {func(g *ir.Graph) { d(g).Indirect = nil }, prove.Refused, prove.Refused},
			"not ordered":      {func(g *ir.Graph) { g.Nodes = slices.Delete(g.Nodes, 3, 4) }, prove.Refused, prove.Refused},
			"counts undefined": {func(g *ir.Graph) { g.Nodes = g.Nodes[1:] }, prove.Refused, prove.Refused},
		} {
			g := before.Clone()
			c.change(g)
			want := c.declared
			if name == "foreign" {
				want = c.foreign
			}
			require.NoError(t, g.Check(), what)
			res := prove.Check(context.Background(), before, g, prove.Options{})
			if res.Verdict != want {
				t.Errorf("%s, %s: %s", name, what, res)
			}
		}
		// A write that may not happen hides nothing: the passes keep the command whose
		// bytes it may leave.
		after := before.Clone()
		_, err = passes.Run(context.Background(), after, passes.DefaultPipeline(), passes.Options{})
		require.NoError(t, err)
		res := prove.Check(context.Background(), before, after, prove.Options{})
		require.Equal(t, prove.Proved, res.Verdict, "%s: %s\n%s", name, res, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{after}}))
	}
}
