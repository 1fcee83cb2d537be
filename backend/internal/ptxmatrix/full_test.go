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

// fullProduct is a product of f32 that runs as a text, perhaps changed, with blocks of so many rows.
type fullProduct struct {
	lines  []string
	shared uint32
	inner  int
	w      matrix
	x      []float64
	bytes  []byte
}

const (
	fullRows    = 2
	fullColumns = 5
)

func fullOf(t *testing.T, rows, inner, bits int, next func(*rand.Rand) float64) *fullProduct {
	t.Helper()
	_, p := described(t, fmt.Sprintf("affine_qmm_t_float_gs_32_b_%d_alN_false_batch_0", bits))
	f, ok := ptxmatrix.FitOf(p, [3]uint64{1, 1, 1}, ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Constant: func(name string) (int64, bool) {
		return int64(inner), name == "K"
	}}, rows, 1)
	require.True(t, ok)
	_, _, shared := p.Launch([3]uint64{1, 1, 1}, f)
	r, n := rand.New(rand.NewPCG(3, 4)), number16{ir.F32}
	out := &fullProduct{lines: strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true}, f)), "\n"), shared: shared, inner: inner}
	out.w = affine(r, n, fullColumns, inner, 32, bits)
	out.x, out.bytes = n.numbers(r, fullRows*inner, next)
	return out
}

// without runs the product without one of its lines, or with all if there is none of that number.
func (p *fullProduct) without(t *testing.T, line int) (results []float64, err error) {
	t.Helper()
	lines := slices.Clone(p.lines)
	if line >= 0 {
		lines[line] = ""
	}
	program, err := ptxrun.Parse([]byte(strings.Join(lines, "")))
	require.NoError(t, err)
	m, y := &ptxrun.Memory{}, make([]byte, 4*fullRows*fullColumns)
	params := []uint64{m.Add(p.w.codes), m.Add(p.w.scales), m.Add(p.w.biases), m.Add(p.bytes), m.Add(y), uint64(p.inner), fullColumns, fullRows}
	for len(params) < len(program.Params) {
		params = append(params, 0)
	}
	err = program.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{1, 1, 1}, Block: 512, Shared: int(p.shared)})
	for i := range fullRows * fullColumns {
		results = append(results, number16{ir.F32}.at(y, i))
	}
	return results, err
}

// TestThreeProducts: of f32 whose three parts are as large as they get a product is off by less than 2^−21 of it, for which it needs the products of all parts.
func TestThreeProducts(t *testing.T) {
	const full = 1 + 0x0.Ep-8 + 0x0.7p-16 // all parts are positive
	p := fullOf(t, 32, 32, 4, func(*rand.Rand) float64 { return full })
	for i := range fullColumns {
		binary.LittleEndian.PutUint32(p.w.scales[4*i:], math.Float32bits(1))
		binary.LittleEndian.PutUint32(p.w.biases[4*i:], 0)
	}
	for i := range p.w.codes {
		p.w.codes[i] = 0x9A
	}
	off := func(line int) (most float64) {
		results, err := p.without(t, line)
		require.NoError(t, err)
		for _, v := range results {
			most = max(most, math.Abs(v/(16*(9+10)*full)-1))
		}
		return most
	}
	require.Less(t, off(-1), 0x1p-21)
	var products []int
	for i, l := range p.lines {
		if strings.Contains(l, "wgmma.mma_async") {
			products = append(products, i)
		}
	}
	require.Len(t, products, 3*4)
	for _, i := range sample.Of(t, "products of parts", products[1:6], 2) { // the first one begins a sum
		require.Greater(t, off(i), 0x1p-20, "without line %d: %s", i+1, p.lines[i])
	}
}

// TestFullCancels: where scale·code and bias cancel, so that weights are small or 0 by the roundings of the term, sums keep the bound. Of each group codes are the one
// whose weight is the smallest, or one more, or one less, with scales of 24 bits, large and small, and x is 0 but for one weight, or for all.
func TestFullCancels(t *testing.T) {
	for _, x := range []struct{ bits, inner int }{{4, 320}, {8, 1536}} {
		r := rand.New(rand.NewPCG(7, 8))
		p := fullOf(t, 32, x.inner, x.bits, normal(1))
		clear(p.w.codes)
		var weights []float64
		for g := range fullColumns * x.inner / 32 {
			column := g / (x.inner / 32)
			scale := float32(math.Ldexp(1+r.Float64(), []int{-3, -140, 20, 100, -110}[column]))
			near := 1 + r.IntN(1<<x.bits-2)
			bias := -float32(scale * float32(near))
			if column == 2 {
				bias += scale * 0.4
			}
			binary.LittleEndian.PutUint32(p.w.scales[4*g:], math.Float32bits(scale))
			binary.LittleEndian.PutUint32(p.w.biases[4*g:], math.Float32bits(bias))
			for i := range 32 {
				code := near + r.IntN(3) - 1
				p.w.codes[(32*g+i)*x.bits/8] |= byte(code << (4 * (i % 2) * (8 - x.bits) / 4))
				weights = append(weights, float64(float32(float32(scale)*float32(code))+bias))
			}
		}
		single := 3
		for weights[single] != 0 { // of the first column
			single++
		}
		for i := range x.inner {
			if i != single {
				p.x[i] = 0
				binary.LittleEndian.PutUint32(p.bytes[4*i:], 0)
			}
		}
		results, err := p.without(t, -1)
		require.NoError(t, err)
		for row := range fullRows {
			for column := range fullColumns {
				want, all := 0.0, 0.0
				for i := range x.inner {
					v := p.x[row*x.inner+i] * weights[column*x.inner+i]
					want, all = want+v, all+math.Abs(v)
				}
				require.InDelta(t, want, results[row*fullColumns+column], all*float64(x.inner+2)*0x1p-24+0x1p-126, "row %d, column %d", row, column)
			}
		}
		require.Zero(t, results[0], "the only product is one with 0")
	}
}

// TestFullOrder: of f32 results are the same bits however many rows a block makes.
func TestFullOrder(t *testing.T) {
	a, err := fullOf(t, 64, 224, 4, normal(1)).without(t, -1)
	require.NoError(t, err)
	b, err := fullOf(t, 32, 224, 4, normal(1)).without(t, -1)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// TestFullWaits leaves out, of a product of f32, each instruction that orders threads, copies and tensor cores: the interpreter notices.
func TestFullWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	p := fullOf(t, 32, 448, 4, normal(1))
	_, err := p.without(t, -1)
	require.NoError(t, err)
	var waits, rare []int
	for i, l := range p.lines {
		switch op := strings.TrimSuffix(strings.Fields(l + " -")[0], ";"); op {
		case "cp.async.wait_group", "fence.proxy.async.shared::cta", "bar.sync":
			rare = append(rare, i)
		case "cp.async.commit_group", "wgmma.wait_group.sync.aligned", "wgmma.commit_group.sync.aligned", "wgmma.fence.sync.aligned":
			waits = append(waits, i)
		}
		if strings.Contains(l, "cp.async.wait_all") { // what is behind may be for sums that are made again
			break
		}
	}
	require.Len(t, rare, 4)
	require.Len(t, waits, 10)
	for _, i := range append(rare, sample.Of(t, "waits of a product of f32", waits, 8)...) {
		_, err := p.without(t, i)
		require.Error(t, err, "without line %d: %s", i+1, p.lines[i])
	}
}

// TestFullFits: with few blocks clang's code is faster where it has small ones, unless a step of few rows has to take one of the entries of a prompt. Memory suffices, whatever is asked for.
func TestFullFits(t *testing.T) {
	for _, x := range []struct {
		name       string
		k, columns int
		m, limit   int // rows; how many there are at most
		tile       int // 0: clang's code
		blocks     uint64
	}{
		{"add_float_gs_32_b_4", 4096, 4096, 512, 0, 64, 128},
		{"x3_float_gs_32_b_4", 4096, 6144, 512, 0, 64, 208},
		{"silu_mul_float_gs_32_b_4", 4096, 14336, 512, 0, 64, 896},
		{"silu_mul_float_gs_64_b_8", 4096, 14336, 32, 0, 32, 112},
		{"add_float_gs_128_b_8", 14336, 4096, 512, 0, 64, 128},
		{"add_float_gs_32_b_4", 4096, 4096, 64, 0, 32, 32},
		{"float_gs_32_b_4", 4096, 4096, 512, 0, 64, 128},
		{"float_gs_32_b_4", 4096, 4096, 64, 0, 0, 0},
		{"add_float_gs_32_b_4", 4096, 4096, 0, 64, 32, 32},
		{"add_float_gs_32_b_4", 4096, 4096, 0, 8, 32, 16},
		{"add_float_gs_32_b_4", 65536, 4096, 512, 0, 64, 128},
		{"add_float_gs_32_b_4", 0, 4096, 512, 0, 0, 0},
		{"add_float_gs_32_b_4", 4096 + 16, 4096, 512, 0, 0, 0},
		// The bound of the sum is that of so many elements.
		{"add_float_gs_32_b_4", 320, 4096, 512, 0, 64, 128},
		{"add_float_gs_32_b_4", 288, 4096, 512, 0, 0, 0},
		{"add_float_gs_32_b_4", 65536 + 32, 4096, 512, 0, 0, 0},
		{"add_float_gs_64_b_8", 1536, 4096, 512, 0, 64, 128},
		{"add_float_gs_64_b_8", 1472, 4096, 512, 0, 0, 0},
	} {
		t.Run(fmt.Sprint(x.name, " ", x.k, " ", x.m, " ", x.limit), func(t *testing.T) {
			name, groups := "affine_qmm_t_"+x.name+"_alN_true", [3]uint64{8, uint64(x.columns / 64), 1}
			switch {
			case strings.HasPrefix(x.name, "silu"):
				groups[1] *= 2
			case strings.HasPrefix(x.name, "float"):
				name, groups = name+"_batch_0", [3]uint64{uint64(x.columns / 32), 16, 1}
			}
			_, p := described(t, name)
			for _, aligned := range []bool{true, false} {
				f := p.Fit(groups, ptxmatrix.Given{Aligned: aligned, Multiprocessors: 132, Rows: x.limit, Constant: func(name string) (int64, bool) {
					switch name {
					case "K":
						return int64(x.k), x.k > 0
					case "M":
						return int64(x.m), x.m > 0
					}
					return 0, false
				}})
				require.Equal(t, x.tile > 0, f.Fits())
				if x.tile == 0 {
					continue
				}
				grid, threads, shared := p.Launch(groups, f)
				require.Equal(t, []any{x.tile, x.blocks, aligned}, []any{f.Rows, grid[0] * grid[1], f.Aligned})
				require.EqualValues(t, 512, threads)
				require.LessOrEqual(t, shared, uint32(227<<10))
			}
		})
	}
}
