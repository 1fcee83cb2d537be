package term_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// oddNumbers are numbers at which operations differ.
var oddNumbers = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 2, -2.5, 1e-40, 1e30, -1e30, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// apply computes an operation on symbols of a kind with the given values.
func apply(t *testing.T, op term.Op, kind term.Kind, values ...float32) term.Value {
	t.Helper()
	yields := term.Float
	if op.Condition() {
		yields = term.Bool
	} else if kind != term.Float {
		yields = kind
	}
	e := &term.Expr{Op: op, Kind: yields}
	in := &term.Interp{}
	for i, v := range values {
		e.Args = append(e.Args, &term.Expr{Op: term.Symbol, Kind: kind, Index: i})
		s := term.Value{F: float64(v)}
		if kind != term.Float {
			s.I = int64(v)
		}
		in.Symbols = append(in.Symbols, s)
	}
	return eval(t, in, e)
}

// sameValue reports whether two results are one: the same bits, or NaN both.
func sameValue(a, b term.Value) bool {
	return a.I == b.I && a.Err == b.Err && (math.Float64bits(a.F) == math.Float64bits(b.F) || math.IsNaN(a.F) && math.IsNaN(b.F))
}

// The prover and the passes believe the table that operands may change places. The interpreter must say so for all
// operations that have two, and the opposite for the others.
func TestCommutes(t *testing.T) {
	for _, op := range []term.Op{term.And, term.Or} {
		assert.True(t, op.Commutes() && sameValue(apply(t, op, term.Bool, 0, 1), apply(t, op, term.Bool, 1, 0)), "%s", op)
	}
	for _, op := range []term.Op{term.Mod, term.CeilDiv} {
		assert.False(t, op.Commutes() || sameValue(apply(t, op, term.Int, 2, 3), apply(t, op, term.Int, 3, 2)), "%s", op)
	}
	for _, op := range append(term.FloatOperations(2), term.Comparisons()...) {
		same := true
		for _, a := range oddNumbers {
			for _, b := range oddNumbers {
				same = same && sameValue(apply(t, op, term.Float, a, b), apply(t, op, term.Float, b, a))
			}
		}
		assert.Equal(t, same, op.Commutes(), "%s", op)
	}
}

// An operation is exact if results from exact operands are so, as the interpreter says.
func TestExact(t *testing.T) {
	for n := 1; n <= 2; n++ {
		for _, op := range append(term.FloatOperations(n), term.Erf)[:len(term.FloatOperations(n))+2-n] {
			exact := true
			for _, a := range oddNumbers {
				for _, b := range oddNumbers {
					exact = exact && apply(t, op, term.Float, []float32{a, b}[:n]...).Err == 0
				}
			}
			assert.Equal(t, exact, op.Exact(), "%s", op)
		}
	}
}

// Negated and Mirrored say what they promise, for all numbers, and mirrored ones for NaN too.
func TestComparisons(t *testing.T) {
	assert.Len(t, term.Comparisons(), 6)
	for _, op := range term.Comparisons() {
		for _, a := range oddNumbers {
			for _, b := range oddNumbers {
				holds := apply(t, op, term.Float, a, b).I
				assert.Equal(t, holds, apply(t, op.Mirrored(), term.Float, b, a).I, "%v %s %v", a, op, b)
				if a == a && b == b {
					assert.Equal(t, holds, 1-apply(t, op.Negated(), term.Float, a, b).I, "%v %s %v", a, op, b)
				}
			}
		}
	}
}

// Every operation on numbers has another one that a test must be able to tell apart: there are operands for which
// the two differ by more than executors may.
func TestOther(t *testing.T) {
	for n := 1; n <= 2; n++ {
		for _, op := range append(term.FloatOperations(n), term.Comparisons()...) {
			if op.Args() != n {
				continue
			}
			other, ok := op.Other()
			require.True(t, ok, "%s has no other", op)
			require.Equal(t, n, other.Args(), "%s takes as many operands as %s", other, op)
			differ := false
			for _, a := range oddNumbers {
				for _, b := range oddNumbers {
					x, y := apply(t, op, term.Float, []float32{a, b}[:n]...), apply(t, other, term.Float, []float32{a, b}[:n]...)
					differ = differ || x.I != y.I || !x.Allows(y.F)
				}
			}
			assert.True(t, differ, "%s and %s are the same", op, other)
		}
	}
}

// docs/terms.md is the list of what may stand in a term: it has all names of the table.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/terms.md")
	require.NoError(t, err)
	code := map[string]bool{} // the words that stand between ` and ` in a table
	for line := range strings.Lines(string(page)) {
		for i, piece := range strings.Split(line, "`") {
			if strings.HasPrefix(line, "|") && i%2 == 1 {
				for _, word := range strings.FieldsFunc(piece, func(r rune) bool { return strings.ContainsRune(" ()[],", r) }) {
					code[strings.ReplaceAll(word, `\|`, "|")] = true
				}
			}
		}
	}
	for _, op := range term.Operations() {
		name := op.String()
		switch {
		case strings.HasPrefix(name, "Op("), op == term.ToInt: // a name, a number, an element; u8(a)
			continue
		case op == term.Neg:
			name = "-a"
		case op == term.Not:
			name = "!p"
		}
		assert.True(t, code[name], "no table of docs/terms.md has %s", name)
	}
}

// What a store leaves is what the interpreter says of a rounding to the type.
func TestStored(t *testing.T) {
	for _, typ := range []ir.DType{ir.F32, ir.F16, ir.BF16} {
		for _, x := range append([]float32{65519, 65520, 0x1p-24, 0x1p-25, 0x1.8p-25, 1 + 0x1p-8, 1 + 0x1p-11, 3.1}, oddNumbers...) {
			in := &term.Interp{Symbols: []term.Value{{F: float64(x)}}}
			v := eval(t, in, &term.Expr{Op: term.Round, Kind: term.Float, Type: typ, Args: []*term.Expr{{Op: term.Symbol, Kind: term.Float}}})
			assert.True(t, v.Allows(float64(term.Stored(typ, x))), "%v as %s: %v, and not %v", x, typ, term.Stored(typ, x), v.F)
		}
	}
	assert.Equal(t, uint32(0x7fc00000), math.Float32bits(term.Stored(ir.F32, math.Float32frombits(0xffc12345))))
}
