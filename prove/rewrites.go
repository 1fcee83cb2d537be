package prove

import (
	"slices"

	"github.com/mlxc/mlxc/msl/term"
)

// Used says that a proof needed a rewrite that may change bits: the results
// after are those before only within its bound.
type Used struct {
	Name  string `json:"name"`
	Count int    `json:"count"` // over all commands after
	Bound string `json:"bound"`
}

// use notes n uses of a rewrite.
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

// unrounding compares a term with one that may lack roundings of its
// intermediates to f16 and bf16: rewrite round. None is added, and nothing else
// may differ.
type unrounding struct {
	t    *table
	memo map[[2]termID]way
	bare map[termID]termID // see without
}

// way is how a term after comes from one before.
type way uint8

const (
	open    way = iota
	differs     // in no way
	equal
	unrounded // from the operand of the rounding that the term before is
	below     // operand by operand
	crossed   // likewise, operands that commute exchanged
)

// unroundings returns how many roundings of want got lacks, if that is all in
// which they differ. The rounding of a result itself always stays.
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
	if len(u.memo) >= maxTerms { // what a hostile graph may make a proof compare
		return differs
	}
	w := u.operands(want, got)
	if n := &u.t.nodes[want]; w == differs && u.t.isRounding(want) && u.from(n.args[0], got) != differs {
		w = unrounded
	}
	u.memo[key] = w
	return w
}

// without returns a term without the roundings of intermediates to f16 and bf16.
// Terms that come from one another are equal without them: nearly every pair that
// does not is told by that alone, and a pair of graphs is compared node by node, not
// each node with each.
func (u *unrounding) without(id termID) termID {
	if out, ok := u.bare[id]; ok {
		return out
	}
	n := u.t.nodes[id]
	out := id
	switch {
	case u.t.isRounding(id):
		out = u.without(n.args[0])
	case n.form == floatOp && n.op != term.ToF32 && n.op != term.AsF16, n.form == reduction && n.op != term.ArgMax:
		args := slices.Clone(n.args)
		for i := range args {
			if !(i == 0 && (n.op == term.Select || n.form == reduction)) { // what decides, and bounds
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

// isRounding: of floats, to f16 or bf16; and stores of elements as they are, which
// stand at the top of a term only.
func (t *table) isRounding(id termID) bool {
	return t.nodes[id].form == floatOp && t.nodes[id].op == term.Round
}

// operands compares the operands of one operation. What decides between
// branches, bounds a reduction or is an integer is no intermediate: a little
// more or less there is not a little more or less of the result.
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

// sameOperation: one on floats, with as many operands; a conversion of an integer
// is none.
func sameOperation(x, y *node) bool {
	if x.form != floatOp && x.form != reduction || x.op == term.ArgMax || x.op == term.ToF32 || x.op == term.AsF16 {
		return false
	}
	return x.form == y.form && x.op == y.op && x.text == y.text
}

func commutes(op term.Op) bool {
	return op == term.Add || op == term.Mul || op == term.Min || op == term.Max
}

// count counts the roundings that are left out, each once however often the
// term has it.
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
