package simd

import "fmt"

// Blocks is one of GGML's block formats. A row of k weights is k/32 blocks (of a K-quant k/256), each with its scales
// among its codes. The scales of K-quants, which are packed, come as float32 of their own, one for each group: 32
// weights, of q6_K 16.
type Blocks uint8

const (
	Q40 Blocks = iota // q4_0: codes 0 to 15, less 8
	Q41               // q4_1: codes 0 to 15, and biases
	Q80               // q8_0: codes -128 to 127
	Q4K               // q4_K: codes 0 to 15, and biases
	Q6K               // q6_K: codes -32 to 31
)

// blocks has what a format's rows are made of.
var blocks = [...]struct {
	name           string
	weights, bytes int // of a block
	group          int // the weights that share a scale
	biased         bool
}{
	Q40: {"Q40", 32, 18, 32, false},
	Q41: {"Q41", 32, 20, 32, true},
	Q80: {"Q80", 32, 34, 32, false},
	Q4K: {"Q4K", 256, 144, 32, true},
	Q6K: {"Q6K", 256, 210, 16, false},
}

// HalvesAt sets dst[i] to the value of the f16 whose two bytes are src[i*stride:].
func HalvesAt(dst []float32, src []byte, stride int) {
	if n := len(dst); n > 0 && (stride < 0 || len(src) < (n-1)*stride+2) {
		panic(fmt.Sprintf("simd: HalvesAt: len(src) = %d, want at least (len(dst)-1)*stride+2 = %d*%d+2", len(src), n-1, stride))
	}
	halvesAt(dst, src, stride)
}

// ScalesQ6K sets dst to the scales of blocks of q6_K, 16 a block, each the scale of the block times its own.
func ScalesQ6K(dst []float32, w []byte) {
	n := len(dst) / 16
	if len(dst) != 16*n || len(w) < 210*n {
		panic(fmt.Sprintf("simd: ScalesQ6K: len(dst) = %d, len(w) = %d: want 16 and 210 a block", len(dst), len(w)))
	}
	scalesQ6K(dst, w, n)
}

// ScalesK sets scales and biases to those of blocks of q4_K or q5_K, 8 a block; blocks are stride bytes.
func ScalesK(scales, biases []float32, w []byte, stride int) {
	n := len(scales) / 8
	if len(scales) != 8*n || len(biases) != 8*n || stride < 20 || len(w) < n*stride {
		panic(fmt.Sprintf("simd: ScalesK: len(scales) = %d, len(biases) = %d, len(w) = %d: want 8, 8 and stride = %d a block",
			len(scales), len(biases), len(w), stride))
	}
	scalesK(scales, biases, w, n, stride)
}

// MatVecBlocks sets y[j] to the dot product of x and row j of the n = len(y) rows of blocks in w: over the groups i
// of the row, the sum of scales[i]*Σ q·x + biases[i]*xsum[i], where q is a code.
//
// Lengths: x k; w n rows; with biases xsum k/32; of K-quants scales n*k/32 or, of q6_K, n*k/16, and of q4_K biases
// n*k/32. Of other formats these are not read.
func MatVecBlocks(f Blocks, y, x, xsum []float32, w []byte, scales, biases []float32, k int) {
	f.check("MatVecBlocks", len(y), w, k)
	apart := f == Q4K || f == Q6K
	groups := 0
	if apart {
		groups = k / blocks[f].group
		f.checkScales("MatVecBlocks", len(y), scales, biases, k)
	}
	if len(x) != k || blocks[f].biased && len(xsum) != k/32 {
		panic(fmt.Sprintf("simd: MatVecBlocks: len(x) = %d, len(xsum) = %d, want k = %d and k/32", len(x), len(xsum), k))
	}
	row := f.size(k)
	for step := blockRows(row); len(y) > 0; {
		n := min(step, len(y))
		switch f {
		case Q40:
			matVecQ40(y[:n], x, w, k)
		case Q41:
			matVecQ41(y[:n], x, xsum, w, k)
		case Q80:
			matVecQ80(y[:n], x, w, k)
		case Q4K:
			matVecQ4K(y[:n], x, xsum, w, scales, biases, k)
			biases = biases[n*groups:]
		case Q6K:
			matVecQ6K(y[:n], x, w, scales, k)
		}
		y, w = y[n:], w[n*row:]
		if apart {
			scales = scales[n*groups:]
		}
	}
}

// MatMulBlocks computes y = x·wᵀ for x [m, k], m at least [FewRows], and n rows w of blocks whose weights are
// scales[i]*c + biases[i] for group i of 32. c is the code of q4_0 (without less 8), q4_1 and q4_K, and that of q8_0 plus
// 128; q6_K has no such loop.
//
// Lengths: x m*k; w n rows; scales and biases n*k/32; y at least (m-1)*ldy+n, with ldy >= n; scratch at least
// [MatMulScratch].
func MatMulBlocks(f Blocks, y []float32, ldy int, x []float32, w []byte, scales, biases []float32, m, n, k int, scratch []float32) {
	checkMatMul("MatMulBlocks", y, ldy, x, m, n, k, scratch)
	f.check("MatMulBlocks", n, w, k)
	f.checkScales("MatMulBlocks", n, scales, biases, k)
	if m < FewRows || len(biases) != len(scales) || f == Q6K {
		panic(fmt.Sprintf("simd: MatMulBlocks: m = %d, want at least %d; len(biases) = %d, want %d; format %s", m, FewRows, len(biases), len(scales), blocks[f].name))
	}
	matMul(y, ldy, x, weights{bits: 4, group: 32, q: w, scales: scales, biases: biases, blocks: f, isBlocks: true}, m, n, k, scratch)
}

// size is the number of bytes of a row.
func (f Blocks) size(k int) int { return k / blocks[f].weights * blocks[f].bytes }

func (f Blocks) check(fn string, n int, w []byte, k int) {
	b := blocks[f]
	if k < 0 || k%b.weights != 0 {
		panic(fmt.Sprintf("simd: %s: k = %d is no multiple of %d, the weights of a block of %s", fn, k, b.weights, b.name))
	}
	if len(w) != n*f.size(k) {
		panic(fmt.Sprintf("simd: %s: len(w) = %d, want %d for %d rows of %s", fn, len(w), n*f.size(k), n, b.name))
	}
}

func (f Blocks) checkScales(fn string, n int, scales, biases []float32, k int) {
	if want := n * (k / blocks[f].group); len(scales) != want || f == Q4K && len(biases) != want {
		panic(fmt.Sprintf("simd: %s: len(scales) = %d, len(biases) = %d, want %d for %d rows of %s", fn, len(scales), len(biases), want, n, blocks[f].name))
	}
}

// RowQ6K sets dst to the weights of blocks of q6_K: the products of codes and scales. Lengths: dst 256 for each block of
// w, and scales 16.
func RowQ6K(dst []float32, w []byte, scales []float32) {
	n := len(dst) / 256
	if len(dst) != n*256 || len(w) < n*blocks[Q6K].bytes || len(scales) < 16*n {
		panic(fmt.Sprintf("simd: RowQ6K: len(dst) = %d, len(w) = %d, len(scales) = %d: want 256, 210 and 16 a block", len(dst), len(w), len(scales)))
	}
	rowQ6K(dst, w, scales, n)
}

// GroupsQ8 sets dst to the products of signed codes of 8 bits and scales, of which there is one for each 32.
func GroupsQ8(dst []float32, w []byte, scales []float32) {
	n := len(scales)
	if len(dst) != 32*n || len(w) != 32*n {
		panic(fmt.Sprintf("simd: GroupsQ8: len(dst) = %d, len(w) = %d, len(scales) = %d: want 32 and 32 a scale", len(dst), len(w), n))
	}
	groupsQ8(dst, w, scales, n)
}

// packBlocks decodes cols columns from c on, of rows of k: of as many as the implementation takes if whole is set, and
// else of so many.
func (w weights) packBlocks(p, s, b []float32, row, rows, c, cols, k int, whole bool, width int) {
	stride := w.blocks.size(k)
	if w.blocks == Q4K {
		w.packQ4K(p, s, b, row, rows, c, cols, k, whole, width)
		return
	}
	q := w.q[row*stride+w.blocks.size(c):]
	switch {
	case w.blocks == Q40 && whole:
		packQ40(p, q, s, b, cols, stride)
	case w.blocks == Q40:
		packNibbles(p, q, s, b, rows, cols, stride, width, 18, 2)
	case w.blocks == Q41 && whole:
		packQ41(p, q, s, b, cols, stride)
	case w.blocks == Q41:
		packNibbles(p, q, s, b, rows, cols, stride, width, 20, 4)
	case whole:
		packQ80(p, q, s, b, cols, stride)
	default:
		packQ80Generic(p, q, s, b, rows, cols, stride, width)
	}
}

// packQ4K is packBlocks block by block.
func (w weights) packQ4K(p, s, b []float32, row, rows, c, cols, k int, whole bool, width int) {
	stride, size := w.blocks.size(k), blocks[Q4K].bytes
	for end := c + cols; c < end; {
		n := min(end, c/256*256+256) - c
		q := w.q[row*stride+c/256*size+16+c%256/2:]
		if whole {
			packQ4K(p, q, s, b, n, stride)
		} else {
			packQ4KGeneric(p, q, s, b, rows, n, stride, width)
		}
		if c += n; c < end {
			p, s, b = p[n*width:], s[n/32*width:], b[n/32*width:]
		}
	}
}
