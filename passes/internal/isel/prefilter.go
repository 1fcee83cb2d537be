package isel

import (
	"slices"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Prefilter is the result of the prefilter of a group. The prefilter compares only the operators of the group's terms
// with those of library kernels, not sizes or views. A group that fails it need not be unified with any kernel.
type Prefilter struct {
	// Match: some kernel has the operator trees of the group's results, possibly with spare results in addition.
	Match bool
	// Last: some kernel has the operator trees of the results of the last member alone.
	Last bool
	// Grow: if loads of the last member are replaced by terms of more producers, the group may become one that
	// a kernel computes.
	Grow bool
}

// Prefilter returns the prefilter result of a group. It depends only on the members' declarations, on which of their
// arguments are all-ones weights, and on Source, Results and Spare.
func (m *Matcher) Prefilter(gr *Group) (out Prefilter) {
	last := len(gr.Members) - 1
	ones, narrow := multipliesOnes(gr), narrowed(gr)
	for way := range 4 {
		drop, unrounded := way&1 != 0, way&2 != 0
		if drop && !ones || unrounded && !narrow {
			continue
		}
		w := newGroupTrees(gr, m.opTreeTable(), drop, unrounded)
		treesOf := func(os []Operand) (trees []*opTree) {
			for _, o := range os {
				trees = append(trees, w.result(o))
			}
			return trees
		}
		results := treesOf(gr.Results)
		known := func(trees []*opTree) bool { return m.lib.with(trees) != nil }
		out.Match = out.Match || known(results)
		for _, o := range gr.Spare {
			out.Match = out.Match || known(append(slices.Clone(results), w.result(o)))
		}
		var own []Operand
		for _, r := range gr.Members[last].Decl.Results {
			own = append(own, Operand{last, r.Arg})
		}
		lasts := treesOf(own)
		out.Last = out.Last || known(lasts)
		for _, s := range lasts {
			out.Grow = out.Grow || m.grow(s)
		}
	}
	return out
}

// grow reports whether a term of operator tree s may be the upper part of some kernel's term.
func (m *Matcher) grow(s *opTree) bool {
	ok, known := m.grows[s]
	if !invariants.Caches || !known {
		b := beginning{}
		ok = slices.ContainsFunc(m.lib.trees, func(k *opTree) bool { return b.begins(s, k) })
		m.grows[s] = ok
	}
	return ok
}

// groupTrees computes the operator trees of a group's results from the members' declarations.
type groupTrees struct {
	gr        *Group
	drop      bool // leave out factors that are elements of all-ones weights
	unrounded bool // leave out the rounding of values that another member reads
	members   []opTreeBuilder
}

func newGroupTrees(gr *Group, table *opTreeTable, drop, unrounded bool) *groupTrees {
	w := &groupTrees{gr: gr, drop: drop, unrounded: unrounded, members: make([]opTreeBuilder, len(gr.Members))}
	for i, in := range gr.Members {
		w.members[i] = opTreeBuilder{d: in.Decl, table: table, members: w, at: i}
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

// result returns the operator tree of what a member writes to an argument.
func (w *groupTrees) result(o Operand) *opTree {
	k := &w.members[o.Member]
	for i := range k.d.Results {
		if k.d.Results[i].Arg == o.Arg {
			return k.result(i)
		}
	}
	return leafNone
}

// load returns the operator tree of an element that member i reads: a leaf, or its producer's term.
func (w *groupTrees) load(i, arg int) *opTree {
	s, ok := w.gr.Source[Operand{i, arg}]
	if !ok {
		return leafElement
	}
	tree := w.result(s)
	if t := w.gr.Members[s.Member].Decl.Args[s.Arg].Elem; w.unrounded && tree.isRounding(t) {
		return tree.kids[0]
	}
	return tree
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
	case ir.BF16:
		return m.Init.Pattern == [4]byte{0x80, 0x3f, 0x80, 0x3f}
	}
	return false
}
