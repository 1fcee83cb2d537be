package cpu

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	testsample "github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// ofParts reports whether a test in this file compares the kernel with the kernels that it replaces, bit by bit. Such
// a kernel needs no golden data, because those kernels have some.
func ofParts(kernel string) bool {
	return fusedOf(kernel) != nil || strings.Contains(kernel, "_qmv_whole_") || strings.Contains(kernel, "_qmv_piped_") || strings.HasPrefix(kernel, "add_rms") || strings.HasPrefix(kernel, "rope") && strings.Contains(kernel, "_x2_") || strings.HasPrefix(kernel, "affine_qmv") && strings.Contains(kernel, "_rms_")
}

// fusedOf returns the product that a fused quantized kernel computes, or nil for any other kernel.
func fusedOf(kernel string) *linear {
	var w weights = affine{}
	if strings.HasPrefix(kernel, "gem") {
		w = dense{half: strings.Contains(kernel, "float16")}
	}
	for kind, p := range fused(w) {
		if !strings.Contains(kernel, "_"+kind+"_float") && !strings.Contains(kernel, "_"+kind+"_bfloat") {
			continue
		}
		switch {
		case strings.HasPrefix(kernel, "gemv"):
			p.form = alwaysFew
		case strings.HasPrefix(kernel, "gemm"):
			p.form = alwaysMany
			p = p.ofMany()
		case strings.Contains(kernel, "qmm"):
			p = p.ofMany()
		}
		return &p
	}
	return nil
}

// runKernel runs a kernel on its arguments by slot: a []float32, []byte or []int64 is memory, and an int32, uint32,
// int64 or float32 is a constant. The units are run in several pieces.
func runKernel(t *testing.T, name string, groups, threads [3]int, args ...any) {
	t.Helper()
	runPaired(t, 1, name, groups, threads, args...)
}

// runPaired is runKernel with a value of rope's function constant traditional.
func runPaired(t *testing.T, traditional uint64, name string, groups, threads [3]int, args ...any) {
	t.Helper()
	k := Lookup(name)
	require.NotNil(t, k, name)
	c := &Call{Groups: groups, Threads: threads, Group: [3]int{1, 1, 1}, Constants: []ir.FunctionConstant{
		{Index: ropeForward, Type: ir.Bool, Bits: 1}, {Index: ropeTraditional, Type: ir.Bool, Bits: traditional},
	}}
	for i, a := range args {
		var data []byte
		switch a := a.(type) {
		case nil:
		case []byte:
			data = a
		case []float32:
			data = rawBytes(a)
		case []uint16:
			data = halfBytes(a)
		default:
			data = ir.ValueBytes(a)
		}
		if list, ok := a.([]int64); ok {
			data = nil
			for _, v := range list {
				data = append(data, ir.ValueBytes(v)...)
			}
		}
		c.Device[i], c.Constant[i] = data, data
	}
	var w Worker
	units := k.Units(c)
	for lo := 0; lo < units; lo += 7 {
		k.Run(c, &w, lo, min(lo+7, units))
	}
}

// rawBytes returns the memory of x as bytes, without a copy.
func rawBytes(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

func halfBytes(x []uint16) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 2*len(x))
}

func floats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// same requires equal bits.
func same(t *testing.T, want, got []float32, what string, args ...any) {
	t.Helper()
	for i := range want {
		require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "element %d of %s", i, fmt.Sprintf(what, args...))
	}
}

// matrix holds the arguments that make up a matrix of n rows.
type matrix struct {
	args []any
	n    int
}

func randomMatrix(r *rand.Rand, w weights, n, k int) matrix {
	a, ok := w.(affine)
	if !ok {
		if !w.(dense).half {
			return matrix{[]any{floats(r, n*k)}, n}
		}
		var half []byte
		for range n * k {
			half = append(half, ir.ValueBytes(uint16(0x3000+r.IntN(0x1000)|r.IntN(2)<<15))...)
		}
		return matrix{[]any{half}, n}
	}
	codes := make([]byte, n*k/8*a.bits)
	for i := range codes {
		codes[i] = byte(r.Uint32())
	}
	return matrix{[]any{codes, floats(r, n*k/a.group), floats(r, n*k/a.group)}, n}
}

// family is a plain kernel with its fused forms.
type family struct {
	weights
	plain string
	fused func(kind string) string
	m     []int // numbers of vectors to try
	withM bool
	xLast bool // the plain kernel's matrix comes before x
}

func fusedFamilies() []family {
	var out []family
	for _, a := range affines {
		params := fmt.Sprintf("float_gs_%d_b_%d", a.group, a.bits)
		out = append(out,
			family{a, "affine_qmv_" + params + "_batch_0_pr_0_hgs_0_r_4", func(kind string) string { return "affine_qmv_" + kind + "_" + params }, []int{1, 2, 3, 5}, false, true},
			family{a, "affine_qmm_t_" + params + "_alN_false_batch_0", func(kind string) string { return "affine_qmm_t_" + kind + "_" + params + "_alN_false" }, []int{5, 37, 515}, true, true})
	}
	for _, name := range []string{"float32", "float16_float32"} {
		out = append(out, family{dense{half: name != "float32"}, "gemm_nt_" + name, func(kind string) string { return "gemm_nt_" + kind + "_" + name }, []int{1, 5, 37, 515}, true, false})
	}
	return append(out, family{dense{half: true}, "gemv_float16_float32", func(kind string) string { return "gemv_" + kind + "_float16_float32" }, []int{1}, false, true})
}

// groupOf finds the group of codes in a kernel's name.
var groupOf = regexp.MustCompile(`_gs_\d+`)

// A fused product has the bits of the dispatches that it replaces, for few vectors and for many, so that their terms
// may count as equal.
func TestFusedProductsHaveTheBitsOfTheirParts(t *testing.T) {
	testsample.Seldom(t)
	r := rand.New(rand.NewPCG(1, 2))
	kind := func(f family) string { return groupOf.ReplaceAllString(f.plain, "") }
	for _, f := range testsample.Families(t, t.Name(), fusedFamilies(), kind, testsample.Few) {
		for _, m := range testsample.Turns(t, f.plain, f.m) {
			testFused(t, r, f, m)
		}
	}
}

func testFused(t *testing.T, r *rand.Rand, f family, m int) {
	k := 128 * (1 + r.IntN(6))
	ns := []int{8 * (1 + r.IntN(90)), 1 + r.IntN(600), 1 + r.IntN(70)}
	at := fmt.Sprintf("%s, M = %d, K = %d, N = %v", f.plain, m, k, ns)
	call := func(name string, args ...any) {
		t.Helper()
		if f.withM {
			args = append(args, int32(m))
		}
		runKernel(t, name, [3]int{m, 1, 1}, [3]int{1, 1, 1}, args...)
	}
	x := floats(r, m*k)
	product := func(w matrix) []float32 {
		y := make([]float32, m*w.n)
		args := append([]any{x}, w.args...)
		if f.xLast {
			args = append(slices.Clone(w.args), x)
		}
		call(f.plain, append(args, y, int32(k), int32(w.n))...)
		return y
	}
	var mats [3]matrix
	var want [3][]float32
	for i, n := range ns {
		mats[i] = randomMatrix(r, f.weights, n, k)
		want[i] = product(mats[i])
	}
	for _, count := range []int{2, 3} {
		var args, sizes, ys []any
		for i := range count {
			args = append(args, mats[i].args...)
			ys = append(ys, make([]float32, m*ns[i]))
			sizes = append(sizes, int32(ns[i]))
		}
		args = append(append(append(args, x), ys...), int32(k))
		call(f.fused(fmt.Sprint("x", count)), append(args, sizes...)...)
		for i := range count {
			same(t, want[i], ys[i].([]float32), "y%d of x%d, %s", i, count, at)
		}
	}

	w, n := mats[1], ns[1]
	elements := [3]int{m * n, 1, 1}
	residual, sum, y := floats(r, m*n), make([]float32, m*n), make([]float32, m*n)
	runKernel(t, "vv_Addfloat32", elements, elements, residual, want[1], sum)
	call(f.fused("add"), append(slices.Clone(w.args), x, residual, y, int32(k), int32(n))...)
	same(t, sum, y, "add, %s", at)
	call(f.fused("add"), append(slices.Clone(w.args), x, residual, residual, int32(k), int32(n))...)
	same(t, sum, residual, "add in place, %s", at)

	up := randomMatrix(r, f.weights, n, k)
	act := make([]float32, m*n)
	runKernel(t, "v_Silufloat32float32", elements, elements, want[1], act)
	runKernel(t, "vv_Multiplyfloat32", elements, elements, act, product(up), act)
	call(f.fused("silu_mul"), append(append(slices.Clone(w.args), up.args...), x, y, int32(k), int32(n))...)
	same(t, act, y, "silu_mul, %s", at)

	if !strings.HasPrefix(f.plain, "affine_qmv") || f.weights.(affine).isPacked() {
		return
	}
	// The same with normalised vectors: the plain kernel gets the norm of x as its x.
	raw, norm, eps := slices.Clone(x), floats(r, k), float32(1e-5)
	runKernel(t, "rmsfloat32", [3]int{m, 1, 1}, [3]int{1, 1, 1}, raw, norm, x, eps, uint32(k), uint32(1))
	call(f.fused("rms"), append(slices.Clone(w.args), raw, norm, y, eps, int32(k), int32(n))...)
	same(t, product(w), y, "rms, %s", at)
	testTops(t, r, f, x, raw, norm, at)
	if f.weights.(affine).bits != 4 {
		return
	}
	call(f.fused("silu_mul"), append(append(slices.Clone(w.args), up.args...), x, act, int32(k), int32(n))...)
	call(f.fused("rms_silu_mul"), append(append(slices.Clone(w.args), up.args...), raw, norm, y, eps, int32(k), int32(n))...)
	same(t, act, y, "rms_silu_mul, %s", at)
}

// wholeNumbers are n small integers as floats.
func wholeNumbers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(17) - 8)
	}
	return x
}

// TestStagedProducts: the twins of kernels that keep their vector in threadgroup memory, and of those whose bits they
// have, compute what a plain sum over decoded codes is. Operands are small integers and powers of two, so that a sum in
// any order is exact, and the comparison is to the bit where no exp is taken.
func TestStagedProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	const m, group = 2, 32
	params := fmt.Sprintf("float_gs_%d_b_4", group)
	plain := "fast_" + params + "_batch_0_pr_0_hgs_0_r_4"
	for _, c := range []struct {
		kernels     []string
		matrices, k int
	}{
		{[]string{plain, "whole_" + params}, 1, 1536},
		{[]string{plain, "piped_" + params}, 1, 4096},
		{[]string{"fast_silu_mul_" + params, "whole_silu_mul_" + params}, 2, 1536},
		{[]string{"fast_add_" + params, "piped_add_" + params}, 1, 4096},
		{[]string{"fast_x3_" + params, "piped_x3_" + params}, 3, 4096},
	} {
		ns := []int{8 * (1 + r.IntN(20))}
		x := wholeNumbers(r, m*c.k)
		var args, sizes []any
		var products [][]float64 // of each matrix
		for i := range c.matrices {
			if i > 0 && c.matrices == 3 { // the others have the size of the first
				ns = append(ns, 8*(1+r.IntN(20)))
			}
			n := ns[len(ns)-1]
			w := randomMatrix(r, affine{4, group}, n, c.k).args
			codes, scales, biases := w[0].([]byte), w[1].([]float32), w[2].([]float32)
			for j := range scales {
				scales[j] = float32(math.Ldexp(1, -12-r.IntN(3)))
				biases[j] = -float32(r.IntN(9)) * scales[j]
			}
			args = append(args, w...)
			product := make([]float64, m*n)
			for at := range product {
				for k := range c.k {
					e := at%n*c.k + k
					code := codes[e/2] >> (e % 2 * 4) & 15
					product[at] += float64(x[at/n*c.k+k]) * (float64(scales[e/group])*float64(code) + float64(biases[e/group]))
				}
			}
			products = append(products, product)
		}
		args = append(args, x)
		want, exact := products, true
		switch {
		case strings.Contains(c.kernels[1], "add"):
			residual := wholeNumbers(r, m*ns[0])
			args = append(args, residual)
			for i := range residual {
				want[0][i] += float64(residual[i])
			}
		case c.matrices == 2:
			for i, gate := range products[0] {
				want[0][i] = gate / (1 + math.Exp(-gate)) * products[1][i]
			}
			want, exact = want[:1], false
		}
		sizes = append(sizes, int32(c.k))
		for _, n := range ns {
			sizes = append(sizes, int32(n))
		}
		for _, kernel := range c.kernels {
			var results []any
			for _, n := range ns {
				results = append(results, make([]float32, m*n))
			}
			runKernel(t, "affine_qmv_"+kernel, [3]int{m, 1, 1}, [3]int{1, 1, 1}, slices.Concat(args, results, sizes)...)
			for i := range want {
				for at, v := range want[i] {
					got := float64(results[i].([]float32)[at])
					if got != v && (exact || math.Abs(got-v) > 1e-6*math.Abs(v)) {
						t.Fatalf("element %d of result %d of %s: %v, not %v", at, i, kernel, got, v)
					}
				}
			}
		}
	}
}

// testTops: a product fused with the first step of an argmax has the bits of the product of the normalised x,
// followed by max_parts. Rows that are NaN are never the max.
func testTops(t *testing.T, r *rand.Rand, f family, x, raw, norm []float32, at string) {
	if f.weights.(affine).bits != 8 {
		return // logits come from 8-bit matrices only
	}
	k := len(norm)
	m, parts := len(raw)/k, 1+r.IntN(40)
	n := parts * partSize
	w := randomMatrix(r, f.weights, n, k)
	scales := w.args[1].([]float32)
	for i := range scales {
		if i < len(scales)/parts || r.IntN(3*len(scales)/n) == 0 { // poison all rows of the first part, and a third of the others
			scales[i] = float32(math.NaN())
		}
	}
	y, want, top, wantTop := make([]float32, m*n), make([]float32, m*n), make([]float32, m*parts), make([]float32, m*parts)
	groups := [3]int{m, 1, 1}
	runKernel(t, f.plain, groups, [3]int{1, 1, 1}, append(slices.Clone(w.args), x, want, int32(k), int32(n))...)
	runKernel(t, "max_parts_float32", [3]int{ceilDiv(parts, partsOfGroup), m, 1}, [3]int{1, 1, 1}, want, wantTop, uint32(parts))
	runKernel(t, f.fused("rms_max"), groups, [3]int{1, 1, 1}, append(slices.Clone(w.args), raw, norm, y, top, float32(1e-5), int32(k), int32(n))...)
	same(t, want, y, "rms_max, %s", at)
	same(t, wantTop, top, "maxima of rms_max, %s", at)
}

// A two-step argmax equals the argmax, with NaNs, infinities, both zeros and equal elements in different parts.
func TestArgmaxInTwoSteps(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	pools := [][]float32{
		{0, float32(math.Copysign(0, -1))}, {-1, 0, float32(math.Copysign(0, -1)), nan}, {nan}, {-inf}, {-inf, nan}, {nan, inf, -inf},
		{1, 1, 2, 3, 3}, {-5, -6, nan}, {1e-45, -1e-45, 0, float32(math.Copysign(0, -1))},
	}
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 3000 {
		rows, parts := 1+r.IntN(3), 1+r.IntN(150)
		size := parts * partSize
		x := make([]float32, rows*size)
		for row := range rows {
			pool, rare := pools[r.IntN(len(pools))], 1+r.IntN(size)
			for i := range size {
				x[row*size+i] = pool[0]
				if n%2 == 0 || r.IntN(rare) == 0 {
					x[row*size+i] = pool[r.IntN(len(pool))]
				}
			}
		}
		top, want, got := make([]float32, rows*parts), make([]byte, 4*rows), make([]byte, 4*rows)
		one := [3]int{1, 1, 1}
		runKernel(t, "argmax_float32", one, [3]int{32, rows, 1}, x, want, []int64{int64(rows)}, []int64{int64(size)}, []int64{1}, []int64{min(int64(rows)-1, 1)}, []int64{1}, []int64{int64(size)})
		runKernel(t, "max_parts_float32", [3]int{ceilDiv(parts, partsOfGroup), rows, 1}, one, x, top, uint32(parts))
		runKernel(t, "argmax_parts_float32", [3]int{rows, 1, 1}, one, x, top, got, uint32(parts))
		require.Equal(t, want, got, "%d rows of %d", rows, size)
		for i, v := range top {
			require.False(t, v != v, "the maximum of part %d", i)
		}
	}
}

// The fused kernel for queries, keys and values has the bits of a norm, three products and two ropes, whether or not
// heads begin at a multiple of the rows of a unit; where keys and values go to a cache of f16, of their roundings.
func TestTurnedProductsHaveTheBitsOfTheirParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	one, eps, base := [3]int{1, 1, 1}, float32(1e-5), float32(13.3)
	for _, a := range []affine{{4, 32}} {
		params := fmt.Sprintf("float_gs_%d_b_%d", a.group, a.bits)
		for _, dims := range []int{2, 6, 20, 64} {
			k, heads, values := 64*(1+r.IntN(12)), [2]int{1 + r.IntN(9), 1 + r.IntN(4)}, 1+r.IntN(200)
			x, norm, normed := floats(r, k), floats(r, k), make([]float32, k)
			runKernel(t, "rmsfloat32", one, one, x, norm, normed, eps, uint32(k), uint32(1))
			stride := int64(dims + r.IntN(9))
			var args, outs []any
			var want [3][]float32
			for i := range 3 {
				n := values
				if i < 2 {
					n = heads[i] * dims
				}
				w := randomMatrix(r, a, n, k)
				args = append(args, w.args...)
				want[i] = make([]float32, n)
				runKernel(t, "affine_qmv_"+params+"_batch_0_pr_0_hgs_0_r_4", one, one, append(slices.Clone(w.args), normed, want[i], int32(k), int32(n))...)
				if i == 2 {
					outs = append(outs, make([]float32, n))
					continue
				}
				apart := make([]float32, int(stride)*heads[i])
				for h := range heads[i] {
					copy(apart[h*int(stride):], want[i][h*dims:(h+1)*dims])
				}
				want[i] = make([]float32, len(apart))
				runKernel(t, "rope_single_float32", [3]int{}, [3]int{dims / 2, heads[i], 1}, apart, want[i], int32(17), float32(1), stride, nil, nil, nil, nil, nil, base)
				outs = append(outs, make([]float32, len(apart)))
			}
			args = append(args, x, norm)
			numbers := []any{eps, int32(k), int32(heads[0]), int32(heads[1]), int32(dims), int32(values), stride, stride, int32(17), float32(1), base}
			runKernel(t, "affine_qmv_rms_x3_rope_"+params, one, one, slices.Concat(args, outs, numbers)...)
			for i, what := range []string{"queries", "keys", "values"} {
				same(t, want[i], outs[i].([]float32), "%s, %s, heads %d of %d, K = %d", what, params, heads, dims, k)
			}
			q, cached := make([]float32, len(want[0])), [2][]uint16{make([]uint16, len(want[1])), make([]uint16, len(want[2]))}
			runKernel(t, "affine_qmv_rms_x3_rope_float_float16_t_gs_32_b_4", one, one, slices.Concat(args, []any{q, cached[0], cached[1]}, numbers)...)
			same(t, want[0], q, "queries beside a cache, heads %d of %d, K = %d", heads, dims, k)
			for i := range cached {
				require.Equal(t, halfType.stored(want[1+i]), cached[i], "result %d of a cache, heads %d of %d, K = %d", i, heads, dims, k)
			}
		}
	}
}

// TestTurnedRowsHaveTheBitsOfTheirParts: the fused kernel for queries, keys and values of many rows has the bits of the products, by a
// kernel of their own, and two ropes, in both pairings, with heads that no block of columns begins with, and with rows that a product takes one
// by one or in several blocks; where keys and values go to a cache of f16, of their roundings.
func TestTurnedRowsHaveTheBitsOfTheirParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	one, base, scale := [3]int{1, 1, 1}, float32(13.3), float32(0.5)
	types := []*narrow{nil}
	for _, n := range narrows {
		types = append(types, &n)
	}
	for i, rows := range []int{1, 3, 4, 66, 513} {
		for j, narrow := range types {
			a := affine{[]int{4, 8}[(i+j)%2], []int{32, 64, 128}[(i+j)%3]}
			dims, traditional := []int{2, 6, 20, 64}[(i+2*j)%4], uint64(i+j)%2
			k, heads, values := 128*(1+r.IntN(3)), [2]int{1 + r.IntN(9), 1 + r.IntN(4)}, 1+r.IntN(100)
			what := fmt.Sprintf("%d rows of %d, heads %v of %d, %v, %v, traditional %d", rows, k, heads, dims, a, narrow, traditional)
			word, typ := "float", "float32"
			if narrow != nil {
				word, typ = narrow.String()+"_t", narrow.String()
			}
			room := func(n int) any {
				if narrow != nil {
					return make([]uint16, n)
				}
				return make([]float32, n)
			}
			random := func(n int) any {
				if narrow != nil {
					return narrow.stored(floats(r, n))
				}
				return floats(r, n)
			}
			params := fmt.Sprintf("%s_gs_%d_b_%d", word, a.group, a.bits)
			x := random(rows * k)
			var args, dots, sizes []any
			for i := range 3 {
				n := values
				if i < 2 {
					n = heads[i] * dims
				}
				w := randomMatrix(r, a, n, k)
				if narrow != nil {
					w.args[1], w.args[2] = narrow.stored(w.args[1].([]float32)), narrow.stored(w.args[2].([]float32))
				}
				args, dots, sizes = append(args, w.args...), append(dots, room(rows*n)), append(sizes, int32(n))
			}
			args = append(args, x)
			runKernel(t, "affine_qmm_t_x3_"+params+"_alN_false", one, one, slices.Concat(args, dots, []any{int32(k)}, sizes, []any{int32(rows)})...)
			want, outs, strides := slices.Clone(dots), slices.Clone(dots), [2][]int64{}
			for i := range 2 {
				row, offset := int64(heads[i]*dims+r.IntN(9)), int32(17)
				strides[i] = []int64{int64(dims), row, 1}
				want[i], outs[i] = room(rows*int(row)), room(rows*int(row))
				runPaired(t, traditional, "rope_"+typ, [3]int{}, [3]int{dims / 2, rows, ceilDiv(heads[i], 4)}, dots[i], want[i], offset, scale,
					[]int64{int64(dims), int64(heads[i] * dims), 1}, strides[i], int64(0), int32(heads[i]), nil, nil, base)
			}
			outs[2] = room(rows * values)
			numbers := []any{int32(17), int32(k), int32(heads[0]), int32(heads[1]), int32(dims), int32(values), int32(rows), strides[0][:2], strides[1][:2], scale, base}
			runPaired(t, traditional, "affine_qmm_t_x3_rope_"+params, one, one, slices.Concat(args, outs, numbers)...)
			for i, part := range []string{"queries", "keys", "values"} {
				require.Equal(t, memoryOf(want[i]), memoryOf(outs[i]), "%s of %s", part, what)
			}
			if narrow != nil {
				continue
			}
			cached := [2][]uint16{make([]uint16, len(want[1].([]float32))), make([]uint16, len(want[2].([]float32)))}
			runPaired(t, traditional, "affine_qmm_t_x3_rope_"+strings.Replace(params, "float", "float_float16_t", 1), one, one,
				slices.Concat(args, []any{outs[0], cached[0], cached[1]}, numbers)...)
			for i := range cached {
				require.Equal(t, halfType.stored(want[1+i].([]float32)), cached[i], "result %d of a cache, %s", i, what)
			}
		}
	}
}

// memoryOf is the memory of numbers.
func memoryOf(x any) []byte {
	if x, ok := x.([]uint16); ok {
		return halfBytes(x)
	}
	return rawBytes(x.([]float32))
}

// addRMS has the bits of a sum and a norm, for every operand that its results may overwrite.
func TestAddRMSHasTheBitsOfItsParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, n := range []int{1, 3, 64, 576, 4096, 5001} {
		for _, stride := range []int{0, 1, 3} {
			const rows = 3
			a, b, w := floats(r, rows*n), floats(r, rows*n), floats(r, n*stride+1)
			sum, norm := make([]float32, rows*n), make([]float32, rows*n)
			elements, groups := [3]int{rows * n, 1, 1}, [3]int{rows, 1, 1}
			runKernel(t, "vv_Addfloat32", elements, elements, a, b, sum)
			runKernel(t, "rmsfloat32", groups, groups, sum, w, norm, float32(1e-5), uint32(n), uint32(stride))
			for place := range 4 {
				x, y := bytesOf(a), bytesOf(b)
				s, o := make([]byte, 4*rows*n), make([]byte, 4*rows*n)
				switch place {
				case 1:
					s = x
				case 2:
					s, o = y, x
				case 3:
					o = y
				}
				runKernel(t, []string{"add_rmsfloat32", "add_rms_loopedfloat32"}[place%2], groups, groups, x, y, w, s, o, float32(1e-5), uint32(n), uint32(stride))
				require.True(t, bytes.Equal(bytesOf(sum), s), "sum of %d, stride %d, place %d", n, stride, place)
				require.True(t, bytes.Equal(bytesOf(norm), o), "norm of %d, stride %d, place %d", n, stride, place)
			}
			if stride == 1 { // the result may overwrite the weight
				one := append([]float32(nil), w[:n]...)
				runKernel(t, "rmsfloat32", [3]int{1, 1, 1}, [3]int{1, 1, 1}, sum[:n], one, one, float32(1e-5), uint32(n), uint32(1))
				same(t, norm[:n], one, "the norm over its weight, %d", n)
			}
		}
	}
}

// bytesOf copies x.
func bytesOf(x []float32) []byte {
	var out []byte
	for _, v := range x {
		out = append(out, ir.ValueBytes(v)...)
	}
	return out
}

// rope2 has the bits of one rope of the queries and one of the keys.
func TestRope2HasTheBitsOfItsParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	const half, qh, kh, length = 32, 9, 3, 5
	q, k := floats(r, length*qh*2*half), floats(r, length*kh*2*half)
	heads := func(n int, x []float32) []float32 {
		y := make([]float32, len(x))
		runKernel(t, "rope_single_float32", [3]int{}, [3]int{half, n, 1}, x, y, int32(17), float32(1), int64(2*half), nil, nil, nil, nil, nil, float32(13.3))
		return y
	}
	q1, k1 := make([]float32, len(q)), make([]float32, len(k))
	stride := int64(2 * half)
	runKernel(t, "rope_single_x2_float32", [3]int{}, [3]int{half, qh + kh, 1}, q, k, q1, k1, int32(17), float32(1), stride, stride, stride, stride, float32(13.3), int32(qh), int32(kh))
	same(t, heads(qh, q)[:qh*2*half], q1, "one position of q")
	same(t, heads(kh, k)[:kh*2*half], k1, "one position of k")

	rows := func(n int, x []float32) []float32 {
		y := make([]float32, len(x))
		s := []int64{2 * half, int64(n) * 2 * half, 1}
		runKernel(t, "rope_float32", [3]int{}, [3]int{half, length, (n + 3) / 4}, x, y, int32(17), float32(1), s, s, int64(0), int32(n), nil, nil, float32(13.3))
		return y
	}
	qs, ks := []int64{2 * half, qh * 2 * half, 1}, []int64{2 * half, kh * 2 * half, 1}
	runKernel(t, "rope_x2_float32", [3]int{}, [3]int{half, length, 4}, q, k, q1, k1, int32(17), float32(1), qs, ks, qs, ks, float32(13.3), int32(qh), int32(kh))
	same(t, rows(qh, q), q1, "a sequence of q")
	same(t, rows(kh, k), k1, "a sequence of k")
}

// Products with transposed operands have the bits of gemm_nt on operands that were transposed by a copy, because
// they have the same reduction class.
func TestTransposedProductsHaveTheBitsOfGemm(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	turn := func(x []float32, rows, cols int) []float32 {
		out := make([]float32, len(x))
		transpose(out, x, cols, rows, cols)
		return out
	}
	for _, m := range []int{1, 3, 5, 37, 63, 64, 515} {
		for _, n := range []int{1, 47, 49, 130} {
			k := 1 + r.IntN(400)
			x, w := floats(r, m*k), floats(r, n*k)
			want, nn, tn := make([]float32, m*n), make([]float32, m*n), make([]float32, m*n)
			sizes := []any{int32(k), int32(n), int32(m)}
			groups := [3]int{ceilDiv(n, 32), ceilDiv(m, 32), 1}
			runKernel(t, "gemm_nt_float32", groups, groups, append([]any{x, w, want}, sizes...)...)
			runKernel(t, "gemm_nn_float32", groups, groups, append([]any{x, turn(w, n, k), nn}, sizes...)...)
			runKernel(t, "gemm_tn_float32", groups, groups, append([]any{turn(x, m, k), turn(w, n, k), tn}, sizes...)...)
			same(t, want, nn, "nn %dx%dx%d", m, n, k)
			same(t, want, tn, "tn %dx%dx%d", m, n, k)
		}
	}
}
