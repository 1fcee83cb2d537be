package simd

import "fmt"

// MatMulScratch is the number of float32 that the matrix products want as
// scratch, whatever their shape and the implementation: the widest panel, of 48
// rows, with its scales and biases.
const MatMulScratch = 48 * (blockCols + 2*blockCols/32)

// blockCols is the max number of columns of a panel, and blockColsFewRows that for few
// rows of x. Both are multiples of every group size.
const (
	blockCols        = 384
	blockColsFewRows = 128
)

// MatVecF32 sets y[j] to the dot product of x and row j of the len(y) rows of k
// float32 in w. Lengths: x k; w len(y)*k.
func MatVecF32(y, x, w []float32, k int) {
	if len(x) != k {
		panic(fmt.Sprintf("simd: MatVecF32: len(x) = %d, want k = %d", len(x), k))
	}
	if len(w) != len(y)*k {
		panic(fmt.Sprintf("simd: MatVecF32: len(w) = %d, want len(y)*k = %d*%d", len(w), len(y), k))
	}
	matVecF32Blocks(y, x, w, k, k)
}

// MatVecStridedF32 is [MatVecF32] for rows that begin ld float32 apart, ld >=
// k; len(w) is (len(y)-1)*ld + k, or 0 without rows.
func MatVecStridedF32(y, x, w []float32, k, ld int) {
	if len(x) != k || ld < k {
		panic(fmt.Sprintf("simd: MatVecStridedF32: len(x) = %d, ld = %d, want k = %d and at least k", len(x), ld, k))
	}
	want := 0
	if len(y) > 0 {
		want = (len(y)-1)*ld + k
	}
	if len(w) != want {
		panic(fmt.Sprintf("simd: MatVecStridedF32: len(w) = %d, want (len(y)-1)*ld+k = (%d-1)*%d+%d", len(w), len(y), ld, k))
	}
	matVecF32Blocks(y, x, w, k, ld)
}

func matVecF32Blocks(y, x, w []float32, k, ld int) {
	if 4*len(w) <= blockBytes {
		matVecF32(y, x, w, k, ld)
		return
	}
	for step := blockRows(4 * k); len(y) > 0; {
		n := min(step, len(y))
		matVecF32(y[:n], x, w, k, ld)
		y, w = y[n:], w[min(n*ld, len(w)):]
	}
}

// MatMulF32 computes y = x·wᵀ for x [m, k] and w [n, k]: y[i*ldy+j] is the dot
// product of row i of x and row j of w.
//
// Lengths: x m*k; w n*k; y at least (m-1)*ldy+n, with ldy >= n; scratch at
// least [MatMulScratch].
func MatMulF32(y []float32, ldy int, x, w []float32, m, n, k int, scratch []float32) {
	checkMatMul("MatMulF32", y, ldy, x, m, n, k, scratch)
	if len(w) != n*k {
		panic(fmt.Sprintf("simd: MatMulF32: len(w) = %d, want n*k = %d*%d", len(w), n, k))
	}
	matMul(y, ldy, x, weights{f32: w}, m, n, k, scratch)
}

// MatMulQ4 computes y = x·wᵀ for x [m, k] and n 4-bit rows w of k weights:
// y[i*ldy+j] is the dot product of row i of x and row j of w.
//
// Lengths: x m*k, with k a multiple of group; w n*k/2; scales and biases
// n*k/group; y at least (m-1)*ldy+n, with ldy >= n; scratch at least
// [MatMulScratch].
func MatMulQ4(y []float32, ldy int, x []float32, w []byte, scales, biases []float32, m, n, k, group int, scratch []float32) {
	checkMatMul("MatMulQ4", y, ldy, x, m, n, k, scratch)
	checkRows("MatMulQ4", 4, n, w, scales, biases, k, group)
	matMul(y, ldy, x, weights{bits: 4, group: group, q: w, scales: scales, biases: biases}, m, n, k, scratch)
}

// MatMulQ8 is [MatMulQ4] for 8-bit rows: len(w) is n*k.
func MatMulQ8(y []float32, ldy int, x []float32, w []byte, scales, biases []float32, m, n, k, group int, scratch []float32) {
	checkMatMul("MatMulQ8", y, ldy, x, m, n, k, scratch)
	checkRows("MatMulQ8", 8, n, w, scales, biases, k, group)
	matMul(y, ldy, x, weights{bits: 8, group: group, q: w, scales: scales, biases: biases}, m, n, k, scratch)
}

// Narrow is a 16-bit float type.
type Narrow uint8

const (
	Half   Narrow = 1 + iota // f16
	BFloat                   // bf16
)

// FewRows is the number of rows of x from which on matrix products decode a weight once for all of them.
const FewRows = 4

// MatMulNarrow is [MatMulQ4] or, with 8 bits, [MatMulQ8] with weights that are rounded to a type of 16 bits, for m of
// at least [FewRows].
func MatMulNarrow(t Narrow, bits int, y []float32, ldy int, x []float32, w []byte, scales, biases []float32, m, n, k, group int, scratch []float32) {
	checkMatMul("MatMulNarrow", y, ldy, x, m, n, k, scratch)
	checkRows("MatMulNarrow", bits, n, w, scales, biases, k, group)
	if m < FewRows {
		panic(fmt.Sprintf("simd: MatMulNarrow: m = %d, want at least %d", m, FewRows))
	}
	matMul(y, ldy, x, weights{bits: bits, group: group, q: w, scales: scales, biases: biases, narrow: t}, m, n, k, scratch)
}

// maxDim keeps every product of two dimensions within an int.
const maxDim = 1<<31 - 1

func checkMatMul(fn string, y []float32, ldy int, x []float32, m, n, k int, scratch []float32) {
	for _, d := range [...]int{m, n, k, ldy} {
		if d < 0 || d > maxDim {
			panic(fmt.Sprintf("simd: %s: m = %d, n = %d, k = %d, ldy = %d: want 0 to %d", fn, m, n, k, ldy, maxDim))
		}
	}
	if len(x) != m*k {
		panic(fmt.Sprintf("simd: %s: len(x) = %d, want m*k = %d*%d", fn, len(x), m, k))
	}
	if ldy < n {
		panic(fmt.Sprintf("simd: %s: ldy = %d is less than n = %d", fn, ldy, n))
	}
	if m > 0 && n > 0 && len(y) < (m-1)*ldy+n {
		panic(fmt.Sprintf("simd: %s: len(y) = %d, want at least (m-1)*ldy+n = %d", fn, len(y), (m-1)*ldy+n))
	}
	if len(scratch) < MatMulScratch {
		panic(fmt.Sprintf("simd: %s: len(scratch) = %d, want at least %d", fn, len(scratch), MatMulScratch))
	}
}

// weights is the right operand of a matrix product, plain (bits 0) or
// quantized.
type weights struct {
	bits, group    int
	f32            []float32
	q              []byte
	scales, biases []float32
	narrow         Narrow // if not 0, the type that weights are rounded to
	isBlocks       bool
	blocks         Blocks // the format of q, if isBlocks is set
}

// matMul decodes a panel of rows at a time and multiplies it with all rows of x, so that all m rows share the
// decoding. A long k is cut into blocks of columns. With few rows of x, packing dominates and blocks are small, so
// that the panel stays in the first-level cache; with many, multiplying dominates and blocks are larger.
func matMul(y []float32, ldy int, x []float32, w weights, m, n, k int, scratch []float32) {
	switch {
	case m == 0 || n == 0:
		return
	case k == 0:
		for i := range m {
			clear(y[i*ldy : i*ldy+n])
		}
		return
	case m < FewRows && (w.bits == 0 || m*(k/w.group) <= len(scratch)):
		matVecs(y, ldy, x, w, m, n, k, scratch)
		return
	}
	block := blockCols
	if m < 64 {
		block = blockColsFewRows
	}
	width, _ := panelRows()
	panel, scales, biases := divide(scratch, width)
	for j := 0; j < n; j += width {
		rows := min(width, n-j)
		for c := 0; c < k; c += block {
			cols := min(block, k-c)
			w.pack(panel, scales, biases, j, rows, c, cols, k)
			for i := 0; i < m; {
				i += tileColumns(y[i*ldy+j:], ldy, x[i*k+c:], k, panel, m-i, cols, rows, c > 0)
			}
		}
	}
}

// matVecs is matMul for so few rows of x that a panel does not pay. It takes
// blocks of w that stay in cache for all of them.
func matVecs(y []float32, ldy int, x []float32, w weights, m, n, k int, scratch []float32) {
	var xsum []float32
	var groups int
	rowBytes := 4 * k
	if w.bits > 0 {
		groups, rowBytes = k/w.group, k/8*w.bits
		xsum = scratch[:m*groups]
		groupSums(xsum, x, w.group)
	}
	step := blockRows(rowBytes)
	for j := 0; j < n; j += step {
		end := min(j+step, n)
		for i := range m {
			yi, xi := y[i*ldy+j:i*ldy+end], x[i*k:(i+1)*k]
			if w.bits == 0 {
				matVecF32(yi, xi, w.f32[j*k:end*k], k, k)
				continue
			}
			xs, q := xsum[i*groups:(i+1)*groups], w.q[j*rowBytes:end*rowBytes]
			s, b := w.scales[j*groups:end*groups], w.biases[j*groups:end*groups]
			if w.bits == 4 {
				matVecQ4(yi, xi, xs, q, s, b, k, w.group)
			} else {
				matVecQ8(yi, xi, xs, q, s, b, k, w.group)
			}
		}
	}
}

// Assembly cannot be preempted, so that long work is handed to it in pieces of
// about blockBytes of weights: some 20 µs, and less than a core's own cache.
const blockBytes = 256 << 10

// blockRows is the number of rows of so many bytes in a block: a multiple of 4,
// the number that the assembly takes at a time.
func blockRows(rowBytes int) int {
	return max(4, blockBytes/max(rowBytes, 1)&^3)
}

// panelRows is the number of rows of w in a panel, and packRows the number that
// pack takes.
func panelRows() (panel, packRows int) {
	switch active {
	case AVX512:
		return 48, 16
	case AVX2:
		return 24, 8
	case NEON:
		return neonPanel, 4
	}
	return genericPanel, genericPanel
}

const neonPanel = 16

// tileColumns is tile for any n up to the width of a panel.
func tileColumns(y []float32, ldy int, x []float32, ldx int, panel []float32, m, cols, n int, add bool) (rows int) {
	if active != NEON || n == neonPanel {
		return tile(y, ldy, x, ldx, panel, m, cols, n, add)
	}
	// The assembly writes whole rows of a panel: beside y, then.
	var whole [4 * neonPanel]float32
	rows = tile(whole[:], neonPanel, x, ldx, panel, m, cols, neonPanel, false)
	for i := range rows {
		out, sum := y[i*ldy:i*ldy+n], whole[i*neonPanel:][:n]
		if add {
			addToGeneric(out, sum, out)
		} else {
			copy(out, sum)
		}
	}
	return rows
}

// divide cuts scratch into a panel of so many rows and their scales and biases.
func divide(scratch []float32, rows int) (panel, scales, biases []float32) {
	const groups = blockCols / 32
	panel, scratch = scratch[:rows*blockCols], scratch[rows*blockCols:]
	return panel, scratch[:rows*groups], scratch[rows*groups : 2*rows*groups]
}

// pack decodes cols columns from c on of rows rows from j on, of rows of k.
func (w weights) pack(panel, scales, biases []float32, j, rows, c, cols, k int) {
	width, step := panelRows()
	for r := 0; r < rows; r += step {
		whole := rows-r >= step // else one by one, in Go
		first := (j+r)*k + c
		if w.bits == 0 {
			if whole {
				packColumns(panel[r:], w.f32[first:], cols, k)
			} else {
				packF32Generic(panel[r:], w.f32[first:], rows-r, cols, k, width)
			}
			continue
		}
		groups, ldg, g := cols/w.group, k/w.group, first/w.group
		s, b, p := scales[r:], biases[r:], panel[r:]
		switch {
		case whole:
			packColumns(s, w.scales[g:], groups, ldg)
			packColumns(b, w.biases[g:], groups, ldg)
		default:
			packF32Generic(s, w.scales[g:], rows-r, groups, ldg, width)
			packF32Generic(b, w.biases[g:], rows-r, groups, ldg, width)
		}
		switch {
		case w.isBlocks:
			w.packBlocks(p, s, b, j+r, rows-r, c, cols, k, whole, width)
		case w.bits == 4 && whole:
			packQ4(p, w.q[first/2:], s, b, cols, k/2, w.group)
		case w.bits == 4:
			packQ4Generic(p, w.q[first/2:], s, b, rows-r, cols, k, w.group, width)
		case whole:
			packQ8(p, w.q[first:], s, b, cols, k, w.group)
		default:
			packQ8Generic(p, w.q[first:], s, b, rows-r, cols, k, w.group, width)
		}
	}
	switch w.narrow { // columns beyond rows are rounded too, and nobody reads them
	case Half:
		roundHalf(panel[:cols*width])
	case BFloat:
		roundBFloat(panel[:cols*width])
	}
}

// packColumns is packF32 for any number of columns, of rows that are stride
// float32 apart.
func packColumns(dst, w []float32, cols, stride int) {
	fours := cols &^ 3
	packF32(dst, w, fours, 4*stride)
	if fours < cols {
		panel, rows := panelRows()
		packF32Generic(dst[fours*panel:], w[fours:], rows, cols-fours, stride, panel)
	}
}
