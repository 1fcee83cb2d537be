package cpu

import "github.com/mlxc/mlxc/backend/cpu/internal/simd"

func init() {
	Register(&Kernel{
		Name: "l2_norm_float32", Units: groupsX, Run: l2Norm,
		Cost: func(c *Call) float64 { return 20 + 0.15*float64(c.Uint(3)) },
	})
}

// l2Norm divides each row by its length, or by eps if that is greater:
//
//	out[r,i] = x[r,i] * (1 / max(sqrt(Σ x[r,k]²), eps))
//
// Arguments: 0 x and 1 out f32[rows, axis_size], 2 eps f32, 3 axis_size u32. A
// unit is a row; the order of the sum is that of simd.SumSquares. out may be x.
func l2Norm(c *Call, _ *Worker, lo, hi int) {
	n, eps := c.Uint(3), c.Float(2)
	x, out := c.F32(0), c.F32(1)
	for r := lo; r < hi; r++ {
		row := x[r*n : (r+1)*n]
		length := sqrt32(simd.SumSquares(row))
		if !(length > eps) { // also if length is NaN: then max returns eps
			length = eps
		}
		inv := 1 / length
		simd.ScaleTo(out[r*n:(r+1)*n], inv, row)
		canonical(out[r*n : (r+1)*n])
	}
}
