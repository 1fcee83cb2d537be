package ir_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

// What Check says about a command does not depend on what it accepted before. The test checks a
// command followed by a variant of it, which usually is wrong, and then the variant alone.
func TestCheckForgetsNothingWrong(t *testing.T) {
	wrong, right := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := irtest.Module(t).Graphs[0]
		var ds []*ir.Dispatch
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok {
				ds = append(ds, d)
			}
		}
		if len(ds) == 0 {
			return
		}
		d := rapid.SampledFrom(ds).Draw(t, "dispatch")
		v := ir.CloneNode(d).(*ir.Dispatch)
		v.ID = 1 << 20
		delta := rapid.SampledFrom([]int64{-1 << 40, -64, -1, 1, 64, 1 << 40}).Draw(t, "delta")
		change := func(a *ir.Affine) {
			if len(g.Params) > 0 && rapid.Bool().Draw(t, "by a param") {
				*a = a.Add(ir.Linear(0, ir.Term{Param: ir.ParamID(rapid.IntRange(0, len(g.Params)).Draw(t, "param")), Coeff: delta}))
				return
			}
			*a = a.AddConst(delta)
		}
		for i := range v.Bindings {
			if rapid.IntRange(0, 3).Draw(t, "binding") == 0 {
				b := &v.Bindings[i]
				change(rapid.SampledFrom([]*ir.Affine{&b.View.Off, &b.View.Len, &b.Expr}).Draw(t, "of"))
			}
		}
		if i := rapid.IntRange(0, 9).Draw(t, "grid"); i < 3 {
			change(&v.Grid[i].Num)
		}
		if v.Effects != nil {
			for i := range v.Effects.Reads {
				change(rapid.SampledFrom([]*ir.Affine{&v.Effects.Reads[i].Off, &v.Effects.Reads[i].Run}).Draw(t, "of"))
			}
		}
		about := func(nodes ...ir.Node) (out []string) {
			x := *g
			x.Nodes, x.Edges, x.Source = nodes, nil, nil
			if err := x.Check(); err != nil {
				for _, line := range strings.Split(err.Error(), "\n") {
					if strings.Contains(line, v.ID.String()) {
						out = append(out, line)
					}
				}
			}
			return out
		}
		alone := about(v)
		require.Equal(t, alone, about(d, v))
		if len(alone) > 0 {
			wrong++
			// A wrong command before a right one must not make the right one wrong.
			x := *g
			x.Nodes, x.Edges, x.Source = []ir.Node{v, d}, nil, nil
			require.NotContains(t, strings.ReplaceAll(x.Check().Error(), v.ID.String(), ""), ": "+d.ID.String()+" ", "bindings have numbers too")
		} else {
			right++
		}
	})
	require.Positive(t, wrong)
	require.Positive(t, right)
}

// Ids are unique whether they are dense or not.
func TestCheckFindsRepeatedIDs(t *testing.T) {
	for _, id := range []ir.ID{0, 5, 1<<32 - 1} {
		b := ir.NewBuilder("g")
		m := b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 8})
		b.Fill(ir.ViewOf(m, 0, 8), 0, "").ID = id
		b.Fill(ir.ViewOf(m, 0, 8), 0, "").ID = id ^ 1
		b.Fill(ir.ViewOf(m, 0, 8), 0, "").ID = id
		_, err := b.Graph()
		require.ErrorContains(t, err, "graph g: "+id.String()+" fill: another command has this id")
		require.Len(t, strings.Split(err.Error(), "\n"), 1)
	}
}

// If only effects changed in a graph that passed Check, Recheck of effects says the same as Check.
func TestRecheckEffects(t *testing.T) {
	wrong, right := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := irtest.Module(t).Graphs[0]
		require.NoError(t, g.Check())
		for _, n := range g.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok || d.Effects == nil || rapid.IntRange(0, 2).Draw(t, "leave") > 0 {
				continue
			}
			change := func(r *ir.Region) {
				delta := rapid.SampledFrom([]int64{-1 << 40, -64, -1, 1, 64, 1 << 40}).Draw(t, "delta")
				switch rapid.IntRange(0, 3).Draw(t, "of") {
				case 0:
					r.Off = r.Off.AddConst(delta)
				case 1:
					r.Run = r.Run.AddConst(delta)
				case 2:
					r.Mem = ir.MemID(rapid.IntRange(-1, len(g.Memories)).Draw(t, "memory"))
				case 3:
					r.Dims = append(r.Dims[:len(r.Dims):len(r.Dims)], ir.Dim{Count: ir.Const(delta), Stride: 64})
				}
			}
			for i := range d.Effects.Reads {
				change(&d.Effects.Reads[i])
			}
			for i := range d.Effects.Writes {
				change(&d.Effects.Writes[i].Region)
			}
		}
		want := g.Check()
		require.Equal(t, want, g.Recheck(context.Background(), ir.EffectsChange))
		if want == nil {
			right++
		} else {
			wrong++
		}
	})
	require.Positive(t, wrong)
	require.Positive(t, right)
}

// If commands were moved or dropped in a graph that passed Check, Recheck of the list says the same
// as Check.
func TestRecheckList(t *testing.T) {
	wrong, right := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := irtest.Module(t).Graphs[0]
		require.NoError(t, g.Check())
		for range rapid.IntRange(0, 3).Draw(t, "moves") {
			if len(g.Nodes) == 0 {
				break
			}
			i, j := rapid.IntRange(0, len(g.Nodes)-1).Draw(t, "from"), rapid.IntRange(0, len(g.Nodes)-1).Draw(t, "to")
			n := g.Nodes[i]
			g.Nodes = slices.Delete(g.Nodes, i, i+1)
			if rapid.IntRange(0, 3).Draw(t, "drop") > 0 {
				g.Nodes = slices.Insert(g.Nodes, min(j, len(g.Nodes)), n)
			}
		}
		want := g.Check()
		require.Equal(t, want, g.Recheck(context.Background(), ir.ListChange))
		if want == nil {
			right++
		} else {
			wrong++
		}
	})
	require.Positive(t, wrong)
	require.Positive(t, right)
}
