package cpu

import "github.com/mlxc/mlxc/backend/cpu/internal/simd"

func init() {
	Register(&Kernel{
		Name:  "weighted_sum_float32",
		Units: func(c *Call) int { return c.Threads[1] },
		Run:   weightedSum,
		Cost:  func(c *Call) float64 { return 20 + 0.1*float64(c.Threads[0]*c.Int(3)) },
	})
}

// weightedSum adds rows, each times its weight, in their order:
//
//	out[r,i] = Σ_j weights[r,j] * x[r,j,i]
//
// Arguments: 0 x f32[rows, count, width], 1 weights f32[rows, count], 2 out
// f32[rows, width], 3 count i32. The threads are (width, rows, 1). A unit is a
// row.
func weightedSum(c *Call, _ *Worker, lo, hi int) {
	width, count := c.Threads[0], c.Int(3)
	x, weights, out := c.F32(0), c.F32(1), c.F32(2)
	for r := lo; r < hi; r++ {
		y := out[r*width : (r+1)*width]
		fill(y, 0)
		for j := range count {
			at := r*count + j
			simd.Axpy(weights[at], x[at*width:(at+1)*width], y)
		}
		canonical(y)
	}
}
