package cpu

import "encoding/binary"

func init() {
	Register(
		sliceAt[uint32]("slice_at_uint32"), sliceAt[uint16]("slice_at_float16"),
		updateAt[uint32]("update_at_uint32"), updateAt[uint16]("update_at_float16"),
	)
}

// quad returns element i of an array of four i32.
func (c *Call) quad(slot, i int) int {
	return int(int32(binary.LittleEndian.Uint32(c.Constant[slot][4*i:])))
}

// placed is where a slice begins: start, argument 1, says it along the axes that argument 5 names, kept within 0 and the limits
// in argument 4; strides are those of argument slot, and axes is how many elements start has.
func (c *Call) placed(slot, axes int) int {
	start, at := c.I32(1), 0
	for d := range 4 {
		axis := min(max(c.quad(5, d), 0), axes-1)
		at += min(max(int(start[axis]), 0), c.quad(4, d)) * c.Long(slot, d)
	}
	return at
}

// eachSliceRow calls f for rows [lo, hi) of a slice whose shape is argument 3, with the places of the first three dimensions.
func (c *Call) eachSliceRow(lo, hi int, f func(row int, place [3]int)) {
	for r := lo; r < hi; r++ {
		n1, n2 := c.quad(3, 1), c.quad(3, 2)
		f(r, [3]int{r / (n1 * n2), r / n2 % n1, r % n2})
	}
}

func sliceRows(c *Call) int { return c.quad(3, 0) * c.quad(3, 1) * c.quad(3, 2) }

func sliceCost(c *Call) float64 { return 20 + float64(c.quad(3, 3)) }

// sliceAt copies a slice of four dimensions, element by element and bit by bit, that begins where memory says. Arguments: 0 the
// array, under the strides 6; 1 start; 2 the slice; 3 its shape; 4 limits; 5 axes of start, of which 7 says how many it has.
func sliceAt[W uint16 | uint32](name string) *Kernel {
	return &Kernel{
		Name: name, Units: sliceRows,
		Run: func(c *Call, _ *Worker, lo, hi int) {
			src, dst, n := cast[W](c.Device[0]), cast[W](c.Device[2]), c.quad(3, 3)
			first := c.placed(6, c.Int(7))
			c.eachSliceRow(lo, hi, func(row int, p [3]int) {
				from := first + p[0]*c.Long(6, 0) + p[1]*c.Long(6, 1) + p[2]*c.Long(6, 2)
				copyRun(dst, row*n, 1, src, from, c.Long(6, 3), n)
			})
		},
		Cost: sliceCost,
	}
}

// updateAt is the other way round: 0 is the slice, under the strides 6, 2 the array, under the strides 7, and 8 says how many
// axes there are.
func updateAt[W uint16 | uint32](name string) *Kernel {
	return &Kernel{
		Name: name, Units: sliceRows,
		Run: func(c *Call, _ *Worker, lo, hi int) {
			src, dst, n := cast[W](c.Device[0]), cast[W](c.Device[2]), c.quad(3, 3)
			first := c.placed(7, c.Int(8))
			c.eachSliceRow(lo, hi, func(_ int, p [3]int) {
				from := p[0]*c.Long(6, 0) + p[1]*c.Long(6, 1) + p[2]*c.Long(6, 2)
				to := first + p[0]*c.Long(7, 0) + p[1]*c.Long(7, 1) + p[2]*c.Long(7, 2)
				copyRun(dst, to, c.Long(7, 3), src, from, c.Long(6, 3), n)
			})
		},
		Cost: sliceCost,
	}
}
