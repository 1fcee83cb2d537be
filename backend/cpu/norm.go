package cpu

import "github.com/mlxc/mlxc/backend/cpu/internal/simd"

func init() {
	Register(
		&Kernel{Name: "rmsfloat32", Units: groupsX, Run: rms, Cost: rmsCost},
		&Kernel{Name: "rms_loopedfloat32", Units: groupsX, Run: rms, Cost: rmsCost},
		&Kernel{Name: "rmsfloat16", Units: groupsX, Run: rmsHalf, Cost: rmsHalfCost},
		&Kernel{Name: "rms_loopedfloat16", Units: groupsX, Run: rmsHalf, Cost: rmsHalfCost},
		&Kernel{Name: "add_rmsfloat32", Units: groupsX, Run: addRMS, Cost: addRMSCost},
		&Kernel{Name: "add_rms_loopedfloat32", Units: groupsX, Run: addRMS, Cost: addRMSCost},
	)
}

// groupsX is the number of units of a kernel in which a threadgroup computes one row: the number of threadgroups
// along x.
func groupsX(c *Call) int { return c.Groups[0] }

// rms is root mean square normalization, in MLX's arithmetic:
//
//	out[r,i] = w[i] * (x[r,i] * inv),  inv = 1/sqrt(Σ x[r,i]² / axis_size + eps)
//
// Arguments: 0 x f32[rows, axis_size], 1 w f32[axis_size : w_stride], 2 out as
// x, 3 eps f32, 4 axis_size u32, 5 w_stride u32. A unit is a row; the order of
// the sum is that of simd.SumSquares. The looped kernel differs on a GPU only.
// out may be x, and w if there is one row.
func rms(c *Call, work *Worker, lo, hi int) {
	n := c.Uint(4)
	x, w, out := c.F32(0), c.F32(1), c.F32(2)
	for r := lo; r < hi; r++ {
		normalize(out[r*n:(r+1)*n], x[r*n:(r+1)*n], w, c.Uint(5), c.Float(3), work)
	}
}

// normalize is rms of one row. out may be x or w.
func normalize(out, x, w []float32, stride int, eps float32, work *Worker) {
	n := len(x)
	mean := simd.SumSquares(x) / float32(n)
	inv := rsqrt32(mean + eps)
	switch stride {
	case 0:
		simd.ScaleTo(out, inv, x)
		simd.ScaleTo(out, w[0], out)
	case 1:
		scaled := work.Scratch(n)
		simd.ScaleTo(scaled, inv, x)
		simd.MulTo(out, w[:n], scaled)
	default:
		simd.ScaleTo(out, inv, x)
		for i := range out {
			out[i] *= w[i*stride]
		}
	}
	canonical(out)
}

// normalizeTo is normalize of one row into out, which overlaps no operand, with contiguous weights. NaNs stay as
// they are, because out is not stored to memory but used as the operand of a product.
func normalizeTo(out, x, w []float32, eps float32) {
	inv := rsqrt32(simd.SumSquares(x)/float32(len(x)) + eps)
	simd.ScaleTo(out, inv, x)
	simd.MulTo(out, w[:len(x)], out)
}

func rmsCost(c *Call) float64 { return 20 + 0.15*float64(c.Uint(4)) }

// rmsHalf is rms in f16, with the sum in f32 and two roundings to f16:
//
//	out[r,i] = f16(w[i] * f16(x[r,i] * inv))
//
// Arguments are those of rms, x, w and out in f16.
func rmsHalf(c *Call, work *Worker, lo, hi int) {
	n, stride := c.Uint(4), c.Uint(5)
	x, w, out := c.U16(0), c.U16(1), c.U16(2)
	buf := work.Scratch(2 * n)
	row, scale := buf[:n], buf[n:]
	for r := lo; r < hi; r++ {
		halfTo(row, x[r*n:(r+1)*n])
		gatherHalf(scale, w, 0, stride) // again for each row: out may be w
		mean := simd.SumSquares(row) / float32(n)
		inv := rsqrt32(mean + c.Float(3))
		simd.ScaleTo(row, inv, row)
		roundToHalf(row, row)
		simd.MulTo(row, scale, row)
		toHalf(out[r*n:(r+1)*n], row)
	}
}

func rmsHalfCost(c *Call) float64 { return 20 + 6*float64(c.Uint(4)) }

// addRMS stores residual = a + b and the rms norm of it, with the same roundings as the two kernels.
//
// Arguments: 0 a, 1 b, f32[rows, axis_size], 2 w f32[axis_size : w_stride],
// 3 residual and 4 out as a, 5 eps f32, 6 axis_size u32, 7 w_stride u32. A unit
// is a row. residual and out may each be a or b.
func addRMS(c *Call, work *Worker, lo, hi int) {
	n := c.Uint(6)
	a, b, w, residual, out := c.F32(0), c.F32(1), c.F32(2), c.F32(3), c.F32(4)
	for r := lo; r < hi; r++ {
		i, j := r*n, (r+1)*n
		simd.AddTo(residual[i:j], a[i:j], b[i:j])
		canonical(residual[i:j])
		normalize(out[i:j], residual[i:j], w, c.Uint(7), c.Float(5), work)
	}
}

func addRMSCost(c *Call) float64 { return 20 + 0.2*float64(c.Uint(6)) }
