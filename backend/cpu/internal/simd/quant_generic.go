package simd

// nibbles[b] is the two weights of the byte b: a load is cheaper than a mask, a
// shift and two conversions.
var nibbles = func() (t [256][2]float32) {
	for b := range t {
		t[b] = [2]float32{float32(b & 15), float32(b >> 4)}
	}
	return t
}()

func matVecQ4Generic(y, x, xsum []float32, w []byte, scales, biases []float32, k, group int) {
	groups := k / group
	for j := range y {
		row := w[j*(k/2) : (j+1)*(k/2)]
		s, b := scales[j*groups:(j+1)*groups], biases[j*groups:(j+1)*groups]
		b, xs := b[:len(s)], xsum[:len(s)]
		xr := x
		var acc, acc1 float32
		for i, scale := range s {
			var s0, s1, s2, s3 float32
			for range group / 16 {
				v, q := (*[16]float32)(xr), (*[8]byte)(row)
				t0, t1, t2, t3 := &nibbles[q[0]], &nibbles[q[1]], &nibbles[q[2]], &nibbles[q[3]]
				s0 += v[0]*t0[0] + v[4]*t2[0]
				s1 += v[1]*t0[1] + v[5]*t2[1]
				s2 += v[2]*t1[0] + v[6]*t3[0]
				s3 += v[3]*t1[1] + v[7]*t3[1]
				t0, t1, t2, t3 = &nibbles[q[4]], &nibbles[q[5]], &nibbles[q[6]], &nibbles[q[7]]
				s0 += v[8]*t0[0] + v[12]*t2[0]
				s1 += v[9]*t0[1] + v[13]*t2[1]
				s2 += v[10]*t1[0] + v[14]*t3[0]
				s3 += v[11]*t1[1] + v[15]*t3[1]
				xr, row = xr[16:], row[8:]
			}
			acc += scale * ((s0 + s1) + (s2 + s3))
			acc1 += b[i] * xs[i]
		}
		y[j] = acc + acc1
	}
}

func matVecQ8Generic(y, x, xsum []float32, w []byte, scales, biases []float32, k, group int) {
	groups := k / group
	for j := range y {
		row := w[j*k : (j+1)*k]
		s, b := scales[j*groups:(j+1)*groups], biases[j*groups:(j+1)*groups]
		b, xs := b[:len(s)], xsum[:len(s)]
		xr := x
		var acc, acc1 float32
		for i, scale := range s {
			var s0, s1, s2, s3 float32
			for range group / 8 {
				v, q := (*[8]float32)(xr), (*[8]byte)(row)
				s0 += v[0]*float32(q[0]) + v[4]*float32(q[4])
				s1 += v[1]*float32(q[1]) + v[5]*float32(q[5])
				s2 += v[2]*float32(q[2]) + v[6]*float32(q[6])
				s3 += v[3]*float32(q[3]) + v[7]*float32(q[7])
				xr, row = xr[8:], row[8:]
			}
			acc += scale * ((s0 + s1) + (s2 + s3))
			acc1 += b[i] * xs[i]
		}
		y[j] = acc + acc1
	}
}
