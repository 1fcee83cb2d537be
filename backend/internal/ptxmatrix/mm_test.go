package ptxmatrix_test

import (
	"encoding/binary"
	"fmt"
	"maps"
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

// TestBlockProducts runs products of many rows with GGML's blocks, with ragged edges, rows that begin anywhere, phases of the inner index, arguments by
// value, in memory, and added to by a table, and memory that lies at odd places. They keep the bound of their sums, where weights are f32, of which some
// are too large for f16; infinities and NaN become what the term says, and spoil no other result.
func TestBlockProducts(t *testing.T) {
	type product struct {
		format  string
		dtype   ir.DType
		k, m, n int
		rows    int // of a block
		launch  nvptx.Launch
		odd     bool
		gpu     ptxmatrix.GPU
	}
	for _, x := range sample.Of(t, "products of many rows with blocks", []product{
		{"q4_K", ir.F16, 768, 35, 41, 64, nvptx.Launch{Values: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q4_K", ir.BF16, 512, 70, 270, 64, nvptx.Launch{Values: true, Moving: true}, false, ptxmatrix.Hopper},
		{"q4_K", ir.F16, 256, 101, 33, 128, nvptx.Launch{}, true, ptxmatrix.Hopper},
		{"q4_K", ir.F16, 14592, 4, 10, 32, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q4_K", ir.F16, 768, 9, 140, 32, nvptx.Launch{Moving: true}, false, ptxmatrix.Hopper}, // of column 113 a block has a scale a million times that of the one before
		{"q6_K", ir.F16, 768, 35, 41, 64, nvptx.Launch{Moving: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q6_K", ir.BF16, 512, 66, 260, 64, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q6_K", ir.BF16, 1280, 9, 40, 32, nvptx.Launch{Values: true, Moving: true}, true, ptxmatrix.Hopper},
		{"q6_K", ir.F16, 4352, 4, 17, 32, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q6_K", ir.F16, 512, 128, 20, 64, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q8_0", ir.F16, 512, 67, 41, 64, nvptx.Launch{Values: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q8_0", ir.BF16, 768, 33, 270, 64, nvptx.Launch{Moving: true}, false, ptxmatrix.Hopper},
		{"q8_0", ir.F16, 512, 5, 12, 32, nvptx.Launch{}, true, ptxmatrix.Hopper},
		{"q4_0", ir.F16, 768, 110, 41, 64, nvptx.Launch{Values: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q4_0", ir.BF16, 512, 36, 258, 64, nvptx.Launch{Moving: true}, false, ptxmatrix.Hopper},
		{"q4_0", ir.BF16, 8448, 3, 9, 32, nvptx.Launch{Values: true}, true, ptxmatrix.Hopper},
		// By warps.
		{"q4_K", ir.F16, 1280, 35, 41, 64, nvptx.Launch{Values: true, Programmatic: true}, false, ada},
		{"q4_K", ir.F16, 768, 9, 140, 32, nvptx.Launch{Moving: true}, false, ampere},
		{"q4_K", ir.BF16, 768, 60, 130, 64, nvptx.Launch{Values: true, Moving: true}, false, ada},
		{"q6_K", ir.F16, 768, 35, 41, 64, nvptx.Launch{Values: true}, false, ampere},
		{"q6_K", ir.BF16, 1280, 9, 40, 32, nvptx.Launch{}, false, ada},
		{"q6_K", ir.F16, 4352, 4, 17, 32, nvptx.Launch{Values: true}, false, ada},
		{"q8_0", ir.F16, 768, 33, 130, 64, nvptx.Launch{Moving: true}, false, ampere},
		{"q8_0", ir.BF16, 768, 5, 12, 32, nvptx.Launch{Values: true}, false, ada},
		{"q4_0", ir.F16, 1024, 110, 41, 64, nvptx.Launch{Values: true, Programmatic: true}, false, ada},
		{"q4_0", ir.BF16, 1280, 3, 9, 32, nvptx.Launch{Values: true}, true, ampere},
	}, 14) {
		t.Run(fmt.Sprint(x.format, " ", x.dtype, " ", x.k, " ", x.gpu.Major), func(t *testing.T) {
			k, p := describedFor(t, x.gpu, "ggml_mul_mm_"+x.format+"_"+x.dtype.String())
			f := blockFormats[x.format]
			r := rand.New(rand.NewPCG(9, uint64(x.k)))
			n := number16{x.dtype}
			m := &ptxrun.Memory{}
			add := func(b []byte) uint64 {
				if !x.odd {
					return m.Add(b)
				}
				return m.Add(append(make([]byte, 2), b...)) + 2
			}
			values, xs := n.numbers(r, x.m*x.k, normal(1))
			put := func(row, at int, v float64) {
				values[row*x.k+at] = v
				binary.LittleEndian.PutUint16(xs[2*(row*x.k+at):], n.of(v))
			}
			for i := range x.k { // of row 0 all is positive, and of row 1 there is one number
				put(0, i, math.Abs(values[i]))
				put(1, i, 0)
			}
			put(1, 200, 1.5)
			put(2, x.k-5, math.Inf(-1))
			if x.m > 3 {
				put(3, 17, math.NaN())
			}
			row := x.k / f.weights * f.bytes
			w := randomBlocks(r, f, x.k, x.n)
			for j := 0; x.format == "q4_K" && j < x.n; j++ { // some rows have a block whose two numbers are far apart
				last := w[(j+1)*row-f.bytes:]
				switch d := binary.LittleEndian.Uint16(last); j % 9 {
				case 4:
					binary.LittleEndian.PutUint16(last, 0)
				case 5:
					binary.LittleEndian.PutUint16(last, max(d, 12<<10)-12<<10)
				case 6:
					binary.LittleEndian.PutUint16(last[2:], max(d, 12<<10)-12<<10)
				case 7:
					binary.LittleEndian.PutUint16(last[2:], 0)
				}
			}
			out := make([]byte, 2*x.m*x.n+2)
			y := m.Add(out)
			if x.odd {
				y, out = y+2, out[2:]
			}
			args := map[string]any{"x": add(xs), "w": add(w), "y": y, "K": x.k, "N": x.n, "M": x.m}
			groups, multiprocessors := [3]uint64{uint64(x.n+31) / 32, uint64(x.m+31) / 32, 1}, 4
			if x.rows > 32 {
				multiprocessors = 1
			}
			require.Equal(t, x.rows, blockProductFit(p, groups, x.k, multiprocessors, !x.odd).Rows)
			launchedOn(t, multiprocessors, m, k, p, x.launch, !x.odd, groups, [3]uint64{32, 2, 2}, args)
			weights := make([]float64, x.k)
			for j := range x.n {
				for e := range weights {
					scale, code, bias := f.decode(w[j*row+e/f.weights*f.bytes:], e%f.weights)
					v := float32(float32(scale) * float32(code))
					if x.format == "q4_K" {
						v += float32(bias)
					}
					weights[e] = float64(v)
				}
				for i := range x.m {
					want, bound := 0.0, 0.0
					for e, w := range weights {
						v := values[i*x.k+e] * w
						want, bound = want+v, bound+math.Abs(v)
					}
					bound *= (math.Min(float64(x.k), 64*math.Sqrt(float64(x.k))) + 2) * 0x1p-24
					bits := binary.LittleEndian.Uint16(out[2*(i*x.n+j):])
					got := n.value(bits)
					switch {
					case want != want:
						require.Equal(t, map[ir.DType]uint16{ir.F16: 0x7E00, ir.BF16: 0x7FC0}[x.dtype], bits, "row %d, column %d", i, j)
					case math.IsInf(want, 0):
						require.Equal(t, want, got, "row %d, column %d", i, j)
					case x.dtype == ir.F16 && math.Abs(want)+bound > 65519:
						require.True(t, math.IsInf(got, int(want)) || math.Abs(want)-bound < 65520 && math.Abs(got) == 65504, "row %d, column %d: %v, want %v", i, j, got, want)
					default:
						require.InDelta(t, want, got, bound+n.ulp(want)*0.51, "row %d, column %d", i, j)
					}
				}
			}
		})
	}
}

func blockProductFit(p ptxmatrix.Kernel, groups [3]uint64, k, multiprocessors int, aligned bool) ptxmatrix.Fit {
	return p.Fit(groups, ptxmatrix.Given{Aligned: aligned, Multiprocessors: multiprocessors, Constant: func(name string) (int64, bool) { return int64(k), name == "K" && k > 0 }})
}

// TestBlockProductWaits leaves out, of a product, each instruction that orders threads, copies and tensor cores: the interpreter notices.
func TestBlockProductWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	const k, m, n = 768, 2, 4
	for _, x := range sample.Of(t, "waits of products with blocks", []struct {
		format string
		gpu    ptxmatrix.GPU
		waits  int
	}{{"q4_K", ptxmatrix.Hopper, 20}, {"q6_K", ptxmatrix.Hopper, 20}, {"q4_K", ada, 7}, {"q8_0", ada, 6}}, 1) {
		format := x.format
		_, p := describedFor(t, x.gpu, "ggml_mul_mm_"+format+"_f16")
		groups := [3]uint64{1, 1, 1}
		f := blockProductFit(p, groups, k, 1, true)
		require.Equal(t, 32, f.Rows)
		lines := strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true}, f)), "\n")
		var waits []int
		loop := false
		for i, l := range lines {
			op := strings.TrimSuffix(strings.Fields(l + " -")[0], ";")
			loop = loop || op == "cp.async.wait_group" // what stands before the loop waits for less
			switch op {
			case "cp.async.wait_group", "cp.async.commit_group", "fence.proxy.async.shared::cta", "bar.sync", "wgmma.wait_group.sync.aligned", "wgmma.commit_group.sync.aligned", "wgmma.fence.sync.aligned":
				if loop {
					waits = append(waits, i)
				}
			}
		}
		run := func(text string) error {
			program, err := ptxrun.Parse([]byte(text))
			require.NoError(t, err)
			memory, r, numbers := &ptxrun.Memory{}, rand.New(rand.NewPCG(3, 4)), number16{ir.F16}
			_, x := numbers.numbers(r, m*k, normal(1))
			params := []uint64{memory.Add(x), memory.Add(randomBlocks(r, blockFormats[format], k, n)), memory.Add(make([]byte, 2*m*n)), k, n, m}
			for len(params) < len(program.Params) {
				params = append(params, 32)
			}
			grid, threads, shared := p.Launch(groups, f)
			require.Equal(t, [3]uint64{1, 1, 1}, grid)
			return program.Run(memory, ptxrun.Launch{Params: params, Grid: [3]uint32{1, 1, 1}, Block: threads, Shared: int(shared)})
		}
		require.NoError(t, run(strings.Join(lines, "")))
		require.Greater(t, len(waits), x.waits)
		for _, i := range sample.Of(t, "waits of a product with blocks", waits, 8) {
			text := slices.Clone(lines)
			text[i] = ""
			require.Error(t, run(strings.Join(text, "")), "without line %d: %s", i+1, lines[i])
		}
	}
}

// TestBlockProductsFit: inner indices that are no multiple of a chunk, or not known, are left to other code; memory may lie anywhere.
func TestBlockProductsFit(t *testing.T) {
	for _, format := range sample.Of(t, "fits of products of many rows with blocks", slices.Sorted(maps.Keys(blockFormats)), 2) {
		for _, typ := range []string{"f16", "bf16"} {
			_, p := described(t, "ggml_mul_mm_"+format+"_"+typ)
			groups := [3]uint64{448, 16, 1}
			// Two factors lose more than the bound of the whole sum in one phase, and 256 elements are at least one.
			one := format == "q4_K" && typ == "f16"
			require.Equal(t, one, blockProductFit(p, groups, 256, 132, true).Fits())
			for _, k := range []int{512, 4096, 14336} {
				for _, aligned := range []bool{false, true} {
					f := blockProductFit(p, groups, k, 132, aligned)
					require.True(t, f.Fits())
					grid, threads, shared := p.Launch(groups, f)
					require.Equal(t, [3]uint64{uint64(512 / f.Rows), 56, 1}, grid)
					require.EqualValues(t, 512, threads)
					require.LessOrEqual(t, shared, uint32(227<<10))
				}
				for _, gpu := range []ptxmatrix.GPU{ada, ampere} {
					_, p := describedFor(t, gpu, "ggml_mul_mm_"+format+"_"+typ)
					f := blockProductFit(p, groups, k, 84, true)
					require.Equal(t, k >= 768, f.Fits(), "no phases are short enough")
					if k < 768 {
						continue
					}
					grid, threads, shared := p.Launch(groups, f)
					require.Equal(t, [3]uint64{uint64(512 / f.Rows), 112, 1}, grid)
					require.EqualValues(t, 256, threads)
					require.LessOrEqual(t, shared, uint32(gpu.Memory-1<<10))
				}
			}
			for _, k := range []int{0, 128, 4096 + 32} {
				require.False(t, blockProductFit(p, groups, k, 132, true).Fits())
			}
		}
	}
}

// TestBlockProductsOrder: results are the same bits however many rows a block makes.
func TestBlockProductsOrder(t *testing.T) {
	sample.Seldom(t)
	const k, m, n = 768, 70, 24
	for _, format := range sample.Of(t, "orders of products with blocks", []string{"q4_K", "q6_K", "q4_0", "q4_K ada", "q4_0 ada"}, 2) {
		gpu, heights := ptxmatrix.Hopper, map[int]int{2: 64, 3: 32} // of so many multiprocessors each has a block
		format, alone := strings.CutSuffix(format, " ada")
		if alone {
			gpu = ada
		} else if format == "q4_K" {
			heights[1] = 128
		}
		kernel, p := describedFor(t, gpu, "ggml_mul_mm_"+format+"_f16")
		r, numbers := rand.New(rand.NewPCG(5, 6)), number16{ir.F16}
		_, x := numbers.numbers(r, m*k, normal(1))
		w := randomBlocks(r, blockFormats[format], k, n)
		groups := [3]uint64{1, 3, 1}
		var first []byte
		for multiprocessors, rows := range heights {
			require.Equal(t, rows, blockProductFit(p, groups, k, multiprocessors, true).Rows)
			memory, y := &ptxrun.Memory{}, make([]byte, 2*m*n)
			args := map[string]any{"x": memory.Add(x), "w": memory.Add(w), "y": memory.Add(y), "K": k, "N": n, "M": m}
			launchedOn(t, multiprocessors, memory, kernel, p, nvptx.Launch{Values: true}, true, groups, [3]uint64{32, 2, 2}, args)
			if first == nil {
				first = y
			}
			require.Equal(t, first, y, "%d rows", rows)
		}
	}
}
