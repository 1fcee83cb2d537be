//go:build unix

package softmetal

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/msl/term"
)

// TestSteelGemm multiplies matrices with MLX's kernels as Apple's compiler compiled them, which use simdgroup
// matrices: with aligned sizes, and with ragged edges, where matrices lie in private memory.
func TestSteelGemm(t *testing.T) {
	sample.Long(t)
	lib := metallibs.Open(t, "0.32.4")
	r := newRig(t, Options{})
	for _, c := range []struct {
		kernel  string
		m, n, k int
		halves  bool
	}{
		{"steel_gemm_fused_nn_float32_float32_bm64_bn64_bk16_wm2_wn2", 128, 128, 64, false},
		{"steel_gemm_fused_nn_float32_float32_bm64_bn64_bk16_wm2_wn2", 70, 45, 37, false},
		{"steel_gemm_fused_nn_float16_float16_bm64_bn64_bk16_wm2_wn2", 70, 45, 37, true},
	} {
		bitcode, err := lib.Bitcode(c.kernel)
		require.NoError(t, err)
		k, err := lib.Describe(c.kernel)
		require.NoError(t, err)
		text, err := air.Disassemble(context.Background(), r.compiler, bitcode)
		require.NoError(t, err)
		const tile, depth = 64, 16
		in := air.Input{Name: "mlx.metallib", IR: text, Kernel: k}
		for i, aligned := range map[int]bool{200: c.m%tile == 0, 201: c.n%tile == 0, 202: c.k%depth == 0} {
			if aligned {
				in.Constants = append(in.Constants, air.ConstantValue{Index: i, Bits: 1})
			}
		}
		delete(r.kernels, c.kernel)
		r.add([]air.Input{in})

		random := rand.New(rand.NewPCG(1, 2))
		values := func(n int) []float32 {
			out := make([]float32, n)
			for i := range out {
				out[i] = float32(random.IntN(17)-8) / 8 // exact as a half, and so are few products
			}
			return out
		}
		a, b := values(c.m*c.k), values(c.k*c.n)
		bytes := func(v []float32) []byte {
			if !c.halves {
				return bytesOf(v)
			}
			var out []byte
			for _, x := range v {
				out = binary.LittleEndian.AppendUint16(out, term.F16Bits(float64(x)))
			}
			return out
		}
		tilesN, tilesM := (c.n+tile-1)/tile, (c.m+tile-1)/tile
		// GEMMParams: M, N, K, lda, ldb, ldd, tiles of n and m, three strides of batches,
		// swizzle, iterations, dimensions of batches.
		var params []byte
		for _, v := range []int{c.m, c.n, c.k, c.k, c.n, c.n, tilesN, tilesM} {
			params = binary.LittleEndian.AppendUint32(params, uint32(v))
		}
		params = append(params, make([]byte, 24)...)
		for _, v := range []int{0, c.k / depth, 0, 0} {
			params = binary.LittleEndian.AppendUint32(params, uint32(v))
		}
		out := r.buffer(bytes(make([]float32, c.m*c.n)))
		nothing := r.buffer(make([]byte, 64))
		begin := time.Now()
		require.NoError(t, r.run(context.Background(), c.kernel, [3]uint32{32 * uint32(tilesN), 2 * uint32(tilesM), 2}, [3]uint32{32, 2, 2},
			r.buffer(bytes(a)), r.buffer(bytes(b)), nothing, out, params, nothing, nothing, nothing))
		t.Logf("%s, %d × %d × %d: %s", c.kernel, c.m, c.n, c.k, time.Since(begin))
		want := make([]float32, c.m*c.n)
		for i := range c.m {
			for j := range c.n {
				sum := float32(0)
				for l := range c.k {
					sum += a[i*c.k+l] * b[l*c.n+j]
				}
				want[i*c.n+j] = sum
			}
		}
		// All sums are exact as floats; as halves they are rounded to nearest.
		assert.Equal(t, bytes(want), out.bytes(), c.kernel)
	}
}
