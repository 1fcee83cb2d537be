package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// TestFusedProductsIn16BitsHaveTheBitsOfTheirParts: what fused kernels make of vectors of 16 bits are the results of
// products that are stored, and of Add, or Silu and Multiply, of what is stored.
func TestFusedProductsIn16BitsHaveTheBitsOfTheirParts(t *testing.T) {
	one := [3]int{1, 1, 1}
	for word, narrow := range narrows {
		for _, a := range affines {
			r := rand.New(rand.NewPCG(uint64(a.bits), uint64(a.group)))
			k, n, m := 3*a.group, 2*qmvBlock+5, 3 // more than a block, and part of a unit
			stored := func(x []float32) []uint16 {
				out := make([]uint16, len(x))
				narrow.to(out, x)
				return out
			}
			wide := func(x []uint16) []float32 {
				out := make([]float32, len(x))
				narrow.from(out, x)
				return out
			}
			params := fmt.Sprintf("%s_gs_%d_b_%d", word, a.group, a.bits)
			x, residual := stored(floats(r, m*k)), stored(floats(r, m*n))
			grid := [3]int{m, 1, 1}
			var mats []any
			var dots [3][]uint16
			for i := range dots {
				w := randomMatrix(r, a, n, k).args
				w[1], w[2] = stored(w[1].([]float32)), stored(w[2].([]float32))
				dots[i] = make([]uint16, m*n)
				runKernel(t, "affine_qmv_"+params+"_batch_0_pr_0_hgs_0_r_4", grid, one, append(w[:3:3], x, dots[i], int32(k), int32(n))...)
				mats = append(mats, w...)
			}
			got := func(kernel string, matrices, outs int, more ...any) []any {
				args := append(mats[:3*matrices:3*matrices], x)
				args = append(args, more...)
				var ys []any
				for range outs {
					ys = append(ys, make([]uint16, m*n))
				}
				args = append(append(args, ys...), int32(k))
				for range outs {
					args = append(args, int32(n))
				}
				runKernel(t, "affine_qmv_"+kernel+"_"+params, grid, one, args...)
				return ys
			}
			for i, y := range append(got("x2", 2, 2), got("x3", 3, 3)...) {
				require.Equal(t, dots[[]int{0, 1, 0, 1, 2}[i]], y, "result %d of x2, x3 %s", i, params)
			}
			sum := wide(residual)
			simd.AddTo(sum, sum, wide(dots[0]))
			require.Equal(t, stored(sum), got("add", 1, 1, residual)[0], params)

			gate := wide(dots[0])
			simd.SiluTo(gate, gate)
			gate = wide(stored(gate))
			simd.MulTo(gate, gate, wide(dots[1]))
			require.Equal(t, stored(gate), got("silu_mul", 2, 1)[0], params)
		}
	}
}
