package cpu

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	Register(argKernels("float32", nil)...)
	for _, t := range narrows {
		Register(argKernels(t.String(), &t)...)
	}
}

// argKernels returns argmax, max_parts and argmax_parts for rows of a type; t is nil for f32.
func argKernels(word string, t *narrow) []*Kernel {
	return []*Kernel{
		{
			Name:  "argmax_" + word,
			Units: func(c *Call) int { return c.Threads[1] },
			Run:   func(c *Call, w *Worker, lo, hi int) { argmax(c, w, t, lo, hi) },
			Cost:  func(c *Call) float64 { return 20 + 0.1*float64(c.Long(7, 0)) },
		},
		{
			Name:  "max_parts_" + word,
			Units: func(c *Call) int { return c.Groups[0] * c.Groups[1] },
			Run:   func(c *Call, w *Worker, lo, hi int) { maxParts(c, w, t, lo, hi) },
			Cost:  func(*Call) float64 { return 10 + 0.7*partsOfGroup*partSize },
		},
		{
			Name:  "argmax_parts_" + word,
			Units: groupsX,
			Run:   func(c *Call, w *Worker, lo, hi int) { argmaxParts(c, w, t, lo, hi) },
			Cost:  func(c *Call) float64 { return 40 + 0.1*float64(c.Int(3)) },
		},
	}
}

// elements are n elements of argument slot from element `from` on, stride apart. Those of type t are widened.
func elements(c *Call, w *Worker, slot, from, n, stride int, t *narrow) []float32 {
	switch {
	case t == nil && stride == 1:
		return c.F32(slot)[from : from+n]
	case t == nil:
		return run(w.Scratch(n), c.F32(slot), from, stride)
	}
	x := w.Scratch(n)
	t.gather(x, c.U16(slot)[from:], stride)
	return x
}

const (
	partSize     = 16 // consecutive elements of which the first step of a two-step argmax keeps the max
	partsOfGroup = 64 // parts of a threadgroup of the first step
)

// maxParts is the first step of a two-step argmax: it stores the max of every 16 consecutive elements of a row.
//
// Arguments: 0 x f32[rows, 16*parts], 1 top f32[rows, parts], 2 parts u32. Threadgroups are
// (parts/64, rows). A unit is a threadgroup.
func maxParts(c *Call, w *Worker, t *narrow, lo, hi int) {
	parts := c.Int(2)
	for u := lo; u < hi; u++ {
		r, first := u/c.Groups[0], u%c.Groups[0]*partsOfGroup
		n := min(partsOfGroup, parts-first)
		if n <= 0 {
			continue
		}
		at := r*parts + first
		x := elements(c, w, 0, at*partSize, n*partSize, 1, t)
		if t == nil {
			greatestOfParts(c.F32(1)[at:at+n], x)
		} else {
			var top [partsOfGroup]float32
			greatestOfParts(top[:n], x)
			t.to(c.U16(1)[at:at+n], top[:n])
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
func argmaxParts(c *Call, w *Worker, t *narrow, lo, hi int) {
	out, parts := c.U32(2), c.Int(3)
	for r := lo; r < hi; r++ {
		part := argmaxRow(elements(c, w, 1, r*parts, parts, 1, t))
		out[r] = uint32(part*partSize + argmaxRow(elements(c, w, 0, (r*parts+part)*partSize, partSize, 1, t)))
	}
}

// argmax is the least index of the greatest value of each row. NaN is never
// greater; a row without a value above -Inf gives 0.
//
// Arguments, as MLX binds them: 0 in f32[rows, axis_size], 1 out u32[rows], 2
// shape, 3 in_strides and 4 out_strides i64[ndim], 5 ndim u64, 6 axis_stride
// i64, 7 axis_size u64. ndim, the number of dimensions without the reduced one,
// is 0 (one row) or 1. The threads are (group, rows, 1). A unit is a row.
func argmax(c *Call, w *Worker, t *narrow, lo, hi int) {
	out := c.U32(1)
	stride, n := c.Long(6, 0), c.Long(7, 0)
	for r := lo; r < hi; r++ {
		var i, o int
		switch ndim := c.Long(5, 0); {
		case ndim == 1:
			i, o = r*c.Long(3, 0), r*c.Long(4, 0)
		case ndim != 0 || r != 0:
			panic(fmt.Sprintf("cpu: argmax: row %d of %d dimensions: want 0 or 1 dimensions", r, ndim))
		}
		out[o] = uint32(argmaxRow(elements(c, w, 0, i, n, stride, t)))
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
