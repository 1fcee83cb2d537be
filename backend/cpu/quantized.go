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
		register(
			a.qmv("affine_qmv_"+params+"_batch_0_pr_0_hgs_0_r_4"),
			a.qmv("affine_qmv_fast_"+params+"_batch_0_pr_0_hgs_0_r_4"),
			a.qmm("affine_qmm_t_"+params+"_alN_false_batch_0"),
			a.qmm("affine_qmm_t_"+params+"_alN_true_batch_0"),
		)
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

// qmv is the product of few vectors with a quantized matrix:
//
//	y[m,n] = Σ_k x[m,k] * (scales[n,k/group]*q[n,k] + biases[n,k/group])
//
// Arguments: 0 w u32[N, K*bits/32], 1 scales and 2 biases f32[N, K/group],
// 3 x f32[M, K], 4 y f32[M, N], 5 K i32, 6 N i32, 7–14 unused. The
// threadgroups are (M, ceil(N/8), 1). The fast kernel differs on a GPU only.
func (a affine) qmv(name string) *Kernel {
	return a.product(name, func(c *Call) int { return c.Groups[0] })
}

// qmm is the product of many vectors with a quantized matrix; formula and
// arguments are qmv's, save 7 M i32. The threadgroups are (ceil(N/32),
// ceil(M/32), 1). alN promises the GPU that N is a multiple of 32.
func (a affine) qmm(name string) *Kernel {
	return a.product(name, func(c *Call) int { return c.Int(7) })
}

// product makes y for few vectors (8 of its columns a unit, by simd.MatVecQ4
// or MatVecQ8) and for many (48 columns and up to 512 rows a unit, by
// simd.MatMulQ4 or MatMulQ8).
func (a affine) product(name string, vectors func(c *Call) int) *Kernel {
	return &Kernel{
		Name: name,
		Units: func(c *Call) int {
			n, m := c.Int(6), vectors(c)
			if m < qmmFrom {
				return ceilDiv(n, qmvRows)
			}
			return ceilDiv(n, qmmCols) * ceilDiv(m, qmmRows)
		},
		Run: func(c *Call, w *Worker, lo, hi int) {
			if m := vectors(c); m < qmmFrom {
				a.few(c, w, m, lo, hi)
			} else {
				a.many(c, w, m, lo, hi)
			}
		},
		Cost: func(c *Call) float64 {
			k, m := c.Int(5), vectors(c)
			if m < qmmFrom {
				perWeight := 0.047
				if a.bits == 8 {
					perWeight = 0.05
				}
				return 10 + float64(m*qmvRows*k)*perWeight
			}
			return float64(qmmCols*k) * (0.08 + 0.0125*float64(min(m, qmmRows)))
		},
	}
}

func (a affine) few(c *Call, w *Worker, m, lo, hi int) {
	k, n := c.Int(5), c.Int(6)
	j, j1 := lo*qmvRows, min(hi*qmvRows, n)
	r := a.rows(c, 0, j, j1, k)
	x, y := c.F32(3), c.F32(4)
	xsum := w.Scratch(k / a.group)
	for i := range m {
		xi, yi := x[i*k:(i+1)*k], y[i*n+j:i*n+j1]
		simd.GroupSums(xsum, xi, a.group)
		if a.bits == 4 {
			simd.MatVecQ4(yi, xi, xsum, r.w, r.scales, r.biases, k, a.group)
		} else {
			simd.MatVecQ8(yi, xi, xsum, r.w, r.scales, r.biases, k, a.group)
		}
	}
}

func (a affine) many(c *Call, w *Worker, m, lo, hi int) {
	k, n := c.Int(5), c.Int(6)
	cols := ceilDiv(n, qmmCols)
	x, y := c.F32(3), c.F32(4)
	scratch := w.Scratch(simd.MatMulScratch)
	for u := lo; u < hi; u++ {
		i, i1 := u/cols*qmmRows, min((u/cols+1)*qmmRows, m)
		j, j1 := u%cols*qmmCols, min((u%cols+1)*qmmCols, n)
		r := a.rows(c, 0, j, j1, k)
		xi, yi := x[i*k:i1*k], y[i*n+j:(i1-1)*n+j1]
		if a.bits == 4 {
			simd.MatMulQ4(yi, n, xi, r.w, r.scales, r.biases, i1-i, j1-j, k, a.group, scratch)
		} else {
			simd.MatMulQ8(yi, n, xi, r.w, r.scales, r.biases, i1-i, j1-j, k, a.group, scratch)
		}
	}
}
