//go:build !amd64 && !arm64

package simd

// matVecQ4 is
//
//	for j := range y {
//		y[j] = 0
//		for g := range k / group {
//			var sum float32
//			for e := g * group; e < (g+1)*group; e++ {
//				sum += x[e] * float32(w[(j*k+e)/2]>>(e%2*4)&15)
//			}
//			y[j] += scales[j*k/group+g]*sum + biases[j*k/group+g]*xsum[g]
//		}
//	}
func matVecQ4(y, x, xsum []float32, w []byte, scales, biases []float32, k, group int) {
	matVecQ4Generic(y, x, xsum, w, scales, biases, k, group)
}

// matVecQ8 is
//
//	for j := range y {
//		y[j] = 0
//		for g := range k / group {
//			var sum float32
//			for e := g * group; e < (g+1)*group; e++ {
//				sum += x[e] * float32(w[j*k+e])
//			}
//			y[j] += scales[j*k/group+g]*sum + biases[j*k/group+g]*xsum[g]
//		}
//	}
func matVecQ8(y, x, xsum []float32, w []byte, scales, biases []float32, k, group int) {
	matVecQ8Generic(y, x, xsum, w, scales, biases, k, group)
}

// panelRows is the number of rows of w in a panel, and packRows the number that
// pack takes.
func panelRows() (panel, pack int) {
	return genericPanel, genericPanel
}

// packF32 is, for packRows() rows which are stride float32 apart, and with P for
// the width of a panel,
//
//	for r := range rows {
//		for c := range cols {
//			dst[c*P+r] = w[r*stride+c]
//		}
//	}
func packF32(dst, w []float32, cols, stride int) {
	packF32Generic(dst, w, genericPanel, cols, stride, genericPanel)
}

// packQ4 is, for packRows() rows which are stride weights apart, with P for the
// width of a panel, and with scales and biases already packed,
//
//	for r := range rows {
//		for c := range cols {
//			q := float32(w[(r*stride+c)/2] >> (c % 2 * 4) & 15)
//			dst[c*P+r] = scales[c/group*P+r]*q + biases[c/group*P+r]
//		}
//	}
func packQ4(dst []float32, w []byte, scales, biases []float32, cols, stride, group int) {
	packQ4Four(dst, w, scales, biases, cols, stride, group)
}

// packQ8 is packQ4 with
//
//	q := float32(w[r*stride+c])
func packQ8(dst []float32, w []byte, scales, biases []float32, cols, stride, group int) {
	packQ8Four(dst, w, scales, biases, cols, stride, group)
}

// tile is, for as many of m rows of x as suit it, whose number it returns, and
// with P for the width of a panel,
//
//	for i := range rows {
//		for j := range n {
//			var sum float32
//			for c := range cols {
//				sum += x[i*ldx+c] * panel[c*P+j]
//			}
//			if add {
//				sum += y[i*ldy+j]
//			}
//			y[i*ldy+j] = sum
//		}
//	}
func tile(y []float32, ldy int, x []float32, ldx int, panel []float32, m, cols, n int, add bool) (rows int) {
	return tileGeneric(y, ldy, x, ldx, panel, m, cols, n, add)
}
