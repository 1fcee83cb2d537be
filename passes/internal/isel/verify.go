package isel

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// verify checks that a proposal, bound to its declaration, writes the same bytes as the group and, for each of them,
// computes the same term over the same leaves. It does not rely on anything that unification found.
func (m *matcher) verify(h *Match) error {
	in := h.Instance
	written := 0
	for i := range in.Decl.Args {
		if in.Decl.Args[i].Mode >= decl.Write {
			written++
		}
	}
	if written != len(h.Results) || len(in.Decl.Results) != written || !Selectable(in.Decl) {
		return fmt.Errorf("%s writes %d results, the group has %d", in.Decl.Name, written, len(h.Results))
	}
	if err := m.sameOrder(in); err != nil {
		return err
	}
	s := newSpace(in.Graph, m.lay.slots, foldAll)
	defer s.release()
	places := make([]place, len(in.Decl.Args))
	for j := range in.Decl.Args {
		a := &in.Decl.Args[j]
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || in.Views[j].Mem == ir.NoMem {
			continue
		}
		var ok bool
		if places[j], ok = m.lay.locate(in.Views[j]); !ok {
			return fmt.Errorf("%s lies where the group has nothing", a.Name)
		}
	}
	kernel := newComposer(s, []*decl.Instance{in}, [][]place{places}, nil)
	group := m.composer(s)
	for j, o := range h.Results {
		arg := in.Decl.Results[j].Arg
		if err := m.sameRegion(in, arg, o); err != nil {
			return err
		}
		a, b := &in.Decl.Args[arg], &m.gr.Members[o.Member].Decl.Args[o.Arg]
		if a.Elem != b.Elem {
			return fmt.Errorf("it writes %s as %s, not as %s", a.Name, a.Elem, b.Elem)
		}
		idx := kernel.own(Operand{0, arg})
		x, err := kernel.result(Operand{0, arg}, idx)
		if err != nil {
			return err
		}
		p, q := places[arg], m.lay.places[o.Member][o.Arg]
		if p.slot != q.slot {
			return fmt.Errorf("%s is not the view of the group's result", a.Name)
		}
		at := s.addScaled(kernel.address(Operand{0, arg}, idx), 8, s.affine(p.off.Sub(q.off)))
		inner, err := group.indices(o, at)
		if err != nil {
			return err
		}
		y, err := group.result(o, inner)
		if err != nil {
			return err
		}
		if s.overflow {
			return fmt.Errorf("its numbers leave 62 bits")
		}
		if x.isInt != y.isInt || x.isInt && !x.f.equal(y.f) || !x.isInt && x.v != y.v {
			return fmt.Errorf("it computes another term")
		}
	}
	h.Unrounded = len(group.dropped)
	return nil
}

// sameOrder checks that reductions add in the order in which the members add. A kernel
// that takes its threadgroup from the dispatch may add in an order that depends on it, so
// reductions of one class are the same bits for equal threadgroups only (docs/terms.md,
// "Reductions").
func (m *matcher) sameOrder(in *decl.Instance) error {
	binds := func(d *decl.Decl) bool {
		for k := range d.Group {
			if d.Group[k].Bind >= 0 {
				return true
			}
		}
		return false
	}
	mine := classes(in.Decl)
	for _, x := range m.gr.Members {
		if !binds(in.Decl) && !binds(x.Decl) {
			continue
		}
		for c := range classes(x.Decl) {
			if mine[c] && x.Dispatch.Threadgroup != in.Dispatch.Threadgroup {
				return fmt.Errorf("sums of class %s in threadgroups of %v are not those in threadgroups of %v", c, in.Dispatch.Threadgroup, x.Dispatch.Threadgroup)
			}
		}
	}
	return nil
}

// sameRegion checks that the kernel writes exactly the bytes of the group's result.
func (m *matcher) sameRegion(in *decl.Instance, arg int, o Operand) error {
	r, err := in.Region(arg)
	if err != nil {
		return err
	}
	w, err := m.gr.Members[o.Member].Region(o.Arg)
	if err != nil {
		return err
	}
	if r, w = bytestate.Rooted(in.Graph, r), bytestate.Rooted(in.Graph, w); !r.Equal(w) {
		return fmt.Errorf("it writes %s, the group %s", in.Graph.FormatRegion(r), in.Graph.FormatRegion(w))
	}
	return nil
}
