package prove

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/smallgraph"
	"github.com/mlxc/mlxc/ir"
)

// Where many commands read what many wrote, the lists of writes grow in proportion to
// the commands, and the proof stays exact.
func TestChecksManyReaders(t *testing.T) {
	work := func(n int) (listed, looked float64) {
		h := trace(recordedModel(context.Background(), benchgraphs.Pieces(n), nil)).h
		return float64(len(h.list)) / float64(n), float64(h.looked) / float64(n)
	}
	l1, w1 := work(4_000)
	l2, w2 := work(16_000)
	t.Logf("a command: %.2f and %.2f listed, %.2f and %.2f looked at", l1, l2, w1, w2)
	require.InDelta(t, l1, l2, 0.2)
	require.InDelta(t, w1, w2, 0.2)

	g := benchgraphs.Pieces(4_000)
	r := Check(context.Background(), g, g.Clone(), Options{})
	require.Equal(t, Proved, r.Verdict, "%s", r)
	// Now one of the writers reads something else.
	other := g.Clone()
	x := other.Nodes[77].(*ir.Copy)
	x.Src = ir.ViewOf(x.Dst.Mem, 0, 4)
	other.Nodes = append(other.Nodes[:1:1], append([]ir.Node{&ir.Barrier{}}, other.Nodes[1:]...)...)
	require.Equal(t, Proved, Check(context.Background(), g, other, Options{}).Verdict, "it copies what a copy of the same bytes wrote")
	x.Src = ir.ViewOf(x.Dst.Mem, 4, 4)
	require.Equal(t, Refused, Check(context.Background(), g, other, Options{}).Verdict)
}

// If reads see too many writes, a part of the memory is not analysed further: a graph that leaves
// the part alone is proved, and one that does not is not proved.
func TestChecksParts(t *testing.T) {
	defer withBounds(100, 1, 4)()
	g := benchgraphs.Pieces(400)
	for k, n := range g.Nodes { // no two read the same
		if d, ok := n.(*ir.Dispatch); ok {
			d.Bindings[0].View.Off = ir.Const(4 * int64(k%100))
			d.Bindings[0].View.Len = ir.Const(400)
			d.Effects.Reads[0] = d.Bindings[0].View.Contiguous()
		}
	}
	// Only the last command reads what the last copy wrote, so those bytes are in no part.
	last := g.Nodes[len(g.Nodes)-2].(*ir.Dispatch)
	last.Bindings[0].View.Off, last.Bindings[0].View.Len = ir.Const(796), ir.Const(4)
	last.Effects.Reads[0] = last.Bindings[0].View.Contiguous()
	require.NoError(t, g.Check())
	parts := trace(recordedModel(context.Background(), g, nil)).h.parts
	require.Len(t, parts, 1)
	require.Equal(t, int64(796), parts[0].end)
	require.Equal(t, Proved, Check(context.Background(), g, g.Clone(), Options{}).Verdict)
	first := slices.IndexFunc(g.Nodes, func(n ir.Node) bool { _, ok := n.(*ir.Copy); return ok })
	without := func(k int) *ir.Graph {
		g := g.Clone()
		g.Nodes = slices.Delete(g.Nodes, k, k+1)
		return g
	}
	require.Equal(t, CannotTell, Check(context.Background(), g, without(first), Options{}).Verdict, "a write to the part left out")
	require.Equal(t, Refused, Check(context.Background(), g, without(first+199), Options{}).Verdict, "a write beside the part left out")
	other := g.Clone()
	other.Nodes[first], other.Nodes[first+1] = other.Nodes[first+1], other.Nodes[first]
	require.Equal(t, CannotTell, Check(context.Background(), g, other, Options{}).Verdict)
	lookFree = 1 << 18
	require.Equal(t, Proved, Check(context.Background(), g, other, Options{}).Verdict)
}

// WithBounds is withBounds for tests outside of this package.
var WithBounds = withBounds

// withBounds sets the bounds on how often writes are looked at, and returns a function that
// restores them.
func withBounds(free, perAccess, crowd int) (restore func()) {
	a, b, c := lookFree, lookPerAccess, maxCrowd
	lookFree, lookPerAccess, maxCrowd = free, perAccess, crowd
	return func() { lookFree, lookPerAccess, maxCrowd = a, b, c }
}

// united is sound: if it says that writes together contain a region, they contain every byte of it,
// for all values of the params.
func TestUnitedIsSound(t *testing.T) {
	g := smallgraph.Graph()
	g.Name = "g"
	found := 0
	united := func(t *rapid.T) {
		m := newModel(context.Background(), g, nil)
		like := smallgraph.Region(t)
		h, list := newHistory(m, nil), []int32(nil)
		var writes []ir.Region
		for range rapid.IntRange(2, 4).Draw(t, "writes") {
			r := smallgraph.Region(t)
			if rapid.IntRange(0, 3).Draw(t, "alike") > 0 {
				r.Mem, r.Dims = like.Mem, like.Dims
			}
			if n := len(writes); n > 0 && rapid.IntRange(0, 2).Draw(t, "next") > 0 {
				r.Off = writes[n-1].Off.Add(writes[n-1].Run)
				if rapid.Bool().Draw(t, "row") && len(like.Dims) > 0 {
					r.Off = writes[n-1].Off.Add(like.Dims[0].Count.Scale(like.Dims[0].Stride))
				}
			}
			list = append(list, int32(len(m.writes)))
			m.writes = append(m.writes, write{access: m.rooted(&r), must: true})
			writes = append(writes, r)
		}
		r := like
		if rapid.Bool().Draw(t, "of the first") {
			r.Off = writes[0].Off
		}
		a := m.rooted(&r)
		if !h.united(list, &a) {
			return
		}
		found++
		smallgraph.Values(g, func(v []uint32) {
			has := map[[2]int64]bool{}
			for _, w := range writes {
				maps.Copy(has, smallgraph.Touched(g, w, v))
			}
			for k := range smallgraph.Touched(g, r, v) {
				if !has[k] {
					t.Fatalf("nothing wrote byte %d of %s", k[1], g.FormatRegion(r))
				}
			}
		})
	}
	for round := 0; round < 20 && found == 0; round++ { // a short run may draw no union
		rapid.Check(t, united)
	}
	require.Positive(t, found)
}

// united finds that writes without a gap between them contain the whole region.
func TestUnited(t *testing.T) {
	g := smallgraph.Graph()
	n, p := ir.Linear(0, ir.Term{Param: 1, Coeff: 1}), ir.Linear(0, ir.Term{Param: 0, Coeff: 1})
	k := ir.Const
	at := func(off, run ir.Affine, dims ...ir.Dim) ir.Region {
		return ir.Region{Mem: 0, Off: off, Run: run, Dims: dims}
	}
	rows := ir.Dim{Count: n, Stride: 64}
	for _, c := range []struct {
		name   string
		want   bool
		read   ir.Region
		writes []ir.Region
	}{
		{"the halves of each row", true, at(k(0), n.Scale(64)), []ir.Region{at(k(0), k(32), rows), at(k(32), k(32), rows)}},
		{"in the other order", true, at(k(0), n.Scale(64)), []ir.Region{at(k(32), k(32), rows), at(k(0), k(32), rows)}},
		{"thirds that overlap", true, at(k(0), n.Scale(64)), []ir.Region{at(k(40), k(24), rows), at(k(0), k(16), rows), at(k(8), k(36), rows)}},
		{"a gap", false, at(k(0), n.Scale(64)), []ir.Region{at(k(0), k(31), rows), at(k(32), k(32), rows)}},
		{"a row too few", false, at(k(0), n.Scale(64).AddConst(1)), []ir.Region{at(k(0), k(32), rows), at(k(32), k(32), rows)}},
		{"a cache and the row at a position", true, at(k(0), p.Scale(64).AddConst(64)), []ir.Region{at(k(0), p.Scale(64)), at(p.Scale(64), k(64))}},
		{"of each head", true, at(k(0), p.Scale(64).AddConst(64), ir.Dim{Count: k(2), Stride: 1024}),
			[]ir.Region{at(k(0), k(64), ir.Dim{Count: k(2), Stride: 1024}, ir.Dim{Count: p, Stride: 64}), at(p.Scale(64), k(64), ir.Dim{Count: k(2), Stride: 1024})}},
	} {
		m := newModel(context.Background(), g, nil)
		var list []int32
		for i := range c.writes {
			list = append(list, int32(i))
			m.writes = append(m.writes, write{access: m.rooted(&c.writes[i]), must: true})
		}
		a := m.rooted(&c.read)
		require.Equal(t, c.want, newHistory(m, nil).united(list, &a), c.name)
	}
}
