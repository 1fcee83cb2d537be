package bytestate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/testing/smallgraph"
	"github.com/mlxc/mlxc/ir"
)

// Disjoint is sound: it never calls two regions disjoint that share a byte for some
// values of the params. The test below counts how many disjoint pairs it misses.
func TestDisjointIsSound(t *testing.T) {
	g := smallgraph.Graph()
	rapid.Check(t, func(t *rapid.T) {
		a, b := smallgraph.Region(t), smallgraph.Region(t)
		if bytestate.Disjoint(g, a, b) && smallgraph.Meet(g, a, b) {
			t.Fatalf("%s and %s share a byte", g.FormatRegion(a), g.FormatRegion(b))
		}
		require.Equal(t, bytestate.Disjoint(g, a, b), bytestate.Disjoint(g, b, a), "symmetry of %s and %s", g.FormatRegion(a), g.FormatRegion(b))
	})
}

func TestDisjointKnowsTheUsualCases(t *testing.T) {
	g := smallgraph.Graph()
	pos, n := ir.Linear(0, ir.Term{Param: 0, Coeff: 1}), ir.Linear(0, ir.Term{Param: 1, Coeff: 1})
	at := func(mem ir.MemID, off, run ir.Affine, dims ...ir.Dim) ir.Region {
		return ir.Region{Mem: mem, Off: off, Run: run, Dims: dims}
	}
	c := ir.Const
	cases := []struct {
		name string
		a, b ir.Region
		want bool
	}{
		{"ranges that only touch (B10)", at(0, c(0), c(64)), at(0, c(64), c(64)), true},
		{"one byte shared", at(0, c(0), c(65)), at(0, c(64), c(64)), false},
		{"other root", at(0, c(0), c(64)), at(3, c(0), c(64)), true},
		{"alias of the same bytes", at(0, c(24), c(8)), at(2, c(0), c(8)), false},
		{"alias beside", at(0, c(0), c(24)), at(2, c(0), c(8)), true},
		{"cache rows before pos and the row at pos", at(0, c(0), pos.Scale(16)), at(0, pos.Scale(16), c(16)), true},
		{"cache rows up to pos+n and rows from pos", at(0, c(0), pos.Add(n).Scale(16)), at(0, pos.Scale(16), n.Scale(16)), false},
		{"interleaved columns", at(0, c(0), c(8), ir.Dim{Count: c(10), Stride: 32}), at(0, c(8), c(24), ir.Dim{Count: c(10), Stride: 32}), true},
		{"interleaved columns that overlap", at(0, c(0), c(9), ir.Dim{Count: c(10), Stride: 32}), at(0, c(8), c(24), ir.Dim{Count: c(10), Stride: 32}), false},
		{"two heads' rows at pos, other rows", at(0, pos.Scale(16), c(16), ir.Dim{Count: c(2), Stride: 512}), at(0, pos.Scale(16).AddConst(16), c(16), ir.Dim{Count: c(2), Stride: 512}), true},
		{"different strides", at(0, c(0), c(4), ir.Dim{Count: c(10), Stride: 12}), at(0, c(4), c(4), ir.Dim{Count: c(10), Stride: 16}), false},
		{"empty", at(0, c(0), c(0)), at(0, c(0), c(64)), true},
		{"constraint keeps them apart", at(0, c(96), c(8)), at(0, pos.Add(n).Scale(16).AddConst(-16), c(16)), true},
	}
	for _, k := range cases {
		require.Equal(t, k.want, bytestate.Disjoint(g, k.a, k.b), k.name)
		require.Equal(t, k.want, !smallgraph.Meet(g, k.a, k.b), "the oracle disagrees: %s", k.name)
	}
}

// Covers is sound: if it says that a region contains another, it does so byte by byte,
// for every value of the params. Facts answer the same for numbered regions.
func TestCoversIsSound(t *testing.T) {
	g := smallgraph.Graph()
	rapid.Check(t, func(t *rapid.T) {
		a, b := smallgraph.Region(t), smallgraph.Region(t)
		if rapid.Bool().Draw(t, "alike") {
			b.Mem, b.Off = a.Mem, a.Off
		}
		f := bytestate.NewFacts(g)
		x, ok1 := f.Place(&a)
		y, ok2 := f.Place(&b)
		within := ok1 && ok2 && f.Within(&x, &y)
		if !bytestate.Covers(g, a, b) && !within {
			return
		}
		smallgraph.Values(g, func(v []uint32) {
			has := smallgraph.Touched(g, a, v)
			for k := range smallgraph.Touched(g, b, v) {
				if !has[k] {
					t.Fatalf("%s lacks byte %d of %s", g.FormatRegion(a), k[1], g.FormatRegion(b))
				}
			}
		})
	})
}

// Once writes have been entered one after the other, the state knows the last writer of
// every byte, whatever the params are: Seen lists that writer, and Hole reports a byte
// that has none.
func TestSeenIsComplete(t *testing.T) {
	g := smallgraph.Graph()
	rapid.Check(t, func(t *rapid.T) {
		f := bytestate.NewFacts(g)
		s := bytestate.NewState(t.Context(), f, -1)
		var writes []ir.Region
		for range rapid.IntRange(0, 8).Draw(t, "writes") {
			w := smallgraph.Region(t)
			if a, ok := f.Resolve(&w); ok {
				s.Begin()
				s.AddWrite(0, &a, int32(len(writes)))
			}
			writes = append(writes, w)
		}
		r := smallgraph.Region(t)
		a, ok := f.Resolve(&r)
		seen := map[int]bool{}
		hole := ok && s.Hole(&a)
		if ok {
			s.Begin()
			for _, h := range s.Seen(&a, s.Look(&a)) {
				seen[int(s.Cell(h).W)] = true
			}
		}
		smallgraph.Values(g, func(v []uint32) {
			last := map[[2]int64]int{}
			for i, w := range writes {
				for k := range smallgraph.Touched(g, w, v) {
					last[k] = i
				}
			}
			for k := range smallgraph.Touched(g, r, v) {
				if i, ok := last[k]; ok && !seen[i] {
					t.Fatalf("%s sees write %d, %s, of byte %d with %v", g.FormatRegion(r), i, g.FormatRegion(writes[i]), k[1], v)
				} else if !ok && !hole {
					t.Fatalf("nothing wrote byte %d of %s with %v", k[1], g.FormatRegion(r), v)
				}
			}
		})
	})
}
