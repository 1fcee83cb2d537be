package cpu

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	cost := func(c *Call) float64 { return 20 + 0.6*float64(c.Int(2)) }
	for _, kind := range []string{"block", "looped"} {
		Register(&Kernel{Name: kind + "_softmax_float32", Units: groupsX, Run: softmax, Cost: cost})
		for _, t := range narrows {
			Register(&Kernel{Name: fmt.Sprintf("%s_softmax_precise_%v", kind, t), Units: groupsX, Run: softmaxNarrow(t), Cost: cost})
		}
	}
}

// softmax is exp(x - m) / Σ exp(x - m) of each row, m being its greatest
// element:
//
//	out[r,i] = exp(in[r,i] - m[r]) * (1 / Σ_j exp(in[r,j] - m[r]))
//
// Arguments: 0 in and 1 out f32[rows, axis_size], 2 axis_size i32. A unit is a
// row; the order of the sum is that of simd.Dot. A row with a NaN or +Inf, or of
// -Inf alone, becomes NaN. out may be in.
func softmax(c *Call, w *Worker, lo, hi int) {
	n := c.Int(2)
	in, out := c.F32(0), c.F32(1)
	ones := w.Scratch(n)
	fill(ones, 1)
	for r := lo; r < hi; r++ {
		softmaxRow(out[r*n:(r+1)*n], in[r*n:(r+1)*n], ones)
		canonical(out[r*n : (r+1)*n])
	}
}

// softmaxNarrow is softmax in f16 or bf16, computed in f32 and rounded where it is stored.
func softmaxNarrow(t narrow) func(c *Call, w *Worker, lo, hi int) {
	return func(c *Call, w *Worker, lo, hi int) {
		n := c.Int(2)
		in, out := c.U16(0), c.U16(1)
		buf := w.Scratch(2 * n)
		row, ones := buf[:n], buf[n:]
		fill(ones, 1)
		for r := lo; r < hi; r++ {
			t.from(row, in[r*n:(r+1)*n])
			softmaxRow(row, row, ones)
			t.to(out[r*n:(r+1)*n], row)
		}
	}
}

// softmaxRow is softmax of one row. y may be x; ones has as many elements.
func softmaxRow(y, x, ones []float32) {
	top := simd.Max(x)
	for i, v := range x {
		y[i] = v - top
	}
	simd.ExpTo(y, y)
	simd.ScaleTo(y, 1/simd.Dot(y, ones), y)
}
