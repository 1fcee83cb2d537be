package main

// A loop is one function of package simd, with what it computes as Go.
type loop struct {
	name string
	// assembly is the type of the assembly. In Go's function an argument that is a pointer is a slice.
	assembly string
	// lengthOf is the slice whose length the argument n is, if Go's function has no such argument.
	lengthOf string
	// generic is the function in Go, if it is not called name+"Generic".
	generic string
	// narrow says that AVX-512 has no loop of its own: that of AVX2 is as fast.
	narrow bool
	body   func(machine)
	doc    string
}

// What loops over quantized rows are given.
const (
	quantizedProduct = "func(y, x, xsum *float32, w *byte, scales, biases *float32, n, k, group int)"
	blockProduct     = "func(y, x *float32, w *byte, n, k int)"
	summedProduct    = "func(y, x, xsum *float32, w *byte, n, k int)"
	scaledProduct    = "func(y, x *float32, w *byte, scales *float32, n, k int)"
	biasedProduct    = "func(y, x, xsum *float32, w *byte, scales, biases *float32, n, k int)"
	blockPack        = "func(dst *float32, w *byte, scales, biases *float32, cols, stride int)"
	quantizedPack    = "func(dst *float32, w *byte, scales, biases *float32, cols, stride, group int)"
)

var loops = []loop{
	{name: "dot", assembly: "func(a, b *float32, n int) float32", lengthOf: "a", body: dot, doc: `
	for i, v := range a {
		sum += v * b[i]
	}
	return sum`},
	{name: "axpy", assembly: "func(alpha float32, x, y *float32, n int)", lengthOf: "x", narrow: true, body: axpy, doc: `
	for i, v := range x {
		y[i] += alpha * v
	}`},
	{name: "maximum", assembly: "func(x *float32, n int) float32", lengthOf: "x", narrow: true, body: maximum, doc: `
	m := float32(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m`},
	{name: "scaleTo", assembly: "func(dst *float32, alpha float32, x *float32, n int)",
		lengthOf: "x", narrow: true, body: scaleTo, doc: `
	for i, v := range x {
		dst[i] = alpha * v
	}`},
	{name: "addTo", assembly: "func(dst, a, b *float32, n int)", lengthOf: "a", narrow: true, body: addTo, doc: `
	for i, v := range a {
		dst[i] = v + b[i]
	}`},
	{name: "mulTo", assembly: "func(dst, a, b *float32, n int)", lengthOf: "a", narrow: true, body: mulTo, doc: `
	for i, v := range a {
		dst[i] = v * b[i]
	}`},
	{name: "expTo", assembly: "func(dst, x *float32, n int)", lengthOf: "x", body: expTo, doc: `
	for i, v := range x {
		dst[i] = float32(math.Exp(float64(v)))
	}`},
	{name: "sigmoidTo", assembly: "func(dst, x *float32, n int)", lengthOf: "x", body: sigmoidTo, doc: `
	for i, v := range x {
		dst[i] = 1 / (1 + exp(abs(v)))
		if !(v < 0) {
			dst[i] = 1 - dst[i]
		}
	}`},
	{name: "siluTo", assembly: "func(dst, x *float32, n int)", lengthOf: "x", body: siluTo, doc: `
	for i, v := range x {
		dst[i] = v / (1 + exp(-v))
	}`},
	{name: "halfTo", assembly: "func(dst *float32, src *uint16, n int)",
		lengthOf: "src", narrow: true, body: widen(half), doc: `
	for i, h := range src {
		dst[i] = the value of the f16 h
	}`},
	{name: "toHalf", assembly: "func(dst *uint16, src *float32, n int)",
		lengthOf: "src", narrow: true, body: narrow(half), doc: `
	for i, v := range src {
		dst[i] = the f16 nearest to v, ties to even; a NaN becomes canonical
	}`},
	{name: "roundHalf", assembly: "func(x *float32, n int)",
		lengthOf: "x", narrow: true, body: roundTo(half), doc: `
	for i, v := range x {
		x[i] = the value of the f16 nearest to v, ties to even; a NaN becomes canonical
	}`},
	{name: "bfloatTo", assembly: "func(dst *float32, src *uint16, n int)",
		lengthOf: "src", narrow: true, body: widen(bfloat), doc: `
	for i, h := range src {
		dst[i] = the value of the bf16 h
	}`},
	{name: "toBFloat", assembly: "func(dst *uint16, src *float32, n int)",
		lengthOf: "src", narrow: true, body: narrow(bfloat), doc: `
	for i, v := range src {
		dst[i] = the bf16 nearest to v, ties to even; a NaN becomes canonical
	}`},
	{name: "roundBFloat", assembly: "func(x *float32, n int)",
		lengthOf: "x", narrow: true, body: roundTo(bfloat), doc: `
	for i, v := range x {
		x[i] = the value of the bf16 nearest to v, ties to even; a NaN becomes canonical
	}`},
	{name: "groupSums", assembly: "func(dst, x *float32, n, group int)",
		lengthOf: "dst", narrow: true, body: groupSums, doc: `
	for i := range dst {
		dst[i] = 0
		for _, v := range x[i*group : (i+1)*group] {
			dst[i] += v
		}
	}`},
	{name: "matVecF32", assembly: "func(y, x, w *float32, n, k, ld int)", lengthOf: "y", body: matVecF32, doc: `
	for j := range y {
		y[j] = dot(x, w[j*ld:j*ld+k])
	}`},
	{name: "matVecQ4", assembly: quantizedProduct, lengthOf: "y", body: matVecQ(4), doc: `
	for j := range y {
		y[j] = 0
		for g := range k / group {
			var sum float32
			for e := g * group; e < (g+1)*group; e++ {
				sum += x[e] * float32(w[(j*k+e)/2]>>(e%2*4)&15)
			}
			y[j] += scales[j*k/group+g]*sum + biases[j*k/group+g]*xsum[g]
		}
	}`},
	{name: "matVecQ8", assembly: quantizedProduct, lengthOf: "y", body: matVecQ(8), doc: `
	for j := range y {
		y[j] = 0
		for g := range k / group {
			var sum float32
			for e := g * group; e < (g+1)*group; e++ {
				sum += x[e] * float32(w[j*k+e])
			}
			y[j] += scales[j*k/group+g]*sum + biases[j*k/group+g]*xsum[g]
		}
	}`},
	{name: "matVecQ40", assembly: blockProduct, lengthOf: "y", body: matVecBlocks(q40), doc: `
	for j := range y {
		y[j] = 0
		for b := range k / 32 {
			y[j] += the first f16 of block b of row j * the sum of x[32*b+e] times (code e of the block, less 8)
		}
	}`},
	{name: "matVecQ41", assembly: summedProduct, lengthOf: "y", body: matVecBlocks(q41), doc: `
	for j := range y {
		y[j] = 0
		for b := range k / 32 {
			y[j] += the first f16 of block b of row j * the sum of x[32*b+e] times code e of the block
			y[j] += the second f16 * xsum[b]
		}
	}`},
	{name: "matVecQ80", assembly: blockProduct, lengthOf: "y", body: matVecBlocks(q80), doc: `
	for j := range y {
		y[j] = 0
		for b := range k / 32 {
			y[j] += the first f16 of block b of row j * the sum of x[32*b+e] times code e of the block, which is signed
		}
	}`},
	{name: "matVecQ4K", assembly: biasedProduct, lengthOf: "y", body: matVecBlocks(q4k), doc: `
	for j := range y {
		y[j] = 0
		for g := range k / 32 {
			y[j] += scales[j*k/32+g] * (the sum of x times the codes of group g of row j)
			y[j] += biases[j*k/32+g] * xsum[g]
		}
	}`},
	{name: "matVecQ6K", assembly: scaledProduct, lengthOf: "y", body: matVecBlocks(q6k), doc: `
	for j := range y {
		y[j] = 0
		for g := range k / 16 {
			y[j] += scales[j*k/16+g] * (the sum of x times the codes of group g of row j, which are signed)
		}
	}`},
	{name: "scalesQ6K", assembly: "func(dst *float32, w *byte, n int)", narrow: true, body: scalesQ6K, doc: `
	for i := range 16 * n {
		dst[i] = the last f16 of block i/16 * its byte 192+i%16, which is signed
	}`},
	{name: "scalesK", assembly: "func(scales, biases *float32, w *byte, n, stride int)", narrow: true, body: scalesK, doc: `
	for i := range 8 * n {
		scales[i] = the first f16 of w[i/8*stride:] * its scale i%8
		biases[i] = -the second f16 * its minimum i%8
	}`},
	{name: "rowQ6K", assembly: "func(dst *float32, w *byte, scales *float32, n int)", body: rowBlocks(q6k), doc: `
	for i := range 256 * n {
		dst[i] = scales[i/16] * code i
	}`},
	{name: "groupsQ8", assembly: "func(dst *float32, w *byte, scales *float32, n int)", body: groupsQ8, doc: `
	for e := range 32 * n {
		dst[e] = scales[e/32] * float32(int8(w[e]))
	}`},
	{name: "halvesAt", assembly: "func(dst *float32, src *byte, n, stride int)", lengthOf: "dst", narrow: true, body: halvesAt, doc: `
	for i := range dst {
		dst[i] = the value of the f16 at src[i*stride:]
	}`},
	{name: "packF32", assembly: "func(dst, w *float32, cols, stride int)", generic: "packF32Four", body: packF32, doc: `
	for r := range rows {
		for c := range cols {
			dst[c*P+r] = w[r*stride/4+c]
		}
	}

for the rows of packRows, stride bytes apart, P the width of a panel, and cols a multiple of 4.`},
	{name: "packQ4", assembly: quantizedPack, generic: "packQ4Four", body: packQ(4), doc: `
	for r := range rows {
		for c := range cols {
			q := float32(w[r*stride+c/2] >> (c % 2 * 4) & 15)
			dst[c*P+r] = scales[c/group*P+r]*q + biases[c/group*P+r]
		}
	}

for rows as packF32 has them, and scales and biases already packed.`},
	{name: "packQ8", assembly: quantizedPack, generic: "packQ8Four", body: packQ(8), doc: `
	for r := range rows {
		for c := range cols {
			q := float32(w[r*stride+c])
			dst[c*P+r] = scales[c/group*P+r]*q + biases[c/group*P+r]
		}
	}

for rows as packF32 has them, and scales and biases already packed.`},
	{name: "packQ40", assembly: blockPack, generic: "packQ40Four", body: packBlocks(q40), doc: `
	for r := range rows {
		for c := range cols {
			dst[c*P+r] = scales[c/32*P+r]*(code c of row r) + biases[c/32*P+r]
		}
	}

for rows as packF32 has them, and scales and biases already packed.`},
	{name: "packQ41", assembly: blockPack, generic: "packQ41Four", body: packBlocks(q41), doc: `
	for r := range rows {
		for c := range cols {
			dst[c*P+r] = scales[c/32*P+r]*(code c of row r) + biases[c/32*P+r]
		}
	}

for rows as packF32 has them, and scales and biases already packed.`},
	{name: "packQ80", assembly: blockPack, generic: "packQ80Four", body: packBlocks(q80), doc: `
	for r := range rows {
		for c := range cols {
			dst[c*P+r] = scales[c/32*P+r]*(code c plus 128 of row r) + biases[c/32*P+r]
		}
	}

for rows as packF32 has them, and scales and biases already packed.`},
	{name: "packQ4K", assembly: blockPack, generic: "packQ4KFour", body: packBlocks(q4kPart), doc: `
	for r := range rows {
		for c := range cols {
			dst[c*P+r] = scales[c/32*P+r]*(code c of row r) + biases[c/32*P+r]
		}
	}

for columns of one block, a multiple of 64, whose codes w begins with, rows as packF32 has them, and scales and biases already packed.`},
	{name: "tile",
		assembly: "func(y *float32, ldy int, x *float32, ldx int, panel *float32, m, cols, n int, add bool) (rows int)",
		body:     tile, doc: `
	for i := range rows {
		for j := range n {
			var sum float32
			for c := range cols {
				sum += x[i*ldx+c] * panel[c*P+j]
			}
			if add {
				sum += y[i*ldy+j]
			}
			y[i*ldy+j] = sum
		}
	}
	return rows

for as many of m rows of x as suit it, P the width of a panel. NEON's writes whole rows of a panel: n is P.`},
}
