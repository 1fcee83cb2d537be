package isel

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// opTree is an operator tree: the operators of a term without the details of its leaves. A leaf is an element, a
// number (constant or symbol), a converted integer, or an integer. Operands of commutative operations are sorted.
// Equal terms have equal operator trees, so candidate kernels for a group are looked up by those of its results.
//
// Operator trees are interned in a table, so that equal ones are the same pointer, and shared subterms are stored and
// processed once.
type opTree struct {
	id    int // unique in its table and the table's base
	op    term.Op
	class string // of a reduction: its class; of a rounding: its type
	kids  []*opTree
}

// The leaves, in every table.
var (
	leafElement   = &opTree{id: 0}
	leafNumber    = &opTree{id: 1}
	leafConverted = &opTree{id: 2}
	leafInteger   = &opTree{id: 3}
	leafNone      = &opTree{id: 4} // no term
)

const leaves = 5

// opTreeTable interns operator trees. If it has a base, it includes those of the base, which must not change
// any more.
type opTreeTable struct {
	base  *opTreeTable
	nodes map[string]*opTree
	next  int
}

func newOpTreeTable(base *opTreeTable) *opTreeTable {
	t := &opTreeTable{base: base, nodes: map[string]*opTree{}, next: leaves}
	if base != nil {
		t.next = base.next
	}
	return t
}

// find returns the operator tree of an operation, nil if the table does not have it. It sorts the operands of
// commutative operations.
func (t *opTreeTable) find(op term.Op, class string, kids []*opTree) *opTree {
	if slices.Contains(kids, nil) {
		return nil
	}
	s, _ := t.look(nil, op, class, kids)
	return s
}

// intern is find, but adds an operator tree that is missing.
func (t *opTreeTable) intern(op term.Op, class string, kids []*opTree) *opTree {
	var room [64]byte
	s, key := t.look(room[:0], op, class, kids)
	if s == nil {
		s = &opTree{t.next, op, class, slices.Clone(kids)}
		t.next++
		t.nodes[string(key)] = s
	}
	return s
}

func (t *opTreeTable) look(key []byte, op term.Op, class string, kids []*opTree) (*opTree, []byte) {
	if commutes(op) {
		slices.SortFunc(kids, func(a, b *opTree) int { return cmp.Compare(a.id, b.id) })
	}
	if key == nil {
		var room [64]byte
		key = room[:0]
	}
	key = append(append(append(key, byte(op), byte(len(class))), class...), 0)
	for _, k := range kids {
		key = binary.AppendUvarint(key, uint64(k.id))
	}
	for b := t; b != nil; b = b.base {
		if s := b.nodes[string(key)]; s != nil {
			return s, key
		}
	}
	return nil, key
}

// commutes reports whether an operation on floats yields a float whose bits do not depend on their order.
func commutes(op term.Op) bool { return op.Commutes() && !op.Condition() }

// isRounding reports whether s is a rounding to t.
func (s *opTree) isRounding(t ir.DType) bool { return s.op == term.Round && s.class == t.String() }

// opTree returns the operator tree of a value and caches it in the value; nil if no library kernel has it.
func (l *Library) opTree(v *value) *opTree {
	if v.known {
		return v.tree
	}
	v.known = true
	switch v.op {
	case term.Load:
		v.tree = leafElement
	case term.Real, term.Symbol:
		v.tree = leafNumber
	case term.ToF32:
		v.tree = leafConverted
	default:
		if v.isStored() {
			v.tree = leafElement
			break
		}
		kids := make([]*opTree, 0, 3)
		for range v.ints {
			if v.op != term.Sum && v.op != term.MaxOver && v.op != term.ArgMax {
				kids = append(kids, leafInteger)
			}
		}
		for _, a := range v.args {
			kids = append(kids, l.opTree(a))
		}
		class := v.class
		if v.op == term.Round {
			class = v.typ.String()
		}
		v.tree = l.opTrees.find(v.op, class, kids)
	}
	return v.tree
}

// opTreeOf is opTree for a result, which may be an integer.
func (l *Library) opTreeOf(x scalar) *opTree {
	if !x.isInt {
		return l.opTree(x.v)
	}
	if f := x.f; f.c == 0 && len(f.t) == 1 && f.t[0].k == 1 && f.t[0].a.kind == opAtom {
		switch a := f.t[0].a; a.op {
		case term.ArgMax:
			return l.opTree(a.value)
		case term.ToInt:
			return l.opTreeOf(scalar{isInt: true, f: a.args[0]})
		}
	}
	return leafInteger
}

// opTreeBuilder computes the operator trees of the terms of one declaration.
type opTreeBuilder struct {
	d     *decl.Decl
	table *opTreeTable
	fixed bool // the table must not grow; an operator tree that it does not have is nil
	// memo, if not nil, receives the operator tree of each expression. Without it, only shared expressions are cached:
	// abbreviations (@where), followed by results.
	memo   map[*term.Expr]*opTree
	shared []*opTree
	// members, if not nil, is the group that the declaration is a member of: loads may be other members' terms.
	members *groupTrees
	at      int
}

func (k *opTreeBuilder) operation(op term.Op, class string, kids ...*opTree) *opTree {
	if k.fixed {
		return k.table.find(op, class, kids)
	}
	return k.table.intern(op, class, kids)
}

// where returns the operator tree of abbreviation i.
func (k *opTreeBuilder) where(i int) *opTree { return k.once(i, k.d.Wheres[i].Body) }

// result returns the operator tree of result i.
func (k *opTreeBuilder) result(i int) *opTree { return k.once(len(k.d.Wheres)+i, k.d.Results[i].Body) }

func (k *opTreeBuilder) once(i int, e *term.Expr) *opTree {
	if k.shared == nil {
		k.shared = make([]*opTree, len(k.d.Wheres)+len(k.d.Results))
	}
	if k.shared[i] == nil {
		k.shared[i] = k.of(e)
	}
	return k.shared[i]
}

// of returns the operator tree of e in a context that needs a float or a condition.
func (k *opTreeBuilder) of(e *term.Expr) *opTree {
	if s, ok := k.memo[e]; ok {
		return s
	}
	s := k.compute(e)
	if k.memo != nil {
		k.memo[e] = s
	}
	return s
}

func (k *opTreeBuilder) compute(e *term.Expr) *opTree {
	switch {
	case e.Op == term.ToInt:
		return k.of(e.Args[0])
	case e.Op == term.ArgMax:
		return k.operation(e.Op, "", k.of(e.Args[1]))
	case e.Op == term.Call:
		return k.where(e.Index)
	case e.Op == term.Load && e.Kind == term.Int && k.members != nil:
		if s := k.members.load(k.at, e.Index); s != leafElement {
			return s
		}
		return leafInteger
	case e.Kind == term.Int:
		return leafInteger
	}
	switch e.Op {
	case term.Load:
		if k.members != nil {
			return k.members.load(k.at, e.Index)
		}
		return leafElement
	case term.Mul:
		if k.members != nil && k.members.drop {
			for i, a := range e.Args {
				if k.one(a) {
					return k.float(e.Args[1-i])
				}
			}
		}
	case term.Real, term.Symbol:
		return leafNumber
	case term.ToF32:
		return k.float(e.Args[0])
	case term.Round:
		inner := k.float(e.Args[0])
		if inner == nil {
			return nil
		}
		if e.Type.Bits() == 32 || inner.isRounding(e.Type) || e.Type == ir.F16 && inner.op == term.AsF16 || e.Args[0].Op == term.Load && inner == leafElement && k.d.Args[e.Args[0].Index].Elem == e.Type {
			return inner // it never changes the value
		}
		return k.operation(term.Round, e.Type.String(), inner)
	case term.Sum, term.MaxOver:
		return k.operation(e.Op, e.Class, k.float(e.Args[1]))
	}
	kids := make([]*opTree, len(e.Args))
	for i, a := range e.Args {
		if integers(e) {
			kids[i] = leafInteger
		} else {
			kids[i] = k.float(a)
		}
	}
	return k.operation(e.Op, "", kids...)
}

// one reports whether e is an element of an all-ones weight.
func (k *opTreeBuilder) one(e *term.Expr) bool {
	switch e.Op {
	case term.Round:
		return k.one(e.Args[0])
	case term.Load:
		return Ones(k.members.gr.Members[k.at], e.Index)
	}
	return false
}

// float returns the operator tree of e, an integer that is converted to a float.
func (k *opTreeBuilder) float(e *term.Expr) *opTree {
	if e.Kind == term.Int {
		return leafConverted
	}
	return k.of(e)
}

// integers reports whether the operands of e are integers: e compares them, or makes a power of two or a float of
// their bits.
func integers(e *term.Expr) bool {
	if e.Op == term.Pow2 || e.Op.FromBits() {
		return true
	}
	return e.Op.Comparison() && e.Args[0].Kind == term.Int && e.Args[1].Kind == term.Int
}

// beginning caches comparisons of operator trees from the root down.
type beginning map[[2]*opTree]bool

// begins reports whether t is the upper part of k: equal to k except where t has leaves. Each pair is compared once.
func (b beginning) begins(t, k *opTree) bool {
	if t == leafElement || t == k {
		return true
	}
	if t.op != k.op || t.class != k.class || len(t.kids) == 0 || len(t.kids) != len(k.kids) {
		return false
	}
	pair := [2]*opTree{t, k}
	if ok, known := b[pair]; known {
		return ok
	}
	all := func(flip bool) bool {
		for i, c := range t.kids {
			j := i
			if flip {
				j = len(t.kids) - 1 - i
			}
			if !b.begins(c, k.kids[j]) {
				return false
			}
		}
		return true
	}
	ok := all(false) || commutes(t.op) && all(true)
	b[pair] = ok
	return ok
}
