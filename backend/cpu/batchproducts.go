package cpu

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	names := []string{"float32", "float16", "bfloat16"}
	for i, t := range floatTypes() {
		for _, form := range []string{"nn", "nt", "tn", "tt"} {
			p := batchProduct{floatType: t, xAcross: form[0] == 't', wAcross: form[1] == 'n'}
			Register(&Kernel{Name: fmt.Sprintf("gemm_%s_batch_%s", form, names[i]), Units: p.units, Run: p.run, Cost: p.cost})
		}
	}
}

// batchProduct is y[h,i,m,n] = Σ_k x[h,i,m,k]·w[h,i,n,k], with the sums of gemm. Rows of x and of w lie apart, or across: then
// the memory has a row for each k.
//
// Arguments: 0 x, 1 w, 2 y [H, I, M, N]; 3 K, 4 N, 5 M, 6 the distance of rows of x, 7 of w, all i32; 8 H and I, i32[2]; 9 the
// strides of x by h and i, i64[2], 10 those of w. A unit is up to 48 columns and 512 rows of one product.
type batchProduct struct {
	floatType
	xAcross, wAcross bool
}

func (p *batchProduct) units(c *Call) int { return c.Groups[2] * gemmUnits(c) }

func (p *batchProduct) cost(c *Call) float64 { return gemmTransposedCost(c) }

func (p *batchProduct) run(c *Call, s *Worker, lo, hi int) {
	k, n, m := c.Int(3), c.Int(4), c.Int(5)
	height := min(gemmRows, m)
	inside := int(int32(binary.LittleEndian.Uint32(c.Constant[8][4:])))
	scratch := s.Scratch(simd.MatMulScratch + (gemmCols+height)*k + gemmCols*height)
	scratch, left := scratch[:simd.MatMulScratch], scratch[simd.MatMulScratch:]
	left, rows := left[:height*k], left[height*k:]
	rows, results := rows[:gemmCols*k], rows[gemmCols*k:]
	each, cols, last := gemmUnits(c), ceilDiv(n, gemmCols), -1
	for u := lo; u < hi; u++ {
		c.Pause()
		batch, tile := u/each, u%each
		i, j := tile/cols*gemmRows, tile%cols*gemmCols
		high, wide := min(gemmRows, m-i), min(gemmCols, n-j)
		place := func(slot int) int { return batch/inside*c.Long(slot, 0) + batch%inside*c.Long(slot, 1) }
		if u/cols != last { // the rows of x that left has
			last = u / cols
			p.rows(c, left[:high*k], 0, place(9), c.Int(6), i, k, p.xAcross)
		}
		p.rows(c, rows[:wide*k], 1, place(10), c.Int(7), j, k, p.wAcross)
		y := results[:high*wide]
		simd.MatMulF32(y, wide, left[:high*k], rows[:wide*k], high, wide, k, scratch)
		for r := range high {
			p.store(c, 2, (batch*m+i+r)*n+j, y[r*wide:(r+1)*wide])
		}
	}
}

// rows widens rows of k elements of a matrix that begins at a place of device argument slot, from row `first` on.
func (p *batchProduct) rows(c *Call, dst []float32, slot, at, ld, first, k int, across bool) {
	for r := range len(dst) / k {
		if across {
			p.gather(c, dst[r*k:][:k], slot, at+first+r, ld)
		} else {
			p.load(c, dst[r*k:][:k], slot, at+(first+r)*ld)
		}
	}
}
