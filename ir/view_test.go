package ir_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

func drawRegion(t *rapid.T) ir.Region {
	small := rapid.Int64Range(-2, 4)
	expr := func(what string) ir.Affine {
		return ir.Linear(small.Draw(t, what), ir.Term{0, small.Draw(t, what)}, ir.Term{1, small.Draw(t, what)})
	}
	r := ir.Region{Off: expr("offset"), Run: expr("run")}
	for range rapid.IntRange(0, 4).Draw(t, "dims") {
		r.Dims = append(r.Dims, ir.Dim{Count: expr("count"), Stride: rapid.Int64Range(0, 20).Draw(t, "stride")})
	}
	return r
}

// Runs against the definition: one index for each dimension, counted like an
// odometer.
func TestRegionRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRegion(t)
		params := []uint32{rapid.Uint32Range(0, 3).Draw(t, "p"), rapid.Uint32Range(0, 3).Draw(t, "q")}
		var want [][2]int64
		total := int64(1)
		for _, d := range r.Dims {
			total *= max(0, d.Count.Eval(params))
		}
		if n := r.Run.Eval(params); n > 0 {
			for k := range total {
				off := r.Off.Eval(params)
				for i := len(r.Dims) - 1; i >= 0; i-- {
					c := r.Dims[i].Count.Eval(params)
					off += k % c * r.Dims[i].Stride
					k /= c
				}
				want = append(want, [2]int64{off, off + n})
			}
		}
		var got [][2]int64
		r.Runs(params, func(lo, hi int64) bool {
			got = append(got, [2]int64{lo, hi})
			return true
		})
		if !slices.Equal(want, got) {
			t.Fatalf("runs %v, want %v", got, want)
		}
		if len(want) > 0 {
			stop := rapid.IntRange(1, len(want)).Draw(t, "stop after")
			n := 0
			r.Runs(params, func(lo, hi int64) bool { n++; return n < stop })
			if n != stop {
				t.Fatalf("%d runs after yield said stop at %d", n, stop)
			}
			// The hull holds exactly what the runs span.
			lo, end := r.Hull()
			least, most := want[0][0], want[0][1]
			for _, w := range want {
				least, most = min(least, w[0]), max(most, w[1])
			}
			if lo.Eval(params) != least || end.Eval(params) != most {
				t.Fatalf("hull [%d:%d], want [%d:%d]", lo.Eval(params), end.Eval(params), least, most)
			}
		}
	})
}

func TestEqual(t *testing.T) {
	p := ir.Linear(0, ir.Term{0, 1})
	v := ir.View{Mem: 1, Off: p, Len: ir.Const(4)}
	r := ir.Region{Mem: 1, Off: p, Run: ir.Const(4), Dims: []ir.Dim{{p, 8}}}
	require.True(t, v.Equal(ir.View{Mem: 1, Off: ir.Linear(0, ir.Term{0, 1}), Len: ir.Const(4)}))
	for _, o := range []ir.View{{0, p, ir.Const(4)}, {1, ir.Const(0), ir.Const(4)}, {1, p, p}} {
		require.False(t, v.Equal(o))
	}
	require.True(t, r.Equal(ir.Region{Mem: 1, Off: p, Run: ir.Const(4), Dims: []ir.Dim{{ir.Linear(0, ir.Term{0, 1}), 8}}}))
	for _, o := range []ir.Region{
		{0, p, ir.Const(4), r.Dims}, {1, ir.Const(0), ir.Const(4), r.Dims}, {1, p, p, r.Dims}, {1, p, ir.Const(4), nil},
		{1, p, ir.Const(4), []ir.Dim{{p, 9}}}, {1, p, ir.Const(4), []ir.Dim{{ir.Const(1), 8}}},
	} {
		require.False(t, r.Equal(o))
	}
	require.True(t, v.Contiguous().Equal(ir.Region{Mem: 1, Off: p, Run: ir.Const(4)}))
	require.True(t, v.End().Equal(ir.Linear(4, ir.Term{0, 1})))

	require.False(t, r.IsConst())
	require.False(t, v.Contiguous().IsConst())
	require.False(t, ir.Region{Run: p}.IsConst())
	require.False(t, ir.Region{Dims: []ir.Dim{{p, 1}}}.IsConst())
	require.True(t, ir.Region{Dims: []ir.Dim{{ir.Const(3), 1}}}.IsConst())
}

func TestEffectsEqual(t *testing.T) {
	r, s := ir.ViewOf(0, 0, 4).Contiguous(), ir.ViewOf(0, 4, 4).Contiguous()
	base := func() *ir.Effects {
		return &ir.Effects{Complete: true, Reads: []ir.Region{r, s}, Writes: []ir.Write{{Region: r, Must: true}, {Region: s}}}
	}
	require.True(t, base().Equal(base()))
	require.True(t, (*ir.Effects)(nil).Equal(nil))
	require.False(t, base().Equal(nil))
	require.False(t, (*ir.Effects)(nil).Equal(base()))
	for i, change := range []func(e *ir.Effects){
		func(e *ir.Effects) { e.Complete = false },
		func(e *ir.Effects) { e.Reads = e.Reads[:1] },
		func(e *ir.Effects) { e.Reads[0] = s },
		func(e *ir.Effects) { e.Writes = e.Writes[:1] },
		func(e *ir.Effects) { e.Writes[0].Region = s },
		func(e *ir.Effects) { e.Writes[0].Must = false },
		func(e *ir.Effects) { e.Writes[1].Atomic = true },
	} {
		e := base()
		change(e)
		require.False(t, base().Equal(e), i)
	}
	require.True(t, base().Known())
	require.False(t, (&ir.Effects{}).Known())
	require.False(t, (*ir.Effects)(nil).Known())
}

func TestCommand(t *testing.T) {
	a, b := ir.ViewOf(0, 0, 4), ir.ViewOf(1, 8, 4)
	declared := &ir.Effects{Complete: true}
	require.Same(t, declared, (&ir.Dispatch{Effects: declared}).Touches())
	require.Nil(t, (&ir.Dispatch{}).Touches())
	require.True(t, (&ir.Copy{Dst: a, Src: b}).Touches().Equal(&ir.Effects{Complete: true, Reads: []ir.Region{b.Contiguous()}, Writes: []ir.Write{{Region: a.Contiguous(), Must: true}}}))
	require.True(t, (&ir.Fill{Dst: a}).Touches().Equal(&ir.Effects{Complete: true, Writes: []ir.Write{{Region: a.Contiguous(), Must: true}}}))
	for _, n := range []ir.Node{&ir.Barrier{}, &ir.Commit{}, &ir.GroupBegin{}, &ir.GroupEnd{}} {
		_, command := n.(ir.Command)
		require.False(t, command)
	}
	for _, c := range []ir.Command{&ir.Dispatch{ID: 7}, &ir.Copy{ID: 7}, &ir.Fill{ID: 7}} {
		require.Equal(t, ir.ID(7), c.Num())
		require.Nil(t, c.Origin())
		c.Renumber(8, []ir.ID{7})
		require.Equal(t, ir.ID(8), c.Num())
		require.Equal(t, []ir.ID{7}, c.Origin())
	}
	views := func(c ir.Command) (out []ir.View) {
		c.EachView(func(v *ir.View) { out = append(out, *v) })
		return out
	}
	require.Equal(t, []ir.View{a, b}, views(&ir.Copy{Dst: a, Src: b}))
	require.Equal(t, []ir.View{a}, views(&ir.Fill{Dst: a}))
	require.Equal(t, []ir.View{a}, views(&ir.Dispatch{Bindings: []ir.Binding{ir.BytesArg(0, []byte{1}), ir.BufferArg(1, a)}}))
}

func TestFormat(t *testing.T) {
	g := box([2]uint32{0, 4})
	g.Memories = []ir.Memory{{Name: "x"}, {Name: "two words"}}
	p := ir.Linear(0, ir.Term{0, 4})
	require.Equal(t, "%x[4*$a:4*$a + 8]", g.FormatView(ir.View{Mem: 0, Off: p, Len: ir.Const(8)}))
	require.Equal(t, `%"two words"[0:8; 4*$a x 16; 2 x 100]`, g.FormatRegion(ir.Region{Mem: 1, Run: ir.Const(8), Dims: []ir.Dim{{p, 16}, {ir.Const(2), 100}}}))
	require.Equal(t, "%?2[$?1:$?1 + 1]", g.FormatView(ir.View{Mem: 2, Off: ir.Linear(0, ir.Term{1, 1}), Len: ir.Const(1)}))
}
