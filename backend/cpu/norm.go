package cpu

import (
	"math"

	"github.com/mlxc/mlxc/internal/simd"
)

func init() {
	register(
		&Kernel{Name: "rmsfloat32", Units: groupsX, Run: rms, Cost: rmsCost},
		&Kernel{Name: "rms_loopedfloat32", Units: groupsX, Run: rms, Cost: rmsCost},
	)
}

// groupsX is the number of threadgroups along x: a kernel whose threadgroup
// makes one row.
func groupsX(c *Call) int { return c.Groups[0] }

// rms is root mean square normalization, in MLX's arithmetic:
//
//	out[r,i] = w[i] * (x[r,i] * inv),  inv = 1/sqrt(Σ x[r,i]² / axis_size + eps)
//
// Arguments: 0 x f32[rows, axis_size], 1 w f32[axis_size : w_stride], 2 out as
// x, 3 eps f32, 4 axis_size u32, 5 w_stride u32. A unit is a row; the order of
// the sum is that of simd.SumSquares. The looped kernel differs on a GPU only.
func rms(c *Call, _ *Worker, lo, hi int) {
	eps, n, stride := c.Float(3), c.Uint(4), c.Uint(5)
	x, w, out := c.F32(0), c.F32(1), c.F32(2)
	for r := lo; r < hi; r++ {
		xr, o := x[r*n:(r+1)*n], out[r*n:(r+1)*n]
		mean := simd.SumSquares(xr) / float32(n)
		inv := float32(1 / math.Sqrt(float64(mean+eps)))
		simd.ScaleTo(o, inv, xr)
		if stride == 1 {
			simd.MulTo(o, w[:n], o)
			continue
		}
		for i := range o {
			o[i] *= w[i*stride]
		}
	}
}

func rmsCost(c *Call) float64 { return 20 + 0.15*float64(c.Uint(4)) }
