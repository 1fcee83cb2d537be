package prove

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// termID names a term in a table. Terms are kept in a normal form under the bit-exact
// rewrites of docs/terms.md, each once, so equal terms have equal names.
type termID int32

// termOp is the form of a node in a term.
type termOp uint8

const (
	linear     termOp = iota // integer: a constant + Σ coefficient · atom
	variable                 // integer atom: an index; num is its level, args[0] its bound
	parameter                // integer atom: a param of the graph, num
	floorDiv                 // integer atom: ⌊args[0] / num⌋
	intOp                    // integer atom: op over args
	intLoad                  // integer atom: an element of a leaf
	real                     // float: the bits num
	floatParam               // float: an f32 param, num
	floatLoad                // float: an element of a leaf
	floatOp                  // float: op over args
	reduction                // op (Sum, MaxOver, ArgMax) of class text: args[0] elements of body args[1]; ArgMax: at place args[2], if any
	condition                // op over args
	truth                    // a decided condition, num
)

type node struct {
	form termOp
	op   term.Op
	num  int64
	text string
	args []termID
	lin  []linTerm // of a linear node: its atoms, ascending; num is the constant
	lo   int64     // bounds of an integer; wide: unbounded
	hi   int64
}

type linTerm struct {
	atom  termID
	coeff int64
}

// wide stands for the lack of a bound. It is larger than any number in a declaration.
const wide = int64(1) << 60

// maxTerms bounds the nodes of one table, so that a hostile graph cannot make a proof
// grow.
const maxTerms = 1 << 16

// undecided says why a term has no normal form. It is a panic value that the package
// recovers.
type undecided struct{ why string }

func giveUp(format string, args ...any) { panic(undecided{fmt.Sprintf(format, args...)}) }

// table holds terms over the params of one graph.
type table struct {
	g     *ir.Graph
	nodes []node
	names map[string]termID
	key   []byte
}

func newTable(g *ir.Graph) *table { return &table{g: g, names: map[string]termID{}} }

// intern returns the name of a node, which is added if it is new.
func (t *table) intern(n node) termID {
	k := append(t.key[:0], byte(n.form), byte(n.op))
	k = binary.AppendVarint(k, n.num)
	k = binary.AppendVarint(k, int64(len(n.text)))
	k = append(k, n.text...)
	for _, a := range n.args {
		k = binary.AppendVarint(k, int64(a))
	}
	for _, l := range n.lin {
		k = binary.AppendVarint(k, int64(l.atom))
		k = binary.AppendVarint(k, l.coeff)
	}
	t.key = k
	if id, ok := t.names[string(k)]; ok {
		return id
	}
	if len(t.nodes) >= maxTerms {
		giveUp("its term has more than %d parts", maxTerms)
	}
	id := termID(len(t.nodes))
	t.nodes = append(t.nodes, n)
	t.names[string(k)] = id
	return id
}

// integer returns an integer constant.
func (t *table) integer(v int64) termID { return t.linear(v, nil) }

// atom returns a node as an integer: the linear node of this one atom.
func (t *table) atom(n node) termID {
	a := t.intern(n)
	return t.linear(0, []linTerm{{a, 1}})
}

// linear returns the integer c + Σ terms.
func (t *table) linear(c int64, terms []linTerm) termID {
	ts := slices.Clone(terms)
	slices.SortFunc(ts, func(x, y linTerm) int { return int(x.atom) - int(y.atom) })
	out := ts[:0]
	for _, x := range ts {
		if n := len(out); n > 0 && out[n-1].atom == x.atom {
			out[n-1].coeff = t.small(out[n-1].coeff + x.coeff)
		} else {
			out = append(out, x)
		}
	}
	out = slices.DeleteFunc(out, func(x linTerm) bool { return x.coeff == 0 })
	n := node{form: linear, num: t.small(c), lin: out}
	n.lo, n.hi = t.bounds(n)
	return t.intern(n)
}

// small returns v, and gives up if sums and products of such numbers might overflow 64 bits.
func (t *table) small(v int64) int64 {
	if v > wide/2 || v < -wide/2 {
		giveUp("an index reaches %d", v)
	}
	return v
}

func (t *table) times(a, b int64) int64 {
	if f := math.Abs(float64(a)) * math.Abs(float64(b)); f > float64(wide/2) {
		giveUp("an index reaches %g", f)
	}
	return a * b
}

// bounds returns the min and the max of a linear node. Params are bounded together, so that the
// constraints between them count, and what is divided with what remains of it.
func (t *table) bounds(n node) (lo, hi int64) {
	var params []ir.Term
	lo, hi = n.num, n.num
	rest := n.lin
	for i := 0; i < len(rest); i++ {
		of, from, to, ok := t.remainder(rest, i)
		if !ok {
			continue
		}
		quotient := rest[i].atom
		rest = slices.DeleteFunc(slices.Clone(rest), func(x linTerm) bool { return x.atom == quotient || x.atom == of })
		lo, hi, i = lo+from, hi+to, -1
	}
	for _, x := range rest {
		a := &t.nodes[x.atom]
		if a.form == parameter {
			params = append(params, ir.Term{Param: ir.ParamID(a.num), Coeff: x.coeff})
			continue
		}
		if a.lo <= -wide || a.hi >= wide {
			return -wide, wide
		}
		p, q := mul(x.coeff, a.lo), mul(x.coeff, a.hi)
		lo, hi = lo+min(p, q), hi+max(p, q)
		if lo <= -wide || hi >= wide {
			return -wide, wide
		}
	}
	if len(params) > 0 {
		p, q, ok := t.g.Range(ir.Linear(0, params...))
		if !ok || p <= -wide || q >= wide {
			return -wide, wide
		}
		if lo, hi = lo+p, hi+q; lo <= -wide || hi >= wide {
			return -wide, wide
		}
	}
	return lo, hi
}

// remainder returns the bounds of two terms of a sum together, of which term i is −u·d·⌊(x + r)/d⌋, and the other one, of the atom `of`, is
// u·x: what remains of x + r is within [0, d). ok is false if there are no two such terms.
func (t *table) remainder(lin []linTerm, i int) (of termID, lo, hi int64, ok bool) {
	q := &t.nodes[lin[i].atom]
	if q.form != floorDiv {
		return 0, 0, 0, false
	}
	inner := &t.nodes[q.args[0]]
	if len(inner.lin) != 1 || inner.lin[0].coeff != 1 || t.nodes[inner.lin[0].atom].form == parameter {
		return 0, 0, 0, false
	}
	of = inner.lin[0].atom
	for _, x := range lin {
		if x.atom == of && lin[i].coeff%q.num == 0 && lin[i].coeff/q.num == -x.coeff {
			lo, hi = mul(x.coeff, -inner.num), mul(x.coeff, q.num-1-inner.num)
			lo, hi = min(lo, hi), max(lo, hi)
			return of, lo, hi, lo > -wide && hi < wide
		}
	}
	return 0, 0, 0, false
}

// mul multiplies, and saturates at ±wide.
func mul(a, b int64) int64 {
	f := float64(a) * float64(b)
	if f >= float64(wide) {
		return wide
	}
	if f <= -float64(wide) {
		return -wide
	}
	return a * b
}

// affine returns an expression over the graph's params as a term.
func (t *table) affine(a ir.Affine) termID {
	var ts []linTerm
	for _, x := range a.Terms() {
		p := &t.g.Params[x.Param]
		ts = append(ts, linTerm{t.intern(node{form: parameter, num: int64(x.Param), lo: int64(p.Min), hi: int64(p.Max)}), x.Coeff})
	}
	return t.linear(a.Const, ts)
}

// extent returns ⌈Num/Div⌉ as a term.
func (t *table) extent(e ir.Extent) termID {
	if e.Div == 1 {
		return t.affine(e.Num)
	}
	return t.div(t.affine(e.Num.AddConst(e.Div-1)), e.Div)
}

// index returns the index variable of a level, which runs from 0 to bound−1.
func (t *table) index(level int, bound termID) termID {
	if t.nodes[bound].hi <= 1 {
		return t.integer(0) // the only value: a row of one element, for example
	}
	return t.atom(node{form: variable, num: int64(level), args: []termID{bound}, lo: 0, hi: t.nodes[bound].hi - 1})
}

// constant returns the value of an integer that depends on nothing. Of any other integer, ok is
// false.
func (t *table) constant(a termID) (int64, bool) {
	n := &t.nodes[a]
	return n.num, n.form == linear && len(n.lin) == 0
}

// add returns a + k·b.
func (t *table) add(a termID, k int64, b termID) termID {
	x, y := t.nodes[a], t.nodes[b]
	ts := slices.Clone(x.lin)
	for _, l := range y.lin {
		ts = append(ts, linTerm{l.atom, t.times(k, l.coeff)})
	}
	return t.linear(x.num+t.times(k, y.num), ts)
}

func (t *table) scale(a termID, k int64) termID { return t.add(t.integer(0), k, a) }

// div returns ⌊a/n⌋ for n > 0. Multiples of n are taken out of the division, and a
// remainder that stays within [0, n) vanishes.
func (t *table) div(a termID, n int64) termID {
	if n <= 0 {
		giveUp("a division by %d", n)
	}
	if n == 1 {
		return a
	}
	x := t.nodes[a]
	var whole, rest []linTerm
	split := func(v int64) (q, r int64) {
		q, r = v/n, v%n
		if r < 0 {
			q, r = q-1, r+n
		}
		return q, r
	}
	for _, l := range x.lin {
		q, r := split(l.coeff)
		if q != 0 {
			whole = append(whole, linTerm{l.atom, q})
		}
		if r != 0 {
			rest = append(rest, linTerm{l.atom, r})
		}
	}
	q, r := split(x.num)
	inner := t.linear(r, rest)
	if y := &t.nodes[inner]; y.lo >= 0 && y.hi < n {
		return t.linear(q, whole)
	}
	// Where factors keep their signs, the bounds may be tighter: x − k·⌊x/k⌋ is below k, and x + (n − k)·⌊x/k⌋ is not.
	if slices.ContainsFunc(x.lin, func(l linTerm) bool { return l.coeff < 0 && l.coeff%n != 0 }) {
		var multiples, signed []linTerm
		for _, l := range x.lin {
			multiples, signed = append(multiples, linTerm{l.atom, l.coeff / n}), append(signed, linTerm{l.atom, l.coeff % n})
		}
		if y := &t.nodes[t.linear(r, signed)]; y.lo >= 0 && y.hi < n {
			return t.linear(q, multiples)
		}
	}
	// ⌊(g·y + r) / (g·m)⌋ = ⌊(y + ⌊r/g⌋) / m⌋.
	g := n
	for _, l := range rest {
		g = gcd(g, l.coeff)
	}
	if g > 1 {
		for i := range rest {
			rest[i].coeff /= g
		}
		return t.add(t.linear(q, whole), 1, t.div(t.linear(r/g, rest), n/g))
	}
	y := t.nodes[inner]
	d := node{form: floorDiv, num: n, args: []termID{inner}, lo: -wide, hi: wide}
	if y.lo > -wide && y.hi < wide {
		d.lo, _ = split(y.lo)
		d.hi, _ = split(y.hi)
	}
	return t.add(t.linear(q, whole), 1, t.atom(d))
}

// mod returns a − n·⌊a/n⌋.
func (t *table) mod(a termID, n int64) termID { return t.add(a, -n, t.div(a, n)) }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// integers applies an integer operation.
func (t *table) integers(op term.Op, args []termID) termID {
	a := args[0]
	b := a
	if len(args) > 1 {
		b = args[1]
	}
	n, isConst := t.constant(b)
	switch op {
	case term.Neg:
		return t.scale(a, -1)
	case term.Add:
		return t.add(a, 1, b)
	case term.Sub:
		return t.add(a, -1, b)
	case term.Mul:
		if isConst {
			return t.scale(a, n)
		}
		if m, ok := t.constant(a); ok {
			return t.scale(b, m)
		}
		args = sorted(args)
	case term.Div:
		if isConst && n > 0 {
			return t.div(a, n)
		}
	case term.Mod:
		if isConst && n > 0 {
			return t.mod(a, n)
		}
	case term.CeilDiv:
		if isConst && n > 0 {
			return t.div(t.add(a, 1, t.integer(n-1)), n)
		}
	case term.Min, term.Max:
		x, y := &t.nodes[a], &t.nodes[b]
		switch {
		case x.hi <= y.lo:
			if op == term.Min {
				return a
			}
			return b
		case y.hi <= x.lo:
			if op == term.Min {
				return b
			}
			return a
		}
		args = sorted(args)
	}
	return t.atom(node{form: intOp, op: op, args: args, lo: -wide, hi: wide})
}

func sorted(args []termID) []termID {
	out := slices.Clone(args)
	slices.Sort(out)
	return out
}

// real returns an f32 constant.
func (t *table) real(v float32) termID {
	return t.intern(node{form: real, num: int64(math.Float32bits(v))})
}

// float converts an integer to f32, round to nearest.
func (t *table) float(a termID) termID {
	if v, ok := t.constant(a); ok {
		return t.real(float32(v))
	}
	return t.intern(node{form: floatOp, op: term.ToF32, args: []termID{a}})
}

// ofBits returns the float that op makes of the bits of an integer.
func (t *table) ofBits(op term.Op, a termID) termID {
	if v, ok := t.constant(a); ok {
		return t.real(float32(op.OfBits(v)))
	}
	return t.intern(node{form: floatOp, op: op, args: []termID{a}})
}

var one = int64(math.Float32bits(1))

// value returns a without a store at its root, if the store is one of an element in its own type or
// in f32. Such a store changes only the bits of a NaN, which no operation sees.
func (t *table) value(a termID) termID {
	n := &t.nodes[a]
	switch {
	case n.form == floatOp && n.op == term.Round && t.holds(n.args[0], n.text):
		return n.args[0]
	case n.form == real:
		return t.real(term.Stored(ir.F32, math.Float32frombits(uint32(n.num)))) // all NaNs become one
	}
	return a
}

// holds reports whether a is an element of memory that type typ represents exactly.
func (t *table) holds(a termID, typ string) bool {
	n := &t.nodes[a]
	return n.form == floatLoad && (typ == ir.F32.String() || n.text == typ)
}

// floats applies an operation to floats, rounded to typ if it is a rounding.
func (t *table) floats(op term.Op, typ ir.DType, args []termID) termID {
	for i, a := range args {
		args[i] = t.value(a)
	}
	switch {
	case commutes(op):
		args = sorted(args)
		if op == term.Mul {
			// x · 1 is x to the bit, except for NaNs, which are not distinguished
			// within a term.
			for i, a := range args {
				if n := &t.nodes[a]; n.form == real && n.num == one {
					return args[1-i]
				}
			}
		}
	case op == term.ToF32:
		return args[0] // the operand is a float already
	case op == term.Round:
		n := &t.nodes[args[0]]
		switch {
		case t.holds(args[0], typ.String()):
			// A store is no copy: it may change the bits of a NaN. See value.
		case n.form == real:
			return t.real(term.Stored(typ, math.Float32frombits(uint32(n.num))))
		case typ == ir.F32:
			return args[0] // every operation yields an f32
		case t.isRounding(args[0]) && n.text == typ.String():
			return args[0] // the operand is rounded to this type already
		case n.form == floatOp && n.op == term.AsF16 && typ == ir.F16:
			return args[0] // likewise
		}
		return t.intern(node{form: floatOp, op: op, text: typ.String(), args: args})
	}
	return t.intern(node{form: floatOp, op: op, args: args})
}

// compare returns a condition. Conditions on integers are brought to the forms `x < 0`
// and `x = 0`.
func (t *table) compare(op term.Op, a, b termID, integers bool) termID {
	switch op {
	case term.Gt:
		return t.compare(term.Lt, b, a, integers)
	case term.Ge:
		return t.compare(term.Le, b, a, integers)
	case term.Ne:
		return t.not(t.compare(term.Eq, a, b, integers))
	}
	if !integers {
		a, b = t.value(a), t.value(b)
		if op == term.Eq && a > b {
			a, b = b, a
		}
		return t.intern(node{form: condition, op: op, args: []termID{a, b}})
	}
	d := t.add(a, -1, b)
	if op == term.Le {
		d = t.add(d, 1, t.integer(-1))
		op = term.Lt
	}
	n := t.nodes[d]
	if op == term.Lt {
		switch {
		case n.hi < 0:
			return t.decided(true)
		case n.lo >= 0:
			return t.decided(false)
		}
		return t.intern(node{form: condition, op: op, args: []termID{d}})
	}
	switch {
	case n.lo == 0 && n.hi == 0:
		return t.decided(true)
	case n.lo > 0 || n.hi < 0:
		return t.decided(false)
	}
	if len(n.lin) > 0 && n.lin[0].coeff < 0 {
		d = t.scale(d, -1)
	}
	return t.intern(node{form: condition, op: op, args: []termID{d}})
}

func (t *table) decided(v bool) termID {
	if v {
		return t.intern(node{form: truth, num: 1})
	}
	return t.intern(node{form: truth})
}

func (t *table) not(c termID) termID {
	n := t.nodes[c]
	switch {
	case n.form == truth:
		return t.decided(n.num == 0)
	case n.form == condition && n.op == term.Not:
		return n.args[0]
	}
	return t.intern(node{form: condition, op: term.Not, args: []termID{c}})
}

func (t *table) choose(c, a, b termID) termID {
	a, b = t.value(a), t.value(b)
	n := t.nodes[c]
	switch {
	case n.form == truth && n.num != 0:
		return a
	case n.form == truth:
		return b
	case n.form == condition && n.op == term.Not:
		return t.choose(n.args[0], b, a)
	case a == b:
		return a
	}
	return t.intern(node{form: floatOp, op: term.Select, args: []termID{c, a, b}})
}

// maxShown bounds how much of a term format writes, in bytes.
const maxShown = 2000

// format writes a term as a tree for readers, cut where it gets too long.
func (t *table) format(id termID) string {
	w := &formatter{t: t}
	w.write(id)
	if w.b.Len() > maxShown {
		return w.b.String()[:maxShown-w.back()] + "…"
	}
	return w.b.String()
}

// formatter writes a term. Shared parts are written wherever they occur, so it stops
// when the text gets too long.
type formatter struct {
	t *table
	b strings.Builder
}

func (w *formatter) text(s string) {
	if w.b.Len() <= maxShown {
		w.b.WriteString(s)
	}
}

// back returns how many bytes before maxShown the last whole character ends.
func (w *formatter) back() (n int) {
	for s := w.b.String(); !utf8.RuneStart(s[maxShown-n]); n++ {
	}
	return n
}

func (w *formatter) list(args []termID) {
	w.text("(")
	for i, a := range args {
		if i > 0 {
			w.text(", ")
		}
		w.write(a)
	}
	w.text(")")
}

func (w *formatter) write(id termID) {
	if w.b.Len() > maxShown {
		return
	}
	t := w.t
	n := &t.nodes[id]
	switch n.form {
	case linear:
		for i, l := range n.lin {
			if i > 0 {
				w.text(" + ")
			}
			if l.coeff != 1 {
				w.text(fmt.Sprintf("%d·", l.coeff))
			}
			w.write(l.atom)
		}
		if len(n.lin) == 0 {
			w.text(fmt.Sprint(n.num))
		} else if n.num != 0 {
			w.text(" + " + fmt.Sprint(n.num))
		}
		return
	case variable:
		w.text(fmt.Sprintf("i%d", n.num))
		return
	case parameter, floatParam:
		w.text("$" + t.g.Params[n.num].Name)
		return
	case floorDiv:
		w.text("⌊(")
		w.write(n.args[0])
		w.text(fmt.Sprintf(")/%d⌋", n.num))
		return
	case real:
		w.text(fmt.Sprint(math.Float32frombits(uint32(n.num))))
		return
	case intLoad, floatLoad:
		w.text(fmt.Sprintf("%s@%d[", n.text, n.num))
		w.write(n.args[0])
		w.text("]")
		return
	case truth:
		w.text(fmt.Sprint(n.num != 0))
		return
	case reduction:
		w.text(fmt.Sprintf("%s[%s]", n.op, n.text))
		w.list(n.args)
		return
	}
	if len(n.args) == 2 && strings.Contains("+ - * / == < <= && ||", n.op.String()) {
		w.text("(")
		w.write(n.args[0])
		w.text(" " + n.op.String() + " ")
		w.write(n.args[1])
		w.text(")")
		return
	}
	w.text(n.op.String() + n.text)
	w.list(n.args)
}
