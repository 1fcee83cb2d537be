package ptxmatrix_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// anySize has matrices of any size multiplied by warps of this package that share an inner index.
func anySize(t *testing.T) { fewest(t, 0) }

// fewest has matrices multiplied so from a size on.
func fewest(t *testing.T, size int64) {
	was := ptxmatrix.Fewest
	ptxmatrix.Fewest = size
	t.Cleanup(func() { ptxmatrix.Fewest = was })
}

// magnitude is |scale · code| + |bias| of a weight: what errors of its products are measured by.
func (w *matrix) magnitude(n number16, i, group int) float64 {
	half := func(b []byte) float64 { return math.Abs(n.value(binary.LittleEndian.Uint16(b[i/group*2:]))) }
	return half(w.scales)*float64(w.codes[i/2]>>(4*(i%2))&15) + half(w.biases)
}

// TestVectors runs products with vectors, with a number of results that fills no block, inner indices that give warps different
// numbers of chunks, and all ways to give arguments. They keep the bound of their sums; infinities and NaN stay what they are.
func TestVectors(t *testing.T) {
	anySize(t)
	type product struct {
		name    string
		k, m, n int
		launch  nvptx.Launch
		dtype   ir.DType
		group   int
		norm    bool
		gpu     ptxmatrix.GPU
	}
	products := []product{
		{"affine_qmv_fast_add_float16_t_gs_32_b_4", 14336, 1, 40, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, 32, false, ptxmatrix.Hopper},
		{"affine_qmv_add_float16_t_gs_64_b_4", 4352, 2, 101, nvptx.Launch{Values: true}, ir.F16, 64, false, ampere},
		{"affine_qmv_add_bfloat16_t_gs_128_b_4", 2304, 3, 190, nvptx.Launch{Moving: true, Programmatic: true}, ir.BF16, 128, false, ptxmatrix.Hopper},
		{"affine_qmv_add_bfloat16_t_gs_32_b_4", 2048, 1, 201, nvptx.Launch{}, ir.BF16, 32, false, ada},
		{"affine_qmv_rms_silu_mul_float16_t_gs_32_b_4", 4096, 1, 67, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, 32, true, ptxmatrix.Hopper},
		{"affine_qmv_fast_rms_silu_mul_bfloat16_t_gs_64_b_4", 2560, 2, 170, nvptx.Launch{Values: true, Moving: true}, ir.BF16, 64, true, ada},
		{"affine_qmv_rms_silu_mul_float16_t_gs_128_b_4", 3328, 2, 61, nvptx.Launch{Values: true}, ir.F16, 128, true, ampere},
		{"affine_qmv_fast_float16_t_gs_32_b_4_batch_0_pr_0_hgs_0_r_4", 4096, 2, 168, nvptx.Launch{Moving: true, Programmatic: true}, ir.F16, 32, false, ptxmatrix.Hopper},
		{"affine_qmv_bfloat16_t_gs_64_b_4_batch_0_pr_0_hgs_0_r_4", 768, 1, 23, nvptx.Launch{Values: true, Programmatic: true}, ir.BF16, 64, false, ptxmatrix.Hopper},
		{"affine_qmv_fast_float16_t_gs_128_b_4_batch_0_pr_1_hgs_0_r_4", 2048, 1, 37, nvptx.Launch{Values: true}, ir.F16, 128, false, ada},
		{"affine_qmv_fast_rms_float16_t_gs_32_b_4", 4096, 1, 135, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, 32, true, ptxmatrix.Hopper},
		{"affine_qmv_rms_bfloat16_t_gs_64_b_4", 768, 2, 37, nvptx.Launch{Values: true, Moving: true}, ir.BF16, 64, true, ada},
		{"affine_qmv_fast_silu_mul_float16_t_gs_32_b_4", 5632, 1, 72, nvptx.Launch{Values: true, Programmatic: true}, ir.F16, 32, false, ptxmatrix.Hopper},
	}
	for _, x := range sample.Of(t, "products with vectors", products, 8) {
		t.Run(fmt.Sprint(x.name, " ", x.k), func(t *testing.T) {
			k, p := describedFor(t, x.gpu, x.name)
			r := rand.New(rand.NewPCG(2, uint64(x.k)))
			n := number16{x.dtype}
			m := &ptxrun.Memory{}
			values, _ := n.numbers(r, x.m*x.k, normal(1))
			if x.m > 1 { // the last vector has one
				values[(x.m-1)*x.k+77] = map[bool]float64{false: math.Inf(1), true: math.NaN()}[x.m == 3]
			}
			var bytes []byte
			for _, v := range values {
				bytes = binary.LittleEndian.AppendUint16(bytes, n.of(v))
			}
			args := map[string]any{"x": m.Add(bytes), "in_vec_size": x.k, "out_vec_size": x.n}
			var ms []matrix
			sides := []string{""}
			silu := strings.Contains(x.name, "silu")
			if silu {
				sides = []string{"_gate", "_up"}
			}
			if x.norm {
				weights, wb := n.numbers(r, x.k, normal(1))
				args["norm"], args["eps"] = m.Add(wb), float32(1e-5)
				for i := range x.m {
					row := values[i*x.k:][:x.k]
					sum := 0.0
					for _, v := range row {
						sum += v * v
					}
					inverse := 1 / math.Sqrt(sum/float64(x.k)+1e-5)
					for j := range row {
						row[j] = n.value(n.of(weights[j] * n.value(n.of(row[j]*inverse))))
					}
				}
			}
			for _, side := range sides {
				w := affine(r, n, x.n, x.k, x.group, 4)
				for i := range w.w { // which is not rounded here
					q := w.codes[i/2] >> (4 * (i % 2)) & 15
					half := func(b []byte) float64 { return n.value(binary.LittleEndian.Uint16(b[i/x.group*2:])) }
					w.w[i] = half(w.scales)*float64(q) + half(w.biases)
				}
				ms = append(ms, w)
				args["w"+side], args["scales"+side], args["biases"+side] = m.Add(w.codes), m.Add(w.scales), m.Add(w.biases)
			}
			out := make([]byte, 2*x.m*x.n)
			args["y"] = m.Add(out)
			var residual []float64
			groups := [3]uint64{uint64(x.m), uint64(x.n+3) / 4, 1}
			if !silu {
				groups[1] = uint64(x.n+7) / 8
			}
			if strings.Contains(x.name, "_add_") {
				var rb []byte
				residual, rb = n.numbers(r, x.m*x.n, normal(1))
				args["r"] = m.Add(rb)
			}
			launched(t, m, k, p, x.launch, true, groups, [3]uint64{32, 4, 1}, args)
			dot := func(w matrix, i, j int) (sum, bound float64) {
				if math.IsInf(values[i*x.k+77], 0) { // scales and biases multiply sums of a group, and codes infinities
					g := 77 / x.group
					half := func(b []byte) float64 { return n.value(binary.LittleEndian.Uint16(b[(j*x.k/x.group+g)*2:])) }
					q := float64(w.codes[(j*x.k+77)/2] >> 4 & 15)
					return half(w.scales)*(q*math.Inf(1)) + half(w.biases)*math.Inf(1), 0
				}
				for e := range x.k {
					v := values[i*x.k+e] * w.w[j*x.k+e]
					sum, bound = sum+v, bound+w.magnitude(n, j*x.k+e, x.group)*math.Abs(values[i*x.k+e])
				}
				return sum, bound * 64 * 0x1p-24
			}
			for i := range x.m {
				for j := 0; j < x.n; j += 1 + r.IntN(40) {
					if j > x.n-50 {
						j = max(j, x.n-17+r.IntN(17))
					}
					got := n.value(binary.LittleEndian.Uint16(out[2*(i*x.n+j):]))
					want, bound := dot(ms[0], i, j)
					if silu {
						up, ub := dot(ms[1], i, j)
						gate := want
						s := gate / (1 + math.Exp(-gate))
						want = s * up
						bound = math.Abs(up)*(1.1*(bound+n.ulp(gate))+2*n.ulp(s)) + math.Abs(s)*(ub+n.ulp(up)) + 4*n.ulp(want)
					} else {
						bound += n.ulp(want) / 2
						if residual != nil {
							want += residual[i*x.n+j]
						}
					}
					if math.IsNaN(want) || math.IsInf(want, 0) {
						require.True(t, got == want || got != got && want != want, "row %d, column %d: %v, want %v", i, j, got, want)
						continue
					}
					require.InDelta(t, want, got, bound+n.ulp(want)*0.51, "row %d, column %d", i, j)
				}
			}
		})
	}
}

// TestVectorWaits leaves out each instruction that orders threads and copies of a product with a vector: the interpreter notices.
func TestVectorWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	anySize(t)
	k, p := described(t, "affine_qmv_rms_silu_mul_float16_t_gs_32_b_4")
	constants := map[string]int64{"in_vec_size": 4096, "out_vec_size": 55}
	still := true
	given := ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Constant: func(n string) (int64, bool) { v, ok := constants[n]; return v, ok },
		Still: func(n string) bool { return still || n != "scales_up" }}
	f := p.Fit([3]uint64{1, 7, 1}, given)
	require.Equal(t, []int{7, 1, 3}, []int{f.Tiles, f.Blocks, f.Teams}, "tiles of a team use memory of others before")
	still = false
	require.False(t, p.Fit([3]uint64{1, 7, 1}, given).Fits(), "weights that move are not asked for early")
	for _, moving := range []bool{false, true} { // before the wait nothing is read but the table, and weights, which it does not move: two pieces of norm
		before, _, waits := strings.Cut(string(p.Emit(nvptx.Launch{Values: true, Programmatic: true, Moving: moving}, f)), "griddepcontrol.wait")
		require.True(t, waits)
		require.Contains(t, before, "cp.async")
		require.Equal(t, 2, strings.Count(before, "ld.global.v4"))
		additions := 0
		if moving {
			additions = 5 // of x, y, eps and two lengths
		}
		require.Equal(t, additions, strings.Count(before, "ld.global")-2)
	}
	lines := strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true, Programmatic: true}, f)), "\n")
	early, err := nvptx.Early([]byte(lines[0]))
	require.NoError(t, err)
	require.Len(t, early, 7)
	for _, i := range early {
		require.Regexp(t, "^((w|scales|biases)_(gate|up)|norm)$", k.Args[i].Name)
	}
	var waits []int
	for i, l := range lines {
		if orders(l) {
			waits = append(waits, i)
		}
	}
	run := func(text string) error {
		program, err := ptxrun.Parse([]byte(text))
		require.NoError(t, err)
		m, r, n := &ptxrun.Memory{}, rand.New(rand.NewPCG(3, 4)), number16{ir.F16}
		w := affine(r, n, 55, 4096, 32, 4)
		_, x := n.numbers(r, 4096, normal(1))
		args := map[string]uint64{"x": m.Add(x), "norm": m.Add(x), "y": m.Add(make([]byte, 2048)), "in_vec_size": 4096, "out_vec_size": 55}
		for _, side := range []string{"_gate", "_up"} {
			args["w"+side], args["scales"+side], args["biases"+side] = m.Add(w.codes), m.Add(w.scales), m.Add(w.biases)
		}
		var params []uint64
		for i := range k.Args {
			if k.Args[i].Attribute == "" {
				params = append(params, args[k.Args[i].Name])
			}
		}
		for len(params) < len(program.Params) {
			params = append(params, 32)
		}
		_, threads, shared := p.Launch([3]uint64{1, 7, 1}, f)
		return program.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{1, 1, 1}, Block: threads, Shared: int(shared)})
	}
	require.NoError(t, run(strings.Join(lines, "")))
	require.Len(t, waits, 7)
	for _, i := range waits {
		text := slices.Clone(lines)
		text[i] = ""
		require.Error(t, run(strings.Join(text, "")), "without line %d: %s", i+1, lines[i])
	}
}

// TestVectorsTurned runs a product that is turned, with heads whose pairs fill no block, in both orders of a head, into strided memory.
func TestVectorsTurned(t *testing.T) {
	anySize(t)
	type product struct {
		name                      string
		k, q, heads, dims, values int
		traditional               bool
		dtype                     ir.DType
		group                     int
		launch                    nvptx.Launch
	}
	for _, x := range sample.Of(t, "products with vectors, turned", []product{
		{"affine_qmv_fast_rms_x3_rope_float16_t_gs_32_b_4", 4096, 3, 2, 64, 65, false, ir.F16, 32, nvptx.Launch{Values: true, Programmatic: true}},
		{"affine_qmv_rms_x3_rope_bfloat16_t_gs_64_b_4", 512, 9, 3, 84, 251, true, ir.BF16, 64, nvptx.Launch{Values: true, Moving: true}},
		{"affine_qmv_rms_x3_rope_float16_t_gs_128_b_4", 768, 7, 1, 100, 300, true, ir.F16, 128, nvptx.Launch{}},
	}, 3) {
		t.Run(x.name, func(t *testing.T) {
			k, p := described(t, x.name, ir.FunctionConstant{Index: 2, Name: "traditional", Type: ir.Bool, Bits: map[bool]uint64{true: 1}[x.traditional]})
			r := rand.New(rand.NewPCG(5, uint64(x.k)))
			n := number16{x.dtype}
			m := &ptxrun.Memory{}
			values, vb := n.numbers(r, x.k, normal(1))
			weights, wb := n.numbers(r, x.k, normal(1))
			sum := 0.0
			for _, v := range values {
				sum += v * v
			}
			for i := range values {
				values[i] = n.value(n.of(weights[i] * n.value(n.of(values[i]/math.Sqrt(sum/float64(x.k)+1e-5)))))
			}
			const position, scale, base = 1000, 0.5, 13.25
			qStride, kStride := x.dims+3, x.dims
			args := map[string]any{"x": m.Add(vb), "norm": m.Add(wb), "eps": float32(1e-5), "in_vec_size": x.k, "q_heads": x.q, "k_heads": x.heads, "dims": x.dims, "n_v": x.values,
				"q_stride": qStride, "k_stride": kStride, "offset": position, "scale": float32(scale), "base": float32(base)}
			rows := map[string]int{"_q": x.q * x.dims, "_k": x.heads * x.dims, "_v": x.values}
			ms, out := map[string]matrix{}, map[string][]byte{"_q": make([]byte, 2*x.q*qStride), "_k": make([]byte, 2*x.heads*kStride), "_v": make([]byte, 2*x.values+2)}
			for _, side := range []string{"_q", "_k", "_v"} {
				w := affine(r, n, rows[side], x.k, x.group, 4)
				for i := range w.w {
					q := w.codes[i/2] >> (4 * (i % 2)) & 15
					half := func(b []byte) float64 { return n.value(binary.LittleEndian.Uint16(b[i/x.group*2:])) }
					w.w[i] = half(w.scales)*float64(q) + half(w.biases)
				}
				ms[side] = w
				args["w"+side], args["scales"+side], args["biases"+side] = m.Add(w.codes), m.Add(w.scales), m.Add(w.biases)
				for i := range out[side] {
					out[side][i] = 0x5A
				}
				args[side[1:]] = m.Add(out[side])
			}
			pairs := x.dims / 2
			groups := [3]uint64{1, uint64((x.q*pairs+3)/4 + (x.heads*pairs+3)/4 + (x.values+7)/8), 1}
			launched(t, m, k, p, x.launch, true, groups, [3]uint64{32, 4, 1}, args)
			dot := func(side string, j int) (sum, bound float64) {
				w := ms[side]
				for e := range x.k {
					sum, bound = sum+values[e]*w.w[j*x.k+e], bound+w.magnitude(n, j*x.k+e, x.group)*math.Abs(values[e])
				}
				return sum, bound*64*0x1p-24 + n.ulp(sum)
			}
			for side, heads := range map[string]int{"_q": x.q, "_k": x.heads} {
				stride := map[string]int{"_q": qStride, "_k": kStride}[side]
				for range 60 {
					h, i := r.IntN(heads), r.IntN(pairs)
					if r.IntN(4) == 0 {
						h, i = heads-1, pairs-1
					}
					place, apart := i, pairs
					if x.traditional {
						place, apart = 2*i, 1
					}
					a, ab := dot(side, h*x.dims+place)
					b, bb := dot(side, h*x.dims+place+apart)
					sine, cosine := math.Sincos(scale * position * math.Exp2(-float64(i)/float64(pairs)*base))
					bound := ab + bb + (math.Abs(a)+math.Abs(b))*1e-4
					got := func(at int) float64 { return n.value(binary.LittleEndian.Uint16(out[side][2*(h*stride+at):])) }
					require.InDelta(t, a*cosine-b*sine, got(place), bound+n.ulp(a*cosine-b*sine), "%s: head %d, pair %d", side, h, i)
					require.InDelta(t, a*sine+b*cosine, got(place+apart), bound+n.ulp(a*sine+b*cosine), "%s: head %d, pair %d", side, h, i)
				}
			}
			for range 60 {
				j := max(r.IntN(x.values+20)-20, 0)
				if r.IntN(4) == 0 {
					j = x.values - 1
				}
				v, bound := dot("_v", j)
				require.InDelta(t, v, n.value(binary.LittleEndian.Uint16(out["_v"][2*j:])), bound, "value %d", j)
			}
			require.EqualValues(t, 0x5A5A, binary.LittleEndian.Uint16(out["_v"][2*x.values:]), "nothing is written behind the values")
			require.EqualValues(t, 0x5A5A, binary.LittleEndian.Uint16(out["_q"][2*x.dims:]), "nothing is written between queries")
		})
	}
}

// orders reports whether a line is an instruction that waits for copies or for other threads, under a predicate or none.
func orders(line string) bool {
	words := strings.Fields(line)
	if len(words) > 0 && words[0][0] == '@' {
		words = words[1:]
	}
	return len(words) > 0 && slices.Contains([]string{"cp.async.wait_group", "bar.sync", "bar.warp.sync"}, strings.TrimSuffix(words[0], ";"))
}
