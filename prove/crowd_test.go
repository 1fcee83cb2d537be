package prove

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testkit/benchgraphs"
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

// Beyond its bound a read that may see too many writes ends the proof.
func TestChecksCrowds(t *testing.T) {
	defer func(a, b, c int) { lookFree, lookPerAccess, maxCrowd = a, b, c }(lookFree, lookPerAccess, maxCrowd)
	lookFree, lookPerAccess, maxCrowd = 100, 1, 4
	g := benchgraphs.Pieces(400)
	for k, n := range g.Nodes { // no two read the same
		if d, ok := n.(*ir.Dispatch); ok {
			d.Bindings[0].View.Off = ir.Const(4 * int64(k%100))
			d.Bindings[0].View.Len = ir.Const(400)
			d.Effects.Reads[0] = d.Bindings[0].View.Contiguous()
		}
	}
	require.NoError(t, g.Check())
	r := Check(context.Background(), g, g.Clone(), Options{})
	require.Equal(t, CannotTell, r.Verdict, "%s", r)
	require.Contains(t, r.String(), "too many writes may hold or overwrite bytes of %s[")
	lookFree = 1 << 18
	require.Equal(t, Proved, Check(context.Background(), g, g.Clone(), Options{}).Verdict)
}
