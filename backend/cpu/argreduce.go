package cpu

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	Register(&Kernel{
		Name:  "argmax_float32",
		Units: func(c *Call) int { return c.Threads[1] },
		Run:   argmax,
		Cost:  func(c *Call) float64 { return 20 + 0.1*float64(c.Long(7, 0)) },
	})
}

// argmax is the least index of the greatest value of each row. NaN is never
// greater; a row without a value above -Inf gives 0.
//
// Arguments, as MLX binds them: 0 in f32[rows, axis_size], 1 out u32[rows], 2
// shape, 3 in_strides and 4 out_strides i64[ndim], 5 ndim u64, 6 axis_stride
// i64, 7 axis_size u64. ndim, the number of dimensions without the reduced one,
// is 0 (one row) or 1. The threads are (group, rows, 1). A unit is a row.
func argmax(c *Call, _ *Worker, lo, hi int) {
	in, out := c.F32(0), c.U32(1)
	stride, n := c.Long(6, 0), c.Long(7, 0)
	for r := lo; r < hi; r++ {
		var i, o int
		switch ndim := c.Long(5, 0); {
		case ndim == 1:
			i, o = r*c.Long(3, 0), r*c.Long(4, 0)
		case ndim != 0 || r != 0:
			panic(fmt.Sprintf("cpu: argmax_float32: row %d of %d dimensions: want 0 or 1 dimensions", r, ndim))
		}
		if stride == 1 {
			out[o] = uint32(argmaxRow(in[i : i+n]))
			continue
		}
		best, at := float32(math.Inf(-1)), 0
		for k := range n {
			if v := in[i+k*stride]; v > best {
				best, at = v, k
			}
		}
		out[o] = uint32(at)
	}
}

// argmaxRow finds the greatest value of each chunk first. It looks for the index only in
// the first chunk that has the greatest value of all.
func argmaxRow(x []float32) int {
	const size = 1024
	best, at := float32(math.Inf(-1)), 0
	for lo := 0; lo < len(x); lo += size {
		part := x[lo:min(lo+size, len(x))]
		m := simd.Max(part)
		if m <= best {
			continue
		}
		for i, v := range part {
			if v > best {
				best, at = v, lo+i
			}
		}
	}
	return at
}
