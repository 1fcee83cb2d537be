package ptxmatrix_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// warpFit is how a product with an inner index of k is launched on a GPU whose tensor cores take products of one warp, by blocks of so many rows and teams.
func warpFit(p ptxmatrix.Kernel, groups [3]uint64, k, rows, teams int) (ptxmatrix.Fit, bool) {
	return ptxmatrix.FitOf(p, groups, ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Constant: func(name string) (int64, bool) { return int64(k), name == "K" }}, rows, teams)
}

// warpProgram is a plain product of m rows with a matrix of n, made ready to run.
type warpProgram struct {
	p       ptxmatrix.Kernel
	f       ptxmatrix.Fit
	groups  [3]uint64
	k, m, n int
}

// run runs a text of it.
func (w warpProgram) run(t *testing.T, text string, x, codes, scales, biases []byte) ([]byte, error) {
	program, err := ptxrun.Parse([]byte(text))
	require.NoError(t, err)
	memory, y := &ptxrun.Memory{}, make([]byte, 2*w.m*w.n)
	params := []uint64{memory.Add(codes), memory.Add(scales), memory.Add(biases), memory.Add(x), memory.Add(y), uint64(w.k), uint64(w.n), uint64(w.m)}
	for len(params) < len(program.Params)-6 {
		params = append(params, 0)
	}
	params = append(params, 32, 2, 2, 32, 2, 2)
	grid, threads, shared := w.p.Launch(w.groups, w.f)
	return y, program.Run(memory, ptxrun.Launch{Params: params, Grid: [3]uint32{uint32(grid[0]), uint32(grid[1]), 1}, Block: threads, Shared: int(shared)})
}

// TestWarpsRoundOnce: where scales and biases are not far apart, the first way through the products makes the results, and blocks do not begin again.
// Results are the same bits however many rows a block makes.
func TestWarpsRoundOnce(t *testing.T) {
	const m, n = 33, 140
	again := regexp.MustCompile(`@!(%p\d+) bra \t(\$L\w+);\n\tmov`)
	for _, x := range sample.Of(t, "products of warps that round once", []struct {
		name        string
		dtype       ir.DType
		k           int
		group, bits int
	}{
		{"affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0", ir.F16, 256, 32, 4},
		{"affine_qmm_t_bfloat16_t_gs_64_b_4_alN_false_batch_0", ir.BF16, 256, 64, 4},
		{"affine_qmm_t_float16_t_gs_128_b_8_alN_false_batch_0", ir.F16, 256, 128, 8},
	}, 1) {
		_, p := describedFor(t, ada, x.name)
		r, numbers := rand.New(rand.NewPCG(7, uint64(x.k))), number16{x.dtype}
		w := matrix{codes: make([]byte, n*x.k*x.bits/8)}
		for i := range w.codes {
			w.codes[i] = byte(r.Uint32())
		}
		scale, sb := numbers.numbers(r, n*x.k/x.group, func(r *rand.Rand) float64 { return 0.01 * (1 + r.Float64()) })
		bias, bb := numbers.numbers(r, n*x.k/x.group, func(r *rand.Rand) float64 { return -0.05 * (1 + r.Float64()) })
		for i := range n * x.k {
			q := int(w.codes[i*x.bits/8])
			if x.bits == 4 {
				q = q >> (4 * (i % 2)) & 15
			}
			w.w = append(w.w, numbers.value(numbers.of(float64(float32(scale[i/x.group])*float32(q)+float32(bias[i/x.group])))))
		}
		values, xs := numbers.numbers(r, m*x.k, normal(1))
		var first []byte
		for _, rows := range []int{64, 32, 16} {
			program := warpProgram{p: p, groups: [3]uint64{(n + 31) / 32, (m + 31) / 32, 1}, k: x.k, m: m, n: n}
			var ok bool
			program.f, ok = warpFit(p, program.groups, x.k, rows, 1)
			require.True(t, ok)
			text := string(p.Emit(nvptx.Launch{Values: true}, program.f))
			before, behind, found := strings.Cut(text, "bar.red.or.pred")
			require.True(t, found)
			loc := again.FindStringSubmatchIndex(behind)
			require.NotNil(t, loc)
			// There is no second way.
			text = before + "bar.red.or.pred" + behind[:loc[0]] + "bra \t" + behind[loc[4]:]
			y, err := program.run(t, text, xs, w.codes, sb, bb)
			require.NoError(t, err)
			if first == nil {
				first = y
			}
			require.Equal(t, first, y, "%d rows", rows)
		}
		for i := range m {
			for j := range n {
				want, bound := 0.0, 0.0
				for e := range x.k {
					v := values[i*x.k+e] * w.w[j*x.k+e]
					want, bound = want+v, bound+math.Abs(v)
				}
				got := numbers.value(binary.LittleEndian.Uint16(first[2*(i*n+j):]))
				require.InDelta(t, want, got, bound*float64(x.k+2)*0x1p-24+numbers.ulp(want)*0.51, "row %d, column %d", i, j)
			}
		}
	}
}

// TestWarpPhases: what tensor cores of compute capability 8.0 cut off stays within the bound of a sum, however long it is, and phases are no shorter than they have to be.
// They cut off eight products 24 bits below the largest number, and then their sum with what it is added to.
func TestWarpPhases(t *testing.T) {
	for k := 128; k <= 1<<20; k += 64 {
		n := float64(k)
		length := ptxmatrix.WarpPhase(k)
		require.Zero(t, length%64)
		lost := func(length int) float64 {
			phases := math.Ceil(n / float64(length))
			return float64(length)/8*(8+2) + phases - 1
		}
		bound := math.Min(n, 64*math.Sqrt(n)) + 2
		require.LessOrEqual(t, lost(length), bound, "%d by %d", k, length)
		if fewer := int(math.Ceil(n/float64(length))) - 1; fewer > 0 {
			require.Greater(t, lost((k/64+fewer-1)/fewer*64), bound, "%d by %d", k, length)
		}
	}
}

// TestWarpPhasesHold: a sum of which all but the first product are cut off by tensor cores keeps its bound, since phases are added up. With one phase it would not.
func TestWarpPhasesHold(t *testing.T) {
	interpreterOnly(t)
	const k, m, n = 4096, 1, 1
	_, p := describedFor(t, ampere, "affine_qmm_t_float16_t_gs_128_b_8_alN_false_batch_0")
	program := warpProgram{p: p, groups: [3]uint64{1, 1, 1}, k: k, m: m, n: n}
	var ok bool
	program.f, ok = warpFit(p, program.groups, k, 16, 1)
	require.True(t, ok)
	numbers := number16{ir.F16}
	// Products of the first group of weights are 1 and little more. Of each eight behind it seven are just below 2·2^−24, of which 2^−24 is left, and one is just below 2^−24: a sum
	// that is odd loses its last bit too, so that eight lose nine times 2^−24.
	codes, x := bytes.Repeat([]byte{128}, k), make([]byte, 2*k)
	scales, biases := make([]byte, 2*k/128), make([]byte, 2*k/128)
	for i := range k / 128 {
		binary.LittleEndian.PutUint16(scales[2*i:], numbers.of(0x1p-19))
	}
	binary.LittleEndian.PutUint16(scales, numbers.of(0x1p-9))
	values := make([]float64, k)
	put := func(i int, v float64) {
		weight := 128 * numbers.value(binary.LittleEndian.Uint16(scales[i/128*2:]))
		bits := numbers.of(v / weight)
		binary.LittleEndian.PutUint16(x[2*i:], bits)
		values[i] = numbers.value(bits) * weight
	}
	for i := 128; i < k; i++ {
		v := (2 - 0x1p-10) * 0x1p-24
		if i%64 >= 48 && i%2 == 1 { // threads of a four have 16 of 64 elements each, of which two are factors of eight products
			v /= 2
		}
		put(i, v)
	}
	put(0, 1)
	put(1, 0x1p-11) // half of what results are apart
	total := func() (sum float64) {
		for _, v := range values {
			sum += v
		}
		return sum
	}
	bound := (k + 2) * 0x1p-24 * total()
	put(2, 1+0x1p-11+1.03*bound-total()) // above the middle of two results: what loses more than that is rounded down
	require.Greater(t, total(), 1+0x1p-11+1.02*bound)
	run := func(text string) float64 {
		y, err := program.run(t, text, x, codes, scales, biases)
		require.NoError(t, err)
		return numbers.value(binary.LittleEndian.Uint16(y))
	}
	text := string(p.Emit(nvptx.Launch{Values: true}, program.f))
	require.Equal(t, 1+0x1p-10, run(text))
	phase := regexp.MustCompile(`(sub\.s32 \t%r\d+, %r\d+), ` + strconv.Itoa(ptxmatrix.WarpPhase(k)) + ";")
	require.Len(t, phase.FindAllString(text, -1), 2)
	require.Equal(t, 1.0, run(phase.ReplaceAllString(text, "$1, "+strconv.Itoa(k)+";")), "one phase")
}

// TestWarpFits: blocks have no more rows than there are, memory suffices on each GPU, and what copies cannot bring 16 bytes at a time is left to other code, as are inner indices so
// short that no phases keep the bound of their sums.
func TestWarpFits(t *testing.T) {
	blackwell := ptxmatrix.GPU{Major: 12, Memory: 100 << 10}
	for _, x := range sample.Of(t, "fits of products of warps", []struct {
		name string
		gpu  ptxmatrix.GPU
	}{
		{"affine_qmm_t_x3_float16_t_gs_32_b_4_alN_true", ada},
		{"affine_qmm_t_add_bfloat16_t_gs_64_b_8_alN_true", ada},
		{"affine_qmm_t_silu_mul_float16_t_gs_128_b_8_alN_true", ampere},
		{"affine_qmm_t_add_float16_t_gs_32_b_8_alN_true", blackwell},
	}, 2) {
		k, p := describedFor(t, x.gpu, x.name)
		require.Nil(t, ptxmatrix.Of(k, nil, ptxmatrix.GPU{}), "for no GPU there is code")
		group := map[bool]int{true: 32, false: 64}[strings.Contains(x.name, "gs_32")]
		fit := func(k, m, limit int, aligned bool) ptxmatrix.Fit {
			never := func(string) bool { return false } // else few rows are a vector's
			return p.Fit([3]uint64{64, 64, 1}, ptxmatrix.Given{Aligned: aligned, Multiprocessors: 84, Rows: limit, Still: never, Constant: func(name string) (int64, bool) {
				return map[string]int64{"K": int64(k), "M": int64(m)}[name], name == "K" && k > 0 || name == "M" && m > 0
			}})
		}
		for _, k := range []int{256, 1024, 2048, 4096, 11008, 14336} {
			for _, rows := range []struct{ m, limit, tile, most int }{{0, 0, 64, 0}, {8, 0, 16, 8}, {0, 8, 16, 8}, {17, 0, 32, 32}, {0, 64, 64, 64}, {4096, 0, 64, 0}} {
				f := fit(k, rows.m, rows.limit, true)
				require.True(t, f.Fits(), "%s %d", x.name, k)
				require.LessOrEqual(t, f.Rows, rows.tile)
				require.Equal(t, rows.most, f.Most)
				if rows.tile == 16 {
					require.Equal(t, 16, f.Rows)
				}
				grid, threads, shared := p.Launch([3]uint64{64, 64, 1}, f)
				all := uint64(4096)
				if f.Most > 0 {
					all = uint64(f.Most)
				}
				require.Equal(t, (all+uint64(f.Rows)-1)/uint64(f.Rows), grid[0])
				require.EqualValues(t, 256, threads)
				require.LessOrEqual(t, shared, uint32(x.gpu.Memory-1<<10))
				require.GreaterOrEqual(t, f.Slots, 3)
			}
		}
		require.Equal(t, 64, fit(4096, 0, 0, true).Rows)
		require.False(t, fit(4096, 0, 0, false).Fits(), "memory lies anywhere")
		require.False(t, fit(0, 0, 0, true).Fits(), "nobody knows how long the inner index is")
		require.False(t, fit(group, 0, 0, true).Fits(), "one phase")
		require.False(t, fit(group*33, 0, 0, true).Fits(), "scales of rows lie at odd places")
	}
}

// TestWarpWaits leaves out each instruction of the loop that orders threads and copies: the interpreter notices.
func TestWarpWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	const m, n = 2, 4
	_, p := describedFor(t, ada, "affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0")
	for _, x := range sample.Of(t, "products of warps whose waits are left out", [][3]int{{64, 1, 1280}, {16, 1, 1792}, {16, 4, 1280}}, 1) {
		rows, teams, k := x[0], x[1], x[2]
		program := warpProgram{p: p, groups: [3]uint64{1, 1, 1}, k: k, m: m, n: n}
		var ok bool
		program.f, ok = warpFit(p, program.groups, k, rows, teams)
		require.True(t, ok)
		require.Zero(t, k/64/teams%program.f.Slots, "what is read behind the last stage lies where results come")
		lines := strings.SplitAfter(string(p.Emit(nvptx.Launch{Values: true}, program.f)), "\n")
		r, numbers := rand.New(rand.NewPCG(3, 4)), number16{ir.F16}
		_, x := numbers.numbers(r, m*k, normal(1))
		w := affine(r, numbers, n, k, 32, 4)
		run := func(text string) error {
			_, err := program.run(t, text, x, w.codes, w.scales, w.biases)
			return err
		}
		require.NoError(t, run(strings.Join(lines, "")))
		var waits []int
		for i, l := range lines {
			switch op := strings.TrimSuffix(strings.Fields(l + " -")[0], ";"); op {
			case "cp.async.wait_group", "cp.async.commit_group", "bar.sync":
				waits = append(waits, i)
			case "bar.red.or.pred":
				require.Len(t, waits, 6, "a group, a wait and a barrier before the loop, and in it")
				for _, i := range waits {
					text := slices.Clone(lines)
					text[i] = ""
					require.Error(t, run(strings.Join(text, "")), "of %d rows without line %d: %s", rows, i+1, lines[i])
				}
			}
		}
		// The barriers around the results, and around the sums of teams.
		for _, i := range waits[len(waits)-2*min(teams, 2):] {
			require.Equal(t, "bar.sync", strings.Fields(lines[i])[0])
			text := slices.Clone(lines)
			text[i] = ""
			require.Error(t, run(strings.Join(text, "")), fmt.Sprint("without line ", i+1))
		}
	}
}
