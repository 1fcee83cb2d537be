package cpu

import "github.com/mlxc/mlxc/backend/cpu/internal/simd"

const (
	qmvRows = 8   // rows per unit of a product with few vectors
	qmmCols = 48  // columns per unit of a product with many vectors
	qmmRows = 512 // rows of such a unit, at most
	// qmmFrom is the number of vectors from which on it pays to decode each weight once for all vectors and
	// keep it in scratch.
	qmmFrom = 4
)

// weights is how a kernel's matrices [N, K] are stored.
type weights interface {
	// slots is the number of arguments of one matrix; methods are given the first.
	slots() int
	// scratch is the number of floats of scratch for a product with few or many vectors.
	scratch(k int, many bool) int
	// cost is the time in nanoseconds of one weight in a product with one vector or, if many is set, of
	// decoding one weight.
	cost(many bool) float64
	// prepare is called once for each vector, before its products.
	prepare(x, scratch []float32)
	// matVec makes y, the products of rows [lo, hi) with x.
	matVec(c *Call, slot, lo, hi int, y, x, scratch []float32)
	// matMul makes y [m, hi-lo], whose rows are ldy apart: the products of rows [lo, hi)
	// with m vectors of k elements.
	matMul(c *Call, slot, lo, hi int, y []float32, ldy int, x []float32, m, k int, scratch []float32)
}

// linear is the product of vectors with one or several matrices,
//
//	p_i[m,n] = Σ_k x[m,k] * w_i[n,k]
//
// and what is done with it: y_i = p_i, y = r + p_0, or y = silu(p_0)·p_1. Kernels for few
// vectors have a threadgroup for 8 columns, those for many vectors one for 32 × 32 results.
// The words fast and alN in their names are promises that matter to a GPU only. A fused
// kernel makes the same calls on the same blocks of columns as the kernels that it
// replaces, so that the bits are the same too.
type linear struct {
	weights
	then epilogue
	outs int // the number of results y_i
	// The slots of the arguments. Matrices come first; x is f32[M, K], y and r are
	// f32[M, N_i], and k and the n are i32.
	x, r, y, k, n int
	form          productForm
	m             int // the slot of M, i32; 0 if M is the number of threadgroups along x
	// normed says that the vectors are the rows of x after normalization as in rms, with the weights f32[K]
	// at slot norm and eps at slot eps.
	normed    bool
	norm, eps int
	// tops, if not 0, is the slot of an f32[M, N/16] that gets the max of every 16 consecutive results. Only
	// a kernel that stores its product has it.
	tops int
	// narrow, if set, is the type of x, r and y instead of f32. Such vectors are taken one by one unless the form is
	// alwaysMany, in which weights are rounded to the type.
	narrow *narrow
}

// productForm says whether a product is computed vector by vector or for many vectors at once.
type productForm uint8

const (
	byVectors productForm = iota // decided by the number of vectors
	alwaysFew                    // vector by vector: there is only one
	alwaysMany
)

type epilogue uint8

const (
	store epilogue = iota
	addTo
	siluMul
)

// plain returns the product with mats matrices. Its arguments are the matrices, x, mats results y, K, and
// mats sizes N.
func plain(w weights, mats int) linear {
	x := w.slots() * mats
	return linear{weights: w, outs: mats, x: x, y: x + 1, k: x + 1 + mats, n: x + 2 + mats}
}

// fused returns the products of the fused kernels, by the word for each in kernel names.
func fused(w weights) map[string]linear {
	n := w.slots()
	return map[string]linear{
		"x2":       plain(w, 2),
		"x3":       plain(w, 3),
		"add":      {weights: w, then: addTo, outs: 1, x: n, r: n + 1, y: n + 2, k: n + 3, n: n + 4},
		"silu_mul": {weights: w, then: siluMul, outs: 1, x: 2 * n, y: 2*n + 1, k: 2*n + 2, n: 2*n + 3},
	}
}

// ofNormed returns the products of fused kernels that normalize x first, by the word for each in kernel
// names. The weights of the norm follow x, and eps comes before K.
func ofNormed(w weights) map[string]linear {
	out := map[string]linear{}
	for kind, p := range map[string]linear{"rms": plain(w, 1), "rms_silu_mul": fused(w)["silu_mul"]} {
		p.normed, p.norm, p.y = true, p.x+1, p.y+1
		p.eps = p.y + p.outs
		p.k, p.n = p.eps+1, p.eps+2
		out[kind] = p
	}
	most := out["rms"]
	most.tops = most.y + 1
	most.eps, most.k, most.n = most.eps+1, most.k+1, most.n+1
	out["rms_max"] = most
	return out
}

// unitRows is the number of rows of one unit of a product with few vectors.
func (p *linear) unitRows() int {
	if p.tops > 0 {
		return max(qmvRows, partSize) // so that one unit computes all 16 results of a part
	}
	return qmvRows
}

// in returns p with x, r and y of a 16-bit type.
func (p linear) in(t narrow) linear {
	p.narrow = &t
	return p
}

// ofMany returns p with M as an argument, which follows the last N.
func (p linear) ofMany() linear {
	p.m = p.n + p.outs
	return p
}

func (p *linear) vectors(c *Call) int {
	switch {
	case p.form == alwaysFew:
		return 1
	case p.m == 0:
		return c.Groups[0]
	}
	return c.Int(p.m)
}

// isFew reports whether the vectors are taken one by one.
func (p *linear) isFew(c *Call) bool {
	return p.form == alwaysFew || p.form == byVectors && (p.narrow != nil || p.vectors(c) < qmmFrom)
}

// units is the number of units of output i: 8 columns for few vectors, 48
// columns and up to 512 rows for many.
func (p *linear) units(c *Call, i int) int {
	n := c.Int(p.n + i)
	if p.isFew(c) {
		return ceilDiv(n, p.unitRows())
	}
	return ceilDiv(n, qmmCols) * ceilDiv(p.vectors(c), qmmRows)
}

func (p linear) kernel(name string) *Kernel {
	mats := 1.0
	if p.then == siluMul {
		mats = 2
	}
	return &Kernel{
		Name: name,
		Units: func(c *Call) int {
			n := 0
			for i := range p.outs {
				n += p.units(c, i)
			}
			return n
		},
		Run: func(c *Call, w *Worker, lo, hi int) {
			for i := range p.outs { // the units of output 0 come first, then those of output 1, and so on
				n := p.units(c, i)
				if from, to := max(lo, 0), min(hi, n); from < to {
					if p.isFew(c) {
						p.few(c, w, i, from, to)
					} else {
						p.many(c, w, i, from, to)
					}
				}
				lo, hi = lo-n, hi-n
			}
		},
		Cost: func(c *Call) float64 {
			k, m := c.Int(p.k), p.vectors(c)
			if p.isFew(c) {
				return 10 + mats*float64(m*p.unitRows()*k)*p.cost(false)
			}
			return mats * float64(qmmCols*k) * (p.cost(true) + 0.0125*float64(min(m, qmmRows)))
		},
	}
}

// qmvBlock is the number of columns between two calls of the epilogue, a multiple of qmvRows. It is small
// enough that the columns stay in the first-level cache.
const qmvBlock = 512

// few computes units [lo, hi) of output i in the form for few vectors.
func (p *linear) few(c *Call, w *Worker, i, lo, hi int) {
	if p.narrow != nil {
		p.fewNarrow(c, w, i, lo, hi)
		return
	}
	k, n, m := c.Int(p.k), c.Int(p.n+i), p.vectors(c)
	x, y := c.F32(p.x), c.F32(p.y+i)
	size := p.scratch(k, false)
	scratch := w.Scratch(size + 2*qmvBlock + p.rows(k, 1))
	first, second := scratch[size:][:qmvBlock], scratch[size+qmvBlock:][:qmvBlock]
	row := scratch[size+2*qmvBlock:]
	scratch = scratch[:size]
	j, end := lo*p.unitRows(), min(hi*p.unitRows(), n)
	for v := range m {
		xv := p.input(c, row, x[v*k:(v+1)*k], k)
		p.prepare(xv, scratch)
		if p.then == store {
			p.matVec(c, i*p.slots(), j, end, y[v*n+j:v*n+end], xv, scratch)
			canonical(y[v*n+j : v*n+end])
			p.putTops(c, y[v*n+j:v*n+end], v*n+j)
			continue
		}
		for b := j; b < end; b += qmvBlock {
			e := min(b+qmvBlock, end)
			yb, one, two := y[v*n+b:v*n+e], first[:e-b], second[:e-b]
			p.matVec(c, 0, b, e, one, xv, scratch)
			if p.then == siluMul {
				p.matVec(c, p.slots(), b, e, two, xv, scratch)
			} else {
				two = c.F32(p.r)[v*n+b : v*n+e]
			}
			p.finish(yb, one, two)
		}
	}
}

// fewNarrow is few of vectors of a 16-bit type: they are widened, and each step of what is done with a product is
// rounded to the type, as the kernels would that make the steps one by one.
func (p *linear) fewNarrow(c *Call, w *Worker, i, lo, hi int) {
	t, k, n, m := *p.narrow, c.Int(p.k), c.Int(p.n+i), p.vectors(c)
	x, y := c.U16(p.x), c.U16(p.y+i)
	size := p.scratch(k, false)
	scratch := w.Scratch(size + 2*qmvBlock + 2*k)
	first, second, row, norm := scratch[size:][:qmvBlock], scratch[size+qmvBlock:][:qmvBlock], scratch[size+2*qmvBlock:][:k], scratch[size+2*qmvBlock+k:]
	scratch = scratch[:size]
	if p.normed {
		t.from(norm, c.U16(p.norm)[:k])
	}
	rows := p.unitRows()
	j, end := lo*rows, min(hi*rows, n)
	for v := range m {
		t.from(row, x[v*k:(v+1)*k])
		if p.normed {
			t.normalize(row, norm, c.Float(p.eps))
			t.round(row)
		}
		p.prepare(row, scratch)
		for b := j; b < end; b += qmvBlock {
			e := min(b+qmvBlock, end)
			one, two := first[:e-b], second[:e-b]
			p.matVec(c, i*p.slots(), b, e, one, row, scratch)
			if p.then == siluMul {
				p.matVec(c, p.slots(), b, e, two, row, scratch)
			}
			p.putNarrow(c, t, y, v*n+b, one, two)
			if p.tops > 0 {
				t.round(one)
				tops := two[:len(one)/partSize]
				greatestOfParts(tops, one)
				t.to(c.U16(p.tops)[(v*n+b)/partSize:][:len(tops)], tops)
			}
		}
	}
}

// putNarrow is the epilogue of results of a 16-bit type from element `at` on, and stores them. It changes one, the
// products, and two, those of the second matrix or room for as many elements of r.
func (p *linear) putNarrow(c *Call, t narrow, y []uint16, at int, one, two []float32) {
	switch p.then {
	case addTo:
		t.round(one)
		t.from(two, c.U16(p.r)[at:at+len(one)])
		simd.AddTo(one, two, one)
	case siluMul:
		t.round(one)
		t.round(two)
		t.silu(one)
		t.round(one)
		simd.MulTo(one, one, two)
	}
	t.to(y[at:at+len(one)], one)
}

// manyNarrow is many of vectors of a 16-bit type.
func (p *linear) manyNarrow(c *Call, w *Worker, i, lo, hi int) {
	t, k, n, m := *p.narrow, c.Int(p.k), c.Int(p.n+i), p.vectors(c)
	cols := ceilDiv(n, qmmCols)
	x, y := c.U16(p.x), c.U16(p.y+i)
	size := p.scratch(k, true)
	scratch := w.Scratch(size + 2*qmmRows*qmmCols + k*min(m, qmmRows))
	scratch, tiles, rows := scratch[:size], scratch[size:][:2*qmmRows*qmmCols], scratch[size+2*qmmRows*qmmCols:]
	for u := lo; u < hi; u++ {
		v, v1 := u/cols*qmmRows, min((u/cols+1)*qmmRows, m)
		j, j1 := u%cols*qmmCols, min((u%cols+1)*qmmCols, n)
		xv := rows[:(v1-v)*k]
		if u == lo || j == 0 {
			t.from(xv, x[v*k:v1*k])
		}
		width := j1 - j
		one, two := tiles[:(v1-v)*width], tiles[qmmRows*qmmCols:][:(v1-v)*width]
		p.matMul(c, i*p.slots(), j, j1, one, width, xv, v1-v, k, scratch)
		if p.then == siluMul {
			p.matMul(c, p.slots(), j, j1, two, width, xv, v1-v, k, scratch)
		}
		for r := range v1 - v {
			p.putNarrow(c, t, y, (v+r)*n+j, one[r*width:(r+1)*width], two[r*width:(r+1)*width])
		}
	}
}

// rows is the number of floats that the m normalised vectors of k elements take; 0 if x is not normalised.
func (p *linear) rows(k, m int) int {
	if !p.normed {
		return 0
	}
	return k * m
}

// input returns the vectors of k elements that the matrices are multiplied with: x itself or, computed into
// rows, its normalization by rms.
func (p *linear) input(c *Call, rows, x []float32, k int) []float32 {
	if !p.normed {
		return x
	}
	for at := 0; at < len(x); at += k {
		normalizeTo(rows[at:at+k], x[at:at+k], c.F32(p.norm), c.Float(p.eps))
	}
	return rows[:len(x)]
}

// finish is the epilogue: y = other + dot, or y = silu(dot)·other. It changes
// dot; y may be other.
func (p *linear) finish(y, dot, other []float32) {
	if p.then == addTo {
		simd.AddTo(y, other, dot)
	} else {
		simd.SiluTo(dot, dot)
		simd.MulTo(y, dot, other)
	}
	canonical(y)
}

// putTops stores the max of every 16 of the results y, which begin at element `at` of all results, if tops is set.
func (p *linear) putTops(c *Call, y []float32, at int) {
	if p.tops > 0 {
		greatestOfParts(c.F32(p.tops)[at/partSize:(at+len(y))/partSize], y)
	}
}

// many computes units [lo, hi) of output i in the form for many vectors.
func (p *linear) many(c *Call, w *Worker, i, lo, hi int) {
	if p.narrow != nil {
		p.manyNarrow(c, w, i, lo, hi)
		return
	}
	k, n, m := c.Int(p.k), c.Int(p.n+i), p.vectors(c)
	cols := ceilDiv(n, qmmCols)
	x, y := c.F32(p.x), c.F32(p.y+i)
	size, more := p.scratch(k, true), 0
	if p.then != store {
		more = 2 * qmmRows * qmmCols
	}
	scratch := w.Scratch(size + more + p.rows(k, min(m, qmmRows)))
	scratch, tiles, rows := scratch[:size], scratch[size:], scratch[size+more:]
	var xv []float32
	for u := lo; u < hi; u++ {
		v, v1 := u/cols*qmmRows, min((u/cols+1)*qmmRows, m)
		j, j1 := u%cols*qmmCols, min((u%cols+1)*qmmCols, n)
		if u == lo || j == 0 {
			xv = p.input(c, rows, x[v*k:v1*k], k)
		}
		width := j1 - j
		if p.then == store {
			p.matMul(c, i*p.slots(), j, j1, y[v*n+j:(v1-1)*n+j1], n, xv, v1-v, k, scratch)
			canonicalRows(y[v*n+j:], v1-v, width, n)
			for t := v; t < v1; t++ {
				p.putTops(c, y[t*n+j:t*n+j1], t*n+j)
			}
			continue
		}
		one, two := tiles[:(v1-v)*width], tiles[qmmRows*qmmCols:][:(v1-v)*width]
		p.matMul(c, 0, j, j1, one, width, xv, v1-v, k, scratch)
		if p.then == siluMul {
			p.matMul(c, p.slots(), j, j1, two, width, xv, v1-v, k, scratch)
		}
		for t := range v1 - v {
			at, dot := (v+t)*n, one[t*width:(t+1)*width]
			other := two[t*width : (t+1)*width]
			if p.then == addTo {
				other = c.F32(p.r)[at+j : at+j1]
			}
			p.finish(y[at+j:at+j1], dot, other)
		}
	}
}
