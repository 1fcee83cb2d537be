package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

// ArgumentAt returns the bytes that WriteValues writes at that place, for all values of the params.
// It returns ok wherever two values do not share the bytes.
func TestArgumentAtIsWhatIsWritten(t *testing.T) {
	seen := map[ir.BindingKind]int{}
	property := func(t *rapid.T) {
		g := irtest.Module(t).Graphs[0]
		params := make([]uint32, len(g.Params))
		for i, p := range g.Params {
			if p.Type == ir.U32 {
				params[i] = uint32(rapid.Uint64Range(uint64(p.Min), uint64(p.Max)).Draw(t, "param"))
			} else {
				params[i] = rapid.Uint32().Draw(t, "f32 param")
			}
		}
		for i := range g.Memories {
			m := &g.Memories[i]
			if m.Kind != ir.Argument || m.Alias != ir.NoMem || len(m.Init.Values) == 0 {
				continue
			}
			last := m.Init.Values[len(m.Init.Values)-1]
			end := last.Off + last.Size()
			data := make([]byte, end)
			for k := range data {
				data[k] = 0xee // WriteValues must overwrite whatever was there before
			}
			m.WriteValues(data, params)
			at := func(lo, n int64) (ir.Binding, bool) { return g.ArgumentAt(ir.ViewOf(ir.MemID(i), lo, n)) }
			bytesOf := func(b ir.Binding) []byte {
				if b.Kind == ir.BindBytes {
					return b.Bytes
				}
				return ir.ValueBytes(ir.ScalarBits(b.Type, b.Expr, params))[:b.Type.Size()]
			}
			for _, v := range m.Init.Values {
				b, ok := at(v.Off, v.Size())
				require.True(t, ok)
				require.Equal(t, data[v.Off:v.Off+v.Size()], bytesOf(b))
				seen[b.Kind]++
			}
			lo := rapid.Int64Range(0, end-1).Draw(t, "lo")
			n := rapid.Int64Range(0, end-lo).Draw(t, "n")
			inside := false
			for _, v := range m.Init.Values {
				whole := lo == v.Off && n == v.Size()
				inside = inside || whole || v.Bytes != nil && n > 0 && lo >= v.Off && lo+n <= v.Off+v.Size()
			}
			b, ok := at(lo, n)
			require.Equal(t, inside, ok)
			if ok {
				require.Equal(t, data[lo:lo+n], bytesOf(b))
			}
			// Views through an alias are resolved too; views whose value cannot be known are not.
			h := g.Clone()
			h.Memories = append(h.Memories, ir.Memory{Name: "by another name", Kind: ir.Argument, Size: m.Size - lo, Alias: ir.MemID(i), AliasOff: lo})
			c, ok2 := h.ArgumentAt(ir.ViewOf(ir.MemID(len(h.Memories)-1), 0, n))
			require.Equal(t, ok, ok2)
			require.Equal(t, b, c)
			if len(g.Params) > 0 {
				_, ok = g.ArgumentAt(ir.View{Mem: ir.MemID(i), Off: ir.Linear(0, ir.Term{Param: 0, Coeff: 4}), Len: ir.Const(n)})
				require.False(t, ok)
			}
			require.True(t, m.SameContents(&h.Memories[i]))
			if v := &h.Memories[i].Init.Values[0]; v.Bytes != nil {
				v.Bytes[0]++
			} else {
				v.Expr = v.Expr.AddConst(1)
			}
			require.False(t, m.SameContents(&h.Memories[i]))
			require.Equal(t, data, func() []byte { again := make([]byte, end); m.WriteValues(again, params); return again }(), "a clone shares nothing")
		}
	}
	for round := 0; round < 20 && (round == 0 || seen[ir.BindScalar] == 0); round++ {
		rapid.Check(t, property)
	}
	require.Positive(t, seen[ir.BindBytes])
	require.Positive(t, seen[ir.BindScalar])
}
