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
	{name: "scaleTo", assembly: "func(dst *float32, alpha float32, x *float32, n int)", lengthOf: "x", narrow: true, body: scaleTo, doc: `
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
	{name: "groupSums", assembly: "func(dst, x *float32, n, group int)", lengthOf: "dst", narrow: true, body: groupSums, doc: `
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
}
