package prove

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Cases that no kernel of the library has yet: bf16, and roundings inside reductions.
func TestChecksUnroundings(t *testing.T) {
	tab := newTable(&ir.Graph{})
	leaf := func(n int64) termID {
		return tab.intern(node{form: floatLoad, num: n, text: "f32", args: []termID{tab.integer(0)}})
	}
	half := tab.intern(node{form: floatLoad, num: 7, text: "bf16", args: []termID{tab.integer(0)}})
	op := func(o term.Op, args ...termID) termID { return tab.floats(o, ir.Invalid, args) }
	round := func(typ ir.DType, a termID) termID { return tab.floats(term.Round, typ, []termID{a}) }
	reduce := func(o term.Op, class string, n int64, body termID) termID {
		return tab.intern(node{form: reduction, op: o, text: class, args: []termID{tab.integer(n), body}})
	}
	a, b := leaf(0), leaf(1)
	product := op(term.Mul, a, b)

	require.NotEqual(t, half, round(ir.BF16, half), "a copy keeps the NaN that it finds")
	require.Equal(t, op(term.Neg, half), op(term.Neg, round(ir.BF16, half)), "it is one already")
	require.Equal(t, round(ir.BF16, half), round(ir.BF16, round(ir.BF16, half)))
	require.Equal(t, op(term.Neg, a), op(term.Neg, round(ir.F32, op(term.Mul, tab.real(1), a))))
	require.NotEqual(t, a, round(ir.F32, op(term.Mul, tab.real(1), a)), "a copy keeps the NaN that it finds")
	require.Equal(t, round(ir.F32, a), round(ir.F32, round(ir.F32, a)))
	require.Equal(t, product, round(ir.F32, product))
	nan := tab.real(math.Float32frombits(0xffc54321))
	require.NotEqual(t, nan, round(ir.F32, nan))
	require.Equal(t, int64(term.NaNBits(ir.F32)), tab.nodes[round(ir.F16, nan)].num)
	require.NotEqual(t, half, round(ir.F16, half))
	require.Equal(t, round(ir.F16, a), round(ir.F16, round(ir.F16, a)))
	require.NotEqual(t, round(ir.F16, a), round(ir.F16, round(ir.BF16, a)))
	require.Equal(t, tab.real(0.0999755859375), round(ir.F16, tab.real(0.1)), "the nearest f16")
	require.Equal(t, tab.real(0.10009765625), round(ir.BF16, tab.real(0.1)), "the nearest bf16")

	for _, c := range []struct {
		name      string
		want, got termID
		n         int // −1: not equal under the rewrite
	}{
		{"bf16", op(term.Exp, round(ir.BF16, product)), op(term.Exp, product), 1},
		{"two types", op(term.Exp, round(ir.F16, round(ir.BF16, product))), op(term.Exp, product), 2},
		{"one of two", op(term.Exp, round(ir.F16, round(ir.BF16, product))), op(term.Exp, round(ir.BF16, product)), 1},
		{"another type", op(term.Exp, round(ir.BF16, product)), op(term.Exp, round(ir.F16, product)), -1},
		{"the result", round(ir.BF16, product), product, -1},
		{"in a sum", reduce(term.Sum, "c", 8, round(ir.F16, product)), reduce(term.Sum, "c", 8, product), 1},
		{"in a sum of another class", reduce(term.Sum, "c", 8, round(ir.F16, product)), reduce(term.Sum, "d", 8, product), -1},
		{"in a longer sum", reduce(term.Sum, "c", 8, round(ir.F16, product)), reduce(term.Sum, "c", 9, product), -1},
		{"in a maximum", reduce(term.MaxOver, "", 8, round(ir.F16, product)), reduce(term.MaxOver, "", 8, product), 1},
		{"in argmax", reduce(term.ArgMax, "", 8, round(ir.F16, product)), reduce(term.ArgMax, "", 8, product), -1},
		{"behind an index that argmax found", op(term.Exp, tab.float(tab.atom(node{form: intOp, op: term.ArgMax, args: []termID{round(ir.F16, product)}, lo: -wide, hi: wide}))),
			op(term.Exp, tab.float(tab.atom(node{form: intOp, op: term.ArgMax, args: []termID{product}, lo: -wide, hi: wide}))), -1},
		{"operands in another order of names", op(term.Exp, op(term.Add, round(ir.F16, op(term.Sub, a, b)), product)), op(term.Exp, op(term.Add, op(term.Sub, a, b), product)), 1},
		{"both operands", op(term.Exp, op(term.Add, round(ir.F16, op(term.Neg, a)), round(ir.F16, op(term.Neg, b)))), op(term.Exp, op(term.Add, op(term.Neg, b), op(term.Neg, a))), 2},
		{"a leaf for another", op(term.Exp, round(ir.F16, a)), op(term.Exp, b), -1},
	} {
		n, ok := tab.unroundings(c.want, c.got)
		require.Equal(t, c.n >= 0, ok, c.name)
		if ok {
			require.Equal(t, c.n, n, c.name)
		}
		if c.want != c.got {
			_, ok = tab.unroundings(c.got, c.want)
			require.False(t, ok, "%s, the other way round", c.name)
		}
	}
}
