package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	testsample "github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// Sums of one reduction class over the same operands have equal bits, so a gathered product has the bits of the plain
// product with the same matrix.
func TestGatheredProductsAreThePlainOnes(t *testing.T) {
	forEachImpl(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		const e, rows, slots = 3, 2, 2
		ids := []uint32{2, 0, 1, 1}
		var list []byte
		for _, id := range ids {
			list = append(list, ir.ValueBytes(id)...)
		}
		for _, t16 := range floatTypes() {
			of := fmt.Sprint(t.Name(), t16.name)
			for _, a := range testsample.Families(t, of, affines, func(a affine) string { return fmt.Sprint(a.isPacked()) }, testsample.Few) {
				gatheredAsPlain(t, r, t16, a, rows, slots, e, ids, list)
			}
		}
		n, k := 21, 197
		m := randomMatrix(r, dense{half: true}, e*n, k).args
		x, got := floats(r, rows*slots*k), make([]float32, rows*slots*n)
		runKernel(t, "gather_gemv_float16_float32", [3]int{ceilDiv(n, 8), slots, rows}, [3]int{}, m[0], x, list, got,
			int32(k), int32(n), int32(e), []int64{int64(slots * k), int64(k)})
		for i, id := range ids {
			want := make([]float32, n)
			runKernel(t, "gemv_float16_float32", [3]int{ceilDiv(n, 8), 1, 1}, [3]int{}, m[0].([]byte)[2*n*k*int(id):], x[i*k:(i+1)*k], want, int32(k), int32(n))
			same(t, want, got[i*n:(i+1)*n], "gather_gemv_float16_float32, slot %d", i)
		}
		// f32 matrices with the same numbers give the same sums.
		wide := make([]float32, e*n*k)
		halves := m[0].([]byte)
		for i := range wide {
			simd.HalfTo(wide[i:i+1], []uint16{uint16(halves[2*i]) | uint16(halves[2*i+1])<<8})
		}
		again := make([]float32, rows*slots*n)
		runKernel(t, "gather_gemv_float32", [3]int{ceilDiv(n, 8), slots, rows}, [3]int{}, wide, x, list, again,
			int32(k), int32(n), int32(e), []int64{int64(slots * k), int64(k)})
		same(t, got, again, "gather_gemv_float32")
	})
}

// gatheredAsPlain compares the kernels of one quantization and type.
func gatheredAsPlain(t *testing.T, r *rand.Rand, typ floatType, a affine, rows, slots, e int, ids []uint32, list []byte) {
	stored := func(x []float32) []byte {
		if typ.narrow != nil {
			return halfBytes(typ.narrow.stored(x))
		}
		return rawBytes(x)
	}
	shape := func(v ...int) (b []byte) {
		for _, x := range v {
			b = append(b, ir.ValueBytes(int32(x))...)
		}
		return b
	}
	params := fmt.Sprintf("%s_gs_%d_b_%d", typ.name, a.group, a.bits)
	for _, fast := range []bool{false, true} {
		n, k, suffix := 19, 5*a.group, ""
		if fast {
			n, k, suffix = 24, 1024, "_fast"
		}
		m := randomMatrix(r, a, e*n, k).args
		codes, scales, biases := m[0].([]byte), stored(m[1].([]float32)), stored(m[2].([]float32))
		x := stored(floats(r, rows*k))
		words, groups, size := int64(n*k/32*a.bits), int64(n*k/a.group), typ.size()
		got, other := make([]byte, rows*slots*n*size), make([]byte, rows*slots*n*size)
		lhs := slices.Concat(ir.ValueBytes(uint32(0)), ir.ValueBytes(uint32(1)))
		runKernel(t, "affine_gather_qmv"+suffix+"_"+params, [3]int{1, ceilDiv(n, 8), rows * slots}, [3]int{}, codes, scales, biases, x, lhs, list, got,
			int32(k), int32(n), int32(1), shape(rows, 1, k), []int64{int64(k)}, int32(1), shape(e), []int64{words}, []int64{groups}, []int64{groups},
			int32(2), shape(rows, slots), []int64{1, 0}, []int64{int64(slots), 1})
		runKernel(t, "gather_qmv_"+params, [3]int{ceilDiv(n, 8), slots, rows}, [3]int{}, codes, scales, biases, x, list, other,
			int32(k), int32(n), int32(e), []int64{int64(k), 0})
		for i, id := range ids {
			at := int(groups) * int(id) * size
			want := make([]byte, n*size)
			runKernel(t, "affine_qmv"+suffix+"_"+params+"_batch_0_pr_0_hgs_0_r_4", [3]int{1, ceilDiv(n, 8), 1}, [3]int{},
				codes[4*int(words)*int(id):], scales[at:], biases[at:], x[i/slots*k*size:][:k*size], want, int32(k), int32(n))
			require.Equal(t, want, got[i*n*size:][:n*size], "affine_gather_qmv%s_%s, slot %d", suffix, params, i)
			if !fast { // the fast kernel has another reduction class
				require.Equal(t, want, other[i*n*size:][:n*size], "gather_qmv_%s, slot %d", params, i)
			}
		}
	}
}

// A generated kernel of a single activation has the bits of the builtin kernel of the activation.
func TestGeneratedActivations(t *testing.T) {
	x := floats(rand.New(rand.NewPCG(5, 6)), 3000)
	copy(x, []float32{0, -100, 100, 1e30, -1e30, 1e-40})
	for name, text := range map[string]string{
		"v_Gelufloat32float32":    "out0[i] = round(f32, in0[i] * 0.5 * (1.0 + tanh(in0[i] * 0.7978846 * (1.0 + in0[i] * 0.044715 * in0[i]))))",
		"v_Softcapfloat32float32": "out0[i] = round(f32, s0 * tanh(in0[i] / s0))",
	} {
		want, got := make([]float32, len(x)), make([]float32, len(x))
		runKernel(t, name, [3]int{}, [3]int{len(x), 1, 1}, x, want, nil, float32(30))
		runGenerated(generate(t, text), [3]int{len(x), 1, 1}, x, got, float32(30))
		same(t, want, got, "%s", name)
	}
}
