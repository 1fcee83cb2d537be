package ir_test

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
)

// bigAffine is the oracle: a constant and a dense list of coefficients, without
// bounds.
type bigAffine struct {
	c     *big.Int
	coeff []*big.Int
}

const affineParams = 5

func oracle(a ir.Affine) bigAffine {
	out := bigAffine{big.NewInt(a.Const), nil}
	for p := range ir.ParamID(affineParams) {
		out.coeff = append(out.coeff, big.NewInt(a.Coeff(p)))
	}
	return out
}

func (x bigAffine) combine(k int64, y bigAffine, l int64) bigAffine {
	f := func(a, b *big.Int) *big.Int {
		s := new(big.Int).Mul(a, big.NewInt(k))
		return s.Add(s, new(big.Int).Mul(b, big.NewInt(l)))
	}
	out := bigAffine{f(x.c, y.c), nil}
	for i := range x.coeff {
		out.coeff = append(out.coeff, f(x.coeff[i], y.coeff[i]))
	}
	return out
}

func (x bigAffine) eval(params []uint32) *big.Int {
	v := new(big.Int).Set(x.c)
	for i, c := range x.coeff {
		v.Add(v, new(big.Int).Mul(c, big.NewInt(int64(params[i]))))
	}
	return v
}

// equal compares with an expression whose numbers are all in 64 bits.
func (x bigAffine) equal(a ir.Affine) bool {
	y := oracle(a)
	for i := range x.coeff {
		if x.coeff[i].Cmp(y.coeff[i]) != 0 {
			return false
		}
	}
	return x.c.Cmp(y.c) == 0
}

func drawAffine(t *rapid.T, what string) ir.Affine {
	num := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-1<<16, 1<<16)) // products of three stay in 64 bits
	var ts []ir.Term
	for range rapid.IntRange(0, 7).Draw(t, what+" terms") {
		ts = append(ts, ir.Term{Param: ir.ParamID(rapid.IntRange(0, affineParams-1).Draw(t, "param")), Coeff: num.Draw(t, "coefficient")})
	}
	return ir.Linear(num.Draw(t, what), ts...)
}

func drawValues(t *rapid.T) []uint32 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32{0, 1, math.MaxUint32})), affineParams, affineParams).Draw(t, "values")
}

func TestAffineAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawAffine(t, "a"), drawAffine(t, "b")
		k := rapid.Int64Range(-1000, 1000).Draw(t, "k")
		values := drawValues(t)
		A, B := oracle(a), oracle(b)
		for name, c := range map[string]struct {
			got  ir.Affine
			want bigAffine
		}{
			"a + b":   {a.Add(b), A.combine(1, B, 1)},
			"a - b":   {a.Sub(b), A.combine(1, B, -1)},
			"k a":     {a.Scale(k), A.combine(k, B, 0)},
			"a + k":   {a.AddConst(k), A.combine(1, oracle(ir.Const(k)), 1)},
			"a":       {a, A},
			"a again": {ir.Linear(a.Const, a.Terms()...), A},
		} {
			if !c.want.equal(c.got) {
				t.Fatalf("%s is %v, want %v", name, oracle(c.got), c.want)
			}
			if got, want := c.got.Eval(values), c.want.eval(values); want.Cmp(big.NewInt(got)) != 0 {
				t.Fatalf("%s evaluates to %d, want %d", name, got, want)
			}
			for i, x := range c.got.Terms() {
				if x.Coeff == 0 || i > 0 && x.Param <= c.got.Terms()[i-1].Param {
					t.Fatalf("%s has the terms %v", name, c.got.Terms())
				}
			}
			if c.got.IsConst() != (len(c.got.Terms()) == 0) {
				t.Fatalf("%s: IsConst is %v with %d terms", name, c.got.IsConst(), len(c.got.Terms()))
			}
		}
		if a.Equal(b) != A.equal(b) {
			t.Fatalf("Equal is %v", a.Equal(b))
		}
		if !a.Sub(a).Equal(ir.Const(0)) {
			t.Fatal("a - a is not 0")
		}
	})
}

// Operations leave their operands alone: copies share terms.
func TestAffineIsImmutable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawAffine(t, "a"), drawAffine(t, "b")
		A, B := oracle(a), oracle(b)
		a.Add(b)
		a.Sub(b)
		a.Scale(-7)
		a.AddConst(5)
		terms := a.Terms()
		ir.Linear(0, terms...)
		if !A.equal(a) || !B.equal(b) {
			t.Fatal("an operand changed")
		}
	})
}

func TestAffineFormat(t *testing.T) {
	names := []string{"p", "q", "r"}
	for _, c := range []struct {
		a    ir.Affine
		want string
	}{
		{ir.Affine{}, "0"},
		{ir.Const(-5), "-5"},
		{ir.Const(math.MinInt64), "-9223372036854775808"},
		{ir.Linear(0, ir.Term{0, 1}), "$p"},
		{ir.Linear(0, ir.Term{0, -1}), "-$p"},
		{ir.Linear(0, ir.Term{0, 256}), "256*$p"},
		{ir.Linear(64, ir.Term{0, 256}), "256*$p + 64"},
		{ir.Linear(-64, ir.Term{0, -256}), "-256*$p - 64"},
		{ir.Linear(0, ir.Term{2, 1}, ir.Term{0, 1}), "$p + $r"},
		{ir.Linear(1, ir.Term{2, -3}, ir.Term{0, -1}, ir.Term{1, 1}), "-$p + $q - 3*$r + 1"},
		{ir.Linear(math.MinInt64, ir.Term{0, math.MinInt64}, ir.Term{1, math.MinInt64}), "-9223372036854775808*$p - 9223372036854775808*$q - 9223372036854775808"},
		{ir.Linear(0, ir.Term{1, 4}, ir.Term{1, -4}), "0"},
	} {
		require.Equal(t, c.want, c.a.Format(func(p ir.ParamID) string { return names[p] }))
	}
}

func TestExtent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num := drawAffine(t, "num")
		div := rapid.Int64Range(1, 5000).Draw(t, "div")
		values := drawValues(t)
		e := ir.Extent{Num: num, Div: div}
		// ⌈a/b⌉ = −⌊−a/b⌋, and for b > 0 big.Int.Div rounds down.
		n := new(big.Int).Neg(oracle(num).eval(values))
		want := new(big.Int).Neg(n.Div(n, big.NewInt(div)))
		if got := e.Eval(values); want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("ceildiv is %d, want %d", got, want)
		}
		if !e.Equal(e) || e.Equal(ir.Extent{Num: num, Div: div + 1}) || e.Equal(ir.Extent{Num: num.AddConst(1), Div: div}) {
			t.Fatal("Equal")
		}
	})
	require.Equal(t, int64(7), ir.Ext(7).Eval(nil))
	require.True(t, ir.Ext(7).IsConst())
	require.False(t, ir.Extent{Num: ir.Linear(0, ir.Term{0, 1}), Div: 1}.IsConst())
}
