package ptxmatrix_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// TestDenseVectors runs products of weights of 16 bits with a vector, in all forms, with numbers of results that fill no tile, and inner indices that give warps different numbers
// of chunks. They keep the bound of their sums; infinities and NaN stay what they are.
func TestDenseVectors(t *testing.T) {
	anySize(t)
	type product struct {
		name   string
		k      int
		n      []int // results of each matrix that has some of its own
		odd    float64
		launch nvptx.Launch
		dtype  ir.DType
		gpu    ptxmatrix.GPU
	}
	ampere, ada := ptxmatrix.GPU{Major: 8, Memory: 164 << 10}, ptxmatrix.GPU{Major: 8, Minor: 9, Memory: 100 << 10}
	programmatic := nvptx.Launch{Values: true, Programmatic: true}
	const tiling = "_bm4_bn1_sm1_sn32_tm4_tn4_nc0_axpby0"
	for _, x := range sample.Of(t, "dense products with vectors", []product{
		{"gemv_float16" + tiling, 4096, []int{37}, 0, programmatic, ir.F16, ptxmatrix.Hopper},
		{"gemv_add_float16", 14336, []int{40}, 0, programmatic, ir.F16, ptxmatrix.Hopper},
		{"gemv_x3_float16", 1088, []int{67, 16, 21}, 0, programmatic, ir.F16, ptxmatrix.Hopper},
		{"gemv_silu_mul_bfloat16", 4096, []int{70}, 0, nvptx.Launch{Moving: true, Programmatic: true}, ir.BF16, ptxmatrix.Hopper},
		{"gemv_bfloat16" + tiling, 320, []int{50}, math.NaN(), nvptx.Launch{}, ir.BF16, ada},
		{"gemv_x2_bfloat16", 2048, []int{33, 100}, math.Inf(-1), nvptx.Launch{Values: true, Moving: true}, ir.BF16, ampere},
		{"gemv_add_bfloat16", 704, []int{29}, 0, nvptx.Launch{Moving: true}, ir.BF16, ampere},
		{"gemv_silu_mul_float16", 1024, []int{19}, 0, nvptx.Launch{Values: true}, ir.F16, ada},
	}, 5) {
		t.Run(fmt.Sprint(x.name, " ", x.k), func(t *testing.T) {
			k, p := describedFor(t, x.gpu, x.name)
			r, n, m := rand.New(rand.NewPCG(2, uint64(x.k))), number16{x.dtype}, &ptxrun.Memory{}
			values, bytes := n.numbers(r, x.k, normal(1))
			if x.odd != 0 {
				values[77] = x.odd
				binary.LittleEndian.PutUint16(bytes[2*77:], n.of(x.odd))
			}
			in := m.Add(bytes)
			args := map[string]any{"x": in, "in_vec": in, "K": x.k, "in_vec_size": x.k, "marix_ld": x.k, "N": x.n[0], "out_vec_size": x.n[0]}
			groups, group := [3]uint64{0, 1, 1}, [3]uint64{32, 2, 1}
			var ws [][]float64
			var outs [][]byte
			matrix := func(rows int, names ...string) {
				w, wb := n.numbers(r, rows*x.k, normal(1))
				at := m.Add(wb)
				for _, name := range names {
					args[name] = at
				}
				ws = append(ws, w)
			}
			for i, rows := range x.n {
				out := make([]byte, 2*rows)
				outs = append(outs, out)
				groups[0] += uint64(rows+7) / 8
				at := m.Add(out)
				args[fmt.Sprint("y", i)], args["y"], args["out_vec"] = at, at, at
				args[fmt.Sprint("n", i)] = rows
				if strings.Contains(x.name, "silu") {
					matrix(rows, "w_gate")
					matrix(rows, "w_up")
				} else {
					matrix(rows, fmt.Sprint("w", i), "w", "mat")
				}
			}
			residual, rb := n.numbers(r, x.n[0], normal(1))
			args["r"] = m.Add(rb)
			if strings.HasSuffix(x.name, tiling) {
				groups[0], group = uint64(x.n[0]+15)/16, [3]uint64{32, 1, 4}
			}
			launched(t, m, k, p, x.launch, true, groups, group, args)
			dot := func(w []float64, j int) (sum, bound float64) {
				for e, v := range values {
					v *= w[j*x.k+e]
					sum, bound = sum+v, bound+math.Abs(v)
				}
				return sum, bound * 64 * 0x1p-24
			}
			for i, rows := range x.n {
				for j := range rows {
					got := n.value(binary.LittleEndian.Uint16(outs[i][2*j:]))
					want, bound := dot(ws[i], j)
					switch {
					case strings.Contains(x.name, "silu"):
						up, ub := dot(ws[1], j)
						gate := want
						s := gate / (1 + math.Exp(-gate))
						want = s * up
						bound = math.Abs(up)*(1.1*(bound+n.ulp(gate))+2*n.ulp(s)) + math.Abs(s)*(ub+n.ulp(up)) + 4*n.ulp(want)
					case strings.Contains(x.name, "add"):
						bound += n.ulp(want) / 2
						want += residual[j]
					}
					if math.IsNaN(want) || math.IsInf(want, 0) {
						require.True(t, got == want || got != got && want != want, "matrix %d, row %d: %v, want %v", i, j, got, want)
						continue
					}
					require.InDelta(t, want, got, bound+n.ulp(want)*0.51, "matrix %d, row %d", i, j)
				}
			}
		})
	}
}

// TestDenseVectorFits: launches of a token have two blocks of different launches on a multiprocessor, whatever the length of a row. Other layouts than rows one behind another, and
// batches, are left to other code.
func TestDenseVectorFits(t *testing.T) {
	_, p := described(t, "gemv_float16_bm8_bn1_sm1_sn32_tm4_tn4_nc0_axpby0")
	fit := func(k, n, apart, batch int64) ptxmatrix.Fit {
		sizes := map[string]int64{"in_vec_size": k, "out_vec_size": n, "marix_ld": apart}
		return p.Fit([3]uint64{uint64(n+31) / 32, 1, uint64(batch)}, ptxmatrix.Given{Aligned: true, Multiprocessors: 132,
			Constant: func(name string) (int64, bool) { v, ok := sizes[name]; return v, ok }, Still: func(string) bool { return true }})
	}
	for _, k := range []int64{2048, 4096, 8192, 14336, 20480} {
		f := fit(k, 4096, k, 1)
		require.True(t, f.Even(), "%d", k)
		require.Equal(t, 132, f.Blocks)
	}
	require.False(t, fit(4096, 4096, 4160, 1).Fits())
	require.False(t, fit(4096, 4096, 4096, 2).Fits())
	require.False(t, fit(4128, 4096, 4128, 1).Fits())
}
