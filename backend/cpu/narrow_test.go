package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	testsample "github.com/mlxc/mlxc/internal/testing/sample"
)

// stored16 returns what an elementwise kernel of a 16-bit type makes of vectors.
func stored16(t *testing.T, kernel string, n narrow, in ...[]uint16) []uint16 {
	t.Helper()
	name, out := kernel+n.String(), make([]uint16, len(in[0]))
	if len(in) == 1 {
		name += n.String()
	}
	var args []any
	for _, x := range in {
		args = append(args, x)
	}
	threads := [3]int{len(out), 1, 1}
	runKernel(t, name, threads, threads, append(args, out, uint32(len(out)))...)
	return out
}

// silu is MLX's: a product of x and its sigmoid, which is stored before.
func silu(t *testing.T, n narrow, x []uint16) []uint16 {
	return stored16(t, "vv_Multiply", n, x, stored16(t, "v_Sigmoid", n, x))
}

// Silu of 16 bits is a product with a stored sigmoid, for every value of a type.
func TestSiluOf16BitsIsAProduct(t *testing.T) {
	x := make([]uint16, 1<<16)
	for i := range x {
		x[i] = uint16(i)
	}
	for _, n := range narrows {
		require.Equal(t, silu(t, n, x), stored16(t, "v_Silu", n, x), n.String())
	}
}

// TestFusedProductsIn16BitsHaveTheBitsOfTheirParts: what fused kernels make of vectors of 16 bits are the results of
// products that are stored, and of Add, or MLX's silu and Multiply, of what is stored.
func TestFusedProductsIn16BitsHaveTheBitsOfTheirParts(t *testing.T) {
	one := [3]int{1, 1, 1}
	for _, narrow := range narrows {
		for _, a := range testsample.Families(t, fmt.Sprint(t.Name(), narrow), affines, func(a affine) string { return fmt.Sprint(a.bits) }, testsample.Few) {
			r := rand.New(rand.NewPCG(uint64(a.bits), uint64(a.group)))
			k, n, m := 3*a.group, 2*qmvBlock+5, 3 // more than a block, and part of a unit
			params := fmt.Sprintf("%v_t_gs_%d_b_%d", narrow, a.group, a.bits)
			x, residual := narrow.stored(floats(r, m*k)), narrow.stored(floats(r, m*n))
			grid := [3]int{m, 1, 1}
			var mats []any
			for range 3 {
				w := randomMatrix(r, a, n, k).args
				mats = append(mats, w[0], narrow.stored(w[1].([]float32)), narrow.stored(w[2].([]float32)))
			}
			for _, form := range []struct {
				name, plain, end string
				sizes            []any
			}{{"affine_qmv_", "_batch_0_pr_0_hgs_0_r_4", "", nil}, {"affine_qmm_t_", "_alN_false_batch_0", "_alN_false", []any{int32(m)}}} {
				var dots [3][]uint16
				for i := range dots {
					dots[i] = make([]uint16, m*n)
					runKernel(t, form.name+params+form.plain, grid, one, slices.Concat(mats[3*i:3*i+3], []any{x, dots[i], int32(k), int32(n)}, form.sizes)...)
				}
				got := func(kernel string, matrices, outs int, more ...any) []any {
					args := append(mats[:3*matrices:3*matrices], x)
					args = append(args, more...)
					var ys []any
					for range outs {
						ys = append(ys, make([]uint16, m*n))
					}
					args = append(append(args, ys...), int32(k))
					for range outs {
						args = append(args, int32(n))
					}
					runKernel(t, form.name+kernel+"_"+params+form.end, grid, one, append(args, form.sizes...)...)
					return ys
				}
				for i, y := range append(got("x2", 2, 2), got("x3", 3, 3)...) {
					require.Equal(t, dots[[]int{0, 1, 0, 1, 2}[i]], y, "result %d of x2, x3 %s", i, params)
				}
				sum := narrow.wide(residual)
				simd.AddTo(sum, sum, narrow.wide(dots[0]))
				require.Equal(t, narrow.stored(sum), got("add", 1, 1, residual)[0], params)

				act := stored16(t, "vv_Multiply", narrow, silu(t, narrow, dots[0]), dots[1])
				require.Equal(t, act, got("silu_mul", 2, 1)[0], params)
			}

			if a.isPacked() {
				continue
			}
			// What normalises its vectors has the bits of what is given normalised ones.
			raw, norm, eps := narrow.stored(floats(r, m*k)), narrow.stored(floats(r, k)), float32(1e-5)
			runKernel(t, fmt.Sprint("rms", narrow), grid, one, raw, norm, x, eps, uint32(k), uint32(1))
			product := func(kernel string, args ...any) []uint16 {
				y := make([]uint16, m*n)
				runKernel(t, "affine_qmv_"+kernel, grid, one, append(args, y, int32(k), int32(n))...)
				return y
			}
			normed := func(kind string, matrices int, outs ...any) {
				args := append(mats[:3*matrices:3*matrices], raw, norm)
				runKernel(t, "affine_qmv_"+kind+"_"+params, grid, one, append(append(args, outs...), eps, int32(k), int32(n))...)
			}
			y := make([]uint16, m*n)
			want := product(params+"_batch_0_pr_0_hgs_0_r_4", append(mats[:3:3], x)...)
			normed("rms", 1, y)
			require.Equal(t, want, y, "rms, %s", params)
			if a.bits == 8 {
				n = n / partSize * partSize
				parts := n / partSize
				y, top, wantTop := make([]uint16, m*n), make([]uint16, m*parts), make([]uint16, m*parts)
				want := product(params+"_batch_0_pr_0_hgs_0_r_4", append(mats[:3:3], x)...)
				runKernel(t, fmt.Sprint("max_parts_", narrow), [3]int{ceilDiv(parts, partsOfGroup), m, 1}, one, want, wantTop, uint32(parts))
				normed("rms_max", 1, y, top)
				require.Equal(t, want, y, "rms_max, %s", params)
				require.Equal(t, wantTop, top, "maxima of rms_max, %s", params)
				continue
			}
			normed("rms_silu_mul", 2, y)
			require.Equal(t, product("silu_mul_"+params, append(mats[:6:6], x)...), y, "rms_silu_mul, %s", params)
			testTurnedIn16Bits(t, narrow, params, mats, raw[:k], x[:k], norm)
		}
	}
}

// TestFusedDenseProductsIn16BitsHaveTheBitsOfTheirParts: as those of affine codes, of one row and of many, with tiles that are not whole.
func TestFusedDenseProductsIn16BitsHaveTheBitsOfTheirParts(t *testing.T) {
	const n, k = 53, 70
	one := [3]int{1, 1, 1}
	for of, narrow := range append(narrows, narrows...) {
		m, prefix, rows := 37, "gemm_nt", []any{int32(37)}
		if of >= len(narrows) {
			m, prefix, rows = 1, "gemv", nil
		}
		r := rand.New(rand.NewPCG(1, uint64(of)))
		x, residual := narrow.stored(floats(r, m*k)), narrow.stored(floats(r, m*n))
		var mats []any
		var dots [3][]uint16
		for i := range dots {
			w := narrow.stored(floats(r, n*k))
			mats, dots[i] = append(mats, w), make([]uint16, m*n)
			if m == 1 {
				runKernel(t, fmt.Sprintf("gemv_%v_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0", narrow), one, one, w, x, nil, dots[i], int32(k), int32(n), int32(k), nil, nil, nil, nil, []int64{k}, []int64{n * k})
				continue
			}
			runKernel(t, fmt.Sprint("gemm_nt_", narrow), one, one, x, w, dots[i], int32(k), int32(n), int32(m))
		}
		got := func(kernel string, matrices, outs int, more ...any) []any {
			args := append(slices.Concat(mats[:matrices], []any{x}), more...)
			var ys, sizes []any
			for range outs {
				ys, sizes = append(ys, make([]uint16, m*n)), append(sizes, int32(n))
			}
			runKernel(t, fmt.Sprintf("%s_%s_%v", prefix, kernel, narrow), one, one, slices.Concat(args, ys, []any{int32(k)}, sizes, rows)...)
			return ys
		}
		for i, y := range append(got("x2", 2, 2), got("x3", 3, 3)...) {
			require.Equal(t, dots[[]int{0, 1, 0, 1, 2}[i]], y, "result %d of %s_x2, x3, %v", i, prefix, narrow)
		}
		elements, sum, act := [3]int{m * n, 1, 1}, make([]uint16, m*n), make([]uint16, m*n)
		runKernel(t, fmt.Sprint("vv_Add", narrow), elements, elements, residual, dots[0], sum)
		require.Equal(t, sum, got("add", 1, 1, residual)[0], "%s_add, %v", prefix, narrow)
		runKernel(t, fmt.Sprintf("v_Silu%v%v", narrow, narrow), elements, elements, dots[0], act)
		runKernel(t, fmt.Sprint("vv_Multiply", narrow), elements, elements, act, dots[1], act)
		require.Equal(t, act, got("silu_mul", 2, 1)[0], "%s_silu_mul, %v", prefix, narrow)
	}
}

// testTurnedIn16Bits: fused queries, keys and values, with and without rotation (rope), have the bits of products of the
// normalised vector x, and of rotations.
func testTurnedIn16Bits(t *testing.T, narrow narrow, params string, mats []any, raw, x, norm []uint16) {
	t.Helper()
	const dims, stride = 6, 9
	one, k := [3]int{1, 1, 1}, int32(len(x))
	heads, values := []int{5, 3}, 13
	var want [3][]uint16
	var outs []any
	for i := range want {
		n := values
		if i < 2 {
			n = heads[i] * dims
		}
		dots := make([]uint16, n)
		runKernel(t, "affine_qmv_"+params+"_batch_0_pr_0_hgs_0_r_4", one, one, append(mats[3*i:3*i+3:3*i+3], x, dots, k, int32(n))...)
		want[i] = dots
		if i < 2 {
			apart := make([]uint16, heads[i]*stride)
			for h := range heads[i] {
				copy(apart[h*stride:], dots[h*dims:(h+1)*dims])
			}
			want[i] = make([]uint16, len(apart))
			runKernel(t, fmt.Sprint("rope_single_", narrow), [3]int{}, [3]int{dims / 2, heads[i], 1}, apart, want[i], int32(17), float32(1), int64(stride), nil, nil, nil, nil, nil, float32(13.3))
		}
		outs = append(outs, make([]uint16, len(want[i])))
	}
	args := slices.Concat(mats[:9:9], []any{raw, norm}, outs, []any{
		float32(1e-5), k, int32(heads[0]), int32(heads[1]), int32(dims), int32(values), int64(stride), int64(stride), int32(17), float32(1), float32(13.3),
	})
	runKernel(t, "affine_qmv_rms_x3_rope_"+params, one, one, args...)
	for i := range want {
		require.Equal(t, want[i], outs[i], "result %d, %s", i, params)
	}
}

// stored are the roundings of x to the type, and wide the values of such.
func (n narrow) stored(x []float32) []uint16 {
	out := make([]uint16, len(x))
	n.to(out, x)
	return out
}

func (n narrow) wide(x []uint16) []float32 {
	out := make([]float32, len(x))
	n.from(out, x)
	return out
}

// TestAddRMSIn16BitsHasTheBitsOfItsParts: as in f32, in place too.
func TestAddRMSIn16BitsHasTheBitsOfItsParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for _, narrow := range narrows {
		for _, stride := range []int{0, 1, 3} {
			const rows, n = 3, 577
			a, b, w := narrow.stored(floats(r, rows*n)), narrow.stored(floats(r, rows*n)), narrow.stored(floats(r, n*stride+1))
			sum, norm := make([]uint16, rows*n), make([]uint16, rows*n)
			elements, groups := [3]int{rows * n, 1, 1}, [3]int{rows, 1, 1}
			runKernel(t, fmt.Sprint("vv_Add", narrow), elements, elements, a, b, sum)
			runKernel(t, fmt.Sprint("rms", narrow), groups, groups, sum, w, norm, float32(1e-5), uint32(n), uint32(stride))
			for _, looped := range []string{"", "_looped"} {
				x, y := slices.Clone(a), slices.Clone(b)
				s, o := make([]uint16, rows*n), y
				if looped != "" {
					s, o = y, x
				}
				runKernel(t, fmt.Sprint("add_rms", looped, narrow), groups, groups, x, y, w, s, o, float32(1e-5), uint32(n), uint32(stride))
				require.Equal(t, sum, s, "sum, %v%s, stride %d", narrow, looped, stride)
				require.Equal(t, norm, o, "norm, %v%s, stride %d", narrow, looped, stride)
			}
		}
	}
}

// TestRope2In16BitsHasTheBitsOfItsParts: as in f32.
func TestRope2In16BitsHasTheBitsOfItsParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	const half, length = 4, 3
	heads := [2]int{5, 2}
	for _, narrow := range narrows {
		var x, single, many [2][]uint16
		var one, all, results, further []any
		for i, n := range heads {
			x[i] = narrow.stored(floats(r, length*n*2*half))
			single[i], many[i] = make([]uint16, n*2*half), make([]uint16, len(x[i]))
			strides := []int64{2 * half, int64(n) * 2 * half, 1}
			runKernel(t, fmt.Sprint("rope_single_", narrow), [3]int{}, [3]int{half, n, 1}, x[i], single[i], int32(17), float32(1), strides[0], nil, nil, nil, nil, nil, float32(13.3))
			runKernel(t, fmt.Sprint("rope_", narrow), [3]int{}, [3]int{half, length, ceilDiv(n, 4)}, x[i], many[i], int32(17), float32(1), strides, strides, int64(0), int32(n), nil, nil, float32(13.3))
			one, all = append(one, strides[0]), append(all, strides)
			results, further = append(results, make([]uint16, n*2*half)), append(further, make([]uint16, len(x[i])))
		}
		sizes := []any{float32(13.3), int32(heads[0]), int32(heads[1])}
		runKernel(t, fmt.Sprintf("rope_single_x2_%v", narrow), [3]int{}, [3]int{half, heads[0] + heads[1], 1}, slices.Concat([]any{x[0], x[1]}, results, []any{int32(17), float32(1)}, one, one, sizes)...)
		runKernel(t, fmt.Sprintf("rope_x2_%v", narrow), [3]int{}, [3]int{half, length, 3}, slices.Concat([]any{x[0], x[1]}, further, []any{int32(17), float32(1)}, all, all, sizes)...)
		for i := range heads {
			require.Equal(t, single[i], results[i], "%v, one position", narrow)
			require.Equal(t, many[i], further[i], "%v, a sequence", narrow)
		}
	}
}
