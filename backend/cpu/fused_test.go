package cpu

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
)

// ofParts: the kernel's results are those of other kernels, to the bit, by a test
// of this file; oracles have judged the others.
func ofParts(kernel string) bool {
	return fusedOf(kernel) != nil || strings.HasPrefix(kernel, "add_rms") || strings.Contains(kernel, "_x2_float32")
}

// runKernel runs a kernel on its arguments: a []float32, []byte or []int64 by slot;
// int32, uint32, int64 and float32 are constants. The units are cut in pieces.
func runKernel(t *testing.T, name string, groups, threads [3]int, args ...any) {
	t.Helper()
	k := Lookup(name)
	require.NotNil(t, k, name)
	c := &Call{Groups: groups, Threads: threads, Group: [3]int{1, 1, 1}, Constants: []ir.FunctionConstant{
		{Index: ropeForward, Type: ir.Bool, Bits: 1}, {Index: ropeTraditional, Type: ir.Bool, Bits: 1},
	}}
	for i, a := range args {
		var data []byte
		switch a := a.(type) {
		case nil:
		case []byte:
			data = a
		case []float32:
			data = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(a))), 4*len(a))
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

func floats(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// same compares bits.
func same(t *testing.T, want, got []float32, what string, args ...any) {
	t.Helper()
	for i := range want {
		require.Equal(t, math.Float32bits(want[i]), math.Float32bits(got[i]), "element %d of %s", i, fmt.Sprintf(what, args...))
	}
}

// matrix is a quantized matrix of n rows.
type matrix struct {
	w              []byte
	scales, biases []float32
	n              int
}

func randomMatrix(r *rand.Rand, a affine, n, k int) matrix {
	w := make([]byte, n*k/8*a.bits)
	for i := range w {
		w[i] = byte(r.Uint32())
	}
	return matrix{w, floats(r, n*k/a.group), floats(r, n*k/a.group), n}
}

// A fused product has the bits of the dispatches that it stands for, for few
// vectors and for many: this is what makes their terms equal.
func TestFusedProductsHaveTheBitsOfTheirParts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, a := range affines {
		params := fmt.Sprintf("float_gs_%d_b_%d", a.group, a.bits)
		for _, m := range []int{1, 2, 3, 5, 37, 515} {
			k := 64 * (1 + r.IntN(12))
			ns := []int{8 * (1 + r.IntN(90)), 1 + r.IntN(600), 1 + r.IntN(70)}
			x := floats(r, m*k)
			mats := make([]matrix, 3)
			for i, n := range ns {
				mats[i] = randomMatrix(r, a, n, k)
			}
			for _, many := range []bool{false, true} {
				if many != (m > 5) && m != 5 {
					continue
				}
				name := func(kind string) string {
					switch {
					case many && kind == "":
						return "affine_qmm_t_" + params + "_alN_false_batch_0"
					case many:
						return "affine_qmm_t_" + kind + "_" + params + "_alN_false"
					case kind == "":
						return "affine_qmv_" + params + "_batch_0_pr_0_hgs_0_r_4"
					}
					return "affine_qmv_" + kind + "_" + params
				}
				groups := [3]int{m, 1, 1} // the twins read M there, or as a constant
				call := func(kind string, args ...any) {
					t.Helper()
					if many {
						args = append(args, int32(m))
					}
					runKernel(t, name(kind), groups, [3]int{1, 1, 1}, args...)
				}
				product := func(b matrix) []float32 {
					y := make([]float32, m*b.n)
					call("", b.w, b.scales, b.biases, x, y, int32(k), int32(b.n))
					return y
				}
				at := fmt.Sprintf("%s, M = %d, K = %d, N = %v", params, m, k, ns)
				var want [3][]float32
				for i := range mats {
					want[i] = product(mats[i])
				}
				A, B, C := mats[0], mats[1], mats[2]
				var y [3][]float32
				fresh := func() {
					for i := range y {
						y[i] = make([]float32, m*ns[i])
					}
				}
				fresh()
				call("x2", A.w, A.scales, A.biases, B.w, B.scales, B.biases, x, y[0], y[1], int32(k), int32(A.n), int32(B.n))
				same(t, want[0], y[0], "y0 of x2, %s", at)
				same(t, want[1], y[1], "y1 of x2, %s", at)
				fresh()
				call("x3", A.w, A.scales, A.biases, B.w, B.scales, B.biases, C.w, C.scales, C.biases, x, y[0], y[1], y[2], int32(k), int32(A.n), int32(B.n), int32(C.n))
				for i := range y {
					same(t, want[i], y[i], "y%d of x3, %s", i, at)
				}

				res := floats(r, m*B.n)
				sum := make([]float32, m*B.n)
				elements := [3]int{m * B.n, 1, 1}
				runKernel(t, "vv_Addfloat32", elements, elements, res, want[1], sum)
				call("add", B.w, B.scales, B.biases, x, res, y[1], int32(k), int32(B.n))
				same(t, sum, y[1], "add, %s", at)
				call("add", B.w, B.scales, B.biases, x, res, res, int32(k), int32(B.n)) // in place
				same(t, sum, res, "add in place, %s", at)

				up := randomMatrix(r, a, B.n, k)
				other := product(up)
				act := make([]float32, m*B.n)
				runKernel(t, "v_Silufloat32float32", elements, elements, want[1], act)
				runKernel(t, "vv_Multiplyfloat32", elements, elements, act, other, act)
				call("silu_mul", B.w, B.scales, B.biases, up.w, up.scales, up.biases, x, y[1], int32(k), int32(B.n))
				same(t, act, y[1], "silu_mul, %s", at)
			}
		}
	}
}

// So has the norm of a sum, in each place that it may be written to.
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
			if stride == 1 { // over the weight
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

// And so have both halves of a rope of queries and keys.
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
