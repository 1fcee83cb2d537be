package record_test

import (
	"fmt"
	"math"
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

// A rotation and the one backward leave what was there: of one position and of several, of batches with positions of their
// own, by a table and without, of whole heads and of parts.
func TestRopeBackward(t *testing.T) {
	for _, shape := range [][]int64{{1, 4, 1, 24}, {1, 4, 5, 24}, {3, 4, 5, 24}} {
		for _, dims := range []int64{16, 24} {
			for _, table := range []bool{false, true} {
				for _, traditional := range []bool{false, true} {
					s := record.New("t", record.Live(cpu.New(1)))
					x := s.RandomWeight("x", 9, ir.F32, shape...)
					var freqs record.Tensor
					if table {
						freqs = s.Weight("freqs", ir.NewBlob(record.Elements(ir.F32, []float32{1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31}[:dims/2])), ir.F32, dims/2)
					}
					offset := s.Input("offset", ir.I32, shape[0])
					require.NoError(t, s.Write(offset, []byte{3, 0, 0, 0, 250, 1, 0, 0, 17, 0, 0, 0}[:4*shape[0]]))
					by := record.Rope{Dims: dims, Traditional: traditional, Base: 100, Scale: 0.5}
					turned := s.MLX().Rope(x, offset, freqs, by)
					by.Backward = true
					outs := []record.Tensor{s.State("given", ir.F32, shape...), s.State("turned", ir.F32, shape...), s.State("back", ir.F32, shape...)}
					s.CopyTo("copy", outs[0], x)
					s.CopyTo("copy", outs[1], turned)
					s.CopyTo("copy", outs[2], s.MLX().Rope(turned, offset, freqs, by))
					if shape[0] == 1 { // as [T, H, D], by the other recorder of rotations
						rows := x.Reshape(ir.Const(shape[1]), ir.Const(shape[2]), ir.Const(shape[3])).Transpose(0, 1)
						by.Backward = false
						other := s.RopeBy(rows, ir.Const(3), freqs, by)
						by.Backward = true
						outs = append(outs, s.State("other", ir.F32, shape[2], shape[1], shape[3]), s.State("rows", ir.F32, shape[2], shape[1], shape[3]))
						s.CopyTo("copy", outs[3], rows)
						s.CopyTo("copy", outs[4], s.RopeBy(other, ir.Const(3), freqs, by))
					}
					_, err := s.Finish()
					require.NoError(t, err)
					values := make([][]float64, len(outs))
					for i, x := range outs {
						b, err := s.Bytes(x)
						require.NoError(t, err)
						values[i] = wide(ir.F32, b)
					}
					away := 0.0
					for i, want := range values[0] {
						require.InDelta(t, want, values[2][i], 1e-6)
						away = max(away, math.Abs(want-values[1][i]))
					}
					require.Greater(t, away, 0.1)
					for i := 3; i < len(values); i += 2 {
						require.InDeltaSlice(t, values[i], values[i+1], 1e-6)
					}
					require.NoError(t, s.Close())
				}
			}
		}
	}
}
