package cpu

import "fmt"

func init() {
	cost := func(c *Call) float64 { return 20 + 0.8*float64(c.Uint(3)) + 2*float64(c.Uint(4)*c.Uint(4)) }
	Register(&Kernel{
		Name: "topk_float32", Units: groupsX, Cost: cost,
		Run: func(c *Call, w *Worker, lo, hi int) { topK(c, w, nil, c.U32(0), c.U32(2), lo, hi) },
	})
	for _, t := range narrows {
		Register(&Kernel{
			Name: fmt.Sprintf("topk_%v", t), Units: groupsX, Cost: cost,
			Run: func(c *Call, w *Worker, lo, hi int) { topK(c, w, &t, c.U16(0), c.U16(2), lo, hi) },
		})
	}
}

// topK picks the count greatest elements of each row, in descending order: their
// indices and themselves, bit for bit. Of equal elements (-0 and +0 are equal)
// the one with the least index stands first; NaN stands behind all numbers.
//
// Arguments: 0 in T[rows, axis_size], 1 ids u32[rows, count], 2 values
// T[rows, count], 3 axis_size u32, 4 count u32, at most axis_size. T is t, or f32 without one; in and
// values are its bits, so that a NaN keeps its payload. A unit is a row. Each
// element is inserted into the best ones so far, which are few.
func topK[B uint16 | uint32](c *Call, w *Worker, t *narrow, in, values []B, lo, hi int) {
	n, k, ids := c.Uint(3), c.Uint(4), c.U32(1)
	for r := lo; r < hi; r++ {
		row, bits := elements(c, w, 0, r*n, n, 1, t), in[r*n:(r+1)*n]
		best, out := ids[r*k:(r+1)*k], values[r*k:(r+1)*k]
		for i, v := range row {
			at := min(i, k)
			for at > 0 && above(v, row[best[at-1]]) {
				at--
			}
			if at < k {
				copy(best[at+1:], best[at:])
				best[at] = uint32(i)
			}
		}
		for s, i := range best {
			out[s] = bits[i]
		}
	}
}

// above reports whether a ranks above b although b has the lower index: if it is greater, or a number and b NaN.
func above(a, b float32) bool { return a > b || b != b && a == a }
