package cpu

func init() {
	Register(&Kernel{
		Name: "topk_float32", Units: groupsX, Run: topK,
		Cost: func(c *Call) float64 { return 20 + 0.8*float64(c.Uint(3)) + 2*float64(c.Uint(4)*c.Uint(4)) },
	})
}

// topK picks the count greatest elements of each row, in descending order: their
// indices and themselves, bit for bit. Of equal elements (-0 and +0 are equal)
// the one with the least index stands first; NaN stands behind all numbers.
//
// Arguments: 0 in f32[rows, axis_size], 1 ids u32[rows, count], 2 values
// f32[rows, count], 3 axis_size u32, 4 count u32, at most axis_size. A unit is a row. Each
// element is inserted into the best ones so far, which are few.
func topK(c *Call, _ *Worker, lo, hi int) {
	n, k := c.Uint(3), c.Uint(4)
	in, ids, values := c.U32(0), c.U32(1), c.U32(2) // as bits, so that a NaN keeps its payload
	x := c.F32(0)
	for r := lo; r < hi; r++ {
		row, bits := x[r*n:(r+1)*n], in[r*n:(r+1)*n]
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
