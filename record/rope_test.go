package record_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// The first elements of heads are turned as whole heads of so many are, and the others stay, in the memory of x or beside it.
func TestRopeOfPartsOfHeads(t *testing.T) {
	const heads, dim, turned = 5, 24, 16
	for _, rows := range []int64{1, 3} {
		for n, traditional := range []bool{false, true} {
			for _, typ := range []ir.DType{ir.F32, ir.BF16} {
				t.Run(fmt.Sprintf("%d rows, %s, traditional: %t", rows, typ, traditional), func(t *testing.T) {
					s := record.New("t", record.Live(cpu.New(1)))
					defer s.Close()
					var freqs record.Tensor
					if n == 0 {
						freqs = s.Weight("freqs", ir.NewBlob(record.Elements(ir.F32, []float32{1, 2, 3, 5, 7, 11, 13, 17})), ir.F32, turned/2)
					}
					x := s.RandomWeight("x", 9, typ, rows, heads, dim)
					state := func(name string, dims int64) record.Tensor { return s.State(name, typ, rows, heads, dims) }
					by := record.Rope{Dims: turned, Traditional: traditional, Base: 100, Scale: 0.5}
					part := func(x record.Tensor, first, dims int64) record.Tensor {
						x.Off = x.Off.AddConst(first * typ.Size())
						x.Shape = record.Dims(rows, heads, dims)
						return x
					}
					var outs []record.Tensor
					keep := func(name string, x record.Tensor) int {
						outs = append(outs, state(name, x.Shape[2].Const))
						s.CopyTo("copy", outs[len(outs)-1], x)
						return len(outs) - 1
					}
					inPlace := state("in place", dim)
					s.CopyTo("copy", inPlace, x)
					s.RopeBy(inPlace, ir.Const(6), freqs, by, record.Into(inPlace))
					y := s.RopeBy(x, ir.Const(6), freqs, by)
					flat := state("flat", turned)
					s.CopyTo("copy", flat, part(x, 0, turned))
					want := s.RopeBy(flat, ir.Const(6), freqs, by)
					before, wanted, got := keep("before", part(x, 0, turned)), keep("want", want), keep("got", part(y, 0, turned))
					rest, gotRest := keep("rest", part(x, turned, dim-turned)), keep("got rest", part(y, turned, dim-turned))
					beside, within := keep("beside", y), keep("within", inPlace)
					_, err := s.Finish()
					require.NoError(t, err)
					bytes := func(i int) []byte {
						b, err := s.Bytes(outs[i])
						require.NoError(t, err)
						return b
					}
					require.NotEqual(t, bytes(before), bytes(wanted))
					require.Equal(t, bytes(wanted), bytes(got))
					require.Equal(t, bytes(rest), bytes(gotRest))
					require.Equal(t, bytes(beside), bytes(within))
				})
			}
		}
	}
}
