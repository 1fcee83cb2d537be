package prove

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
)

// Each decision for a kind of dispatch is the same as for each dispatch of the kind, and the
// instance that they share has the effects of each of them.
func TestChecksKinds(t *testing.T) {
	for _, g := range recorded.Graphs(t) {
		b := recordedModel(context.Background(), g, nil)
		p := newProof(context.Background(), b, trace(b), byProvenance(b, g), Options{})
		p.build(g.Clone())
		for i := range p.a.ops {
			for j := range p.b.ops {
				o, was := &p.a.ops[i], &p.b.ops[j]
				require.Equal(t, p.twins.sameCommand(was.node, o.node).none(), p.sameAs(o, was), "%s: %s and %s", g.Name, was.id, o.id)
			}
		}
	}
}

// For a dispatch that binds the same bytes as its image, the quick way finds the same
// effects as the general way, view by view.
func TestChecksStays(t *testing.T) {
	for _, g := range recorded.Graphs(t) {
		b := recordedModel(context.Background(), g, nil)
		a := recordedModel(context.Background(), g.Clone(), b)
		x := newTranslation(b, a)
		for i := range b.ops {
			d, ok := b.ops[i].node.(*ir.Dispatch)
			if !ok || d.Effects == nil {
				continue
			}
			e := a.ops[i].node.(*ir.Dispatch)
			require.True(t, x.stays(d, e))
			for _, r := range d.Effects.Reads {
				stayed, moved := r, r
				require.True(t, x.move(&stayed, d, e, true))
				require.True(t, x.move(&moved, d, e, false))
				require.Equal(t, moved, stayed, "%s: %s", g.Name, d.ID)
			}
		}
	}
}

// A remembered answer about two regions is the answer that was given, whatever was
// asked in between; and equal regions share one shape.
func TestChecksShapes(t *testing.T) {
	g := &ir.Graph{
		Params:      []ir.Param{{Name: "n", Type: ir.U32, Min: 1, Max: 8}, {Name: "m", Type: ir.U32, Max: 4}},
		Constraints: []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Param: 0, Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 8}},
		Memories:    []ir.Memory{{Name: "x", Size: 1 << 20, Alias: ir.NoMem}},
	}
	affine := rapid.Custom(func(t *rapid.T) ir.Affine {
		return ir.Linear(64*rapid.Int64Range(0, 4).Draw(t, "const"), ir.Term{Param: 0, Coeff: 64 * rapid.Int64Range(0, 1).Draw(t, "n")}, ir.Term{Param: 1, Coeff: 64 * rapid.Int64Range(0, 1).Draw(t, "m")})
	})
	region := rapid.Custom(func(t *rapid.T) ir.Region {
		r := ir.Region{Off: affine.Draw(t, "off"), Run: affine.Draw(t, "run")}
		for range rapid.IntRange(0, 1).Draw(t, "dims") {
			r.Dims = append(r.Dims, ir.Dim{Count: ir.Const(rapid.Int64Range(0, 3).Draw(t, "count")), Stride: 64 * rapid.Int64Range(1, 4).Draw(t, "stride")})
		}
		return r
	})
	m := newModel(context.Background(), g, nil) // one model for all questions, so that its table fills up
	rapid.Check(t, func(t *rapid.T) {
		x, y := region.Draw(t, "x"), region.Draw(t, "y")
		a, b := m.rooted(&x), m.rooted(&y)
		require.Equal(t, x.Equal(y), a == b && sameExtents(&x, &y))
		for range 2 {
			for _, q := range []question{areApart, areApartAlways, areCovered} {
				require.Equal(t, q.answer(ir.NewBounds(g, -1), m.region(&a), m.region(&b)), m.ask(q, &a, &b))
			}
		}
		require.True(t, m.region(&a).Equal(x))
		require.Equal(t, void(&x), m.void(&a))
	})
}
