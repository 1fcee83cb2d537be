package prove

import "github.com/mlxc/mlxc/ir"

// checkClaims compares the effects that the graph after stores with what its
// commands touch. The proof does not use them, but whoever reads the graph next
// may: they must not leave out a byte, nor promise a write that may not happen.
// A dispatch of a kernel without declaration has no other truth than the
// recording's.
func checkClaims(b, a *model, img []int, r *Result) {
	for i := range a.ops {
		d, ok := a.ops[i].node.(*ir.Dispatch)
		if !ok {
			continue
		}
		was := b.ops[img[i]].node.(*ir.Dispatch)
		ids := []ir.ID{d.ID}
		if !a.g.Kernels[d.Kernel].Library.Declared() {
			if !d.Effects.Equal(was.Effects) {
				r.add(Refused, Interface, []ir.ID{was.ID}, ids, "%s: nobody but the recording knows its effects, and other ones are stored", a.g.Describe(d))
			}
			continue
		}
		if a.ops[i].inst == nil || !d.Effects.Known() {
			continue
		}
		if !claimsAll(a.g, &a.ops[i], d.Effects) {
			r.add(Refused, Interface, nil, ids, "%s: the stored effects leave out bytes that the kernel touches, or promise writes that it does not", a.g.Describe(d))
		}
	}
}

// claimsAll reports whether e covers everything that o touches and calls no
// write certain that is not.
func claimsAll(g *ir.Graph, o *op, e *ir.Effects) bool {
	reads := make([]ir.Region, len(e.Reads))
	for i, x := range e.Reads {
		reads[i] = rooted(g, x)
	}
	writes := make([]access, len(e.Writes))
	for i, w := range e.Writes {
		writes[i] = access{rooted(g, w.Region), w.Must}
		if !w.Must {
			reads = append(reads, writes[i].region)
		}
	}
	for _, x := range o.reads {
		if !anyCovers(g, reads, x.region) {
			return false
		}
	}
	for _, x := range o.writes {
		found := false
		for _, w := range writes {
			found = found || covers(g, w.region, x.region)
		}
		if !found {
			return false
		}
	}
	for _, w := range writes {
		if !w.must {
			continue
		}
		sure := false
		for _, x := range o.writes {
			sure = sure || x.must && covers(g, x.region, w.region)
		}
		if !sure {
			return false
		}
	}
	return true
}

func anyCovers(g *ir.Graph, list []ir.Region, r ir.Region) bool {
	for _, x := range list {
		if covers(g, x, r) {
			return true
		}
	}
	return void(r)
}
