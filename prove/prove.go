package prove

import (
	"github.com/mlxc/mlxc/ir"
)

// Options of a proof.
type Options struct {
	// Strict turns a proof that assumes the recording free of races somewhere
	// into "cannot tell".
	Strict bool
}

// Check decides whether after computes what before does. Both graphs must have
// passed [ir.Graph.Check].
func Check(before, after *ir.Graph, o Options) *Result {
	r := &Result{}
	if checkInterface(before, after, r); r.Verdict != Proved {
		return r
	}
	b := build(before, func(d *ir.Dispatch) *ir.Effects { return d.Effects })
	originals := map[ir.ID]*ir.Effects{}
	for i := range b.ops {
		if d, ok := b.ops[i].node.(*ir.Dispatch); ok {
			originals[d.ID] = d.Effects
		}
	}
	sameViews := identicalViews(before, after)
	a := build(after, func(d *ir.Dispatch) *ir.Effects {
		// What a foreign kernel touches is known from the recording alone, and
		// in its terms: it holds after only where its views stayed.
		if !sameViews {
			return nil
		}
		from := provenance(d)
		return originals[from[0]]
	})
	r.Commands = len(a.ops)
	img := image(b, a, r)
	if r.Verdict != Proved {
		return r
	}
	if !pillars(b, a, img, sameViews, r) {
		return r
	}
	r.Assumptions = append(r.Assumptions, "a replay begins after the one before it has ended")
	checkValues(b, a, img, r)
	checkOrder(b, a, img, o.Strict, r)
	checkAliasing(a, r)
	checkClaims(b, a, img, r)
	return r
}

// identicalViews reports whether memories have the same names, sizes and
// aliases in the same order, so that equal views mean equal bytes. Argument memory
// may have been added.
func identicalViews(b, a *ir.Graph) bool {
	if len(b.Memories) > len(a.Memories) {
		return false
	}
	for _, m := range a.Memories[len(b.Memories):] {
		if m.Kind != ir.Argument {
			return false
		}
	}
	for i := range b.Memories {
		m, n := &b.Memories[i], &a.Memories[i]
		if m.Name != n.Name || m.Kind != n.Kind || m.Size != n.Size || m.Alias != n.Alias || m.AliasOff != n.AliasOff || m.Kind == ir.Argument && !m.SameContents(n) {
			return false
		}
	}
	return true
}
