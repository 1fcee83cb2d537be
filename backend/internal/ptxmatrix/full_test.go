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

func fullOf(t *testing.T, rows, inner int, next func(*rand.Rand) float64) *fullProduct {
	t.Helper()
	_, p := described(t, "affine_qmm_t_float_gs_32_b_4_alN_false_batch_0")
	f, ok := ptxmatrix.FitOf(p, [3]uint64{1, 1, 1}, ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Constant: func(name string) (int64, bool) {
		return int64(inner), name == "K"
	}}, rows, 1)
	require.True(t, ok)
	_, _, shared := p.Launch([3]uint64{1, 1, 1}, f)
	r, n := rand.New(rand.NewPCG(3, 4)), number16{ir.F32}
	out := &fullProduct{lines: strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true}, f)), "\n"), shared: shared, inner: inner}
	out.w = affine(r, n, fullColumns, inner, 32, 4)
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

// TestSixProducts: of f32 whose three parts are as large as they get a product is off by less than 2^−21 of it, for which it needs each of six products of parts.
func TestSixProducts(t *testing.T) {
	const full = 1 + 0x0.Ep-8 + 0x0.7p-16 // all parts are positive
	p := fullOf(t, 32, 32, func(*rand.Rand) float64 { return full })
	for i := range fullColumns {
		binary.LittleEndian.PutUint32(p.w.scales[4*i:], 0)
		binary.LittleEndian.PutUint32(p.w.biases[4*i:], math.Float32bits(full))
	}
	off := func(line int) (most float64) {
		results, err := p.without(t, line)
		require.NoError(t, err)
		for _, v := range results {
			most = max(most, math.Abs(v/(32*full*full)-1))
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
	require.Len(t, products, 6*4)
	for _, i := range sample.Of(t, "products of parts", products[:6], 2) {
		require.Greater(t, off(i), 0x1p-20, "without line %d: %s", i+1, p.lines[i])
	}
}

// TestFullOrder: of f32 results are the same bits however many rows a block makes.
func TestFullOrder(t *testing.T) {
	a, err := fullOf(t, 64, 224, normal(1)).without(t, -1)
	require.NoError(t, err)
	b, err := fullOf(t, 32, 224, normal(1)).without(t, -1)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// TestFullWaits leaves out, of a product of f32, each instruction that orders threads, copies and tensor cores: the interpreter notices.
func TestFullWaits(t *testing.T) {
	sample.Seldom(t)
	p := fullOf(t, 32, 448, normal(1))
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
	require.Greater(t, len(waits), 14)
	for _, i := range append(rare, sample.Of(t, "waits of a product of f32", waits, 8)...) {
		_, err := p.without(t, i)
		require.Error(t, err, "without line %d: %s", i+1, p.lines[i])
	}
}

// TestFullFits: with few blocks clang's code is faster, unless a step of few rows has to take one of the entries of a prompt. Memory suffices, whatever is asked for.
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
		{"add_float_gs_32_b_4", 4096, 4096, 64, 0, 0, 0},
		{"add_float_gs_32_b_4", 4096, 4096, 0, 64, 32, 32},
		{"add_float_gs_32_b_4", 4096, 4096, 0, 8, 32, 16},
		{"add_float_gs_32_b_4", 0, 4096, 512, 0, 0, 0},
		{"add_float_gs_32_b_4", 4096 + 16, 4096, 512, 0, 0, 0},
		{"add_float_gs_32_b_8", 1 << 20, 4096, 512, 0, 64, 128},
	} {
		t.Run(fmt.Sprint(x.name, " ", x.k, " ", x.m, " ", x.limit), func(t *testing.T) {
			_, p := described(t, "affine_qmm_t_"+x.name+"_alN_true")
			groups := [3]uint64{8, uint64(x.columns / 64), 1}
			if strings.HasPrefix(x.name, "silu") {
				groups[1] *= 2
			}
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
				require.Equal(t, []any{x.tile, x.blocks, aligned, x.k > 8192}, []any{f.Rows, grid[0] * grid[1], f.Aligned, f.Long})
				require.EqualValues(t, 512, threads)
				require.LessOrEqual(t, shared, uint32(227<<10))
			}
		})
	}
}
