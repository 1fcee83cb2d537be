package cpu

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	units := func(c *Call) int { return c.Threads[1] }
	cost := func(c *Call) float64 { return 20 + 0.1*float64(c.Threads[0]*c.Int(3)) }
	Register(&Kernel{Name: "weighted_sum_float32", Units: units, Run: weightedSum, Cost: cost})
	for _, t := range narrows {
		Register(&Kernel{Name: fmt.Sprintf("weighted_sum_%v", t), Units: units, Run: weightedSumNarrow(t), Cost: cost})
	}
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

// weightedSumNarrow is weightedSum in f16 or bf16: products are rounded to the type, their sum is f32.
func weightedSumNarrow(t narrow) func(c *Call, w *Worker, lo, hi int) {
	return func(c *Call, w *Worker, lo, hi int) {
		width, count := c.Threads[0], c.Int(3)
		x, weights, out := c.U16(0), c.U16(1), c.U16(2)
		buf := w.Scratch(2 * width)
		y, row := buf[:width], buf[width:]
		var weight [1]float32
		for r := lo; r < hi; r++ {
			fill(y, 0)
			for at := r * count; at < (r+1)*count; at++ {
				t.from(weight[:], weights[at:at+1])
				t.from(row, x[at*width:(at+1)*width])
				simd.ScaleTo(row, weight[0], row)
				t.round(row)
				simd.AddTo(y, y, row)
			}
			t.to(out[r*width:(r+1)*width], y)
		}
	}
}
