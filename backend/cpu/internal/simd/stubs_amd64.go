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
		if active == AVX512 {
			matVecQ4AVX512(ptr(y), ptr(x), ptr(xsum), unsafe.SliceData(w), ptr(scales), ptr(biases), n, k, group)
		} else {
			matVecQ4AVX2(ptr(y), ptr(x), ptr(xsum), unsafe.SliceData(w), ptr(scales), ptr(biases), n, k, group)
		}
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
		if active == AVX512 {
			matVecQ8AVX512(ptr(y), ptr(x), ptr(xsum), unsafe.SliceData(w), ptr(scales), ptr(biases), n, k, group)
		} else {
			matVecQ8AVX2(ptr(y), ptr(x), ptr(xsum), unsafe.SliceData(w), ptr(scales), ptr(biases), n, k, group)
		}
		y, w, scales, biases = y[n:], w[n*k:], scales[n*(k/group):], biases[n*(k/group):]
	}
}

// panelRows is the number of rows of w in a panel, and packRows the number that
// pack takes.
func panelRows() (panel, pack int) {
	switch active {
	case AVX512:
		return 48, 16
	case AVX2:
		return 24, 8
	}
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
	done := cols &^ 3 // the assembly takes four columns at a time
	switch active {
	case AVX512:
		packF32AVX512(ptr(dst), ptr(w), done, 4*stride)
	case AVX2:
		packF32AVX2(ptr(dst), ptr(w), done, 4*stride)
	default:
		done = 0
	}
	if panel, rows := panelRows(); done < cols {
		packF32Generic(dst[done*panel:], w[done:], rows, cols-done, stride, panel)
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
	switch active {
	case AVX512:
		packQ4AVX512(ptr(dst), unsafe.SliceData(w), ptr(scales), ptr(biases), cols, stride/2, group)
	case AVX2:
		packQ4AVX2(ptr(dst), unsafe.SliceData(w), ptr(scales), ptr(biases), cols, stride/2, group)
	default:
		packQ4Four(dst, w, scales, biases, cols, stride, group)
	}
}

// packQ8 is packQ4 with
//
//	q := float32(w[r*stride+c])
func packQ8(dst []float32, w []byte, scales, biases []float32, cols, stride, group int) {
	switch active {
	case AVX512:
		packQ8AVX512(ptr(dst), unsafe.SliceData(w), ptr(scales), ptr(biases), cols, stride, group)
	case AVX2:
		packQ8AVX2(ptr(dst), unsafe.SliceData(w), ptr(scales), ptr(biases), cols, stride, group)
	default:
		packQ8Four(dst, w, scales, biases, cols, stride, group)
	}
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
	yp, xp, pp := ptr(y), ptr(x), ptr(panel)
	switch active {
	case AVX512:
		switch {
		case m >= 8:
			tile8AVX512(yp, ldy, xp, ldx, pp, cols, n, add)
			return 8
		case m >= 4:
			tile4AVX512(yp, ldy, xp, ldx, pp, cols, n, add)
			return 4
		case m >= 2:
			tile2AVX512(yp, ldy, xp, ldx, pp, cols, n, add)
			return 2
		}
		tile1AVX512(yp, ldy, xp, ldx, pp, cols, n, add)
		return 1
	case AVX2:
		switch {
		case m >= 4:
			tile4AVX2(yp, ldy, xp, ldx, pp, cols, n, add)
			return 4
		case m >= 2:
			tile2AVX2(yp, ldy, xp, ldx, pp, cols, n, add)
			return 2
		}
		tile1AVX2(yp, ldy, xp, ldx, pp, cols, n, add)
		return 1
	}
	return tileGeneric(y, ldy, x, ldx, panel, m, cols, n, add)
}

func ptr(x []float32) *float32 { return unsafe.SliceData(x) }

//go:noescape
func matVecQ4AVX2(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)

//go:noescape
func matVecQ4AVX512(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)

//go:noescape
func matVecQ8AVX2(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)

//go:noescape
func matVecQ8AVX512(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)

//go:noescape
func packF32AVX2(dst, w *float32, cols, stride int)

//go:noescape
func packF32AVX512(dst, w *float32, cols, stride int)

//go:noescape
func packQ4AVX2(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)

//go:noescape
func packQ4AVX512(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)

//go:noescape
func packQ8AVX2(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)

//go:noescape
func packQ8AVX512(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)

//go:noescape
func tile1AVX2(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)

//go:noescape
func tile2AVX2(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)

//go:noescape
func tile4AVX2(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)

//go:noescape
func tile1AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)

//go:noescape
func tile2AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)

//go:noescape
func tile4AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)

//go:noescape
func tile8AVX512(y *float32, ldy int, x *float32, ldx int, panel *float32, cols, n int, add bool)
