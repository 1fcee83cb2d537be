package isel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// A term has one normal form, in whatever order its parts were made and its operands written, and even if hashes
// collide.
func TestOrderOfOperands(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	type step struct {
		op   term.Op
		a, b int
	}
	for range 200 {
		var steps []step
		for k := range 12 {
			ops := []term.Op{term.Add, term.Mul, term.Min, term.Max, term.Exp, term.Sub}
			steps = append(steps, step{ops[r.IntN(len(ops))], r.IntN(k + 4), r.IntN(k + 4)})
		}
		// make makes the steps in an order of its own.
		make := func(collide bool) string {
			s := newSpace(&ir.Graph{}, []slot{{}, {}}, foldAll)
			values := map[int]*value{}
			var need func(k int) *value
			need = func(k int) *value {
				if v := values[k]; v != nil {
					return v
				}
				var v *value
				switch {
				case k == 3:
					v = s.real(2.5)
				case k < 3:
					v = s.load(k%2, number(int64(32*(k/2))), ir.F32).v
				default:
					x := steps[k-4]
					a, b := x.a, x.b
					if x.op == term.Exp {
						v = s.make(value{op: x.op, args: []*value{need(a)}})
						break
					}
					if x.op != term.Sub && r.IntN(2) == 0 {
						a, b = b, a
					}
					p := need(a)
					v = s.make(value{op: x.op, args: []*value{p, need(b)}})
				}
				if collide {
					v.hash = 7
				}
				values[k] = v
				return v
			}
			for _, k := range r.Perm(len(steps) + 4) {
				need(k)
			}
			return written(need(len(steps)+3), map[*value]string{})
		}
		for _, collide := range []bool{false, true} {
			want := make(collide)
			for range 4 {
				require.Equal(t, want, make(collide))
			}
		}
	}
}

// written is a term as it stands.
func written(v *value, memo map[*value]string) string {
	if s, ok := memo[v]; ok {
		return s
	}
	s := fmt.Sprint(v.op, v.bits, v.slot, v.addr.c, "(")
	for _, a := range v.args {
		s += written(a, memo) + " "
	}
	memo[v] = s + ")"
	return memo[v]
}
