package routes

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// A thread of a dot product takes so many elements.
const dotThreads, dotEach = 512, 32

func dotName(g gemm) string {
	return fmt.Sprintf("dot_product_%s_it%d_tg%d_sg%d", plain(g.a.Type), dotEach, dotThreads, dotThreads/32)
}

// dotProduct sends a product of two vectors: parts, their sum, and its conversion.
func (e *Encoder) dotProduct(g gemm) {
	blocks := ceil(ceil(g.k, dotEach), dotThreads)
	parts := e.temporary(ir.F32, ir.Const(blocks))
	e.input(0, g.a.Array)
	e.input(1, g.b.Array)
	e.output(2, parts)
	e.i32(3, ir.Const(g.k))
	e.threads(grid(ir.Const(blocks*dotThreads), ir.Const(1), ir.Const(1)), dotThreads, 1, 1)
	total := e.temporary(ir.F32, g.out.Shape...)
	e.allReduce(sum, parts, total)
	e.copy(copyScalar, total, g.out, nil, nil, nil)
}

// vectorTile says how a matrix-vector kernel is tiled: simdgroups down and across a threadgroup, lanes down
// and across a simdgroup, elements down and across a lane.
type vectorTile struct {
	BM, BN, SM, SN, TM, TN int64
	Results                int64 // that a threadgroup computes
}

// transposedTiles are those of gemv_t by the length of the result, the longest first.
var transposedTiles = []struct{ from, bn int64 }{{2048, 16}, {512, 4}, {0, 2}}

// vectorTileOf returns the tile of gemv, or of gemv_t if the matrix is transposed. Gathered products know no tiles
// for short or very long rows.
func vectorTileOf(transposed bool, in, out int64, gathered bool) vectorTile {
	t := vectorTile{BM: 1, BN: 1, SM: 1, SN: 32, TM: 4, TN: 4}
	if transposed {
		t.SM, t.SN = 8, 4
		if in >= 8192 && out >= 2048 {
			t.SM, t.SN = 4, 8
		}
		for _, l := range transposedTiles {
			if out >= l.from {
				t.BN = l.bn
				break
			}
		}
		if out < 4 {
			t.TN = 1
		}
		t.Results = t.BN * t.SN * t.TN
		return t
	}
	t.BM = 4
	if out >= 4096 {
		t.BM = 8
	}
	switch {
	case gathered:
	case in <= 64:
		t.BM, t.SM, t.SN = 1, 8, 4
	case in >= 16*out:
		t.BM, t.BN = 1, 8
	}
	if out < 4 {
		t.TM = 1
	}
	t.Results = t.BM * t.SM * t.TM
	return t
}

// vectorProduct is a product of a matrix and a vector, whichever is which.
type vectorProduct struct {
	matrix, vector               side
	length                       int64
	transposed, scaled           bool
	matrixStrides, vectorStrides []Size
	tile                         vectorTile
}

func vectorOf(g gemm) vectorProduct {
	v := vectorProduct{matrix: g.a, vector: g.b, length: g.m, transposed: g.a.transposed, matrixStrides: g.strides[0], vectorStrides: g.strides[1]}
	if g.n != 1 {
		v = vectorProduct{matrix: g.b, vector: g.a, length: g.n, transposed: !g.b.transposed, matrixStrides: g.strides[1], vectorStrides: g.strides[0]}
	}
	v.tile = vectorTileOf(v.transposed, g.k, v.length, false)
	v.scaled = g.added() && (g.alpha != 1 || g.beta != 0)
	return v
}

func (v *vectorProduct) name(g gemm) string {
	name, t := "gemv", v.tile
	if v.transposed {
		name = "gemv_t"
	}
	return fmt.Sprintf("%s_%s_bm%d_bn%d_sm%d_sn%d_tm%d_tn%d_nc%d_axpby%d", name, plain(g.out.Type),
		t.BM, t.BN, t.SM, t.SN, t.TM, t.TN, digit(len(g.shape) != 1), digit(v.scaled))
}

func (e *Encoder) gemv(g gemm, v vectorProduct) {
	matrix, vector, length, t, scaled := v.matrix, v.vector, v.length, v.tile, v.scaled
	matrixStrides, vectorStrides := v.matrixStrides, v.vectorStrides
	e.input(0, matrix.Array)
	e.input(1, vector.Array)
	e.output(3, g.out)
	e.i32(4, ir.Const(g.k))
	e.i32(5, ir.Const(length))
	e.i32(6, matrix.step)
	e.count(9, len(g.shape))
	e.i32(10, g.shape...)
	e.i64(11, vectorStrides...)
	e.i64(12, matrixStrides...)
	if scaled {
		e.input(2, g.c)
		e.f32(7, g.alpha)
		e.f32(8, g.beta)
		e.i64(13, g.strides[2]...)
		e.i32(14, g.c.Stride(-1))
	}
	e.threadgroups(grid(ir.Const(ceil(length, t.Results)), ir.Const(1), ir.Const(g.batch)), 32, t.BN, t.BM)
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wideTile is how gemv_wide, which reads a matrix once for up to five vectors, is tiled.
type wideTile struct {
	vectors, lanes, passes int64
}

// wideRowsFrom is the generation from which on it is taken, and wideVocabulary the number of rows of the
// matrix from which on one column of threadgroups is enough.
const (
	wideRowsFrom   = 15
	wideVocabulary = 65536
)

// wide returns the tile for 2 to 15 rows of 16-bit elements, which are read four at a time.
func (e *Encoder) wide(a, b side, m, n, k int64, t ir.DType, aStrides, bStrides []Size) (wideTile, bool) {
	fours := e.fixed(a.Offset)%8 == 0 && e.fixed(b.Offset)%8 == 0 && k%4 == 0
	for _, s := range append(with(aStrides, a.step, b.step), bStrides...) {
		fours = fours && e.fixed(s)%4 == 0
	}
	passes := ceil(m, 5)
	if e.Chip.Generation < wideRowsFrom || m <= 1 || n <= 1 || t != ir.F16 && t != ir.BF16 || !fours || passes > 3 {
		return wideTile{}, false
	}
	w := wideTile{vectors: ceil(m, passes), lanes: 16, passes: passes}
	if passes == 1 || n <= 64 {
		w.lanes = 32
	}
	if n >= wideVocabulary {
		w.passes = 1
	}
	return w, true
}

func wideName(g gemm, w wideTile) string {
	return fmt.Sprintf("gemv_wide_%s_nv%d_kl%d", plain(g.out.Type), w.vectors, w.lanes)
}

func (e *Encoder) gemvWide(g gemm, w wideTile) {
	e.constant(0, len(g.shape) != 1)
	e.constant(1, g.added())
	e.input(0, g.b.Array)
	e.input(1, g.a.Array)
	e.output(3, g.out)
	for i, n := range []Size{ir.Const(g.k), ir.Const(g.n), ir.Const(g.m), g.b.step, g.a.step} {
		e.i32(4+i, n)
	}
	e.count(11, len(g.shape))
	e.i32(12, g.shape...)
	e.i64(13, g.strides[0]...)
	e.i64(14, g.strides[1]...)
	if g.added() {
		e.input(2, g.c)
		e.f32(9, g.alpha)
		e.f32(10, g.beta)
		e.i64(15, g.strides[2]...)
		e.i32(16, g.c.Stride(-2))
		e.i32(17, g.c.Stride(-1))
	}
	e.threadgroups(grid(ir.Const(w.passes), ir.Const(ceil(g.n, 4)), ir.Const(g.batch)), 32, w.lanes/8, 1)
}
