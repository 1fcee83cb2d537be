package cpu

import (
	"fmt"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

func init() {
	// The tilings that MLX's host code chooses from (gemv, matmul.cpp); one CPU
	// kernel is the twin of all.
	for _, t := range [][6]int{
		{1, 8, 1, 32, 4, 4}, {1, 8, 1, 32, 1, 4},
		{1, 1, 8, 4, 4, 4}, {1, 1, 8, 4, 1, 4},
		{4, 1, 1, 32, 1, 4}, {4, 1, 1, 32, 4, 4},
		{8, 1, 1, 32, 4, 4},
	} {
		tiling := fmt.Sprintf("bm%d_bn%d_sm%d_sn%d_tm%d_tn%d_nc0_axpby0", t[0], t[1], t[2], t[3], t[4], t[5])
		units := func(c *Call) int { return ceilDiv(c.Int(5), gemvRows) * c.Groups[2] }
		cost := func(c *Call) float64 { return 20 + gemvRows*float64(c.Int(4))*0.13 }
		Register(&Kernel{Name: "gemv_float32_" + tiling, Units: units, Run: gemv, Cost: cost})
		for _, n := range narrows {
			Register(&Kernel{Name: fmt.Sprintf("gemv_%v_%s", n, tiling), Units: units, Run: gemvNarrow(n), Cost: cost})
		}
	}
	for kind, p := range fused(dense{half: true}) {
		p.form = alwaysFew
		Register(p.kernel("gemv_" + kind + "_float16_float32"))
	}
	for name, half := range map[string]bool{"float32": false, "float16_float32": true} {
		for kind, p := range fused(dense{half: half}) {
			p.form = alwaysMany
			Register(p.ofMany().kernel("gemm_nt_" + kind + "_" + name))
		}
	}
	for _, t := range narrows {
		for kind, p := range fused(denseOf(t)) {
			p.form = alwaysFew
			Register(p.in(t).kernel(fmt.Sprintf("gemv_%s_%v", kind, t)))
			p.form = alwaysMany
			Register(p.ofMany().in(t).kernel(fmt.Sprintf("gemm_nt_%s_%v", kind, t)))
		}
		for form, cost := range map[string]func(*Call) float64{"nt": gemmCost, "nn": gemmTransposedCost, "tn": gemmTransposedCost} {
			Register(&Kernel{Name: fmt.Sprintf("gemm_%s_%v", form, t), Units: gemmUnits, Run: gemmNarrow(t, form), Cost: cost})
		}
	}
	Register(
		&Kernel{
			Name:  "gemv_float16_float32",
			Units: func(c *Call) int { return ceilDiv(c.Int(4), gemvRows) },
			Run:   gemvHalf,
			Cost:  func(c *Call) float64 { return 20 + gemvRows*float64(c.Int(3))*0.15 },
		},
		&Kernel{Name: "gemm_nt_float32", Units: gemmUnits, Run: gemm, Cost: gemmCost},
		&Kernel{
			Name: "gemm_nt_float16_float32", Units: gemmUnits, Run: gemmHalf,
			Cost: func(c *Call) float64 { return gemmCost(c) + gemmCols*float64(c.Int(3))*0.1 },
		},
		&Kernel{Name: "gemm_nn_float32", Units: gemmUnits, Run: gemmNN, Cost: gemmTransposedCost},
		&Kernel{Name: "gemm_tn_float32", Units: gemmUnits, Run: gemmTN, Cost: gemmTransposedCost},
	)
}

const (
	gemvRows = 8  // rows of one unit of gemv
	gemmCols = 48 // columns of one unit of gemm
	gemmRows = 512
)

// gemv is the product of a matrix with a vector: y[b,n] = Σ_k mat[b,n,k]*x[b,k].
//
// Arguments, as MLX binds them: 0 mat f32[N, K : ld, 1], 1 x f32[K], 2 unused,
// 3 y f32[N], 4 K i32, 5 N i32, 6 ld i32, 11 and 12 the batch strides of x and
// mat, i64[1]; 7–10 unused. Threadgroups along z are the batch. A unit is 8
// rows.
func gemv(c *Call, _ *Worker, lo, hi int) {
	k, n, ld := c.Int(4), c.Int(5), c.Int(6)
	mat, x, y := c.F32(0), c.F32(1), c.F32(3)
	blocks := ceilDiv(n, gemvRows)
	for u := lo; u < hi; {
		b, i := u/blocks, u%blocks*gemvRows
		more := min(hi-u, blocks-u%blocks) // the units of this batch that are left
		j := min(i+more*gemvRows, n)
		u += more

		var xb []float32
		var off int // the offset of row 0
		if b == 0 {
			xb = x[:k]
		} else {
			s := b * c.Long(11, 0)
			xb, off = x[s:s+k], b*c.Long(12, 0)
		}
		yb := y[b*n : (b+1)*n]
		if ld == k {
			simd.MatVecF32(yb[i:j], xb, mat[off+i*k:off+j*k], k)
		} else if ld > k {
			simd.MatVecStridedF32(yb[i:j], xb, mat[off+i*ld:off+(j-1)*ld+k], k, ld)
		} else {
			for r := i; r < j; r++ { // rows that overlap
				yb[r] = simd.Dot(xb, mat[off+r*ld:off+r*ld+k])
			}
		}
		canonical(yb[i:j])
	}
}

// gemvNarrow is gemv in f16 or bf16, with sums in f32.
func gemvNarrow(t narrow) func(c *Call, w *Worker, lo, hi int) {
	return func(c *Call, w *Worker, lo, hi int) {
		k, n, ld := c.Int(4), c.Int(5), c.Int(6)
		mat, x, y := c.U16(0), c.U16(1), c.U16(3)
		blocks := ceilDiv(n, gemvRows)
		buf := w.Scratch(2 * k)
		vector, row := buf[:k], buf[k:]
		last := -1 // the batch whose vector is widened
		for u := lo; u < hi; u++ {
			b, i := u/blocks, u%blocks*gemvRows
			from, off := 0, 0
			if b > 0 {
				from, off = b*c.Long(11, 0), b*c.Long(12, 0)
			}
			if b != last {
				t.from(vector, x[from:from+k])
				last = b
			}
			var sums [gemvRows]float32
			rows := min(gemvRows, n-i)
			for r := range rows {
				at := off + (i+r)*ld
				t.from(row, mat[at:at+k])
				sums[r] = simd.Dot(vector, row)
			}
			t.to(y[b*n+i:b*n+i+rows], sums[:rows])
		}
	}
}

// gemvHalf is y[n] = Σ_k f32(mat[n,k]) * x[k].
//
// Arguments: 0 mat f16[N, K], 1 x f32[K], 2 y f32[N], 3 K i32, 4 N i32. The
// threadgroups are (ceil(N/8), 1, 1). A unit is 8 rows.
func gemvHalf(c *Call, w *Worker, lo, hi int) {
	k, n := c.Int(3), c.Int(4)
	mat, x, y := c.U16(0), c.F32(1)[:k], c.F32(2)
	row := w.Scratch(k)
	for i := lo * gemvRows; i < min(hi*gemvRows, n); i++ {
		simd.HalfTo(row, mat[i*k:(i+1)*k])
		y[i] = stored(simd.Dot(x, row))
	}
}

// gemm is y[m,n] = Σ_k x[m,k]*w[n,k].
//
// Arguments: 0 x f32[M, K], 1 w f32[N, K], 2 y f32[M, N], 3 K i32, 4 N i32,
// 5 M i32. The threadgroups are (ceil(N/32), ceil(M/32), 1). A unit is 48
// columns and up to 512 rows of y.
func gemm(c *Call, s *Worker, lo, hi int) {
	k, w := c.Int(3), c.F32(1)
	scratch := s.Scratch(simd.MatMulScratch)
	for u := lo; u < hi; u++ {
		t := tileOf(c, u)
		simd.MatMulF32(t.y, t.ldy, t.x, w[t.j*k:(t.j+t.n)*k], t.m, t.n, k, scratch)
		t.canonical()
	}
}

// gemmHalf is gemm with w f16[N, K].
func gemmHalf(c *Call, s *Worker, lo, hi int) {
	k, w := c.Int(3), c.U16(1)
	scratch := s.Scratch(simd.MatMulScratch + gemmCols*k)
	rows := scratch[simd.MatMulScratch:]
	for u := lo; u < hi; u++ {
		t := tileOf(c, u)
		simd.HalfTo(rows[:t.n*k], w[t.j*k:(t.j+t.n)*k])
		simd.MatMulF32(t.y, t.ldy, t.x, rows[:t.n*k], t.m, t.n, k, scratch[:simd.MatMulScratch])
		t.canonical()
	}
}

// gemmNN is y[m,n] = Σ_k x[m,k]*w[k,n], with the sums of gemm: a unit turns its
// columns of w into rows and does what gemm does.
//
// Arguments: 0 x f32[M, K], 1 w f32[K, N]; the others and the units are gemm's.
func gemmNN(c *Call, s *Worker, lo, hi int) {
	k, n, w := c.Int(3), c.Int(4), c.F32(1)
	scratch := s.Scratch(simd.MatMulScratch + gemmCols*k)
	rows := scratch[simd.MatMulScratch:]
	for u := lo; u < hi; u++ {
		t := tileOf(c, u)
		transpose(rows, w[t.j:], t.n, k, n)
		simd.MatMulF32(t.y, t.ldy, t.x, rows[:t.n*k], t.m, t.n, k, scratch[:simd.MatMulScratch])
		t.canonical()
	}
}

// gemmTN is y[m,n] = Σ_k x[k,m]*w[k,n], likewise.
//
// Arguments: 0 x f32[K, M], 1 w f32[K, N]; the others and the units are gemm's.
func gemmTN(c *Call, s *Worker, lo, hi int) {
	k, n, m := c.Int(3), c.Int(4), c.Int(5)
	x, w := c.F32(0), c.F32(1)
	scratch := s.Scratch(simd.MatMulScratch + (gemmCols+min(gemmRows, m))*k)
	rows, left := scratch[simd.MatMulScratch:], scratch[simd.MatMulScratch+gemmCols*k:]
	last := -1 // the first row of y of which left holds xᵀ
	for u := lo; u < hi; u++ {
		t := tileOf(c, u)
		if t.i != last {
			transpose(left, x[t.i:], t.m, k, m)
			last = t.i
		}
		transpose(rows, w[t.j:], t.n, k, n)
		simd.MatMulF32(t.y, t.ldy, left[:t.m*k], rows[:t.n*k], t.m, t.n, k, scratch[:simd.MatMulScratch])
		t.canonical()
	}
}

// gemmNarrow is gemm, gemmNN or gemmTN ("nt", "nn", "tn") of f16 or bf16, with their sums in f32.
func gemmNarrow(t narrow, form string) func(c *Call, s *Worker, lo, hi int) {
	return func(c *Call, s *Worker, lo, hi int) {
		k, n, m := c.Int(3), c.Int(4), c.Int(5)
		x, w, y := c.U16(0), c.U16(1), c.U16(2)
		height := min(gemmRows, m)
		scratch := s.Scratch(simd.MatMulScratch + (gemmCols+height)*k + gemmCols*height + max(gemmCols, height))
		scratch, left := scratch[:simd.MatMulScratch], scratch[simd.MatMulScratch:]
		left, rows := left[:height*k], left[height*k:]
		rows, results := rows[:gemmCols*k], rows[gemmCols*k:]
		results, line := results[:gemmCols*height], results[gemmCols*height:]
		// columns widens n columns of k rows, from column `first` on, and makes rows of them.
		columns := func(dst []float32, src []uint16, first, n, ld int) {
			for i := range k {
				part := line[:n]
				t.from(part, src[i*ld+first:][:n])
				for j, v := range part {
					dst[j*k+i] = v
				}
			}
		}
		cols, last := ceilDiv(n, gemmCols), -1
		for u := lo; u < hi; u++ {
			i, j := u/cols*gemmRows, u%cols*gemmCols
			high, wide := min(gemmRows, m-i), min(gemmCols, n-j)
			if i != last {
				if last = i; form == "tn" {
					columns(left, x, i, high, m)
				} else {
					t.from(left[:high*k], x[i*k:(i+high)*k])
				}
			}
			if form == "nt" {
				t.from(rows[:wide*k], w[j*k:(j+wide)*k])
			} else {
				columns(rows, w, j, wide, n)
			}
			simd.MatMulF32(results[:high*wide], wide, left[:high*k], rows[:wide*k], high, wide, k, scratch)
			for r := range high {
				t.to(y[(i+r)*n+j:][:wide], results[r*wide:(r+1)*wide])
			}
		}
	}
}

// transpose sets dst to the n columns of k that src holds, its rows ld apart.
func transpose(dst, src []float32, n, k, ld int) {
	for i := range k {
		for j, v := range src[i*ld : i*ld+n] {
			dst[j*k+i] = v
		}
	}
}

func gemmTransposedCost(c *Call) float64 {
	return gemmCost(c) + (gemmCols+float64(min(gemmRows, c.Int(5))))*float64(c.Int(3))
}

func gemmUnits(c *Call) int { return ceilDiv(c.Int(4), gemmCols) * ceilDiv(c.Int(5), gemmRows) }

func gemmCost(c *Call) float64 {
	return gemmCols * float64(c.Int(3)) * (0.1 + 0.0125*float64(min(gemmRows, c.Int(5))))
}

// tile is what one unit of gemm makes: y [m, n] with row stride ldy, rows from i
// on, from the rows x [m, K] and the rows [j, j+n) of w.
type tile struct {
	x, y            []float32
	i, j, m, n, ldy int
}

func (t *tile) canonical() { canonicalRows(t.y, t.m, t.n, t.ldy) }

func tileOf(c *Call, u int) tile {
	k, n, m := c.Int(3), c.Int(4), c.Int(5)
	cols := ceilDiv(n, gemmCols)
	i, i1 := u/cols*gemmRows, min((u/cols+1)*gemmRows, m)
	j, j1 := u%cols*gemmCols, min((u%cols+1)*gemmCols, n)
	return tile{
		x: c.F32(0)[i*k : i1*k],
		y: c.F32(2)[i*n+j : (i1-1)*n+j1],
		i: i, j: j, m: i1 - i, n: j1 - j, ldy: n,
	}
}

// narrowTileOf is tileOf where x and y have 16 bits. memory has room for the tile's rows of x, widened, and then for y,
// and is the same for all tiles of these rows.
func narrowTileOf(c *Call, u int, memory []float32) tile {
	k, n, m := c.Int(3), c.Int(4), c.Int(5)
	cols := ceilDiv(n, gemmCols)
	i, j := u/cols*gemmRows, u%cols*gemmCols
	high, wide := min(gemmRows, m-i), min(gemmCols, n-j)
	return tile{x: memory[:high*k], y: memory[high*k:][:high*wide], i: i, j: j, m: high, n: wide, ldy: wide}
}

// dense is a matrix in one argument, [N, K] of f32 or of a 16-bit type, for the fused
// products: the same calls as gemv's and gemm's above.
type dense struct{ half, bfloat bool }

func denseOf(t narrow) dense { return dense{half: t == halfType, bfloat: t == bfloatType} }

// is16 reports whether elements have 16 bits; narrow is their type then.
func (d dense) is16() bool { return d.half || d.bfloat }

func (d dense) narrow() narrow {
	if d.bfloat {
		return bfloatType
	}
	return halfType
}

func (d dense) slots() int { return 1 }

func (d dense) scratch(k int, many bool) int {
	switch {
	case many && d.is16():
		return simd.MatMulScratch + gemmCols*k
	case many:
		return simd.MatMulScratch
	}
	return k
}

func (d dense) cost(many bool) float64 {
	switch {
	case d.is16() && many:
		return 0.2
	case d.is16():
		return 0.15
	}
	return 0.1
}

func (d dense) prepare(x, scratch []float32) {}

func (d dense) matVec(c *Call, slot, lo, hi int, y, x, scratch []float32) {
	k := len(x)
	if !d.is16() {
		simd.MatVecF32(y, x, c.F32(slot)[lo*k:hi*k], k)
		return
	}
	w, row := c.U16(slot), scratch[:k]
	for i := lo; i < hi; i++ {
		d.narrow().from(row, w[i*k:(i+1)*k])
		y[i-lo] = simd.Dot(x, row)
	}
}

func (d dense) matMul(c *Call, slot, lo, hi int, y []float32, ldy int, x []float32, m, k int, scratch []float32) {
	n, rows := hi-lo, scratch[simd.MatMulScratch:]
	if d.is16() {
		rows = rows[:n*k]
		d.narrow().from(rows, c.U16(slot)[lo*k:hi*k])
	} else {
		rows = c.F32(slot)[lo*k : hi*k]
	}
	simd.MatMulF32(y, ldy, x, rows, m, n, k, scratch[:simd.MatMulScratch])
}
