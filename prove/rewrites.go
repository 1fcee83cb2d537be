package prove

import (
	"slices"

	"github.com/mlxc/mlxc/msl/term"
)

// Used says that a proof needed a rewrite that may change bits. The results of A then
// differ from those of B, within its bound.
type Used struct {
	Name  string `json:"name"`
	Count int    `json:"count"` // uses in all commands of A
	Bound string `json:"bound"`
}

// use adds n uses of a rewrite.
func (r *Result) use(name string, n int) {
	if n == 0 {
		return
	}
	for i := range r.Rewrites {
		if r.Rewrites[i].Name == name {
			r.Rewrites[i].Count += n
			return
		}
	}
	for _, w := range term.Rewrites() {
		if w.Name == name {
			r.Rewrites = append(r.Rewrites, Used{name, n, w.Bound})
		}
	}
}

// unrounding compares a term of B, want, with a term of A, got. got may lack roundings of
// intermediates to f16 and bf16 that want has (the rewrite `round`). It must not have other
// roundings, and nothing else may differ.
type unrounding struct {
	t    *table
	memo map[[2]termID]way
	bare map[termID]termID // results of without
}

// way says how a term of A comes from a term of B.
type way uint8

const (
	open    way = iota
	differs     // it does not come from it
	equal
	unrounded // it comes from the operand of the rounding that is the root of the term of B
	below     // each operand comes from the operand at the same place
	crossed   // each operand comes from the operand at the other place of a commuting operation
)

// unroundings returns how many roundings of want are missing in got. ok is false if the
// two differ in anything else. The rounding of the result itself must stay.
func (t *table) unroundings(want, got termID) (n int, ok bool) {
	u := &unrounding{t, map[[2]termID]way{}, map[termID]termID{}}
	w := u.operands(want, got)
	if w == differs {
		return 0, false
	}
	u.memo[[2]termID{want, got}] = w
	return u.count(want, got, map[termID]bool{}, map[[2]termID]bool{}), true
}

// from returns how got comes from want.
func (u *unrounding) from(want, got termID) way {
	if want == got {
		return equal
	}
	if u.without(want) != u.without(got) {
		return differs
	}
	key := [2]termID{want, got}
	if w := u.memo[key]; w != open {
		return w
	}
	if len(u.memo) >= maxTerms { // a hostile graph may have large terms
		return differs
	}
	w := u.operands(want, got)
	if n := &u.t.nodes[want]; w == differs && u.t.isRounding(want) && u.from(n.args[0], got) != differs {
		w = unrounded
	}
	u.memo[key] = w
	return w
}

// without returns a term without its roundings of intermediates to f16 and bf16. Two
// terms that come from one another are equal without them. That test excludes nearly
// all others, so that two terms are compared node by node, and not each node of one
// with each node of the other.
func (u *unrounding) without(id termID) termID {
	if out, ok := u.bare[id]; ok {
		return out
	}
	n := u.t.nodes[id]
	out := id
	switch {
	case u.t.isRounding(id):
		out = u.without(n.args[0])
	case n.form == floatOp && n.op != term.ToF32 && !n.op.FromBits(), n.form == reduction && n.op != term.ArgMax:
		args := slices.Clone(n.args)
		for i := range args {
			if !(i == 0 && (n.op == term.Select || n.form == reduction)) { // roundings in conditions and in bounds stay
				args[i] = u.without(args[i])
			}
		}
		n.args = args
		if commutes(n.op) {
			n.args = sorted(args)
		}
		out = u.t.intern(n)
	}
	u.bare[id] = out
	return out
}

// isRounding reports whether a term is a rounding of a float to f16 or bf16. It may
// also be a store of an element in its own type, but those stand only at the top of a
// term.
func (t *table) isRounding(id termID) bool {
	return t.nodes[id].form == floatOp && t.nodes[id].op == term.Round
}

// operands compares the operands of one operation. Conditions, bounds of reductions and
// integers must be equal: they are no intermediates, and a small error in them is not a
// small error of the result.
func (u *unrounding) operands(want, got termID) way {
	x, y := &u.t.nodes[want], &u.t.nodes[got]
	if !sameOperation(x, y) {
		return differs
	}
	pair := func(i, j int) bool { return u.from(x.args[i], y.args[j]) != differs }
	switch {
	case x.op == term.Select:
		if x.args[0] == y.args[0] && pair(1, 1) && pair(2, 2) {
			return below
		}
	case x.form == reduction:
		if x.args[0] == y.args[0] && pair(1, 1) {
			return below
		}
	case len(x.args) == 1:
		if pair(0, 0) {
			return below
		}
	case pair(0, 0) && pair(1, 1):
		return below
	case commutes(x.op) && pair(0, 1) && pair(1, 0):
		return crossed
	}
	return differs
}

// sameOperation reports whether two nodes are the same operation on floats, with
// equally many operands. The conversion of an integer does not count.
func sameOperation(x, y *node) bool {
	if x.form != floatOp && x.form != reduction || x.op == term.ArgMax || x.op == term.ToF32 || x.op.FromBits() {
		return false
	}
	return x.form == y.form && x.op == y.op && x.text == y.text
}

// commutes reports whether an operation on floats yields a float whose bits do not depend on their order.
func commutes(op term.Op) bool { return op.Commutes() && !op.Condition() }

// count counts the roundings that got lacks. Each is counted once, however often the
// term contains it.
func (u *unrounding) count(want, got termID, counted map[termID]bool, seen map[[2]termID]bool) int {
	key := [2]termID{want, got}
	if want == got || seen[key] {
		return 0
	}
	seen[key] = true
	x, y := &u.t.nodes[want], &u.t.nodes[got]
	n := 0
	switch w := u.memo[key]; w {
	case unrounded:
		if !counted[want] {
			counted[want], n = true, 1
		}
		return n + u.count(x.args[0], got, counted, seen)
	case below, crossed:
		for i := range x.args {
			j := i
			if w == crossed {
				j = len(x.args) - 1 - i
			}
			n += u.count(x.args[i], y.args[j], counted, seen)
		}
	}
	return n
}
