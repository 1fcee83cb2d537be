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

// TestRowsTurned runs products of many rows that are turned, with heads that share angles in a block and with heads that do not, in both orders of a
// head, into memory under strides that are multiples of 16 bytes and that are not.
func TestRowsTurned(t *testing.T) {
	type product struct {
		name                            string
		k, rows, q, heads, dims, values int
		apart                           int // elements between rows of queries
		traditional                     bool
		dtype                           ir.DType
		group, bits                     int
		launch                          nvptx.Launch
		gpu                             ptxmatrix.GPU
	}
	for _, x := range sample.Of(t, "products of rows, turned", []product{
		{"affine_qmm_t_x3_rope_float16_t_gs_32_b_4", 160, 35, 3, 2, 128, 270, 8, false, ir.F16, 32, 4, nvptx.Launch{Values: true, Programmatic: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_bfloat16_t_gs_64_b_4", 256, 70, 5, 1, 96, 33, 3, true, ir.BF16, 64, 4, nvptx.Launch{Values: true, Moving: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_bfloat16_t_gs_128_b_8", 256, 9, 9, 3, 64, 256, 0, false, ir.BF16, 128, 8, nvptx.Launch{}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_float16_t_gs_64_b_8", 64, 130, 9, 5, 32, 8, 8, true, ir.F16, 64, 8, nvptx.Launch{Moving: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_float16_t_gs_32_b_4", 96, 3, 2, 1, 256, 9, 1, false, ir.F16, 32, 4, nvptx.Launch{Values: true}, ptxmatrix.Hopper},
		// Blocks of a cluster share the inner index, weights are asked for early.
		{"affine_qmm_t_x3_rope_float16_t_gs_32_b_4", 2048, 5, 3, 1, 128, 70, 8, false, ir.F16, 32, 4, nvptx.Launch{Values: true, Programmatic: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_bfloat16_t_gs_64_b_4", 1024, 19, 2, 1, 64, 33, 3, true, ir.BF16, 64, 4, nvptx.Launch{Values: true, Moving: true}, ptxmatrix.Hopper},
		// Few rows by warps that share the inner index.
		{"affine_qmm_t_x3_rope_float16_t_gs_32_b_4", 512, 7, 3, 1, 128, 71, 8, false, ir.F16, 32, 4, nvptx.Launch{Values: true, Programmatic: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_bfloat16_t_gs_64_b_4", 768, 2, 5, 2, 96, 33, 3, true, ir.BF16, 64, 4, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_float16_t_gs_128_b_4", 512, 3, 9, 1, 64, 300, 3, false, ir.F16, 128, 4, nvptx.Launch{}, ptxmatrix.Hopper},
		// Of f32.
		{"affine_qmm_t_x3_rope_float_gs_32_b_4", 160, 35, 3, 2, 128, 270, 8, false, ir.F32, 32, 4, nvptx.Launch{Values: true, Programmatic: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_float_float16_t_gs_128_b_4", 128, 40, 3, 2, 64, 70, 1, false, ir.F32, 128, 4, nvptx.Launch{Values: true, Programmatic: true}, ptxmatrix.Hopper},
		{"affine_qmm_t_x3_rope_float_gs_64_b_8", 128, 66, 5, 1, 96, 33, 3, true, ir.F32, 64, 8, nvptx.Launch{Values: true, Moving: true}, ptxmatrix.Hopper},
		// By warps.
		{"affine_qmm_t_x3_rope_float16_t_gs_32_b_4", 256, 70, 3, 2, 128, 270, 8, false, ir.F16, 32, 4, nvptx.Launch{Values: true}, ada},
		{"affine_qmm_t_x3_rope_bfloat16_t_gs_64_b_8", 128, 19, 5, 1, 96, 33, 3, true, ir.BF16, 64, 8, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, ampere},
		{"affine_qmm_t_x3_rope_bfloat16_t_gs_32_b_4", 1024, 9, 2, 1, 256, 9, 1, false, ir.BF16, 32, 4, nvptx.Launch{}, ampere},
	}, 10) {
		t.Run(fmt.Sprint(x.name, " ", x.k, " ", x.gpu.Major), func(t *testing.T) {
			few := x.k == 512 || x.k == 768
			if few {
				anySize(t)
			}
			k, p := describedFor(t, x.gpu, x.name, ir.FunctionConstant{Index: 2, Name: "traditional", Type: ir.Bool, Bits: map[bool]uint64{true: 1}[x.traditional]})
			r := rand.New(rand.NewPCG(6, uint64(x.k)))
			n := number16{x.dtype}
			cached := map[string]number16{"_q": n, "_k": n, "_v": n} // the types of results
			if strings.Contains(x.name, "float_float16_t") {
				cached["_k"], cached["_v"] = number16{ir.F16}, number16{ir.F16}
			}
			m := &ptxrun.Memory{}
			values, bytes := n.numbers(r, x.rows*x.k, normal(1))
			const position, scale, base = 1000, 0.5, 13.25
			longs := func(v ...int) (out []byte) {
				for _, v := range v {
					out = binary.LittleEndian.AppendUint64(out, uint64(v))
				}
				return out
			}
			strides := map[string][]int{"_q": {x.dims, x.q*x.dims + x.apart}, "_k": {x.rows*x.dims + x.apart, x.dims}, "_v": {0, x.values}}
			args := map[string]any{"x": m.Add(bytes), "K": x.k, "M": x.rows, "q_heads": x.q, "k_heads": x.heads, "dims": x.dims, "n_v": x.values,
				"q_strides": m.Add(longs(strides["_q"]...)), "k_strides": m.Add(longs(strides["_k"]...)),
				"offset": m.Add(binary.LittleEndian.AppendUint32(nil, position)), "scale": float32(scale), "base": float32(base)}
			rows := map[string]int{"_q": x.q * x.dims, "_k": x.heads * x.dims, "_v": x.values}
			heads := map[string]int{"_q": x.q, "_k": x.heads, "_v": 1}
			ms, out := map[string]matrix{}, map[string][]byte{}
			for _, side := range []string{"_q", "_k", "_v"} {
				w := affine(r, n, rows[side], x.k, x.group, x.bits)
				ms[side] = w
				args["w"+side], args["scales"+side], args["biases"+side] = m.Add(w.codes), m.Add(w.scales), m.Add(w.biases)
				out[side] = make([]byte, cached[side].size()*((heads[side]-1)*strides[side][0]+(x.rows-1)*strides[side][1]+rows[side]/heads[side]+8))
				for i := range out[side] {
					out[side][i] = 0xFF // NaN, which no result is
				}
				args[side[1:]] = m.Add(out[side])
			}
			pairs, tall := x.dims/2, 32
			if x.q*x.dims >= 4096 {
				tall = 64
			}
			groups := [3]uint64{uint64((x.rows + tall - 1) / tall), uint64((x.q*pairs+31)/32 + (x.heads*pairs+31)/32 + (x.values+63)/64), 1}
			fit := func(groups [3]uint64, given ptxmatrix.Given) ptxmatrix.Fit {
				if few {
					given.Rows = 8
				}
				if x.dtype == ir.F32 {
					f, ok := ptxmatrix.FitOf(p, groups, given, 64, 1)
					require.True(t, ok)
					return f
				}
				f := p.Fit(groups, given)
				require.Equal(t, few, f.Teams > 0, "%+v", f)
				require.Equal(t, x.k >= 1024 && x.gpu == ptxmatrix.Hopper, f.Splits > 1, "%+v", f)
				return f
			}
			launchedAs(t, fit, 64, m, k, p, x.launch, true, groups, [3]uint64{32, 2, 2}, args)
			dot := func(side string, i, j int) (sum, bound float64) {
				w := ms[side].w
				for e := range x.k {
					v := values[i*x.k+e] * w[j*x.k+e]
					sum, bound = sum+v, bound+math.Abs(v)
				}
				return sum, bound*float64(x.k+2)*0x1p-24 + n.ulp(sum)
			}
			written := map[string]map[int]bool{"_q": {}, "_k": {}, "_v": {}}
			got := func(side string, at int) float64 {
				written[side][at] = true
				return cached[side].at(out[side], at)
			}
			for i := range x.rows {
				for _, side := range []string{"_q", "_k"} {
					for h := range heads[side] {
						for j := range pairs {
							place, apart := j, pairs
							if x.traditional {
								place, apart = 2*j, 1
							}
							at := h*strides[side][0] + i*strides[side][1] + place
							one, two := got(side, at), got(side, at+apart)
							if r.IntN(64) > 0 && i+1 < x.rows && h+1 < heads[side] { // each is there, and some are made here too
								require.False(t, math.IsNaN(one) || math.IsNaN(two))
								continue
							}
							a, ab := dot(side, i, h*x.dims+place)
							b, bb := dot(side, i, h*x.dims+place+apart)
							sine, cosine := math.Sincos(scale * float64(position+i) * math.Exp2(-float64(j)/float64(pairs)*base))
							bound := ab + bb + (math.Abs(a)+math.Abs(b))*1e-4
							require.InDelta(t, a*cosine-b*sine, one, bound+cached[side].ulp(a*cosine-b*sine), "%s: row %d, head %d, pair %d", side, i, h, j)
							require.InDelta(t, a*sine+b*cosine, two, bound+cached[side].ulp(a*sine+b*cosine), "%s: row %d, head %d, pair %d", side, i, h, j)
						}
					}
				}
				for j := range x.values {
					v, bound := dot("_v", i, j)
					require.InDelta(t, v, got("_v", i*x.values+j), bound+cached["_v"].ulp(v)/2, "row %d, value %d", i, j)
				}
			}
			for side, o := range out {
				for at := range len(o) / cached[side].size() {
					if !written[side][at] {
						require.True(t, math.IsNaN(cached[side].at(o, at)), "nothing is written between results of %s, at %d", side, at)
					}
				}
			}
		})
	}
}

// TestRowsThatAreNotTurnedHere: heads whose pairs do not come in eights, or sizes that nobody knows, are left to other code.
func TestRowsThatAreNotTurnedHere(t *testing.T) {
	_, p := described(t, "affine_qmm_t_x3_rope_float16_t_gs_32_b_4")
	for _, x := range []struct {
		dims  int64
		known bool
		fits  bool
	}{{64, true, true}, {80, true, true}, {72, true, false}, {64, false, false}} {
		f := p.Fit([3]uint64{1, 1, 1}, ptxmatrix.Given{Aligned: true, Multiprocessors: 4, Constant: func(name string) (int64, bool) {
			if name == "dims" {
				return x.dims, x.known
			}
			return 128, true
		}, Still: func(string) bool { return true }})
		require.Equal(t, x.fits, f.Fits(), "%v", x)
	}
}
