package simd

func halvesAtGeneric(dst []float32, src []byte, stride int) {
	for i := range dst {
		dst[i] = halfAt(src[i*stride:])
	}
}

// halfAt is the value of the f16 that bytes begin with.
func halfAt(b []byte) float32 {
	var v [1]float32
	halfToGeneric(v[:], []uint16{uint16(b[0]) | uint16(b[1])<<8})
	return v[0]
}

// signedNibbles are nibbles less 8.
var signedNibbles = func() (t [256][2]float32) {
	for b := range t {
		t[b] = [2]float32{nibbles[b][0] - 8, nibbles[b][1] - 8}
	}
	return t
}()

func matVecQ40Generic(y, x []float32, w []byte, k int) {
	size := k / 32 * 18
	for j := range y {
		var sum float32
		for g := range k / 32 {
			block := w[j*size+18*g:]
			sum += halfAt(block) * nibblesDot((*[32]float32)(x[32*g:]), (*[16]byte)(block[2:]), &signedNibbles)
		}
		y[j] = sum
	}
}

func matVecQ41Generic(y, x, xsum []float32, w []byte, k int) {
	size := k / 32 * 20
	for j := range y {
		var sum, bias float32
		for g := range k / 32 {
			block := w[j*size+20*g:]
			sum += halfAt(block) * nibblesDot((*[32]float32)(x[32*g:]), (*[16]byte)(block[4:]), &nibbles)
			bias += halfAt(block[2:]) * xsum[g]
		}
		y[j] = sum + bias
	}
}

// nibblesDot is the product of x with codes whose low halves are those of the first 16.
func nibblesDot(v *[32]float32, q *[16]byte, values *[256][2]float32) float32 {
	var s0, s1, s2, s3 float32
	for i := 0; i < 16; i += 2 {
		a, b := &values[q[i]], &values[q[i+1]]
		s0 += v[i] * a[0]
		s1 += v[i+1] * b[0]
		s2 += v[16+i] * a[1]
		s3 += v[17+i] * b[1]
	}
	return (s0 + s1) + (s2 + s3)
}

func matVecQ80Generic(y, x []float32, w []byte, k int) {
	size := k / 32 * 34
	for j := range y {
		var sum float32
		for g := range k / 32 {
			block, v := w[j*size+34*g:], (*[32]float32)(x[32*g:])
			var s0, s1, s2, s3 float32
			q := (*[32]byte)(block[2:])
			for i := 0; i < 32; i += 4 {
				s0 += v[i] * float32(int8(q[i]))
				s1 += v[i+1] * float32(int8(q[i+1]))
				s2 += v[i+2] * float32(int8(q[i+2]))
				s3 += v[i+3] * float32(int8(q[i+3]))
			}
			sum += halfAt(block) * ((s0 + s1) + (s2 + s3))
		}
		y[j] = sum
	}
}

// packNibbles is a pack of some rows of blocks of so many bytes into a panel of any width.
func packNibbles(dst []float32, w []byte, scales, biases []float32, rows, cols, stride, panel, bytes, first int) {
	for r := range rows {
		for g := range cols / 32 {
			scale, bias, d := scales[g*panel+r], biases[g*panel+r], dst[g*32*panel+r:]
			for i, b := range w[r*stride+g*bytes+first:][:16] {
				v := &nibbles[b]
				d[i*panel] = scale*v[0] + bias
				d[(16+i)*panel] = scale*v[1] + bias
			}
		}
	}
}

func packQ80Generic(dst []float32, w []byte, scales, biases []float32, rows, cols, stride, panel int) {
	for r := range rows {
		for g := range cols / 32 {
			scale, bias, d := scales[g*panel+r], biases[g*panel+r], dst[g*32*panel+r:]
			for i, b := range w[r*stride+34*g+2:][:32] {
				d[i*panel] = scale*float32(b^128) + bias
			}
		}
	}
}

func packQ40Four(dst []float32, w []byte, scales, biases []float32, cols, stride int) {
	packNibbles(dst, w, scales, biases, genericPanel, cols, stride, genericPanel, 18, 2)
}

func packQ41Four(dst []float32, w []byte, scales, biases []float32, cols, stride int) {
	packNibbles(dst, w, scales, biases, genericPanel, cols, stride, genericPanel, 20, 4)
}

func packQ80Four(dst []float32, w []byte, scales, biases []float32, cols, stride int) {
	packQ80Generic(dst, w, scales, biases, genericPanel, cols, stride, genericPanel)
}

func matVecQ4KGeneric(y, x, xsum []float32, w []byte, scales, biases []float32, k int) {
	groups := k / 32
	for j := range y {
		var sum, bias float32
		for g, scale := range scales[j*groups : (j+1)*groups] {
			v, q := (*[32]float32)(x[32*g:]), (*[32]byte)(w[(j*groups+g)/8*144+16+g%8/2*32:])
			half := g % 2
			var s0, s1, s2, s3 float32
			for i := 0; i < 32; i += 4 {
				s0 += v[i] * nibbles[q[i]][half]
				s1 += v[i+1] * nibbles[q[i+1]][half]
				s2 += v[i+2] * nibbles[q[i+2]][half]
				s3 += v[i+3] * nibbles[q[i+3]][half]
			}
			sum += scale * ((s0 + s1) + (s2 + s3))
			bias += biases[j*groups+g] * xsum[g]
		}
		y[j] = sum + bias
	}
}

func matVecQ6KGeneric(y, x []float32, w []byte, scales []float32, k int) {
	var v [256]float32
	blocks := k / 256
	for j := range y {
		var sum float32
		for b := range blocks {
			at := j*blocks + b
			rowQ6KGeneric(v[:], w[at*210:], scales[16*at:], 1)
			sum += dotGeneric(x[256*b:(b+1)*256], v[:])
		}
		y[j] = sum
	}
}

func rowQ6KGeneric(dst []float32, w []byte, scales []float32, n int) {
	for half := range 2 * n {
		block, s, d := w[half/2*210:], (*[8]float32)(scales[8*half:]), (*[128]float32)(dst[128*half:])
		low, high := (*[64]byte)(block[half%2*64:]), (*[32]byte)(block[128+half%2*32:])
		for i, h := range high {
			a, b := low[i], low[32+i]
			d[i] = s[i/16] * float32(int(a&15|h<<4&48)-32)
			d[32+i] = s[2+i/16] * float32(int(b&15|h<<2&48)-32)
			d[64+i] = s[4+i/16] * float32(int(a>>4|h&48)-32)
			d[96+i] = s[6+i/16] * float32(int(b>>4|h>>2&48)-32)
		}
	}
}

// packQ4KGeneric is packQ4K for some rows and a panel of any width.
func groupsQ8Generic(dst []float32, w []byte, scales []float32, n int) {
	for g, scale := range scales[:n] {
		to, codes := (*[32]float32)(dst[32*g:]), (*[32]byte)(w[32*g:])
		for e, code := range codes {
			to[e] = scale * float32(int8(code))
		}
	}
}

func packQ4KGeneric(dst []float32, w []byte, scales, biases []float32, rows, cols, stride, panel int) {
	for r := range rows {
		for g := range cols / 32 {
			scale, bias, d := scales[g*panel+r], biases[g*panel+r], dst[g*32*panel+r:]
			for i, b := range w[r*stride+g/2*32:][:32] {
				d[i*panel] = scale*nibbles[b][g%2] + bias
			}
		}
	}
}

func packQ4KFour(dst []float32, w []byte, scales, biases []float32, cols, stride int) {
	packQ4KGeneric(dst, w, scales, biases, genericPanel, cols, stride, genericPanel)
}

func scalesQ6KGeneric(dst []float32, w []byte, n int) {
	for b := range n {
		block := w[210*b:][:210]
		for i, c := range block[192:208] {
			dst[16*b+i] = halfAt(block[208:]) * float32(int8(c))
		}
	}
}

func scalesKGeneric(scales, biases []float32, w []byte, n, stride int) {
	for i := range n {
		block, s, m := w[i*stride:][:16], scales[8*i:][:8], biases[8*i:][:8]
		d, least, b := halfAt(block), -halfAt(block[2:]), block[4:16]
		for j := range 4 {
			s[j], m[j] = d*float32(b[j]&63), least*float32(b[4+j]&63)
			s[4+j], m[4+j] = d*float32(b[8+j]&15|b[j]>>6<<4), least*float32(b[8+j]>>4|b[4+j]>>6<<4)
		}
	}
}
