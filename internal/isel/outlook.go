package isel

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Outlook is what the operators alone say about a group, whatever the sizes and
// views: what does not look like a kernel need not be unified.
type Outlook struct {
	// Match: some kernel has the skeletons of the results, with or without spare
	// ones.
	Match bool
	// Last: some kernel has the skeletons of the results of the last member alone.
	Last bool
	// Grow: with more producers in the place of its leaves, the last member may
	// become what a kernel computes.
	Grow bool
}

// Outlook returns the outlook of a group. It depends on the members'
// declarations, on which of their arguments are weights of ones, on Source, on
// Results and on Spare.
func (m *Matcher) Outlook(gr *Group) (out Outlook) {
	last := len(gr.Members) - 1
	for way := range 4 {
		ones, unrounded := way&1 != 0, way&2 != 0
		if unrounded && !narrowed(gr) {
			break
		}
		w := newOutline(gr, ones)
		w.unrounded = unrounded
		if ones && !w.ones {
			continue
		}
		skel := func(os []Operand) (skels []string) {
			for _, o := range os {
				skels = append(skels, w.result(o))
			}
			return skels
		}
		results := skel(gr.Results)
		known := func(skels []string) bool { return m.lib.byKey[joined(skels)] != nil }
		out.Match = out.Match || known(results)
		for _, o := range gr.Spare {
			out.Match = out.Match || known(append(slices.Clone(results), w.result(o)))
		}
		var own []Operand
		for _, r := range gr.Members[last].Decl.Results {
			own = append(own, Operand{last, r.Arg})
		}
		out.Last = out.Last || known(skel(own))
		for _, s := range skel(own) {
			out.Grow = out.Grow || m.grow(s)
		}
	}
	if m.Generate && !slices.ContainsFunc(gr.Members, func(in *decl.Instance) bool { return !Elementwise(in.Decl) }) {
		out.Match, out.Grow = true, true
	}
	return out
}

// grow reports whether a term of skeleton s may be the top of a kernel's.
func (m *Matcher) grow(s string) bool {
	ok, known := m.grows[s]
	if !known {
		t := parseTree(s)
		ok = slices.ContainsFunc(m.lib.trees, t.begins)
		m.grows[s] = ok
	}
	return ok
}

// outline computes the skeletons of a group's results from the declarations.
type outline struct {
	gr   *Group
	drop bool // factors that are weights of ones
	ones bool // there are any
	// unrounded: the rounding of what another member reads is left out
	unrounded bool
	byArg     map[Operand]string
	ws        []*skeletons
}

func newOutline(gr *Group, drop bool) *outline {
	w := &outline{gr: gr, drop: drop, byArg: map[Operand]string{}}
	for i, in := range gr.Members {
		sk := &skeletons{d: in.Decl, memo: map[*term.Expr]string{}, members: w, at: i}
		w.ws = append(w.ws, sk)
		for j := range in.Decl.Args {
			w.ones = w.ones || Ones(in, j)
		}
	}
	return w
}

func (w *outline) result(o Operand) string {
	if s, ok := w.byArg[o]; ok {
		return s
	}
	s := "?"
	d := w.gr.Members[o.Member].Decl
	for _, r := range d.Results {
		if r.Arg == o.Arg {
			s = w.ws[o.Member].of(r.Body)
		}
	}
	w.byArg[o] = s
	return s
}

// load is the skeleton of an element that member i reads, in the place of "L".
func (w *outline) load(i, arg int) string {
	s, ok := w.gr.Source[Operand{i, arg}]
	if !ok {
		return "L"
	}
	skel := w.result(s)
	if t := w.gr.Members[s.Member].Decl.Args[s.Arg].Elem; w.unrounded && strings.HasPrefix(skel, rounding(t)) {
		return skel[len(rounding(t)) : len(skel)-1]
	}
	return skel
}

// rounding begins the skeleton of a rounding to t.
func rounding(t ir.DType) string {
	return strings.TrimSuffix(operator(term.Round, t.String(), "", nil), ")")
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

// tree is a skeleton taken apart.
type tree struct {
	label    string
	commutes bool
	kids     []*tree
}

func parseTree(s string) *tree {
	t, _ := parseSubtree(s)
	return t
}

func parseSubtree(s string) (*tree, string) {
	end := strings.IndexAny(s, "(),")
	if end < 0 {
		end = len(s)
	}
	t := &tree{label: s[:end]}
	s = s[end:]
	if !strings.HasPrefix(s, "(") {
		return t, s
	}
	for _, op := range []term.Op{term.Add, term.Mul, term.Min, term.Max} {
		t.commutes = t.commutes || t.label == string(key(int(op)))
	}
	for s[0] != ')' {
		var k *tree
		k, s = parseSubtree(s[1:])
		t.kids = append(t.kids, k)
	}
	return t, s[1:]
}

// begins reports whether t is the top of k: equal but for leaves of t.
func (t *tree) begins(k *tree) bool {
	if t.label == "L" && len(t.kids) == 0 {
		return true
	}
	if t.label != k.label || len(t.kids) != len(k.kids) {
		return false
	}
	all := func(flip bool) bool {
		for i, c := range t.kids {
			j := i
			if flip {
				j = len(t.kids) - 1 - i
			}
			if !c.begins(k.kids[j]) {
				return false
			}
		}
		return true
	}
	return all(false) || t.commutes && all(true)
}
