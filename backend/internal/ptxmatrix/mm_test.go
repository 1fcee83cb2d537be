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
		splits  int // of the inner index, among the blocks of a cluster
		launch  nvptx.Launch
		odd     bool
		gpu     ptxmatrix.GPU
	}
	for _, x := range sample.Of(t, "products of many rows with blocks", []product{
		{"q4_K", ir.F16, 768, 35, 41, 64, 1, nvptx.Launch{Values: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q4_K", ir.BF16, 512, 70, 270, 64, 1, nvptx.Launch{Values: true, Moving: true}, false, ptxmatrix.Hopper},
		{"q4_K", ir.F16, 1024, 61, 33, 64, 2, nvptx.Launch{}, true, ptxmatrix.Hopper},
		{"q4_K", ir.F16, 14592, 4, 10, 32, 4, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q4_K", ir.F16, 768, 9, 140, 32, 2, nvptx.Launch{Moving: true}, false, ptxmatrix.Hopper}, // of column 113 a block has a scale a million times that of the one before
		{"q6_K", ir.F16, 768, 35, 41, 64, 1, nvptx.Launch{Moving: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q6_K", ir.BF16, 512, 66, 260, 64, 1, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q6_K", ir.BF16, 1280, 9, 40, 32, 2, nvptx.Launch{Values: true, Moving: true}, true, ptxmatrix.Hopper},
		{"q6_K", ir.F16, 2560, 4, 17, 32, 4, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q4_0", ir.F16, 12032, 3, 4, 32, 2, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q4_K", ir.F16, 1024, 100, 20, 128, 2, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q6_K", ir.F16, 512, 128, 20, 64, 1, nvptx.Launch{Values: true}, false, ptxmatrix.Hopper},
		{"q8_0", ir.F16, 512, 67, 41, 64, 1, nvptx.Launch{Values: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q8_0", ir.BF16, 768, 33, 270, 64, 2, nvptx.Launch{Moving: true}, false, ptxmatrix.Hopper},
		{"q8_0", ir.F16, 512, 5, 12, 32, 1, nvptx.Launch{}, true, ptxmatrix.Hopper},
		{"q4_0", ir.F16, 768, 110, 41, 128, 1, nvptx.Launch{Values: true, Programmatic: true}, false, ptxmatrix.Hopper},
		{"q4_0", ir.BF16, 512, 36, 258, 64, 1, nvptx.Launch{Moving: true}, false, ptxmatrix.Hopper},
		{"q4_0", ir.BF16, 8448, 3, 9, 32, 4, nvptx.Launch{Values: true}, true, ptxmatrix.Hopper},
		// By warps.
		{"q4_K", ir.F16, 1280, 35, 41, 64, 1, nvptx.Launch{Values: true, Programmatic: true}, false, ada},
		{"q4_K", ir.F16, 1024, 9, 140, 32, 1, nvptx.Launch{Moving: true}, false, ampere},
		{"q4_K", ir.BF16, 768, 60, 130, 64, 1, nvptx.Launch{Values: true, Moving: true}, false, ada},
		{"q6_K", ir.F16, 768, 35, 41, 64, 1, nvptx.Launch{Values: true}, false, ampere},
		{"q6_K", ir.BF16, 1280, 9, 40, 32, 1, nvptx.Launch{}, false, ada},
		{"q6_K", ir.F16, 4352, 4, 17, 32, 1, nvptx.Launch{Values: true}, false, ada},
		{"q8_0", ir.F16, 768, 33, 130, 64, 1, nvptx.Launch{Moving: true}, false, ampere},
		{"q8_0", ir.BF16, 768, 5, 12, 32, 1, nvptx.Launch{Values: true}, false, ada},
		{"q4_0", ir.F16, 1024, 110, 41, 64, 1, nvptx.Launch{Values: true, Programmatic: true}, false, ada},
		{"q4_0", ir.BF16, 1280, 3, 9, 32, 1, nvptx.Launch{Values: true}, true, ampere},
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
			groups := [3]uint64{uint64(x.n+31) / 32, uint64(x.m+31) / 32, 1}
			launchedAs(t, blockProductForm(p, x.rows, x.splits), 1, m, k, p, x.launch, !x.odd, groups, [3]uint64{32, 2, 2}, args)
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
					case x.dtype == ir.F16 && math.Abs(want)+bound > 65519 && math.IsInf(got, int(want)):
					case x.dtype == ir.F16 && math.Abs(want)-bound >= 65520:
						require.Fail(t, "finite", "row %d, column %d: %v, want %v", i, j, got, want)
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

// blockProductForm is a choice of how products are launched, of which nothing is left to choose.
func blockProductForm(p ptxmatrix.Kernel, rows, splits int) func([3]uint64, ptxmatrix.Given) ptxmatrix.Fit {
	return func(groups [3]uint64, given ptxmatrix.Given) ptxmatrix.Fit {
		f, _ := ptxmatrix.FitOf(p, groups, given, rows, splits)
		if f.Rows != rows || f.Splits != splits {
			return ptxmatrix.Fit{}
		}
		return f
	}
}

// TestBlockProductWaits leaves out, of a product, each instruction that orders threads, copies and tensor cores: the interpreter notices.
func TestBlockProductWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	const k, m, n = 1024, 2, 4 // phases have more than one chunk
	for _, x := range sample.Of(t, "waits of products with blocks", []struct {
		format string
		gpu    ptxmatrix.GPU
		waits  int
	}{{"q4_K", ptxmatrix.Hopper, 20}, {"q6_K", ptxmatrix.Hopper, 20}, {"q4_K", ada, 7}, {"q8_0", ada, 6}}, 1) {
		format := x.format
		_, p := describedFor(t, x.gpu, "ggml_mul_mm_"+format+"_f16")
		groups := [3]uint64{1, 1, 1}
		f := blockProductForm(p, 32, 1)(groups, ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Constant: func(name string) (int64, bool) { return k, name == "K" }})
		require.True(t, f.Fits())
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
			// A phase has 256 elements at least, and may lose more than the bound of a sum of so many.
			require.False(t, blockProductFit(p, groups, 256, 132, true).Fits())
			for _, k := range []int{512, 4096, 14336} {
				for _, aligned := range []bool{false, true} {
					f := blockProductFit(p, groups, k, 132, aligned)
					short := k == 512 && format == "q4_K" && typ == "f16" // sums of x are off too
					require.Equal(t, !short, f.Fits())
					if short {
						continue
					}
					grid, threads, shared := p.Launch(groups, f)
					require.Equal(t, [3]uint64{uint64(512 / f.Rows * f.Splits), 56, 1}, grid)
					require.EqualValues(t, 512, threads)
					require.LessOrEqual(t, shared, uint32(227<<10))
				}
				for _, gpu := range []ptxmatrix.GPU{ada, ampere} {
					_, p := describedFor(t, gpu, "ggml_mul_mm_"+format+"_"+typ)
					f := blockProductFit(p, groups, k, 84, true)
					require.Equal(t, k >= 768, f.Fits(), "phases are short enough")
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

// TestBlockProductsShare: of few columns the blocks of a cluster share the inner index, so that all multiprocessors have a part, and of many none do.
func TestBlockProductsShare(t *testing.T) {
	for _, x := range []struct {
		name               string
		k, n, m            int
		rows, splits, tile int // tile: columns of blocks
	}{
		{"q4_K_f16", 4096, 4096, 512, 128, 2, 16}, {"q4_K_f16", 4096, 14336, 512, 128, 1, 56}, {"q4_K_f16", 14336, 4096, 512, 128, 2, 16},
		{"q6_K_bf16", 4096, 4096, 512, 128, 2, 16}, {"q6_K_f16", 4096, 14336, 512, 128, 1, 56}, {"q6_K_f16", 14336, 4096, 512, 128, 2, 16},
		{"q8_0_f16", 4096, 4096, 512, 64, 1, 16}, {"q4_0_f16", 4096, 4096, 32, 32, 4, 16},
	} {
		_, p := described(t, "ggml_mul_mm_"+x.name)
		groups := [3]uint64{uint64(x.n / 32), uint64(x.m / 32), 1}
		f := blockProductFit(p, groups, x.k, 132, true)
		require.Equal(t, []int{x.rows, x.splits}, []int{f.Rows, f.Splits}, "%s %d to %d", x.name, x.k, x.n)
		grid, _, _ := p.Launch(groups, f)
		require.Equal(t, [3]uint64{uint64(x.m / x.rows * x.splits), uint64(x.tile), 1}, grid)
	}
}

// TestBlockProductsOrder: results are the same bits however many rows a block makes.
func TestBlockProductsOrder(t *testing.T) {
	sample.Seldom(t)
	const k, m, n = 768, 40, 24
	for _, format := range sample.Of(t, "orders of products with blocks", []string{"q4_K", "q6_K", "q4_0", "q4_K ada", "q4_0 ada"}, 2) {
		gpu, heights, most := ptxmatrix.Hopper, []int{128, 32}, 2
		format, alone := strings.CutSuffix(format, " ada")
		if alone {
			gpu, heights, most = ada, []int{64, 32}, 1
		}
		kernel, p := describedFor(t, gpu, "ggml_mul_mm_"+format+"_f16")
		r, numbers := rand.New(rand.NewPCG(5, 6)), number16{ir.F16}
		_, x := numbers.numbers(r, m*k, normal(1))
		w := randomBlocks(r, blockFormats[format], k, n)
		for splits := 1; splits <= most; splits++ {
			var first []byte
			for _, rows := range heights {
				memory, y := &ptxrun.Memory{}, make([]byte, 2*m*n)
				args := map[string]any{"x": memory.Add(x), "w": memory.Add(w), "y": memory.Add(y), "K": k, "N": n, "M": m}
				launchedAs(t, blockProductForm(p, rows, splits), 1, memory, kernel, p, nvptx.Launch{Values: true}, true, [3]uint64{1, 2, 1}, [3]uint64{32, 2, 2}, args)
				if first == nil {
					first = y
				}
				require.Equal(t, first, y, "%d rows, %d blocks", rows, splits)
			}
		}
	}
}

// alike are blocks of q4_K whose d and dmin are two numbers of f16, all of whose scales and minima are 1, and whose codes are what a function says.
func alike(d, least uint16, count int, code func(i int) int) []byte {
	var out []byte
	for b := range count {
		block := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, d), least)
		block = append(block, 1, 1, 1, 1, 1, 1, 1, 1, 0x11, 0x11, 0x11, 0x11)
		for i := range 128 { // of each 64 elements the first 32 have the low halves of 32 bytes
			at := 256*b + i/32*64 + i%32
			block = append(block, byte(code(at)|code(at+32)<<4))
		}
		out = append(out, block...)
	}
	return out
}

// oneColumn multiplies rows of x with one row of weights.
func oneColumn(t *testing.T, gpu ptxmatrix.GPU, name string, k int, xs, w []byte, splits int) []float64 {
	m := len(xs) / 2 / k
	kernel, p := describedFor(t, gpu, name)
	memory, y := &ptxrun.Memory{}, make([]byte, 2*m)
	args := map[string]any{"x": memory.Add(xs), "w": memory.Add(w), "y": memory.Add(y), "K": k, "N": 1, "M": m}
	launchedAs(t, blockProductForm(p, 32, splits), 1, memory, kernel, p, nvptx.Launch{Values: true}, true, [3]uint64{1, 1, 1}, [3]uint64{32, 2, 2}, args)
	var out []float64
	for i := range m {
		out = append(out, number16{ir.F16}.value(binary.LittleEndian.Uint16(y[2*i:])))
	}
	return out
}

// TestBlockProductsLose has tensor cores lose as much as they may. Weights are half of d, so that their whole numbers, which are added first, are twice as large as they are. The first element of x
// makes nearly the whole sum, and all others have sizes of which tensor cores lose most. The exact sum lies above the middle between two neighbours of f16, by a part of the bound. A result that
// loses more than that part is rounded to the lower neighbour, which shows that two thirds of the bound are lost; where the part is more than the bound it must be the upper one.
func TestBlockProductsLose(t *testing.T) {
	const k = 1536
	n := number16{ir.F16}
	bound := (k + 2) * 0x1p-24 * 0x1p13
	parts := []float64{0.5, 0.65, 1.01}
	xs := make([]byte, 2*k*len(parts))
	for row, part := range parts {
		sum := 0.0
		for i := range k {
			unit := 0x1p-11 // of sums of 2^14, and half of it when the first chunk's rests have been added
			if i >= 256 {
				unit /= 2
			}
			v := unit * (1 - 0x1p-11)
			if i%16 > 12 { // with these three units are there, which the result has no place for
				v *= 2
			}
			switch i {
			case 0:
				v = 0x1p14
			case 1:
				v = 8
			case 2:
				v = 0
			}
			binary.LittleEndian.PutUint16(xs[2*(row*k+i):], n.of(v))
			sum += v / 2
		}
		v := math.Round((part*bound-(sum-0x1p13-4))*2/0x1p-11) * 0x1p-11
		binary.LittleEndian.PutUint16(xs[2*(row*k+2):], n.of(v))
	}
	w := alike(n.of(1), n.of(0.5), k/256, func(int) int { return 1 })
	got := oneColumn(t, ptxmatrix.Hopper, "ggml_mul_mm_q4_K_f16", k, xs, w, 1)
	require.Equal(t, []float64{0x1p13, 0x1p13, 0x1p13 + 8}, got)
}

// TestBlockProductsSmallRests: where elements of x are zeros but those whose codes are, sums are of minima alone, however small these are beside scales.
func TestBlockProductsSmallRests(t *testing.T) {
	const k = 1280
	n := number16{ir.F16}
	for _, gpu := range []ptxmatrix.GPU{ptxmatrix.Hopper, ada} {
		for _, least := range []float64{93 * 0x1p-24, 0x1p-24, 0.0123} {
			xs, sum := make([]byte, 2*k), 0.0
			for i := range k {
				if i%17 == 0 {
					v := n.value(n.of(1 + float64(i)))
					binary.LittleEndian.PutUint16(xs[2*i:], n.of(v))
					sum += v
				}
			}
			w := alike(n.of(1.7), n.of(least), k/256, func(i int) int { return min(i%17, 15) })
			want := -sum * n.value(n.of(least))
			require.InDelta(t, want, oneColumn(t, gpu, "ggml_mul_mm_q4_K_f16", k, xs, w, 1)[0], (k+2)*0x1p-24*math.Abs(want)+0.5*n.ulp(want))
		}
	}
}
