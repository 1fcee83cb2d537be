package cpu

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	for _, looped := range []string{"", "_looped"} {
		Register(
			&Kernel{Name: "rms" + looped + "float32", Units: groupsX, Run: rms, Cost: rmsCost},
			&Kernel{Name: "add_rms" + looped + "float32", Units: groupsX, Run: addRMS, Cost: addRMSCost},
		)
		for _, t := range narrows {
			Register(
				&Kernel{Name: fmt.Sprintf("rms%s%v", looped, t), Units: groupsX, Run: rmsNarrow(t), Cost: rmsNarrowCost},
				&Kernel{Name: fmt.Sprintf("add_rms%s%v", looped, t), Units: groupsX, Run: addRMSNarrow(t), Cost: rmsNarrowCost},
			)
		}
	}
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

// rmsNarrow is rms in f16 or bf16, with the sum in f32 and two roundings to the type:
//
//	out[r,i] = round(w[i] * round(x[r,i] * inv))
//
// Arguments are those of rms, x, w and out in the type.
func rmsNarrow(t narrow) func(c *Call, work *Worker, lo, hi int) {
	return func(c *Call, work *Worker, lo, hi int) {
		n := c.Uint(4)
		x, w, out := c.U16(0), c.U16(1), c.U16(2)
		buf := work.Scratch(2 * n)
		row, scale := buf[:n], buf[n:]
		for r := lo; r < hi; r++ {
			t.from(row, x[r*n:(r+1)*n])
			t.gather(scale, w, c.Uint(5)) // again for each row: out may be w
			t.normalize(row, scale, c.Float(3))
			t.to(out[r*n:(r+1)*n], row)
		}
	}
}

// normalize makes of the row x its norm by the weights w, but for the last rounding to the type.
func (n narrow) normalize(x, w []float32, eps float32) {
	simd.ScaleTo(x, rsqrt32(simd.SumSquares(x)/float32(len(x))+eps), x)
	n.round(x)
	simd.MulTo(x, w, x)
}

func rmsNarrowCost(c *Call) float64 { return 20 + 0.5*float64(len(c.U16(0))/max(1, c.Groups[0])) }

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

// addRMSNarrow is addRMS in f16 or bf16: the sum is rounded to the type before its norm is taken. Arguments are
// those of addRMS, a, b, w, residual and out in the type.
func addRMSNarrow(t narrow) func(c *Call, work *Worker, lo, hi int) {
	return func(c *Call, work *Worker, lo, hi int) {
		n := c.Uint(6)
		a, b, w, residual, out := c.U16(0), c.U16(1), c.U16(2), c.U16(3), c.U16(4)
		buf := work.Scratch(2 * n)
		row, other := buf[:n], buf[n:]
		for r := lo; r < hi; r++ {
			i, j := r*n, (r+1)*n
			t.from(row, a[i:j])
			t.from(other, b[i:j])
			simd.AddTo(row, row, other)
			t.to(residual[i:j], row)
			t.round(row)
			t.gather(other, w, c.Uint(7))
			t.normalize(row, other, c.Float(5))
			t.to(out[i:j], row)
		}
	}
}
