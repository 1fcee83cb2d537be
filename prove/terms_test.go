package prove

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// values evaluates integers and conditions in normal form.
type values struct {
	*rapid.T
	t       *table
	indices []int64
	params  []uint32
}

func (v values) of(id termID) int64 {
	n := &v.t.nodes[id]
	var args []int64
	if n.form == floorDiv || n.form == intOp || n.form == condition {
		for _, a := range n.args {
			args = append(args, v.of(a))
		}
	}
	out := int64(0)
	switch n.form {
	case linear:
		out = n.num
		for _, l := range n.lin {
			out += l.coeff * v.of(l.atom)
		}
	case variable:
		out = v.indices[n.num]
	case parameter:
		out = int64(v.params[n.num])
	case floorDiv:
		out = v.op(term.Div, args[0], n.num)
	case intOp:
		out = v.op(n.op, args[0], args[len(args)-1])
	case truth:
		return n.num
	case condition:
		switch n.op {
		case term.Lt:
			return truthOf(args[0] < 0)
		case term.Eq:
			return truthOf(args[0] == 0)
		}
		return 1 - args[0] // Not
	}
	require.LessOrEqual(v, n.lo, out, "the bounds of %s", v.t.format(id))
	require.GreaterOrEqual(v, n.hi, out, "the bounds of %s", v.t.format(id))
	return out
}

func (v values) op(op term.Op, a, b int64) int64 {
	x, err := term.IntOp(op, a, b)
	require.NoError(v, err)
	return x
}

func truthOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// The normal form of integers and conditions has the value of the original expression,
// also for negative numbers, and that value lies within the bounds of the normal form.
func TestChecksNormalForm(t *testing.T) {
	g := &ir.Graph{
		Params:      []ir.Param{{Name: "n", Type: ir.U32, Min: 0, Max: 7}, {Name: "m", Type: ir.U32, Min: 1, Max: 9}},
		Constraints: []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Param: 0, Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 10}},
	}
	bounds := []int64{4, 5, 3}
	ops := []term.Op{term.Add, term.Sub, term.Mul, term.Div, term.Mod, term.CeilDiv, term.Min, term.Max, term.Neg}
	compares := []term.Op{term.Eq, term.Ne, term.Lt, term.Le, term.Gt, term.Ge}
	rapid.Check(t, func(rt *rapid.T) {
		tb := newTable(g)
		v := values{T: rt, t: tb}
		for _, b := range bounds {
			v.indices = append(v.indices, rapid.Int64Range(0, b-1).Draw(rt, "index"))
		}
		n := rapid.Uint32Range(0, 7).Draw(rt, "n")
		v.params = []uint32{n, rapid.Uint32Range(1, min(9, 10-n)).Draw(rt, "m")}
		var draw func(depth int) (termID, int64)
		draw = func(depth int) (termID, int64) {
			kind := rapid.IntRange(0, 5).Draw(rt, "kind")
			switch {
			case depth == 0 && kind < 2:
				c := rapid.Int64Range(-20, 20).Draw(rt, "constant")
				return tb.integer(c), c
			case depth == 0 && kind == 2:
				k := rapid.IntRange(0, 1).Draw(rt, "param")
				return tb.affine(ir.Linear(0, ir.Term{Param: ir.ParamID(k), Coeff: 1})), int64(v.params[k])
			case depth == 0:
				k := rapid.IntRange(0, len(bounds)-1).Draw(rt, "variable")
				return tb.index(k, tb.integer(bounds[k])), v.indices[k]
			}
			op := rapid.SampledFrom(ops).Draw(rt, "op")
			x, a := draw(depth - 1)
			y, b := draw(depth - 1)
			switch op {
			case term.Neg:
				return tb.integers(op, []termID{x}), -a
			case term.Div, term.Mod, term.CeilDiv:
				b = rapid.SampledFrom([]int64{-3, -1, 1, 2, 3, 4, 6, 12, 64}).Draw(rt, "divisor")
				y = tb.integer(b)
			}
			return tb.integers(op, []termID{x, y}), v.op(op, a, b)
		}
		x, a := draw(rapid.IntRange(0, 3).Draw(rt, "depth"))
		y, b := draw(rapid.IntRange(0, 2).Draw(rt, "depth"))
		require.Equal(rt, a, v.of(x), "%s", tb.format(x))
		op := rapid.SampledFrom(compares).Draw(rt, "comparison")
		c := tb.compare(op, x, y, true)
		want := map[term.Op]bool{term.Eq: a == b, term.Ne: a != b, term.Lt: a < b, term.Le: a <= b, term.Gt: a > b, term.Ge: a >= b}[op]
		require.Equal(rt, truthOf(want), v.of(c), "%s", tb.format(c))
		require.Equal(rt, truthOf(!want), v.of(tb.not(c)), "%s", tb.format(c))
	})
}

// TestHalvesOfAHeadDivide: the row of a matrix of 32·i columns, in which an element of the second half of a head of eight
// elements lies, is known, though ⌊j/4⌋ has a negative factor in it; so are the bounds of what remains of a sum.
func TestHalvesOfAHeadDivide(t *testing.T) {
	tb := newTable(&ir.Graph{})
	i, h, j := tb.index(0, tb.integer(6)), tb.index(1, tb.integer(4)), tb.index(2, tb.integer(8))
	place := tb.add(tb.add(tb.integer(4), 8, h), 1, tb.mod(j, 4))
	at := tb.add(place, 32, i)
	require.Equal(t, i, tb.div(at, 32))
	require.NotEqual(t, i, tb.div(tb.add(at, 1, tb.integer(1)), 32), "the last of all elements is in the next row")
	bounds := func(a termID) []int64 { return []int64{tb.nodes[a].lo, tb.nodes[a].hi} }
	require.Equal(t, []int64{4, 31}, bounds(place))
	require.Equal(t, []int64{-2, 1}, bounds(tb.add(j, -4, tb.div(tb.add(j, 1, tb.integer(2)), 4))))
	require.Equal(t, []int64{-9, 0}, bounds(tb.scale(tb.mod(j, 4), -3)))
}
