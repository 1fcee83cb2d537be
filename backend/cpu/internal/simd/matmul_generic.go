package simd

// genericPanel is the width of a panel of the Go implementation.
const genericPanel = 4

func matVecF32Generic(y, x, w []float32, k, ld int) {
	for j := range y {
		y[j] = dotGeneric(x, w[j*ld:j*ld+k])
	}
}

func packF32Generic(dst, w []float32, rows, cols, stride, panel int) {
	for r := range rows {
		for c, v := range w[r*stride : r*stride+cols] {
			dst[c*panel+r] = v
		}
	}
}

func packQ4Generic(dst []float32, w []byte, scales, biases []float32, rows, cols, stride, group, panel int) {
	for r := range rows {
		for g := range cols / group {
			scale, bias := scales[g*panel+r], biases[g*panel+r]
			d, q := dst[g*group*panel+r:], w[(r*stride+g*group)/2:][:group/2]
			for i, b := range q {
				v := &nibbles[b]
				d[2*i*panel] = scale*v[0] + bias
				d[(2*i+1)*panel] = scale*v[1] + bias
			}
		}
	}
}

func packQ8Generic(dst []float32, w []byte, scales, biases []float32, rows, cols, stride, group, panel int) {
	for r := range rows {
		for g := range cols / group {
			scale, bias := scales[g*panel+r], biases[g*panel+r]
			d, q := dst[g*group*panel+r:], w[r*stride+g*group:][:group]
			for i, b := range q {
				d[i*panel] = scale*float32(b) + bias
			}
		}
	}
}

// packF32Four, packQ4Four and packQ8Four are packF32Generic and the others for a
// whole panel of this implementation; rows are stride bytes apart.
func packF32Four(dst, w []float32, cols, stride int) {
	packF32Generic(dst, w, genericPanel, cols, stride/4, genericPanel)
}

func packQ4Four(dst []float32, w []byte, scales, biases []float32, cols, stride, group int) {
	for g := range cols / group {
		s, b := (*[genericPanel]float32)(scales[g*genericPanel:]), (*[genericPanel]float32)(biases[g*genericPanel:])
		s0, s1, s2, s3, b0, b1, b2, b3 := s[0], s[1], s[2], s[3], b[0], b[1], b[2], b[3]
		n := group / 2
		at := g * n
		q0, q1 := w[at:at+n], w[stride+at:][:n]
		q2, q3 := w[2*stride+at:][:n], w[3*stride+at:][:n]
		d := dst[g*group*genericPanel:]
		for i, q := range q0 {
			if len(d) < 2*genericPanel {
				break // never; it spares the bounds checks
			}
			o := (*[2 * genericPanel]float32)(d)
			v0, v1, v2, v3 := &nibbles[q], &nibbles[q1[i]], &nibbles[q2[i]], &nibbles[q3[i]]
			o[0], o[1], o[2], o[3] = s0*v0[0]+b0, s1*v1[0]+b1, s2*v2[0]+b2, s3*v3[0]+b3
			o[4], o[5], o[6], o[7] = s0*v0[1]+b0, s1*v1[1]+b1, s2*v2[1]+b2, s3*v3[1]+b3
			d = d[2*genericPanel:]
		}
	}
}

func packQ8Four(dst []float32, w []byte, scales, biases []float32, cols, stride, group int) {
	for g := range cols / group {
		s, b := (*[genericPanel]float32)(scales[g*genericPanel:]), (*[genericPanel]float32)(biases[g*genericPanel:])
		s0, s1, s2, s3, b0, b1, b2, b3 := s[0], s[1], s[2], s[3], b[0], b[1], b[2], b[3]
		at := g * group
		q0, q1 := w[at:at+group], w[stride+at:][:group]
		q2, q3 := w[2*stride+at:][:group], w[3*stride+at:][:group]
		d := dst[at*genericPanel:]
		for i, q := range q0 {
			if len(d) < genericPanel {
				break // never; it spares the bounds checks
			}
			o := (*[genericPanel]float32)(d)
			o[0], o[1] = s0*float32(q)+b0, s1*float32(q1[i])+b1
			o[2], o[3] = s2*float32(q2[i])+b2, s3*float32(q3[i])+b3
			d = d[genericPanel:]
		}
	}
}

func tileGeneric(y []float32, ldy int, x []float32, ldx int, panel []float32, m, cols, n int, add bool) (rows int) {
	var sum [2][genericPanel]float32
	rows = min(m, len(sum))
	x0 := x[:cols]
	x1 := x0 // of one row, twice the same
	if rows == 2 {
		x1 = x[ldx : ldx+cols]
	}
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	x1 = x1[:len(x0)]
	for c, a := range x0 {
		if len(panel) < genericPanel {
			break // never; it spares the bounds checks
		}
		b, p := x1[c], (*[genericPanel]float32)(panel)
		s00 += a * p[0]
		s01 += a * p[1]
		s02 += a * p[2]
		s03 += a * p[3]
		s10 += b * p[0]
		s11 += b * p[1]
		s12 += b * p[2]
		s13 += b * p[3]
		panel = panel[genericPanel:]
	}
	sum[0] = [genericPanel]float32{s00, s01, s02, s03}
	sum[1] = [genericPanel]float32{s10, s11, s12, s13}
	for i := range rows {
		out := y[i*ldy : i*ldy+n]
		for j := range out {
			if add {
				out[j] += sum[i][j]
			} else {
				out[j] = sum[i][j]
			}
		}
	}
	return rows
}
