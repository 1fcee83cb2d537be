package bytestate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
)

// An input that something is carried to is not fixed, whether or not params advance and
// whether or not regions of a later replay are asked for.
func TestCarriedToIsNotFixed(t *testing.T) {
	for _, params := range []bool{false, true} {
		b := ir.NewBuilder("carry")
		x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 16})
		y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 16})
		w := b.Memory(ir.Memory{Name: "w", Kind: ir.Input, Size: 16})
		if params {
			b.Param("pos", 0, 7)
		}
		b.Copy(ir.ViewOf(y, 0, 16), ir.ViewOf(x, 0, 16), "")
		b.Carry(ir.ViewOf(x, 0, 16), ir.ViewOf(y, 0, 16), "")
		for _, f := range []*bytestate.Facts{bytestate.NewFacts(b.Unfinished()), bytestate.NewFactsOfReplays(b.Unfinished())} {
			require.False(t, f.Fixed(x), "params: %v", params)
			require.True(t, f.Fixed(w))
			r := ir.ViewOf(x, 0, 16).Contiguous()
			_, ok := f.Resolve(&r)
			require.True(t, ok)
		}
	}
}

// A region that params move has another number in a later replay; any other keeps its
// number. The params of the two replays have the same bounds and are independent.
func TestLater(t *testing.T) {
	b := ir.NewBuilder("later")
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: 4096})
	pos := ir.Linear(0, ir.Term{Param: b.Param("pos", 0, 7), Coeff: 64})
	f := bytestate.NewFactsOfReplays(b.Unfinished())
	row, rest := ir.Region{Mem: x, Off: pos, Run: ir.Const(64)}, ir.Region{Mem: x, Off: pos.AddConst(64), Run: ir.Const(64)}
	beyond := ir.Region{Mem: x, Off: pos.AddConst(8 * 64), Run: ir.Const(64)}
	number := func(r ir.Region) int32 {
		a, ok := f.Resolve(&r)
		require.True(t, ok)
		require.NotZero(t, a.Region)
		return a.Region
	}
	require.True(t, f.Disjoint(number(row), number(rest)), "in one replay")
	require.False(t, f.Disjoint(number(row), f.Later(number(rest))), "in another one pos is another")
	require.False(t, f.Disjoint(number(row), f.Later(number(row))))
	require.True(t, f.Disjoint(number(row), f.Later(number(beyond))), "whatever pos is")
	require.Equal(t, f.Later(number(row)), f.Later(number(row)))
	fixed := ir.Region{Mem: x, Off: ir.Const(0), Run: ir.Const(8), Dims: []ir.Dim{{Count: ir.Const(4), Stride: 64}}}
	require.Equal(t, number(fixed), f.Later(number(fixed)))
}
