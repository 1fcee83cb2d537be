package record_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// Argmax of few long rows is recorded in two steps, any other in one, with the same result: the lowest index of the
// max, where NaN ranks below every number.
func TestArgmaxOfLongRows(t *testing.T) {
	nan, inf, minus := float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))
	random := rand.New(rand.NewPCG(7, 8))
	steps := []string{"max_parts", "|", "argmax"}
	for _, c := range []struct {
		rows, k int64
		param   bool
		want    []string
	}{
		{1, 16384, false, steps}, {1, 49152, false, steps}, {3, 16400, false, steps}, {16, 16384, false, steps},
		{1, 16384 - 16, false, steps[2:]}, {1, 16384 + 8, false, steps[2:]}, {17, 16384, false, steps[2:]}, {2, 16384, true, steps}, {17, 16384, true, steps[2:]},
	} {
		r := record.New("t")
		x := r.Input("x", ir.F32, c.rows, c.k)
		y := r.Output("y", ir.U32, c.rows)
		if c.param {
			n := r.Param("n", 1, uint32(c.rows))
			x.Shape[0], y.Shape[0] = n, n
		}
		r.Argmax(x, record.Into(y))
		g, err := r.Graph()
		require.NoError(t, err)
		require.Equal(t, c.want, shape(g), "%d rows of %d", c.rows, c.k)

		d := cpu.New(2)
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
		require.NoError(t, err)
		p, err := s.Graph(t.Context(), "t")
		require.NoError(t, err)
		if c.param {
			require.NoError(t, p.SetParam("n", float64(c.rows)))
		}
		for _, pool := range [][]float32{{nan}, {-inf}, {minus, 0}, {-1, nan, -2}, {-inf, nan, minus, 0}, {1, 2, 2, nan}, {3, -inf, inf, inf}} {
			values := make([]float32, c.rows*c.k)
			var data []byte
			for i := range values {
				if values[i] = pool[0]; random.IntN(1000) == 0 {
					values[i] = pool[random.IntN(len(pool))]
				}
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(values[i]))
			}
			require.NoError(t, p.SetInput("x", data))
			_, err = p.Run(t.Context())
			require.NoError(t, err)
			got, err := p.Output("y")
			require.NoError(t, err)
			for row := range c.rows {
				best, at := -inf, uint32(0)
				for i, v := range values[row*c.k : (row+1)*c.k] {
					if v > best {
						best, at = v, uint32(i)
					}
				}
				require.Equal(t, at, binary.LittleEndian.Uint32(got[4*row:]), fmt.Sprintf("row %d of %d of %d, %v", row, c.rows, c.k, pool))
			}
		}
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
	}
}
