package simd

import "unsafe"

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
	if active == Generic {
		matVecQ4Generic(y, x, xsum, w, scales, biases, k, group)
		return
	}
	for step := blockRows(k / 2); len(y) > 0; {
		n := min(step, len(y))
		matVecQ4NEON(ptr(y), ptr(x), ptr(xsum), unsafe.SliceData(w), ptr(scales), ptr(biases), n, k, group)
		y, w, scales, biases = y[n:], w[n*k/2:], scales[n*(k/group):], biases[n*(k/group):]
	}
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
	if active == Generic {
		matVecQ8Generic(y, x, xsum, w, scales, biases, k, group)
		return
	}
	for step := blockRows(k); len(y) > 0; {
		n := min(step, len(y))
		matVecQ8NEON(ptr(y), ptr(x), ptr(xsum), unsafe.SliceData(w), ptr(scales), ptr(biases), n, k, group)
		y, w, scales, biases = y[n:], w[n*k:], scales[n*(k/group):], biases[n*(k/group):]
	}
}

// panelRows is the number of rows of w in a panel, and packRows the number that
// pack takes.
func panelRows() (panel, pack int) {
	if active == Generic {
		return genericPanel, genericPanel
	}
	return neonPanel, 4
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
	if active == Generic {
		packF32Generic(dst, w, genericPanel, cols, stride, genericPanel)
		return
	}
	done := cols &^ 3 // the assembly takes four columns at a time
	packF32NEON(ptr(dst), ptr(w), done, 4*stride)
	if done < cols {
		packF32Generic(dst[done*neonPanel:], w[done:], 4, cols-done, stride, neonPanel)
	}
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
	if active == Generic {
		packQ4Four(dst, w, scales, biases, cols, stride, group)
		return
	}
	packQ4NEON(ptr(dst), unsafe.SliceData(w), ptr(scales), ptr(biases), cols, stride/2, group)
}

// packQ8 is packQ4 with
//
//	q := float32(w[r*stride+c])
func packQ8(dst []float32, w []byte, scales, biases []float32, cols, stride, group int) {
	if active == Generic {
		packQ8Four(dst, w, scales, biases, cols, stride, group)
		return
	}
	packQ8NEON(ptr(dst), unsafe.SliceData(w), ptr(scales), ptr(biases), cols, stride, group)
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
	if active == Generic {
		return tileGeneric(y, ldy, x, ldx, panel, m, cols, n, add)
	}
	if n == neonPanel {
		return tileNEON(y, ldy, x, ldx, panel, m, cols, add)
	}
	// The assembly writes whole rows of a panel: beside y, then.
	var whole [4 * neonPanel]float32
	rows = tileNEON(whole[:], neonPanel, x, ldx, panel, m, cols, false)
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

// neonPanel is the width of a panel.
const neonPanel = 16

// tileNEON is tile for n == neonPanel.
func tileNEON(y []float32, ldy int, x []float32, ldx int, panel []float32, m, cols int, add bool) (rows int) {
	yp, xp, pp := ptr(y), ptr(x), ptr(panel)
	switch {
	case m >= 4:
		tile4NEON(yp, ldy, xp, ldx, pp, cols, add)
		return 4
	case m >= 2:
		tile2NEON(yp, ldy, xp, ldx, pp, cols, add)
		return 2
	}
	tile1NEON(yp, ldy, xp, ldx, pp, cols, add)
	return 1
}

func ptr(x []float32) *float32 { return unsafe.SliceData(x) }

//go:noescape
func matVecQ4NEON(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)

//go:noescape
func matVecQ8NEON(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)

//go:noescape
func packF32NEON(dst, w *float32, cols, stride int)

//go:noescape
func packQ4NEON(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)

//go:noescape
func packQ8NEON(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)

//go:noescape
func tile4NEON(y *float32, ldy int, x *float32, ldx int, panel *float32, cols int, add bool)

//go:noescape
func tile2NEON(y *float32, ldy int, x *float32, ldx int, panel *float32, cols int, add bool)

//go:noescape
func tile1NEON(y *float32, ldy int, x *float32, ldx int, panel *float32, cols int, add bool)
