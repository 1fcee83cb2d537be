//go:build unix

package softmetal_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Codes, scales and biases that our kernels make, and the elements that they make of those, are to the bit what MLX's
// own compiled kernels make: of random groups, and of those where the rule has edges.
func TestQuantizationIsMLXs(t *testing.T) {
	sample.Long(t)
	metal, err := softmetal.New(t.Context(), softmetal.Options{Trust: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, metal.Close()) })

	type kind struct {
		typ         ir.DType
		group, bits int64
	}
	var kinds []kind
	for _, group := range []int64{32, 64, 128} {
		for _, bits := range []int64{2, 3, 4, 5, 6, 8} {
			for _, typ := range []ir.DType{ir.F16, ir.BF16, ir.F32} {
				kinds = append(kinds, kind{typ, group, bits})
			}
		}
	}
	for _, k := range sample.Of(t, t.Name(), kinds, sample.Runs) {
		t.Run(fmt.Sprint(k.typ, " ", k.group, " ", k.bits), func(t *testing.T) {
			data := record.Elements(k.typ, groupsToQuantize(int(k.group)))
			n := int64(len(data)) / k.typ.Size() / k.group
			run := func(with ...record.Setting) (out [4][]byte) {
				s := record.New("t", with...)
				w := s.Input("w", k.typ, n, k.group)
				require.NoError(t, s.Write(w, data))
				into := []record.Tensor{
					s.State("codes", ir.U32, n, k.group*k.bits/32), s.State("scales", k.typ, n, 1), s.State("biases", k.typ, n, 1),
					s.State("elements", k.typ, n, k.group),
				}
				q := s.MLX().Quantize(w, k.bits, k.group, record.Into(into[0]), record.Into(into[1]), record.Into(into[2]))
				s.MLX().Dequantize(q, record.Into(into[3]))
				_, err := s.Finish()
				require.NoError(t, err)
				for i, x := range into {
					out[i] = make([]byte, x.Elements().Const*x.DType.Size())
					require.NoError(t, s.Read(x, out[i]))
				}
				require.NoError(t, s.Close())
				return out
			}
			want, got := run(record.Live(metal), record.Compiled(compiledByMLX(t))), run(record.Live(cpu.New(1)))
			for i, what := range []string{"codes", "scales", "biases", "elements"} {
				each := len(want[i]) / int(n)
				for j := range int(n) {
					assert.Equal(t, want[i][j*each:][:each], got[i][j*each:][:each], "%s of group %d", what, j)
				}
			}
		})
	}
}

// groupsToQuantize returns groups of random numbers of some ranges, and such in which every number is 0, equal, of one
// sign, so small that the scale is MLX's least, or between two codes.
func groupsToQuantize(group int) (values []float32) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		scale, shift := math.Exp2(float64(r.IntN(24)-12)), float64(r.IntN(5)-2)
		for range group {
			values = append(values, float32(scale*(r.NormFloat64()+shift)))
		}
	}
	for _, f := range []func(i int) float64{
		func(int) float64 { return 0 },
		func(int) float64 { return math.Copysign(0, -1) },
		func(int) float64 { return 3 },
		func(int) float64 { return -3 },
		func(i int) float64 { return 1e-8 * float64(i%5-2) },
		func(i int) float64 { return 3e-8 * float64(i%5-2) },
		func(i int) float64 { return 3e-8 * float64(2-i%5) },
		func(i int) float64 { return float64(i % 16) },
		func(i int) float64 { return float64(i%16) - 15 },
		func(i int) float64 { return float64(i%31) / 2 },
		func(i int) float64 { return float64(i%511)/2 - 100 },
		func(i int) float64 { return 60000 * float64(i%3-1) },
	} {
		for i := range group {
			values = append(values, float32(f(i)))
		}
	}
	return values
}
