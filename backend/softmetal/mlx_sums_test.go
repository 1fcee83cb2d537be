//go:build unix

package softmetal_test

import (
	"fmt"
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

// Sums of columns of 16 bits, which MLX adds up in their type, are to the bit what MLX's own compiled kernels make, of few
// rows and of many.
func TestColumnSumsAreMLXs(t *testing.T) {
	sample.Seldom(t)
	metal, err := softmetal.New(t.Context(), softmetal.Options{Trust: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, metal.Close()) })
	for _, typ := range []ir.DType{ir.F16, ir.BF16} {
		for _, shape := range [][2]int64{{1, 33}, {5, 3}, {8, 130}, {31, 129}, {32, 70}, {100, 33}, {256, 5}} {
			t.Run(fmt.Sprint(typ, shape), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				values := make([]float32, shape[0]*shape[1])
				for i := range values {
					values[i] = float32(r.NormFloat64()) * float32(int(1)<<r.IntN(8))
				}
				data := record.Elements(typ, values)
				run := func(with ...record.Setting) []byte {
					s := record.New("t", with...)
					x := s.Input("x", typ, shape[:]...)
					require.NoError(t, s.Write(x, data))
					out := s.State("out", typ, shape[1])
					s.MLX().Reduce("sum", x, []int{0}, record.Into(out))
					_, err := s.Finish()
					require.NoError(t, err)
					sums := make([]byte, shape[1]*typ.Size())
					require.NoError(t, s.Read(out, sums))
					require.NoError(t, s.Close())
					return sums
				}
				want := run(record.Live(metal), record.Compiled(compiledByMLX(t)))
				assert.Equal(t, want, run(record.Live(cpu.New(1))), "on the CPU")
				assert.Equal(t, want, run(record.Live(metal)), "on software Metal")
			})
		}
	}
}
