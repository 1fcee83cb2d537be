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
	Register(&Kernel{
		Name:  "max_parts_float32",
		Units: func(c *Call) int { return c.Groups[0] * c.Groups[1] },
		Run:   maxParts,
		Cost:  func(*Call) float64 { return 10 + 0.7*partsOfGroup*partSize },
	})
	Register(&Kernel{
		Name:  "argmax_parts_float32",
		Units: groupsX,
		Run:   argmaxParts,
		Cost:  func(c *Call) float64 { return 40 + 0.1*float64(c.Int(3)) },
	})
}

const (
	partSize     = 16 // consecutive elements of which the first step of a two-step argmax keeps the max
	partsOfGroup = 64 // parts of a threadgroup of the first step
)

// maxParts is the first step of a two-step argmax: it stores the max of every 16 consecutive elements of a row.
//
// Arguments: 0 x f32[rows, 16*parts], 1 top f32[rows, parts], 2 parts u32. Threadgroups are
// (parts/64, rows). A unit is a threadgroup.
func maxParts(c *Call, _ *Worker, lo, hi int) {
	x, top, parts := c.F32(0), c.F32(1), c.Int(2)
	for u := lo; u < hi; u++ {
		r, first := u/c.Groups[0], u%c.Groups[0]*partsOfGroup
		if end := min(first+partsOfGroup, parts); first < end {
			greatestOfParts(top[r*parts+first:r*parts+end], x[(r*parts+first)*partSize:])
		}
	}
}

// greatestOfParts sets top to the max of every 16 consecutive elements of x. NaN ranks below every number, and −0
// below +0, as in max(k < 16, …) of a term.
func greatestOfParts(top, x []float32) {
	for p := range top {
		best := float32(math.Inf(-1))
		for _, v := range x[p*partSize:][:partSize] {
			if v == v {
				best = max(best, v)
			}
		}
		top[p] = best
	}
}

// argmaxParts is the second step of a two-step argmax: it searches only the first part that has the row's max.
//
// Arguments: 0 x f32[rows, 16*parts], 1 top f32[rows, parts], 2 out u32[rows], 3 parts u32.
// Threadgroups are (rows). A unit is a row.
func argmaxParts(c *Call, _ *Worker, lo, hi int) {
	x, top, out, parts := c.F32(0), c.F32(1), c.U32(2), c.Int(3)
	for r := lo; r < hi; r++ {
		part := argmaxRow(top[r*parts : (r+1)*parts])
		out[r] = uint32(part*partSize + argmaxRow(x[(r*parts+part)*partSize:][:partSize]))
	}
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

// argmaxRow finds the max of each chunk first. It looks for the index only in the first chunk whose max is
// that of the row.
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
