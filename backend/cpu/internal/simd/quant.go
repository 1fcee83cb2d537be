package simd

import "fmt"

// GroupSums sets dst[i] to the sum of x[i*g:(i+1)*g]. g is 32, 64 or 128, and
// len(x) is len(dst)*g.
func GroupSums(dst, x []float32, g int) {
	checkGroup("GroupSums", len(x), g)
	if len(dst) != len(x)/g {
		panic(fmt.Sprintf("simd: GroupSums: len(dst) = %d, want len(x)/g = %d/%d", len(dst), len(x), g))
	}
	groupSums(dst, x, g)
}

// MatVecQ4 sets y[j] to the dot product of x and the 4-bit row j of the n = len(y)
// rows in w: over the groups i of group weights of the row, the sum of
// scales[i]*Σ q·x + biases[i]*xsum[i].
//
// Lengths: x k, a multiple of group; xsum k/group; w n*k/2; scales and biases
// n*k/group.
func MatVecQ4(y, x, xsum []float32, w []byte, scales, biases []float32, k, group int) {
	checkMatVec("MatVecQ4", 4, len(y), x, xsum, w, scales, biases, k, group)
	for rows := blockRows(k / 2); len(y) > 0; {
		n := min(rows, len(y))
		matVecQ4(y[:n], x, xsum, w, scales, biases, k, group)
		y, w, scales, biases = y[n:], w[n*k/2:], scales[n*(k/group):], biases[n*(k/group):]
	}
}

// MatVecQ8 is [MatVecQ4] for 8-bit rows: len(w) is n*k.
func MatVecQ8(y, x, xsum []float32, w []byte, scales, biases []float32, k, group int) {
	checkMatVec("MatVecQ8", 8, len(y), x, xsum, w, scales, biases, k, group)
	for rows := blockRows(k); len(y) > 0; {
		n := min(rows, len(y))
		matVecQ8(y[:n], x, xsum, w, scales, biases, k, group)
		y, w, scales, biases = y[n:], w[n*k:], scales[n*(k/group):], biases[n*(k/group):]
	}
}

func checkGroup(fn string, k, group int) {
	if group != 32 && group != 64 && group != 128 {
		panic(fmt.Sprintf("simd: %s: group = %d, want 32, 64 or 128", fn, group))
	}
	if k < 0 || k%group != 0 {
		panic(fmt.Sprintf("simd: %s: k = %d is no multiple of group = %d", fn, k, group))
	}
}

// checkRows checks n quantized rows of k weights.
func checkRows(fn string, bits, n int, w []byte, scales, biases []float32, k, group int) {
	checkGroup(fn, k, group)
	if want := n * (k / 8 * bits); len(w) != want {
		panic(fmt.Sprintf("simd: %s: len(w) = %d, want %d for %d rows of %d weights of %d bits", fn, len(w), want, n, k, bits))
	}
	if want := n * (k / group); len(scales) != want || len(biases) != want {
		panic(fmt.Sprintf("simd: %s: len(scales) = %d, len(biases) = %d, want %d for %d rows of %d groups",
			fn, len(scales), len(biases), want, n, k/group))
	}
}

func checkMatVec(fn string, bits, n int, x, xsum []float32, w []byte, scales, biases []float32, k, group int) {
	checkRows(fn, bits, n, w, scales, biases, k, group)
	if len(x) != k {
		panic(fmt.Sprintf("simd: %s: len(x) = %d, want k = %d", fn, len(x), k))
	}
	if len(xsum) != k/group {
		panic(fmt.Sprintf("simd: %s: len(xsum) = %d, want k/group = %d/%d", fn, len(xsum), k, group))
	}
}
