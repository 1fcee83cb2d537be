package cpu

import "github.com/mlxc/mlxc/backend/cpu/internal/simd"

func init() {
	for _, name := range []string{"block_softmax_float32", "looped_softmax_float32"} {
		Register(&Kernel{
			Name: name, Units: groupsX, Run: softmax,
			Cost: func(c *Call) float64 { return 20 + 0.6*float64(c.Int(2)) },
		})
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
		x, y := in[r*n:(r+1)*n], out[r*n:(r+1)*n]
		top := simd.Max(x)
		for i, v := range x {
			y[i] = v - top
		}
		simd.ExpTo(y, y)
		simd.ScaleTo(y, 1/simd.Dot(y, ones), y)
		canonical(y)
	}
}
