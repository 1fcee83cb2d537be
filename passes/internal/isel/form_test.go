package isel

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// integerCase is a random integer expression, as a form and as a function that computes it.
type integerCase struct {
	f    form
	eval func(vars []int64) int64
	text string
}

// world has two params with a constraint and three index variables, one of
// them bounded by a param.
type world struct {
	*space
	leaves []integerCase
}

func newWorld() *world {
	g := &ir.Graph{
		Params:      []ir.Param{{Name: "p", Type: ir.U32, Max: 5}, {Name: "n", Type: ir.U32, Min: 1, Max: 4}},
		Constraints: []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Param: 0, Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 6}},
	}
	w := &world{space: newSpace(g, nil, foldNone)}
	leaf := func(i int, name string, f form) {
		w.leaves = append(w.leaves, integerCase{f, func(v []int64) int64 { return v[i] }, name})
	}
	p, n := w.affine(ir.Linear(0, ir.Term{Param: 0, Coeff: 1})), w.affine(ir.Linear(0, ir.Term{Param: 1, Coeff: 1}))
	leaf(0, "p", p)
	leaf(1, "n", n)
	leaf(2, "i", w.index(-1, number(6)))
	leaf(3, "j", w.index(-2, n))
	leaf(4, "k", w.index(0, w.scale(n, 4)))
	return w
}

// values calls f for every value of params and variables.
func (w *world) values(f func(v []int64)) {
	for p := int64(0); p <= 5; p++ {
		for n := int64(1); n <= 4 && p+n <= 6; n++ {
			for i := range int64(6) {
				for j := range n {
					for k := range 4 * n {
						f([]int64{p, n, i, j, k})
					}
				}
			}
		}
	}
}

func (w *world) draw(t *rapid.T, depth int) integerCase {
	if depth == 0 || rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
		if rapid.IntRange(0, 3).Draw(t, "number") == 0 {
			c := rapid.Int64Range(-9, 30).Draw(t, "c")
			return integerCase{number(c), func([]int64) int64 { return c }, fmt.Sprint(c)}
		}
		return rapid.SampledFrom(w.leaves).Draw(t, "name")
	}
	op := rapid.SampledFrom([]term.Op{term.Add, term.Sub, term.Mul, term.Div, term.Mod, term.CeilDiv, term.Neg, term.Min}).Draw(t, "op")
	a := w.draw(t, depth-1)
	b := integerCase{form{}, func([]int64) int64 { return 0 }, ""}
	switch op {
	case term.Div, term.Mod, term.CeilDiv:
		c := rapid.SampledFrom([]int64{1, 2, 3, 4, 6, 8, 12}).Draw(t, "divisor")
		b = integerCase{number(c), func([]int64) int64 { return c }, fmt.Sprint(c)}
	case term.Neg:
	default:
		b = w.draw(t, depth-1)
	}
	args := []form{a.f, b.f}
	if op == term.Neg {
		args = args[:1]
	}
	f, ok := w.integer(op, args...)
	require.True(t, ok)
	return integerCase{f, func(v []int64) int64 {
		x, err := term.IntOp(op, a.eval(v), b.eval(v))
		require.NoError(t, err)
		return x
	}, fmt.Sprintf("%d(%s, %s)", op, a.text, b.text)}
}

// value computes a form atom by atom.
func value1(t require.TestingT, f form, v []int64) int64 {
	x := f.c
	for _, m := range f.t {
		x += m.k * atomValue(t, m.a, v)
	}
	return x
}

func atomValue(t require.TestingT, a *atom, v []int64) int64 {
	switch a.kind {
	case paramAtom:
		return v[a.param]
	case quotientAtom:
		return floorDiv(value1(t, a.num, v), a.den)
	case opAtom:
		x, err := term.IntOp(a.op, value1(t, a.args[0], v), value1(t, a.args[1], v))
		require.NoError(t, err)
		return x
	}
	require.Equal(t, indexAtom, a.kind)
	switch {
	case a.num.isConst():
		return v[2]
	case a.num.t[0].k == 1:
		return v[3]
	}
	return v[4]
}

// A form has the value of the expression that it was made from, its bounds hold, and what within proves is
// true, for all values of params and variables.
func TestFormsAreTheirIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		x := w.draw(t, 4)
		lo, hi, bounded := w.bounds(x.f)
		limit := ir.Linear(rapid.Int64Range(0, 20).Draw(t, "limit"), ir.Term{Param: 1, Coeff: rapid.Int64Range(0, 3).Draw(t, "per n")})
		within := w.within(x.f, limit)
		w.values(func(v []int64) {
			want := x.eval(v)
			if got := value1(t, x.f, v); got != want {
				t.Fatalf("%s at %v: the form is %d, the integer %d", x.text, v, got, want)
			}
			if bounded && (want < lo || want > hi) {
				t.Fatalf("%s at %v is %d, outside %d…%d", x.text, v, want, lo, hi)
			}
			if within && (want < 0 || want >= limit.Const+limit.Coeff(1)*v[1]) {
				t.Fatalf("%s at %v is %d, not within its limit", x.text, v, want)
			}
		})
	})
}

// Splitting an index and joining it again gives the form of the index, and two divisions in a row that of
// the combined division.
func TestFormsOfIndicesMeet(t *testing.T) {
	w := newWorld()
	i, k := w.leaves[2].f, w.leaves[4].f
	same := func(a, b form) { t.Helper(); require.True(t, a.equal(b), "%s and %s", a.key(nil), b.key(nil)) }
	joined := w.add(w.scale(k, 6), i)
	same(w.div(joined, 6), k)
	same(w.mod(joined, 6), i)
	same(w.add(w.scale(w.div(k, 4), 4), w.mod(k, 4)), k)
	same(w.div(w.div(k, 2), 3), w.div(k, 6))
	same(w.div(w.mod(k, 12), 3), w.sub(w.div(k, 3), w.scale(w.div(k, 12), 4)))
	same(w.ceil(w.scale(k, 4), 32), w.ceil(k, 8))
	require.True(t, w.within(w.div(k, 4), ir.Linear(0, ir.Term{Param: 1, Coeff: 1})))
	require.False(t, w.within(w.div(k, 3), ir.Linear(0, ir.Term{Param: 1, Coeff: 1})))
	require.True(t, w.within(w.mod(w.div(k, 2), 2), ir.Const(2)))
}

// TestHalvesOfAHeadDivide: the row of a matrix of 32·i columns, in which an element of the second half of a head of eight
// elements lies, is found, though ⌊j/4⌋ has a negative factor in it.
func TestHalvesOfAHeadDivide(t *testing.T) {
	w := newWorld()
	i := w.leaves[2].f
	h, j := w.index(-3, number(4)), w.index(-4, number(8))
	at := w.add(w.add(w.scale(i, 32), w.scale(h, 8)), w.add(w.mod(j, 4), number(4)))
	require.True(t, w.div(at, 32).equal(i), "%s", w.div(at, 32).key(nil))
	require.False(t, w.div(w.add(at, number(1)), 32).equal(i), "the last of all elements is in the next row")
}

// Overflow of numbers larger than those of any dispatch is detected instead of wrapping around.
func TestFormsNoticeOverflow(t *testing.T) {
	w := newWorld()
	w.scale(w.scale(w.leaves[2].f, 1<<40), 1<<40)
	require.True(t, w.overflow)
}
