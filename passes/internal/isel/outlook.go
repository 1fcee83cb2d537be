package isel

import (
	"slices"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Outlook is the result of a prefilter, which compares only the operators of a group's terms with those of library
// kernels, not sizes or views. A group that fails it need not be unified with any kernel.
type Outlook struct {
	// Match: some kernel has the skeletons of the group's results, possibly with spare results in addition.
	Match bool
	// Last: some kernel has the skeletons of the results of the last member alone.
	Last bool
	// Grow: if loads of the last member are replaced by terms of more producers, the group may become one that
	// a kernel computes.
	Grow bool
}

// Outlook returns the prefilter result of a group. It depends only on the members' declarations, on which of their
// arguments are all-ones weights, and on Source, Results and Spare.
func (m *Matcher) Outlook(gr *Group) (out Outlook) {
	last := len(gr.Members) - 1
	ones, narrow := multipliesOnes(gr), narrowed(gr)
	for way := range 4 {
		drop, unrounded := way&1 != 0, way&2 != 0
		if drop && !ones || unrounded && !narrow {
			continue
		}
		w := newOutline(gr, m.skeletonTable(), drop, unrounded)
		skelsOf := func(os []Operand) (skels []*skel) {
			for _, o := range os {
				skels = append(skels, w.result(o))
			}
			return skels
		}
		results := skelsOf(gr.Results)
		known := func(skels []*skel) bool { return m.lib.with(skels) != nil }
		out.Match = out.Match || known(results)
		for _, o := range gr.Spare {
			out.Match = out.Match || known(append(slices.Clone(results), w.result(o)))
		}
		var own []Operand
		for _, r := range gr.Members[last].Decl.Results {
			own = append(own, Operand{last, r.Arg})
		}
		lasts := skelsOf(own)
		out.Last = out.Last || known(lasts)
		for _, s := range lasts {
			out.Grow = out.Grow || m.grow(s)
		}
	}
	return out
}

// grow reports whether a term of skeleton s may be the upper part of some kernel's term.
func (m *Matcher) grow(s *skel) bool {
	ok, known := m.grows[s]
	if !invariants.Caches || !known {
		b := beginning{}
		ok = slices.ContainsFunc(m.lib.trees, func(k *skel) bool { return b.begins(s, k) })
		m.grows[s] = ok
	}
	return ok
}

// outline computes the skeletons of a group's results from the members' declarations.
type outline struct {
	gr        *Group
	drop      bool // leave out factors that are elements of all-ones weights
	unrounded bool // leave out the rounding of values that another member reads
	members   []skeletons
}

func newOutline(gr *Group, table *skeletonTable, drop, unrounded bool) *outline {
	w := &outline{gr: gr, drop: drop, unrounded: unrounded, members: make([]skeletons, len(gr.Members))}
	for i, in := range gr.Members {
		w.members[i] = skeletons{d: in.Decl, table: table, members: w, at: i}
	}
	return w
}

// multipliesOnes reports whether an argument of a member is an all-ones weight, so that products with it
// may be left out.
func multipliesOnes(gr *Group) bool {
	for _, in := range gr.Members {
		for j := range in.Decl.Args {
			if Ones(in, j) {
				return true
			}
		}
	}
	return false
}

// result returns the skeleton of what a member writes to an argument.
func (w *outline) result(o Operand) *skel {
	k := &w.members[o.Member]
	for i := range k.d.Results {
		if k.d.Results[i].Arg == o.Arg {
			return k.result(i)
		}
	}
	return leafNone
}

// load returns the skeleton of an element that member i reads: a leaf, or its producer's term.
func (w *outline) load(i, arg int) *skel {
	s, ok := w.gr.Source[Operand{i, arg}]
	if !ok {
		return leafElement
	}
	skel := w.result(s)
	if t := w.gr.Members[s.Member].Decl.Args[s.Arg].Elem; w.unrounded && skel.isRounding(t) {
		return skel.kids[0]
	}
	return skel
}

// narrowed reports whether a member reads what another rounded to f16 or bf16.
func narrowed(gr *Group) bool {
	for _, s := range gr.Source {
		if t := gr.Members[s.Member].Decl.Args[s.Arg].Elem; t == ir.F16 || t == ir.BF16 {
			return true
		}
	}
	return false
}

// Ones reports whether argument j of an instance is a weight all of whose
// elements are 1.
func Ones(in *decl.Instance, j int) bool {
	if in.Decl.Args[j].Kind != ir.DeviceArg || in.Views[j].Mem == ir.NoMem {
		return false
	}
	root, _ := in.Graph.Root(in.Views[j].Mem)
	return OnesOf(&in.Graph.Memories[root], in.Decl.Args[j].Elem)
}

// OnesOf reports whether m is a weight whose elements of type t are all 1.
func OnesOf(m *ir.Memory, t ir.DType) bool {
	if m.Kind != ir.Weight || m.Init.Kind != ir.InitFill {
		return false
	}
	switch t {
	case ir.F32:
		return m.Init.Pattern == [4]byte{0, 0, 0x80, 0x3f}
	case ir.F16:
		return m.Init.Pattern == [4]byte{0, 0x3c, 0, 0x3c}
	}
	return false
}
