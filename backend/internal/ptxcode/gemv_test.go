package ptxcode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
)

// calls matches a call of a function in PTX.
var calls = regexp.MustCompile(`(?s)\{ // callseq.*?\} // callseq \d+`)

// ofWholeSimdgroups returns the entry of a text for grids in which every thread of a simdgroup is: it removes the
// functions that exchange values among a part of a simdgroup, and their calls, which are not reached then.
func ofWholeSimdgroups(text []byte) []byte {
	begin, entry, ok := bytes.Cut(text, []byte(".func"))
	if !ok {
		return text
	}
	_, entry, _ = bytes.Cut(entry, []byte(".visible .entry"))
	return append(append(bytes.Clone(begin), ".visible .entry"...), calls.ReplaceAll(entry, []byte("ret;"))...)
}

// TestGemv runs the products of dense matrices with a vector, of sizes that are no multiples of what a
// thread takes, with rows that lie anywhere.
func TestGemv(t *testing.T) {
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	for _, x := range []struct {
		function    string
		rows        int // outputs of a threadgroup
		threads, of int // of a threadgroup, in y and z
	}{
		{"gemv_float32_bm1_bn1_sm8_sn4_tm1_tn4_nc0_axpby0", 8, 1, 1},
		{"gemv_float32_bm1_bn1_sm8_sn4_tm4_tn4_nc0_axpby0", 32, 1, 1},
		{"gemv_float32_bm4_bn1_sm1_sn32_tm1_tn4_nc0_axpby0", 4, 1, 4},
		{"gemv_float32_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0", 16, 1, 4},
		{"gemv_float32_bm1_bn8_sm1_sn32_tm4_tn4_nc0_axpby0", 4, 8, 1},
	} {
		r := rand.New(rand.NewPCG(5, uint64(x.rows)))
		c, err := s.Find(t.Context(), builtin(x.function))
		require.NoError(t, err)
		text, err := c.PTX(t.Context(), nvptx.Launch{Values: true})
		require.NoError(t, err)
		text = ofWholeSimdgroups(text)
		p, err := ptxrun.Parse(text)
		require.NoError(t, err)
		for range 30 {
			k, n := 1+r.IntN(12), 1+r.IntN(9)
			ld := r.IntN(k + 3)
			m := &ptxrun.Memory{}
			floats := func(n int) ([]float32, uint64) {
				all, bytes := make([]float32, n), make([]byte, 4*n)
				for i := range all {
					all[i] = float32(r.NormFloat64())
					binary.LittleEndian.PutUint32(bytes[4*i:], math.Float32bits(all[i]))
				}
				return all, m.Add(bytes)
			}
			off := r.IntN(4)
			mat, at := floats(off + (n-1)*ld + k)
			vec, from := floats(off + k)
			y := make([]byte, 4*n)
			memory := map[string]uint64{"mat": at + uint64(4*off), "in_vec": from + uint64(4*off), "out_vec": m.Add(y), "vector_batch_stride": m.Add(make([]byte, 8)), "matrix_batch_stride": m.Add(make([]byte, 8))}
			values := map[string]uint64{"in_vec_size": uint64(k), "out_vec_size": uint64(n), "marix_ld": uint64(ld), "batch_ndim": 1}
			var params []uint64
			for i := range c.Kernel.Args {
				a := &c.Kernel.Args[i]
				if a.Attribute != "" {
					continue
				}
				if at, ok := memory[a.Name]; ok {
					params = append(params, at)
					continue
				}
				params = append(params, values[a.Name])
			}
			groups := uint32((n + x.rows - 1) / x.rows)
			params = append(params, uint64(32*groups), uint64(x.threads), uint64(x.of), 32, uint64(x.threads), uint64(x.of)|nvptx.WholeThreadgroups)
			what := fmt.Sprintf("%s: K = %d, N = %d, rows %d apart, from %d", x.function, k, n, ld, off)
			require.NoError(t, p.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{groups, 1, 1}, Block: uint32(32 * x.threads * x.of)}), what)
			for i := range n {
				sum, size := 0.0, 0.0
				for j := range k {
					e := float64(mat[off+i*ld+j]) * float64(vec[off+j])
					sum, size = sum+e, size+math.Abs(e)
				}
				got := math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:]))
				require.InDelta(t, sum, got, float64(k+2)*0x1p-24*size, "%s: row %d", what, i)
			}
		}
	}
}
