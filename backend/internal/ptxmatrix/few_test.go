package ptxmatrix_test

import (
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

// TestFewFits: of up to eight rows of x, matrices are multiplied as by a vector: by two launches on each multiprocessor if there is room for x in half of its memory,
// by one if not, and with x that comes with the weights if there is none at all. What is small, moves, has other codes or more rows is left to other code.
func TestFewFits(t *testing.T) {
	for _, x := range []struct {
		name           string
		k, columns     int64
		rows, most     int
		tiles          int
		teams, warps   int
		even, streamed bool
		gpu            ptxmatrix.GPU
	}{
		{"add_float16_t_gs_32_b_4", 4096, 4096, 1, 2, 256, 3, 4, true, false, ptxmatrix.Hopper},
		{"silu_mul_float16_t_gs_32_b_4", 4096, 14336, 2, 2, 1792, 3, 4, true, false, ptxmatrix.Hopper},
		{"silu_mul_bfloat16_t_gs_32_b_4", 4096, 14336, 3, 4, 1792, 3, 4, true, false, ptxmatrix.Hopper},
		{"silu_mul_float16_t_gs_64_b_4", 4096, 14336, 8, 8, 1792, 2, 4, true, false, ptxmatrix.Hopper},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 2, 2, 256, 2, 4, true, false, ptxmatrix.Hopper},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 4, 4, 256, 2, 8, false, false, ptxmatrix.Hopper},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 5, 8, 128, 1, 8, false, true, ptxmatrix.Hopper},
		{"x3_float16_t_gs_32_b_4", 4096, 4096, 8, 8, 384, 2, 4, true, false, ptxmatrix.Hopper},
		{"x3_float16_t_gs_32_b_4", 14336, 4096, 8, 0, 0, 0, 0, false, false, ptxmatrix.Hopper},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 9, 0, 0, 0, 0, false, false, ptxmatrix.Hopper},
		{"add_float16_t_gs_32_b_8", 4096, 4096, 2, 0, 0, 0, 0, false, false, ptxmatrix.Hopper},
		{"add_float16_t_gs_32_b_4", 4160, 4096, 2, 0, 0, 0, 0, false, false, ptxmatrix.Hopper},
		{"add_float16_t_gs_32_b_4", 1024, 4000, 2, 0, 0, 0, 0, false, false, ptxmatrix.Hopper},
		// Before compute capability 9.0 no launch begins while another one is at work.
		{"add_float16_t_gs_32_b_4", 4096, 4096, 8, 8, 256, 2, 8, false, false, ampere},
		{"silu_mul_bfloat16_t_gs_64_b_4", 14336, 4096, 2, 2, 512, 2, 8, false, false, ampere},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 3, 4, 256, 1, 8, false, false, ampere},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 3, 0, 0, 0, 0, false, false, ada},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 1, 2, 256, 1, 8, false, false, ada},
		{"x3_float16_t_gs_32_b_4", 4096, 4096, 4, 4, 384, 1, 8, false, false, ada},
	} {
		_, p := describedFor(t, x.gpu, "affine_qmm_t_"+x.name+"_alN_true")
		groups := [3]uint64{1, uint64(x.columns / 64), 1}
		still := true
		given := ptxmatrix.Given{Aligned: true, Multiprocessors: 132, Rows: x.rows, Still: func(name string) bool { return still || !strings.HasPrefix(name, "biases") }, Constant: func(name string) (int64, bool) {
			return map[string]int64{"K": x.k, "N": x.columns, "n0": x.columns, "n1": 1024, "n2": 1024}[name], name != "M"
		}}
		f := p.Fit(groups, given)
		if x.most == 0 {
			require.Zero(t, f.Teams, "%+v", x)
			continue
		}
		require.Equal(t, []any{x.most, x.tiles, x.teams, x.warps, x.even, x.streamed}, []any{f.Most, f.Tiles, f.Teams, f.Warps, f.Even(), f.Streamed}, "%+v", x)
		grid, threads, shared := p.Launch(groups, f)
		require.Equal(t, [3]uint64{1, 132, 1}, grid)
		require.EqualValues(t, 32*f.Teams*f.Warps, threads)
		most := x.gpu.Memory - 1<<10
		if f.Even() {
			most = 228<<10 - ptxmatrix.Roomy - 2<<10
		}
		require.LessOrEqual(t, int(shared), most, "%+v", x)
		still = false
		require.Zero(t, p.Fit(groups, given).Teams, "weights that move are not asked for early")
	}
}

// TestFewWaits leaves out, of products of few rows, each instruction that orders threads and copies: the interpreter notices.
func TestFewWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	anySize(t)
	_, p := described(t, "affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0")
	for _, x := range sample.Of(t, "products of few rows whose waits are left out", []struct {
		k, n  int
		waits int
	}{{4096, 119, 8}, {11776, 111, 4}}, 2) {
		constants := map[string]int64{"K": int64(x.k), "N": int64(x.n)}
		given := ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Rows: 8, Constant: func(n string) (int64, bool) { v, ok := constants[n]; return v, ok }, Still: func(string) bool { return true }}
		groups := [3]uint64{uint64(x.n+31) / 32, 1, 1}
		f := p.Fit(groups, given)
		require.Equal(t, x.k > 4096, f.Streamed, "%+v", f)
		require.Greater(t, f.Tiles, f.Teams, "tiles of a team use memory of others before")
		for _, moving := range []bool{false, true} { // before the wait nothing is read but the table, and weights, which it does not move
			before, _, waits := strings.Cut(string(p.Emit(nvptx.Launch{Values: true, Programmatic: true, Moving: moving}, f)), "griddepcontrol.wait")
			require.True(t, waits)
			require.Contains(t, before, "cp.async")
			additions := 0
			if moving {
				additions = 5 // of x, y and three lengths
			}
			require.Equal(t, additions, strings.Count(before, "ld.global"))
		}
		lines := strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true, Programmatic: true}, f)), "\n")
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
			w := affine(r, n, x.n, x.k, 32, 4)
			_, values := n.numbers(r, 7*x.k, normal(1))
			params := []uint64{m.Add(w.codes), m.Add(w.scales), m.Add(w.biases), m.Add(values), m.Add(make([]byte, 2*7*x.n)), uint64(x.k), uint64(x.n), 7}
			for len(params) < len(program.Params) {
				params = append(params, 32)
			}
			_, threads, shared := p.Launch(groups, f)
			return program.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{1, 1, 1}, Block: threads, Shared: int(shared)})
		}
		require.NoError(t, run(strings.Join(lines, "")))
		require.Len(t, waits, x.waits)
		for _, i := range waits {
			text := slices.Clone(lines)
			text[i] = ""
			require.Error(t, run(strings.Join(text, "")), "of %+v without line %d: %s", x, i+1, lines[i])
		}
	}
}
