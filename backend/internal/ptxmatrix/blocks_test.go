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
	"github.com/mlxc/mlxc/msl/term"
)

// blockFormat is a format of GGML's blocks, decoded as msl/ggml.metal declares it.
type blockFormat struct {
	weights, bytes, group int
	numbers               []int // where its numbers of f16 lie
	decode                func(b []byte, j int) (scale, code, bias float64)
}

func halfAt(b []byte, i int) float64 { return term.F16Value(binary.LittleEndian.Uint16(b[i:])) }

var blockFormats = map[string]blockFormat{
	"q4_K": {256, 144, 32, []int{0, 2}, func(b []byte, j int) (scale, code, bias float64) {
		g := j / 32
		s, m := int(b[4+g%4])&63, int(b[8+g%4])&63
		if g >= 4 {
			s, m = int(b[8+g])&15|int(b[g])>>6<<4, int(b[8+g])>>4|int(b[4+g])>>6<<4
		}
		return halfAt(b, 0) * float64(s), float64(b[16+j/64*32+j%32] >> (j / 32 % 2 * 4) & 15), -halfAt(b, 2) * float64(m)
	}},
	"q6_K": {256, 210, 16, []int{208}, func(b []byte, j int) (scale, code, bias float64) {
		low := int(b[j/128*64+j%64]) >> (j / 64 % 2 * 4) & 15
		high := int(b[128+j/128*32+j%32]) >> (j / 32 % 4 * 2) & 3
		return halfAt(b, 208) * float64(int8(b[192+j/16])), float64(low + 16*high - 32), 0
	}},
	"q8_0": {32, 34, 32, []int{0}, func(b []byte, j int) (scale, code, bias float64) {
		return halfAt(b, 0), float64(int8(b[2+j])), 0
	}},
	"q4_0": {32, 18, 32, []int{0}, func(b []byte, j int) (scale, code, bias float64) {
		return halfAt(b, 0), float64(int(b[2+j%16])>>(j/16*4)&15 - 8), 0
	}},
}

// TestBlocks runs products of GGML's blocks with vectors, with rows that fill no tile and rows that begin anywhere, inner indices of one block and of many, and
// all ways to give arguments, and what a feed-forward layer makes of two. They keep the bound of their sums. Scales of every size, zeros, infinities and NaN become what the
// term says.
func TestBlocks(t *testing.T) {
	anySize(t)
	type product struct {
		format  string
		dtype   ir.DType
		k, m, n int
		launch  nvptx.Launch
	}
	for _, x := range sample.Of(t, "products of blocks with vectors", []product{
		{"q4_K", ir.F16, 4096, 1, 67, nvptx.Launch{Values: true, Programmatic: true}},
		{"q4_K", ir.BF16, 2304, 2, 33, nvptx.Launch{Moving: true, Programmatic: true}},
		{"q4_K", ir.F16, 9216, 1, 178, nvptx.Launch{Values: true}},
		{"q4_K", ir.BF16, 256, 3, 40, nvptx.Launch{Values: true, Moving: true, Programmatic: true}},
		{"q6_K", ir.F16, 4096, 1, 173, nvptx.Launch{Values: true, Programmatic: true}},
		{"q6_K", ir.BF16, 2816, 2, 32, nvptx.Launch{Values: true, Moving: true}}, // rows begin at any even place
		{"q6_K", ir.F16, 9728, 1, 16, nvptx.Launch{}},                            // every fourth at the same
		{"q6_K", ir.F16, 3072, 1, 160, nvptx.Launch{Values: true}},
		{"q6_K", ir.BF16, 256, 3, 16, nvptx.Launch{Moving: true, Programmatic: true}},
		{"q6_K", ir.F16, 32768, 1, 16, nvptx.Launch{Values: true, Programmatic: true}}, // one block on a multiprocessor
		{"q8_0", ir.F16, 2304, 2, 67, nvptx.Launch{Values: true, Programmatic: true}},
		{"q8_0", ir.BF16, 4096, 3, 33, nvptx.Launch{Moving: true}},
		{"q8_0", ir.BF16, 256, 1, 177, nvptx.Launch{}},
		{"q4_0", ir.F16, 4096, 2, 67, nvptx.Launch{Values: true, Programmatic: true}},
		{"q4_0", ir.BF16, 2304, 3, 33, nvptx.Launch{Moving: true}},
		{"q4_0", ir.F16, 256, 1, 176, nvptx.Launch{}},
		{"silu_mul_q4_K", ir.F16, 4096, 1, 67, nvptx.Launch{Values: true, Programmatic: true}},
		{"silu_mul_q4_K", ir.BF16, 2304, 2, 90, nvptx.Launch{Moving: true, Programmatic: true}},
		{"silu_mul_q6_K", ir.F16, 4096, 2, 69, nvptx.Launch{Values: true, Programmatic: true}},
		{"silu_mul_q6_K", ir.BF16, 2816, 1, 72, nvptx.Launch{Values: true, Moving: true}}, // rows begin at any even place, tiles at the same
		{"silu_mul_q6_K", ir.F16, 9728, 1, 16, nvptx.Launch{}},
		{"silu_mul_q8_0", ir.F16, 2304, 2, 67, nvptx.Launch{Values: true, Programmatic: true}},
		{"silu_mul_q8_0", ir.BF16, 256, 3, 89, nvptx.Launch{Moving: true}},
		{"silu_mul_q4_0", ir.F16, 2304, 1, 88, nvptx.Launch{}},
		{"silu_mul_q4_0", ir.BF16, 4096, 3, 33, nvptx.Launch{Values: true, Programmatic: true}},
	}, 6) {
		t.Run(fmt.Sprint(x.format, " ", x.dtype, " ", x.k), func(t *testing.T) {
			k, p := described(t, "ggml_mul_mv_"+x.format+"_"+x.dtype.String())
			format, silu := strings.CutPrefix(x.format, "silu_mul_")
			f := blockFormats[format]
			r := rand.New(rand.NewPCG(7, uint64(x.k)))
			n := number16{x.dtype}
			m := &ptxrun.Memory{}
			size, sides := 1.0, []string{""}
			if silu {
				size, sides = 0.02, []string{"_gate", "_up"} // so that sigmoids are not all 0 or 1
			}
			values, xs := n.numbers(r, x.m*x.k, normal(size))
			if x.m > 1 { // the last vector has one
				values[(x.m-1)*x.k+77] = map[bool]float64{false: math.Inf(1), true: math.NaN()}[x.m == 3]
				binary.LittleEndian.PutUint16(xs[2*((x.m-1)*x.k+77):], n.of(values[(x.m-1)*x.k+77]))
			}
			row := x.k / f.weights * f.bytes
			out := make([]byte, 2*x.m*x.n)
			args := map[string]any{"x": m.Add(xs), "y": m.Add(out), "K": x.k, "N": x.n}
			var ws [][]byte
			for i, side := range sides {
				w := randomBlocks(r, f, x.k, x.n+i)[i*row:] // what is odd is in other rows of the second
				ws = append(ws, w)
				args["w"+side] = m.Add(w)
			}
			launched(t, m, k, p, x.launch, true, [3]uint64{uint64(x.n+7) / 8, uint64(x.m), 1}, [3]uint64{32, 2, 1}, args)
			dot := func(w []byte, i, j int) (want, bound float64) {
				for g := 0; g < x.k; g += f.group {
					block := w[j*row+g/f.weights*f.bytes:]
					scale, bias, product, sum, all := 0.0, 0.0, 0.0, 0.0, 0.0
					for e := range f.group {
						v, code := values[i*x.k+g+e], 0.0
						scale, code, bias = f.decode(block, g%f.weights+e)
						product, sum = product+v*code, sum+v
						all += math.Abs(scale*v*code) + math.Abs(bias*v)
					}
					want, bound = want+scale*product, bound+all
					if format == "q4_K" {
						want += bias * sum
					}
				}
				return want, bound * 44 * 0x1p-24
			}
			finite := 0 // results of which the bound says something
			for i := range x.m {
				for j := range x.n {
					want, bound := dot(ws[0], i, j)
					if silu {
						up, ub := dot(ws[1], i, j)
						gate := n.value(n.of(want))
						up = n.value(n.of(up))
						s := n.value(n.of(gate * n.value(n.of(1/(1+math.Exp(-gate))))))
						want = s * up
						// A sigmoid of f16 is off by half of the least number too.
						bound = math.Abs(up)*(1.1*(bound+n.ulp(gate))+2*n.ulp(s)+math.Abs(gate)*0x1p-25) + math.Abs(s)*(ub+n.ulp(up)) + bound*ub + 4*n.ulp(want)
						finite += map[bool]int{true: 1}[bound < math.Abs(want)]
					}
					got := n.value(binary.LittleEndian.Uint16(out[2*(i*x.n+j):]))
					if math.IsNaN(want) || math.IsInf(want, 0) || math.Abs(want) > math.MaxFloat32 {
						require.True(t, got == want || got != got && want != want, "vector %d, row %d: %v, want %v", i, j, got, want)
						continue
					}
					if x.dtype == ir.F16 && math.Abs(want) > 65519 {
						require.True(t, math.IsInf(got, int(want)), "vector %d, row %d: %v, want %v", i, j, got, want)
						continue
					}
					require.InDelta(t, want, got, bound+n.ulp(want)*0.51, "vector %d, row %d", i, j)
				}
			}
			if silu {
				require.Greater(t, finite, x.n/5)
			}
		})
	}
}

// randomBlocks are rows whose numbers of f16 are of one size each; some have large or no scales, infinities or NaN somewhere.
func randomBlocks(r *rand.Rand, f blockFormat, k, rows int) []byte {
	w := make([]byte, k/f.weights*f.bytes*rows)
	for i := range w {
		w[i] = byte(r.Uint32())
	}
	for b := 0; b < len(w); b += f.bytes {
		row := b / f.bytes / (k / f.weights)
		for _, at := range f.numbers {
			bits := term.F16Bits(r.NormFloat64() * []float64{0.01, 0.001, 0x1p-20, 30, 0.01, 0.01}[row%6])
			if last := b/f.bytes%(k/f.weights) == k/f.weights/2; last {
				switch row % 13 {
				case 3:
					bits = 0x7C00
				case 5:
					bits = 0xFC00
				case 7:
					bits = 0x7E01
				case 8:
					bits = 0x8000
				case 9:
					bits = 0x7BFF
				case 10:
					bits = 0x0001
				}
				if row%26 >= 13 { // where groups have no scale, and codes are 0
					clear(w[b : b+f.bytes])
				}
			}
			binary.LittleEndian.PutUint16(w[b+at:], bits)
		}
	}
	return w
}

// TestBlockWaits leaves out each instruction that orders threads and copies: the interpreter notices. What is read before the wait for the launches before are
// weights.
func TestBlockWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	anySize(t)
	type product struct {
		format      string
		k, n        int
		teams, most int // of a block; tiles of a team
	}
	for _, x := range sample.Of(t, "waits of products of blocks", []product{
		{"q6_K", 4096, 80, 1, 3},
		{"q4_K", 4096, 115, 3, 3},
		{"silu_mul_q4_K", 4096, 51, 3, 3},
	}, 1) {
		format, silu := strings.CutPrefix(x.format, "silu_mul_")
		weights := []string{"w"}
		if silu {
			weights = []string{"w_gate", "w_up"}
		}
		k, p := described(t, "ggml_mul_mv_"+x.format+"_f16")
		constants := map[string]int64{"K": int64(x.k), "N": int64(x.n)}
		groups := [3]uint64{uint64(x.n+7) / 8, 1, 1}
		still := true
		given := ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Constant: func(n string) (int64, bool) { v, ok := constants[n]; return v, ok },
			Still: func(n string) bool { return still || n != weights[len(weights)-1] }}
		f := p.Fit(groups, given)
		require.Equal(t, x.teams, f.Teams)
		require.Equal(t, x.most, (f.Tiles+f.Blocks*f.Teams-1)/(f.Blocks*f.Teams), "tiles of a team use memory of others before")
		still = false
		require.False(t, p.Fit(groups, given).Fits(), "weights that move are not asked for early")
		lines := strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true, Programmatic: true}, f)), "\n")
		early, err := nvptx.Early([]byte(lines[0]))
		require.NoError(t, err)
		require.Len(t, early, len(weights))
		for i, name := range weights {
			require.Equal(t, name, k.Args[early[i]].Name)
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
			var params []uint64
			for range weights {
				params = append(params, m.Add(randomBlocks(r, blockFormats[format], x.k, x.n)))
			}
			_, values := n.numbers(r, x.k, normal(1))
			params = append(params, m.Add(values), m.Add(make([]byte, 2*x.n)), uint64(x.k), uint64(x.n))
			for len(params) < len(program.Params) {
				params = append(params, 32)
			}
			grid, threads, shared := p.Launch(groups, f)
			require.Equal(t, [3]uint64{1, uint64(f.Blocks), 1}, grid)
			return program.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{1, uint32(f.Blocks), 1}, Block: threads, Shared: int(shared)})
		}
		require.NoError(t, run(strings.Join(lines, "")))
		require.Len(t, waits, 3+x.teams)
		for _, i := range waits {
			text := slices.Clone(lines)
			text[i] = ""
			require.Error(t, run(strings.Join(text, "")), "without line %d: %s", i+1, lines[i])
		}
	}
}

// TestBlocksFit: rows that are no multiple of a chunk, small matrices, memory at odd places and sizes that are not known are left to other code.
func TestBlocksFit(t *testing.T) {
	for _, format := range sample.Of(t, "fits of products of blocks with vectors", []string{"q4_K", "q6_K", "q8_0", "q4_0", "silu_mul_q4_K", "silu_mul_q6_K", "silu_mul_q8_0", "silu_mul_q4_0"}, 4) {
		for _, typ := range []string{"f16", "bf16"} {
			_, p := described(t, "ggml_mul_mv_"+format+"_"+typ)
			fit := func(k, n int64, aligned, known bool) ptxmatrix.Fit {
				constants := map[string]int64{"K": k, "N": n}
				return p.Fit([3]uint64{uint64(n+7) / 8, 1, 1}, ptxmatrix.Given{Aligned: aligned, Multiprocessors: 132, Still: func(string) bool { return true },
					Constant: func(n string) (int64, bool) { v, ok := constants[n]; return v, ok && known }})
			}
			require.True(t, fit(4096, 14336, true, true).Fits())
			require.True(t, fit(4096, 14335, true, true).Fits())
			require.True(t, fit(3072, 14336, true, true).Fits())
			few := int64(1023)
			if strings.HasPrefix(format, "silu_mul_") {
				few = 511
				require.True(t, fit(3072, 14328, true, true).Fits(), "tiles of eight rows of each matrix")
			}
			for _, none := range []ptxmatrix.Fit{fit(4096, few, true, true), fit(4096+32, 14336, true, true), fit(4096, 14336, false, true), fit(4096, 14336, true, false), fit(65536, 14336, true, true)} {
				require.False(t, none.Fits())
			}
			require.Equal(t, !strings.HasSuffix(format, "q6_K"), fit(3072, 14335, true, true).Fits(), "where rows begin depends on the first of the last tile")
		}
	}
}
