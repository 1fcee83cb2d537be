package bytestate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// Covers handles regions of one shape whose runs grow, and regions that params bound.
func TestCovers(t *testing.T) {
	b := ir.NewBuilder("covers")
	x, y := b.Memory(ir.Memory{Name: "x", Kind: ir.Scratch, Size: 4096}), b.Memory(ir.Memory{Name: "y", Kind: ir.Scratch, Size: 4096})
	param := func(name string, min, max uint32) ir.Affine {
		return ir.Linear(0, ir.Term{Param: b.Param(name, min, max), Coeff: 1})
	}
	pos, n := param("pos", 0, 15), param("n", 1, 16)
	b.Require(pos.Add(n), 16)
	g := b.Unfinished()
	k := ir.Const
	rows := ir.Dim{Count: n, Stride: 64}
	at := func(m ir.MemID, off, run ir.Affine, dims ...ir.Dim) ir.Region {
		return ir.Region{Mem: m, Off: off, Run: run, Dims: dims}
	}
	for _, c := range []struct {
		outer, inner ir.Region
		want         bool
	}{
		{at(x, k(0), k(64)), at(x, k(0), k(64)), true},
		{at(x, k(0), k(64)), at(x, k(1), k(64)), false},
		{at(x, k(0), k(64)), at(y, k(0), k(64)), false},
		{at(x, k(0), k(1024)), at(x, pos.Scale(64), n.Scale(64)), true},
		{at(x, k(0), k(1023)), at(x, pos.Scale(64), n.Scale(64)), false},
		{at(x, k(0), n.Scale(64)), at(x, k(0), k(64)), true},
		{at(x, k(0), n.Scale(64)), at(x, k(0), k(65)), false},
		{at(x, k(0), k(32), rows), at(x, k(16), k(16), rows), true},
		{at(x, k(0), k(32), rows), at(x, k(16), k(17), rows), false},
		{at(x, k(0), k(32), rows), at(x, k(0), k(8)), false}, // true, but not proved
		{at(x, k(0), k(32), ir.Dim{Count: k(16), Stride: 64}), at(x, k(0), k(32), rows), true},
		{at(x, k(0), k(32), rows), at(x, k(0), k(32), ir.Dim{Count: k(8), Stride: 64}), false},
	} {
		require.Equal(t, c.want, bytestate.Covers(g, c.outer, c.inner), "%s covers %s", g.FormatRegion(c.outer), g.FormatRegion(c.inner))
		f := bytestate.NewFacts(g)
		o, ok1 := f.Place(&c.outer)
		i, ok2 := f.Place(&c.inner)
		require.True(t, ok1 && ok2)
		require.Equal(t, c.want, f.Within(&o, &i), "%s within %s", g.FormatRegion(c.inner), g.FormatRegion(c.outer))
	}
}
