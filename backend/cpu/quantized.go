package cpu

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/simd"
)

// affine is one of MLX's affine quantizations: weight e of a row of K is
// scales[e/group]*q(e) + biases[e/group]; the code q(e) has bits bits, and
// codes lie little-endian inside and across bytes.
type affine struct{ bits, group int }

var affines = []affine{{4, 32}, {4, 64}, {8, 32}, {8, 64}}

func init() {
	for _, a := range affines {
		params := fmt.Sprintf("float_gs_%d_b_%d", a.group, a.bits)
		for _, fast := range []string{"", "_fast"} {
			register(a.plain(1).kernel("affine_qmv" + fast + "_" + params + "_batch_0_pr_0_hgs_0_r_4"))
			for kind, p := range a.fused() {
				register(p.kernel("affine_qmv" + fast + "_" + kind + "_" + params))
			}
		}
		for _, aligned := range []bool{false, true} {
			register(a.plain(1).ofMany().kernel(fmt.Sprintf("affine_qmm_t_%s_alN_%t_batch_0", params, aligned)))
			for kind, p := range a.fused() {
				register(p.ofMany().kernel(fmt.Sprintf("affine_qmm_t_%s_%s_alN_%t", kind, params, aligned)))
			}
		}
	}
}

// affineRows is some rows of a quantized matrix.
type affineRows struct {
	w              []byte
	scales, biases []float32
}

// rows returns rows [lo, hi) of k weights of the matrix whose codes, scales and
// biases are arguments slot, slot+1 and slot+2.
func (a affine) rows(c *Call, slot, lo, hi, k int) affineRows {
	b, g := k/8*a.bits, k/a.group
	return affineRows{c.Bytes(slot)[lo*b : hi*b], c.F32(slot + 1)[lo*g : hi*g], c.F32(slot + 2)[lo*g : hi*g]}
}

const (
	qmvRows = 8   // rows of one unit of few vectors
	qmmCols = 48  // columns, and
	qmmRows = 512 // rows, at most, of one unit of many
	// qmmFrom is the number of vectors from which decoding a weight once for all
	// of them pays for writing it down.
	qmmFrom = 4
)

// linear is the product of vectors with one or several quantized matrices,
//
//	p_i[m,n] = Σ_k x[m,k] * (scales_i[n,k/group]*q_i[n,k] + biases_i[n,k/group])
//
// and what becomes of it: y_i = p_i, y = r + p_0, or y = silu(p_0)·p_1. The
// kernels of few vectors (affine_qmv…) have threadgroups (M, Σ ceil(N_i/8), 1),
// those of many (affine_qmm_t…) (Σ ceil(N_i/32), ceil(M/32), 1); fast and alN
// are promises to the GPU. Fused or not, it is the same calls on the same blocks
// of columns, so the bits are the same too.
type linear struct {
	affine
	then epilogue
	outs int // matrices of y
	// Slots. Codes, scales and biases of matrix i are 3i, 3i+1, 3i+2, all
	// matrices f32[N_i, K]; x is f32[M, K], y and r f32[M, N_i]; k and the n are
	// i32.
	x, r, y, k, n int
	m             int // M, i32; 0: the threadgroups along x
}

type epilogue uint8

const (
	store epilogue = iota
	addTo
	siluMul
)

// plain is the product with so many matrices: 3·mats x, then as many y, K, as
// many N.
func (a affine) plain(mats int) linear {
	return linear{affine: a, outs: mats, x: 3 * mats, y: 3*mats + 1, k: 4*mats + 1, n: 4*mats + 2}
}

// fused are the products that do more than one dispatch of a plain one.
func (a affine) fused() map[string]linear {
	return map[string]linear{
		"x2":       a.plain(2),
		"x3":       a.plain(3),
		"add":      {affine: a, then: addTo, outs: 1, x: 3, r: 4, y: 5, k: 6, n: 7},
		"silu_mul": {affine: a, then: siluMul, outs: 1, x: 6, y: 7, k: 8, n: 9},
	}
}

// ofMany is the product whose M stands behind the last N.
func (p linear) ofMany() linear {
	p.m = p.n + p.outs
	return p
}

func (p *linear) vectors(c *Call) int {
	if p.m == 0 {
		return c.Groups[0]
	}
	return c.Int(p.m)
}

// units is the number of units of output i: 8 columns for few vectors, 48
// columns and up to 512 rows for many.
func (p *linear) units(c *Call, i int) int {
	n, m := c.Int(p.n+i), p.vectors(c)
	if m < qmmFrom {
		return ceilDiv(n, qmvRows)
	}
	return ceilDiv(n, qmmCols) * ceilDiv(m, qmmRows)
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
			for i := range p.outs { // the outputs' units follow each other
				n := p.units(c, i)
				if from, to := max(lo, 0), min(hi, n); from < to {
					if p.vectors(c) < qmmFrom {
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
			if m < qmmFrom {
				perWeight := 0.047
				if p.bits == 8 {
					perWeight = 0.05
				}
				return 10 + mats*float64(m*qmvRows*k)*perWeight
			}
			return mats * float64(qmmCols*k) * (0.08 + 0.0125*float64(min(m, qmmRows)))
		},
	}
}

// qmvBlock is the number of columns that an epilogue takes at a time: they stay
// in the first cache. A multiple of qmvRows.
const qmvBlock = 512

// few makes units [lo, hi) of output i for few vectors.
func (p *linear) few(c *Call, w *Worker, i, lo, hi int) {
	k, n, m := c.Int(p.k), c.Int(p.n+i), p.vectors(c)
	x, y := c.F32(p.x), c.F32(p.y+i)
	scratch := w.Scratch(k/p.group + 2*qmvBlock)
	xsum, first, second := scratch[:k/p.group], scratch[k/p.group:][:qmvBlock], scratch[k/p.group:][qmvBlock:]
	j, end := lo*qmvRows, min(hi*qmvRows, n)
	for v := range m {
		xv := x[v*k : (v+1)*k]
		simd.GroupSums(xsum, xv, p.group)
		if p.then == store {
			p.matVec(y[v*n+j:v*n+end], xv, xsum, p.rows(c, 3*i, j, end, k), k)
			continue
		}
		for b := j; b < end; b += qmvBlock {
			e := min(b+qmvBlock, end)
			yb, one, two := y[v*n+b:v*n+e], first[:e-b], second[:e-b]
			p.matVec(one, xv, xsum, p.rows(c, 0, b, e, k), k)
			if p.then == siluMul {
				p.matVec(two, xv, xsum, p.rows(c, 3, b, e, k), k)
			} else {
				two = c.F32(p.r)[v*n+b : v*n+e]
			}
			p.finish(yb, one, two)
		}
	}
}

// finish is the epilogue: y = other + dot, or y = silu(dot)·other. It changes
// dot; y may be other.
func (p *linear) finish(y, dot, other []float32) {
	if p.then == addTo {
		simd.AddTo(y, other, dot)
		return
	}
	simd.SiluTo(dot, dot)
	simd.MulTo(y, dot, other)
}

func (a affine) matVec(y, x, xsum []float32, r affineRows, k int) {
	if a.bits == 4 {
		simd.MatVecQ4(y, x, xsum, r.w, r.scales, r.biases, k, a.group)
	} else {
		simd.MatVecQ8(y, x, xsum, r.w, r.scales, r.biases, k, a.group)
	}
}

// many makes units [lo, hi) of output i for many vectors.
func (p *linear) many(c *Call, w *Worker, i, lo, hi int) {
	k, n, m := c.Int(p.k), c.Int(p.n+i), p.vectors(c)
	cols := ceilDiv(n, qmmCols)
	x, y := c.F32(p.x), c.F32(p.y+i)
	size := simd.MatMulScratch
	if p.then != store {
		size += 2 * qmmRows * qmmCols
	}
	scratch := w.Scratch(size)
	scratch, tiles := scratch[:simd.MatMulScratch], scratch[simd.MatMulScratch:]
	for u := lo; u < hi; u++ {
		v, v1 := u/cols*qmmRows, min((u/cols+1)*qmmRows, m)
		j, j1 := u%cols*qmmCols, min((u%cols+1)*qmmCols, n)
		xv, width := x[v*k:v1*k], j1-j
		if p.then == store {
			p.matMul(y[v*n+j:(v1-1)*n+j1], n, xv, p.rows(c, 3*i, j, j1, k), v1-v, width, k, scratch)
			continue
		}
		one, two := tiles[:(v1-v)*width], tiles[qmmRows*qmmCols:][:(v1-v)*width]
		p.matMul(one, width, xv, p.rows(c, 0, j, j1, k), v1-v, width, k, scratch)
		if p.then == siluMul {
			p.matMul(two, width, xv, p.rows(c, 3, j, j1, k), v1-v, width, k, scratch)
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

func (a affine) matMul(y []float32, ldy int, x []float32, r affineRows, m, n, k int, scratch []float32) {
	if a.bits == 4 {
		simd.MatMulQ4(y, ldy, x, r.w, r.scales, r.biases, m, n, k, a.group, scratch)
	} else {
		simd.MatMulQ8(y, ldy, x, r.w, r.scales, r.biases, m, n, k, a.group, scratch)
	}
}
