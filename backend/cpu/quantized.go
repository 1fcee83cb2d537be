package cpu

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// affine is one of MLX's affine quantizations: weight e of a row of K is
// scales[e/group]*q(e) + biases[e/group]; the code q(e) has bits bits, and
// codes lie little-endian inside and across bytes. Inner loops know codes of 4
// and of 8 bits: others are unpacked to bytes first.
type affine struct{ bits, group int }

var affines = func() (all []affine) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			all = append(all, affine{bits, group})
		}
	}
	return all
}()

func init() {
	for _, a := range affines {
		if a.bits == 4 && a.group == 32 {
			for kernel, of := range staged(a) {
				Register(of.kernel(kernel))
			}
		}
		for _, t := range narrows {
			params := fmt.Sprintf("%v_t_gs_%d_b_%d", t, a.group, a.bits)
			w := narrowAffine{a, t}
			for _, fast := range []string{"", "_fast"} {
				Register(plain(w, 1).in(t).kernel("affine_qmv" + fast + "_" + params + "_batch_0_pr_0_hgs_0_r_4"))
				for kind, p := range fused(w) {
					Register(p.in(t).kernel("affine_qmv" + fast + "_" + kind + "_" + params))
				}
				registerNormed(a.bits, w, &t, fast, params)
			}
			registerTurnedRows(a.bits, w, &t, params)
			for _, aligned := range []bool{false, true} {
				many := func(p linear) linear {
					p.form = alwaysMany
					return p.in(t).ofMany()
				}
				Register(many(plain(w, 1)).kernel(fmt.Sprintf("affine_qmm_t_%s_alN_%t_batch_0", params, aligned)))
				for kind, p := range fused(w) {
					Register(many(p).kernel(fmt.Sprintf("affine_qmm_t_%s_%s_alN_%t", kind, params, aligned)))
				}
			}
		}
		params := fmt.Sprintf("float_gs_%d_b_%d", a.group, a.bits)
		for _, fast := range []string{"", "_fast"} {
			Register(plain(a, 1).kernel("affine_qmv" + fast + "_" + params + "_batch_0_pr_0_hgs_0_r_4"))
			for kind, p := range fused(a) {
				Register(p.kernel("affine_qmv" + fast + "_" + kind + "_" + params))
			}
			registerNormed(a.bits, a, nil, fast, params)
		}
		registerTurnedRows(a.bits, a, nil, params)
		for _, aligned := range []bool{false, true} {
			Register(plain(a, 1).ofMany().kernel(fmt.Sprintf("affine_qmm_t_%s_alN_%t_batch_0", params, aligned)))
			for kind, p := range fused(a) {
				Register(p.ofMany().kernel(fmt.Sprintf("affine_qmm_t_%s_%s_alN_%t", kind, params, aligned)))
			}
		}
	}
}

// registerNormed registers the products of norms that the library has, of vectors of type t if it is set.
func registerNormed(bits int, w weights, t *narrow, fast, params string) {
	if bits != 4 && bits != 8 {
		return
	}
	normed := ofNormed(w)
	register := func(kind string) {
		p := normed[kind]
		p.narrow = t
		Register(p.kernel("affine_qmv" + fast + "_" + kind + "_" + params))
	}
	register("rms")
	if bits == 8 {
		register("rms_max")
		return
	}
	register("rms_silu_mul")
	Register(turnedKernel(w, t, t, "affine_qmv"+fast+"_rms_x3_rope_"+params))
	if t == nil {
		half := halfType
		Register(turnedKernel(w, nil, &half, "affine_qmv"+fast+"_rms_x3_rope_"+strings.Replace(params, "float", "float_float16_t", 1)))
	}
}

// registerTurnedRows registers the products of queries, keys and values of many rows that the library has.
func registerTurnedRows(bits int, w weights, t *narrow, params string) {
	if bits != 4 && bits != 8 {
		return
	}
	Register(turnedRowsKernel(w, t, t, "affine_qmm_t_x3_rope_"+params))
	if t == nil {
		half := halfType
		Register(turnedRowsKernel(w, nil, &half, "affine_qmm_t_x3_rope_"+strings.Replace(params, "float", "float_float16_t", 1)))
	}
}

// staged returns, by kernel name, the products whose Metal kernels first copy the vector to threadgroup memory.
// Their results are those of the kernels that do not, so the CPU computes the same.
func staged(a affine) map[string]linear {
	fused := fused(a)
	out := map[string]linear{}
	for kind, p := range map[string]linear{
		"whole": plain(a, 1), "whole_silu_mul": fused["silu_mul"], "piped": plain(a, 1), "piped_add": fused["add"], "piped_x3": fused["x3"],
	} {
		out[fmt.Sprintf("affine_qmv_%s_float_gs_%d_b_%d", kind, a.group, a.bits)] = p
	}
	return out
}

// affineRows are consecutive rows of a quantized matrix.
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

// slots implements [weights].
func (a affine) slots() int { return 3 }

func (a affine) scratch(k int, many bool) int {
	if many {
		return simd.MatMulScratch + a.unpacked(qmmCols, k)
	}
	return k/a.group + a.unpacked(qmvRows, k)
}

// isPacked reports whether codes have to be unpacked.
func (a affine) isPacked() bool { return a.bits != 4 && a.bits != 8 }

// unpacked is the number of floats that take as much room as the unpacked codes of some rows.
func (a affine) unpacked(rows, k int) int {
	if !a.isPacked() {
		return 0
	}
	return rows * k / 4
}

// unpack makes bytes of codes, a multiple of eight.
func (a affine) unpack(dst, codes []byte) {
	for ; len(dst) >= 8; dst, codes = dst[8:], codes[a.bits:] {
		var eight uint64
		for i, b := range codes[:a.bits] {
			eight |= uint64(b) << (8 * i)
		}
		for i := range dst[:8] {
			dst[i] = byte(eight & (1<<a.bits - 1))
			eight >>= a.bits
		}
	}
}

func (a affine) cost(many bool) float64 {
	switch {
	case many:
		return 0.08
	case a.bits == 8:
		return 0.05
	case a.isPacked():
		return 0.6
	}
	return 0.047
}

// prepare computes the sums of the groups of x, so that biases take one multiplication per group.
func (a affine) prepare(x, scratch []float32) { simd.GroupSums(scratch[:len(x)/a.group], x, a.group) }

func (a affine) matVec(c *Call, slot, lo, hi int, y, x, scratch []float32) {
	k := len(x)
	a.multiply(y, x, scratch[:k/a.group], a.rows(c, slot, lo, hi, k), scratch[k/a.group:])
}

// multiply makes y, the products of rows with x, the sums of whose groups are given. room is for the unpacked codes of
// qmvRows rows.
func (a affine) multiply(y, x, sums []float32, r affineRows, room []float32) {
	k := len(x)
	if a.isPacked() {
		bytes, b, g := asBytes(room[:a.unpacked(qmvRows, k)]), k/8*a.bits, k/a.group
		for len(y) > 0 {
			n := min(qmvRows, len(y))
			a.unpack(bytes[:n*k], r.w[:n*b])
			simd.MatVecQ8(y[:n], x, sums, bytes[:n*k], r.scales[:n*g], r.biases[:n*g], k, a.group)
			y, r = y[n:], affineRows{r.w[n*b:], r.scales[n*g:], r.biases[n*g:]}
		}
		return
	}
	if a.bits == 4 {
		simd.MatVecQ4(y, x, sums, r.w, r.scales, r.biases, k, a.group)
	} else {
		simd.MatVecQ8(y, x, sums, r.w, r.scales, r.biases, k, a.group)
	}
}

func (a affine) matMul(c *Call, slot, lo, hi int, y []float32, ldy int, x []float32, m, k int, scratch []float32) {
	r := a.rows(c, slot, lo, hi, k)
	scratch, room := scratch[:simd.MatMulScratch], scratch[simd.MatMulScratch:]
	if a.isPacked() {
		bytes := asBytes(room)[:(hi-lo)*k]
		a.unpack(bytes, r.w)
		r.w = bytes
	}
	if a.bits == 4 {
		simd.MatMulQ4(y, ldy, x, r.w, r.scales, r.biases, m, hi-lo, k, a.group, scratch)
	} else {
		simd.MatMulQ8(y, ldy, x, r.w, r.scales, r.biases, m, hi-lo, k, a.group, scratch)
	}
}

// widenRows is the number of rows whose scales and biases are widened at a time.
const widenRows = 32

// narrowAffine is affine with scales and biases of a 16-bit type.
type narrowAffine struct {
	affine
	narrow narrow
}

// scratch has room for the sums of x and for the scales and biases of widenRows rows; or for those of qmmCols rows, and
// for the weights of as many.
func (a narrowAffine) scratch(k int, many bool) int {
	if many {
		return simd.MatMulScratch + qmmCols*(k+2*k/a.group)
	}
	return (1+2*widenRows)*(k/a.group) + a.unpacked(qmvRows, k)
}

// rows returns rows [lo, hi), whose scales and biases it widens into scratch.
func (a narrowAffine) rows(c *Call, slot, lo, hi, k int, scratch []float32) affineRows {
	b, g := k/8*a.bits, k/a.group
	scales, biases := scratch[:(hi-lo)*g], scratch[(hi-lo)*g:][:(hi-lo)*g]
	a.narrow.from(scales, c.U16(slot + 1)[lo*g:hi*g])
	a.narrow.from(biases, c.U16(slot + 2)[lo*g:hi*g])
	return affineRows{c.Bytes(slot)[lo*b : hi*b], scales, biases}
}

func (a narrowAffine) matVec(c *Call, slot, lo, hi int, y, x, scratch []float32) {
	k := len(x)
	g := k / a.group
	sums, wide, room := scratch[:g], scratch[g:][:2*widenRows*g], scratch[(1+2*widenRows)*g:]
	for ; lo < hi; lo += widenRows {
		n := min(widenRows, hi-lo)
		a.multiply(y[:n], x, sums, a.rows(c, slot, lo, lo+n, k, wide), room)
		y = y[n:]
	}
}

// matMul is a product with weights that are rounded to the type.
func (a narrowAffine) matMul(c *Call, slot, lo, hi int, y []float32, ldy int, x []float32, m, k int, scratch []float32) {
	b, g, n := k/8*a.bits, k/a.group, hi-lo
	scratch, rest := scratch[:simd.MatMulScratch], scratch[simd.MatMulScratch:]
	r := a.rows(c, slot, lo, hi, k, rest)
	if m >= simd.FewRows {
		w, bits := r.w, a.bits
		if a.isPacked() {
			w, bits = asBytes(rest[2*n*g:])[:n*k], 8
			a.unpack(w, r.w)
		}
		simd.MatMulNarrow(simd.Narrow(a.narrow), bits, y, ldy, x, w, r.scales, r.biases, m, n, k, a.group, scratch)
		return
	}
	weights := rest[2*n*g:][:n*k]
	for j := range n {
		a.decode(weights[j*k:(j+1)*k], r.w[j*b:(j+1)*b], r.scales[j*g:(j+1)*g], r.biases[j*g:(j+1)*g])
	}
	a.narrow.round(weights)
	simd.MatMulF32(y, ldy, x, weights, m, n, k, scratch)
}
