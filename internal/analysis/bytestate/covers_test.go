package bytestate_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/testing/smallgraph"
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

// Together is sound: if it says that regions contain another between them, they do so
// byte by byte, for every value of the params. It knows columns that lie side by side.
func TestTogether(t *testing.T) {
	g := smallgraph.Graph()
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		f := bytestate.NewFacts(g)
		like := smallgraph.Region(t)
		var list []bytestate.Access
		var regions []ir.Region
		add := func(r ir.Region) {
			if a, ok := f.Place(&r); ok {
				list, regions = append(list, a), append(regions, r)
			}
		}
		for range rapid.IntRange(2, 4).Draw(t, "others") {
			r := smallgraph.Region(t)
			if rapid.IntRange(0, 3).Draw(t, "alike") > 0 {
				r.Mem, r.Dims = like.Mem, like.Dims
			}
			if n := len(regions); n > 0 && rapid.IntRange(0, 2).Draw(t, "next") > 0 {
				r.Off = regions[n-1].Off.Add(regions[n-1].Run)
			}
			add(r)
		}
		r := like
		if len(regions) > 0 && rapid.Bool().Draw(t, "of the first") {
			r.Off = regions[0].Off
		}
		if len(r.Dims) == 1 && r.Dims[0].Stride > 0 && rapid.Bool().Draw(t, "rows without a gap") {
			r.Run, r.Dims = r.Dims[0].Count.Scale(r.Dims[0].Stride), nil
		}
		a, ok := f.Place(&r)
		if !ok || !f.Together(&a, list) {
			return
		}
		found++
		smallgraph.Values(g, func(v []uint32) {
			has := map[[2]int64]bool{}
			for _, x := range regions {
				maps.Copy(has, smallgraph.Touched(g, x, v))
			}
			for k := range smallgraph.Touched(g, r, v) {
				if !has[k] {
					t.Fatalf("%v lack byte %d of %s", regions, k[1], g.FormatRegion(r))
				}
			}
		})
	})
	require.Positive(t, found)

	n := ir.Linear(0, ir.Term{Param: 1, Coeff: 1})
	k, rows := ir.Const, ir.Dim{Count: n, Stride: 64}
	for _, c := range []struct {
		from, width int64
		want        bool
	}{{32, 32, true}, {16, 48, true}, {33, 31, false}, {32, 31, false}} {
		f := bytestate.NewFacts(g)
		first, second := ir.Region{Off: k(0), Run: k(32), Dims: []ir.Dim{rows}}, ir.Region{Off: k(c.from), Run: k(c.width), Dims: []ir.Dim{rows}}
		all := ir.Region{Off: k(0), Run: n.Scale(64)}
		x, _ := f.Place(&first)
		y, _ := f.Place(&second)
		a, _ := f.Place(&all)
		require.Equal(t, c.want, f.Together(&a, []bytestate.Access{y, x}), "%v", c)
	}
}
