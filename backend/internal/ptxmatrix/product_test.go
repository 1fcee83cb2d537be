package ptxmatrix_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxcode"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// compiled is where all tests find kernels, which are compiled once.
var compiled = sync.OnceValues(func() (*ptxcode.Source, error) {
	store.Use()
	cache, err := air.OpenCache("", 0)
	if err != nil {
		return nil, err
	}
	return ptxcode.New(cache, ""), nil
})

// described returns a kernel of the builtin library, and the code for it.
func described(t *testing.T, function string, constants ...ir.FunctionConstant) (*air.Kernel, ptxmatrix.Kernel) {
	t.Helper()
	return describedFor(t, ptxmatrix.Hopper, function, constants...)
}

func describedFor(t *testing.T, gpu ptxmatrix.GPU, function string, constants ...ir.FunctionConstant) (*air.Kernel, ptxmatrix.Kernel) {
	t.Helper()
	codes, err := compiled()
	require.NoError(t, err)
	c, err := codes.Find(t.Context(), &ir.Kernel{Function: function, Constants: constants})
	require.NoError(t, err)
	p := ptxmatrix.Of(c.Kernel, constants, gpu)
	require.NotNil(t, p, function)
	return c.Kernel, p
}

// number16 are numbers of a type of 16 bits, or of f32.
type number16 struct{ dtype ir.DType }

// size is how many bytes a number has.
func (n number16) size() int {
	if n.dtype == ir.F32 {
		return 4
	}
	return 2
}

// put writes a number behind others, and at reads one.
func (n number16) put(to []byte, v float64) []byte {
	if n.dtype == ir.F32 {
		return binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(v)))
	}
	return binary.LittleEndian.AppendUint16(to, n.of(v))
}

func (n number16) at(from []byte, i int) float64 {
	if n.dtype == ir.F32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:])))
	}
	return n.value(binary.LittleEndian.Uint16(from[2*i:]))
}

// round is the nearest number of the type.
func (n number16) round(v float64) float64 { return n.at(n.put(nil, v), 0) }

// theNaN is the one that is stored.
func (n number16) theNaN() []byte {
	return map[ir.DType][]byte{ir.F16: {0, 0x7E}, ir.BF16: {0xC0, 0x7F}, ir.F32: {0, 0, 0xC0, 0x7F}}[n.dtype]
}

func (n number16) of(v float64) uint16 {
	if n.dtype == ir.F16 {
		return term.F16Bits(v)
	}
	return uint16(math.Float32bits(float32(term.BF16Round(v))) >> 16)
}

func (n number16) value(bits uint16) float64 {
	if n.dtype == ir.F16 {
		return term.F16Value(bits)
	}
	return float64(math.Float32frombits(uint32(bits) << 16))
}

// ulp is the distance of numbers of the type about as large as v.
func (n number16) ulp(v float64) float64 {
	if n.dtype == ir.F32 {
		v := float32(math.Abs(v))
		return float64(math.Nextafter32(v, math.MaxFloat32)) - float64(v)
	}
	bits := n.of(math.Abs(v))
	return n.value(bits+1) - n.value(bits)
}

// numbers are random numbers, as values and as memory.
func (n number16) numbers(r *rand.Rand, count int, next func(*rand.Rand) float64) (values []float64, bytes []byte) {
	for range count {
		v := n.round(next(r))
		values, bytes = append(values, v), n.put(bytes, v)
	}
	return values, bytes
}

func normal(scale float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return r.NormFloat64() * scale }
}

// launched runs a kernel's code on the interpreter of PTX. Arguments are memory or numbers, by their names.
func launched(t *testing.T, m *ptxrun.Memory, k *air.Kernel, p ptxmatrix.Kernel, launch nvptx.Launch, aligned bool, groups, group [3]uint64, args map[string]any) {
	t.Helper()
	launchedOn(t, 4, m, k, p, launch, aligned, groups, group, args)
}

// launchedOn does so with the blocks that a GPU with so many multiprocessors would get.
func launchedOn(t *testing.T, multiprocessors int, m *ptxrun.Memory, k *air.Kernel, p ptxmatrix.Kernel, launch nvptx.Launch, aligned bool, groups, group [3]uint64, args map[string]any) {
	t.Helper()
	launchedAs(t, p.Fit, multiprocessors, m, k, p, launch, aligned, groups, group, args)
}

// launchedAs does so in a way that a function chooses.
func launchedAs(t *testing.T, fit func([3]uint64, ptxmatrix.Given) ptxmatrix.Fit, multiprocessors int, m *ptxrun.Memory, k *air.Kernel, p ptxmatrix.Kernel, launch nvptx.Launch, aligned bool, groups, group [3]uint64, args map[string]any) {
	t.Helper()
	known := map[string]bool{} // what was asked for, and does not move
	f := fit(groups, ptxmatrix.Given{Aligned: aligned, Multiprocessors: multiprocessors, Constant: func(name string) (int64, bool) {
		v, ok := args[name].(int)
		if ok = ok && !(launch.Moving && name == "M"); ok {
			known[name] = true
		}
		return int64(v), ok
	}, Still: func(name string) bool {
		known[name] = true
		return true
	}})
	require.True(t, f.Fits())
	text := p.Emit(launch, f)
	program, err := ptxrun.Parse(text)
	require.NoError(t, err)
	var params []uint64
	var moved uint64
	var table []byte
	for i := range k.Args {
		a := &k.Args[i]
		if a.Attribute != "" {
			continue
		}
		v := uint64(0)
		switch x := args[a.Name].(type) {
		case uint64:
			v = x
		case int:
			v = uint64(x)
		case float32:
			v = uint64(math.Float32bits(x))
		}
		switch {
		case !a.ByValue() || launch.Values:
		case a.Size == 4:
			v = m.Add(binary.LittleEndian.AppendUint32(nil, uint32(v)))
		default:
			v = m.Add(binary.LittleEndian.AppendUint64(nil, v))
		}
		if launch.Moving && len(params)%2 == 0 && !known[a.Name] { // half of them are added by the table
			moved |= 1 << len(params)
			table = binary.LittleEndian.AppendUint64(table, v-uint64(len(params)))
			v = uint64(len(params))
		} else {
			table = binary.LittleEndian.AppendUint64(table, 12345)
		}
		params = append(params, v)
	}
	for i := range groups {
		n := groups[i] * group[i]
		if launch.Moving {
			moved |= 1 << len(params)
			table = binary.LittleEndian.AppendUint64(table, n)
			n = 0
		}
		params = append(params, n)
	}
	params = append(params, group[0], group[1], group[2])
	if launch.Moving {
		params = append(params, m.Add(table), moved)
	}
	grid, threads, shared := p.Launch(groups, f)
	blocks := [3]uint32{uint32(grid[0]), uint32(grid[1]), uint32(grid[2])}
	if launch.Moving && !strings.HasPrefix(k.Name, "sdpa") { // the grid is the largest that params allow; heads are as many always
		blocks[0] += uint32(max(1, f.Splits))
	}
	require.NoError(t, program.Run(m, ptxrun.Launch{Params: params, Grid: blocks, Block: threads, Shared: int(shared)}))
	if launch.Programmatic && ptxrun.Elsewhere == nil {
		require.EqualValues(t, blocks[0]*blocks[1]*blocks[2]*threads, program.Calls["wait"], "not all threads wait for the launches before, and once")
	}
}

// interpreterOnly skips a test where a GPU runs programs: of what is unordered, and of how much tensor cores may lose, the interpreter takes the worst.
func interpreterOnly(t *testing.T) {
	if ptxrun.Elsewhere != nil {
		t.Skip("a GPU need not show what may go wrong")
	}
}

// GPUs whose tensor cores take products of one warp only.
var ampere, ada = ptxmatrix.GPU{Major: 8, Memory: 164 << 10}, ptxmatrix.GPU{Major: 8, Minor: 9, Memory: 100 << 10}

// matrix is a random matrix of affine codes.
type matrix struct {
	codes, scales, biases []byte
	w                     []float64
}

func affine(r *rand.Rand, n number16, rows, k, group, bits int) (m matrix) {
	m.codes = make([]byte, rows*k*bits/8)
	for i := range m.codes {
		m.codes[i] = byte(r.Uint32())
	}
	// In some rows scale and bias are too far apart for one rounding to be as good as two; in one all biases are 0.
	i, j := 0, 0
	scales, sb := n.numbers(r, rows*k/group, func(r *rand.Rand) float64 {
		i++
		return r.NormFloat64() * []float64{0.05, 0.05, 0x1p-20, 30, 0.05}[(i-1)/(k/group)%5]
	})
	biases, bb := n.numbers(r, rows*k/group, func(r *rand.Rand) float64 {
		j++
		return r.NormFloat64() * []float64{0.4, 0, 2, 0x1p-14, 0.4}[(j-1)/(k/group)%5]
	})
	m.scales, m.biases = sb, bb
	for i := range rows * k {
		q := int(m.codes[i*bits/8])
		if bits == 4 {
			q = q >> (4 * (i % 2)) & 15
		}
		w := float32(scales[i/group])*float32(q) + float32(biases[i/group])
		m.w = append(m.w, n.round(float64(w)))
	}
	return m
}

// plain is a random matrix of numbers of 16 bits. Some rows have numbers that are not finite.
func plain(r *rand.Rand, n number16, rows, k int) (m matrix) {
	i := -1
	m.w, m.codes = n.numbers(r, rows*k, func(r *rand.Rand) float64 {
		switch i++; {
		case i == (rows/2)*k+k/2:
			return math.Inf(1)
		case i == (rows-1)*k+k-1:
			return math.NaN()
		}
		return r.NormFloat64() * 0.1
	})
	return m
}

// TestProducts runs products with ragged edges, with ends of the inner index that fill no stage, with all that is done with
// results, with arguments by value, in memory, and added to by a table, and with memory that lies at odd places. They keep the
// bound of their sums; a row with NaN and one with infinities stay what they are, and spoil no other.
func TestProducts(t *testing.T) {
	type product struct {
		name        string
		k, rows     int
		n           []int
		launch      nvptx.Launch
		odd         bool
		dtype       ir.DType
		group, bits int
		form        string
		// Rows of a block, and how many blocks share the inner index; 0: what Fit chooses. few: that is code for few rows.
		tile, splits int
	}
	const (
		few   = -1
		warps = -1 // of splits: tensor cores take products of one warp only; times how many teams share the inner index
	)
	for _, x := range sample.Kernels(t, "products of matrices", []product{
		{"affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0", 512, 70, []int{270}, nvptx.Launch{Values: true}, false, ir.F16, 32, 4, "", 64, warps},
		{"affine_qmm_t_float16_t_gs_64_b_4_alN_false_batch_0", 4352, 3, []int{9}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 64, 4, "", 16, warps},
		{"affine_qmm_t_bfloat16_t_gs_128_b_4_alN_false_batch_0", 768, 6, []int{33}, nvptx.Launch{Moving: true}, false, ir.BF16, 128, 4, "", 32, warps},
		{"affine_qmm_t_float16_t_gs_32_b_8_alN_false_batch_0", 15360, 4, []int{5}, nvptx.Launch{}, false, ir.F16, 32, 8, "", 16, warps},
		{"affine_qmm_t_x2_float16_t_gs_128_b_4_alN_false", 1024, 37, []int{129, 65}, nvptx.Launch{Values: true, Moving: true}, false, ir.F16, 128, 4, "x2", 32, warps},
		{"affine_qmm_t_x3_bfloat16_t_gs_32_b_4_alN_false", 192, 9, []int{40, 8, 258}, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, false, ir.BF16, 32, 4, "x3", 16, warps},
		{"affine_qmm_t_add_float16_t_gs_64_b_8_alN_false", 384, 73, []int{136}, nvptx.Launch{Moving: true}, false, ir.F16, 64, 8, "add", 64, warps},
		{"affine_qmm_t_add_bfloat16_t_gs_32_b_8_alN_false", 320, 33, []int{65}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.BF16, 32, 8, "add", 64, warps},
		{"affine_qmm_t_silu_mul_float16_t_gs_32_b_4_alN_false", 384, 66, []int{72}, nvptx.Launch{Values: true}, false, ir.F16, 32, 4, "silu", 0, warps},
		{"affine_qmm_t_silu_mul_bfloat16_t_gs_64_b_8_alN_false", 128, 20, []int{133}, nvptx.Launch{Values: true}, false, ir.BF16, 64, 8, "silu", 0, warps},
		{"affine_qmm_t_add_float16_t_gs_32_b_4_alN_false", 1024, 19, []int{130}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 32, 4, "add", 16, 4 * warps},
		{"affine_qmm_t_silu_mul_float16_t_gs_128_b_4_alN_false", 1024, 39, []int{150}, nvptx.Launch{Values: true}, false, ir.F16, 128, 4, "silu", 32, 2 * warps},
		{"affine_qmm_t_x3_bfloat16_t_gs_64_b_8_alN_false", 2048, 9, []int{40, 8, 70}, nvptx.Launch{Values: true, Moving: true}, false, ir.BF16, 64, 8, "x3", 16, 4 * warps},
		{"affine_qmm_t_silu_mul_bfloat16_t_gs_32_b_4_alN_false", 1024, 70, []int{33}, nvptx.Launch{Moving: true}, false, ir.BF16, 32, 4, "silu", 64, 2 * warps},
		{"affine_qmm_t_x2_float16_t_gs_32_b_8_alN_false", 512, 66, []int{129, 65}, nvptx.Launch{Values: true}, false, ir.F16, 32, 8, "x2", 32, 2 * warps},
		{"affine_qmm_t_add_float16_t_gs_32_b_4_alN_false", 1536, 2, []int{201}, nvptx.Launch{Values: true}, false, ir.F16, 32, 4, "add", few, warps},
		{"affine_qmm_t_silu_mul_bfloat16_t_gs_64_b_4_alN_false", 1280, 3, []int{72}, nvptx.Launch{Moving: true}, false, ir.BF16, 64, 4, "silu", few, warps},
		{"gemm_nt_float16", 512, 70, []int{270}, nvptx.Launch{Values: true}, false, ir.F16, 0, 16, "", 64, warps},
		{"gemm_nt_bfloat16", 4160, 3, []int{9}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.BF16, 0, 16, "", 16, warps},
		{"gemm_nt_x3_float16", 512, 40, []int{129, 1, 65}, nvptx.Launch{Values: true, Moving: true}, false, ir.F16, 0, 16, "x3", 32, 2 * warps},
		{"gemm_nt_add_bfloat16", 1024, 33, []int{70}, nvptx.Launch{Moving: true}, false, ir.BF16, 0, 16, "add", 16, 4 * warps},
		{"gemm_nt_silu_mul_float16", 192, 66, []int{150}, nvptx.Launch{Values: true}, false, ir.F16, 0, 16, "silu", 0, warps},
		// By warpgroups.
		{"affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0", 96, 35, []int{41}, nvptx.Launch{Values: true}, false, ir.F16, 32, 4, "", 0, 0},
		{"affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0", 512, 70, []int{270}, nvptx.Launch{Values: true}, false, ir.F16, 32, 4, "", 0, 0},
		{"affine_qmm_t_bfloat16_t_gs_64_b_8_alN_false_batch_0", 1024, 40, []int{30}, nvptx.Launch{}, false, ir.BF16, 64, 8, "", 0, 0},
		{"affine_qmm_t_float16_t_gs_64_b_4_alN_false_batch_0", 8320, 3, []int{9}, nvptx.Launch{Values: true}, false, ir.F16, 64, 4, "", 0, 0},
		{"affine_qmm_t_bfloat16_t_gs_128_b_4_alN_false_batch_0", 256, 6, []int{33}, nvptx.Launch{Values: true}, false, ir.BF16, 128, 4, "", 0, 0},
		{"affine_qmm_t_x2_float16_t_gs_128_b_4_alN_false", 1024, 9, []int{129, 65}, nvptx.Launch{Values: true, Moving: true}, false, ir.F16, 128, 4, "x2", 0, 0},
		{"affine_qmm_t_x3_bfloat16_t_gs_32_b_4_alN_false", 160, 9, []int{40, 8, 258}, nvptx.Launch{Values: true, Programmatic: true}, true, ir.BF16, 32, 4, "x3", 0, 0},
		{"affine_qmm_t_add_float16_t_gs_64_b_8_alN_false", 320, 33, []int{136}, nvptx.Launch{Moving: true}, true, ir.F16, 64, 8, "add", 0, 0},
		{"affine_qmm_t_silu_mul_float16_t_gs_32_b_4_alN_false", 384, 66, []int{72}, nvptx.Launch{Values: true}, false, ir.F16, 32, 4, "silu", 0, 0},
		{"affine_qmm_t_silu_mul_bfloat16_t_gs_32_b_8_alN_false", 64, 5, []int{33}, nvptx.Launch{Values: true}, true, ir.BF16, 32, 8, "silu", 0, 0},
		{"affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0", 1024, 3, []int{300}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 32, 4, "", 8, 2},
		{"affine_qmm_t_x3_bfloat16_t_gs_64_b_4_alN_false", 2048, 11, []int{40, 8, 258}, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, false, ir.BF16, 64, 4, "x3", 16, 4},
		{"affine_qmm_t_add_float16_t_gs_64_b_8_alN_false", 4096, 7, []int{136}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 64, 8, "add", 8, 8},
		{"affine_qmm_t_silu_mul_float16_t_gs_128_b_4_alN_false", 2304, 35, []int{150}, nvptx.Launch{Values: true}, false, ir.F16, 128, 4, "silu", 64, 2},
		{"affine_qmm_t_silu_mul_bfloat16_t_gs_32_b_8_alN_false", 1056, 20, []int{33}, nvptx.Launch{Moving: true}, true, ir.BF16, 32, 8, "silu", 32, 2},
		{"affine_qmm_t_x2_float16_t_gs_128_b_4_alN_false", 4096, 70, []int{129, 65}, nvptx.Launch{Values: true}, false, ir.F16, 128, 4, "x2", 128, 8},
		{"affine_qmm_t_bfloat16_t_gs_32_b_8_alN_false_batch_0", 4096, 33, []int{70}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.BF16, 32, 8, "", 16, 4},
		{"affine_qmm_t_silu_mul_float16_t_gs_32_b_4_alN_false", 2048, 9, []int{140}, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, false, ir.F16, 32, 4, "silu", 16, 2},
		{"affine_qmm_t_add_bfloat16_t_gs_32_b_4_alN_false", 4096, 40, []int{65}, nvptx.Launch{Values: true}, false, ir.BF16, 32, 4, "add", 32, 8},
		{"affine_qmm_t_add_float16_t_gs_32_b_4_alN_false", 16640, 2, []int{9}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 32, 4, "add", 8, 2},
		{"affine_qmm_t_x3_float16_t_gs_32_b_8_alN_false", 3008, 5, []int{9, 4, 300}, nvptx.Launch{Programmatic: true}, true, ir.F16, 32, 8, "x3", 8, 1},
		{"affine_qmm_t_float16_t_gs_64_b_4_alN_false_batch_0", 1024, 18, []int{260}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 64, 4, "", 64, 1},
		{"affine_qmm_t_add_float16_t_gs_32_b_4_alN_false", 1536, 2, []int{201}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 32, 4, "add", few, 0},
		{"affine_qmm_t_silu_mul_float16_t_gs_32_b_4_alN_false", 4096, 7, []int{61}, nvptx.Launch{Values: true, Programmatic: true, Moving: true}, false, ir.F16, 32, 4, "silu", few, 0},
		{"affine_qmm_t_silu_mul_bfloat16_t_gs_64_b_4_alN_false", 1280, 3, []int{72}, nvptx.Launch{Moving: true}, false, ir.BF16, 64, 4, "silu", few, 0},
		{"affine_qmm_t_float16_t_gs_128_b_4_alN_false_batch_0", 768, 5, []int{37}, nvptx.Launch{Values: true}, false, ir.F16, 128, 4, "", few, 0},
		{"affine_qmm_t_add_bfloat16_t_gs_32_b_4_alN_false", 2560, 1, []int{55}, nvptx.Launch{Values: true, Moving: true}, false, ir.BF16, 32, 4, "add", few, 0},
		{"affine_qmm_t_add_float16_t_gs_64_b_4_alN_false", 14336, 4, []int{40}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 64, 4, "add", few, 0},
		{"affine_qmm_t_add_float16_t_gs_32_b_4_alN_false", 14336, 7, []int{70}, nvptx.Launch{Values: true, Programmatic: true, Moving: true}, false, ir.F16, 32, 4, "add", few, 0},
		{"affine_qmm_t_bfloat16_t_gs_128_b_4_alN_false_batch_0", 11776, 8, []int{41}, nvptx.Launch{}, false, ir.BF16, 128, 4, "", few, 0},
		{"affine_qmm_t_x3_float16_t_gs_32_b_4_alN_false", 1024, 5, []int{40, 16, 258}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 32, 4, "x3", few, 0},
		{"affine_qmm_t_x2_bfloat16_t_gs_64_b_4_alN_false", 1792, 2, []int{129, 65}, nvptx.Launch{Values: true, Moving: true}, false, ir.BF16, 64, 4, "x2", few, 0},
		{"affine_qmm_t_float16_t_gs_32_b_4_alN_true_batch_0", 512, 8, []int{160}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 32, 4, "", few, 0},
		// Of f32.
		{"affine_qmm_t_float_gs_32_b_4_alN_false_batch_0", 96, 70, []int{41}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F32, 32, 4, "", 64, 1},
		{"affine_qmm_t_float_gs_64_b_8_alN_false_batch_0", 448, 5, []int{9}, nvptx.Launch{Values: true}, false, ir.F32, 64, 8, "", 64, 1},
		{"affine_qmm_t_x2_float_gs_128_b_4_alN_false", 384, 35, []int{129, 65}, nvptx.Launch{Values: true, Moving: true}, false, ir.F32, 128, 4, "x2", 32, 1},
		{"affine_qmm_t_x3_float_gs_32_b_8_alN_false", 160, 9, []int{40, 8, 258}, nvptx.Launch{Programmatic: true}, true, ir.F32, 32, 8, "x3", 32, 1},
		{"affine_qmm_t_add_float_gs_64_b_4_alN_false", 320, 66, []int{136}, nvptx.Launch{Moving: true}, true, ir.F32, 64, 4, "add", 64, 1},
		{"affine_qmm_t_silu_mul_float_gs_32_b_4_alN_false", 224, 67, []int{140}, nvptx.Launch{Values: true}, true, ir.F32, 32, 4, "silu", 64, 1},
		{"affine_qmm_t_silu_mul_float_gs_128_b_8_alN_false", 128, 5, []int{72}, nvptx.Launch{Values: true}, false, ir.F32, 128, 8, "silu", 32, 1},
		// Weights of 16 bits.
		{"gemm_nt_float16", 200, 35, []int{41}, nvptx.Launch{Values: true}, false, ir.F16, 0, 16, "", 0, 0},
		{"gemm_nt_bfloat16", 512, 70, []int{270}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.BF16, 0, 16, "", 128, 1},
		{"gemm_nt_float16", 8, 3, []int{9}, nvptx.Launch{}, false, ir.F16, 0, 16, "", 0, 0},
		{"gemm_nt_float16", 136, 130, []int{33}, nvptx.Launch{Values: true, Moving: true}, true, ir.F16, 0, 16, "", 0, 0},
		{"gemm_nt_bfloat16", 8264, 3, []int{9}, nvptx.Launch{Values: true}, false, ir.BF16, 0, 16, "", 8, 1},
		{"gemm_nt_x2_float16", 320, 9, []int{129, 65}, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, false, ir.F16, 0, 16, "x2", 16, 1},
		{"gemm_nt_x2_bfloat16", 1024, 40, []int{31, 257}, nvptx.Launch{Programmatic: true}, true, ir.BF16, 0, 16, "x2", 64, 4},
		{"gemm_nt_x3_bfloat16", 2048, 11, []int{40, 8, 258}, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, false, ir.BF16, 0, 16, "x3", 16, 4},
		{"gemm_nt_x3_float16", 96, 66, []int{300, 1, 65}, nvptx.Launch{Values: true}, false, ir.F16, 0, 16, "x3", 0, 0},
		{"gemm_nt_add_float16", 2504, 7, []int{136}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.F16, 0, 16, "add", 8, 8},
		{"gemm_nt_add_bfloat16", 16520, 2, []int{9}, nvptx.Launch{Values: true, Programmatic: true}, false, ir.BF16, 0, 16, "add", 8, 2},
		{"gemm_nt_add_float16", 1024, 140, []int{65}, nvptx.Launch{Moving: true}, false, ir.F16, 0, 16, "add", 128, 2},
		{"gemm_nt_bfloat16", 328, 270, []int{135}, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, false, ir.BF16, 0, 16, "", 256, 1},
		{"gemm_nt_x3_float16", 72, 40, []int{129, 64, 1}, nvptx.Launch{Values: true}, true, ir.F16, 0, 16, "x3", 256, 1},
		{"gemm_nt_add_bfloat16", 1024, 257, []int{70}, nvptx.Launch{Values: true}, false, ir.BF16, 0, 16, "add", 256, 4},
		{"gemm_nt_silu_mul_float16", 264, 100, []int{70}, nvptx.Launch{Values: true}, false, ir.F16, 0, 16, "silu", 256, 1},
		{"gemm_nt_silu_mul_float16", 384, 66, []int{150}, nvptx.Launch{Values: true}, false, ir.F16, 0, 16, "silu", 0, 0},
		{"gemm_nt_silu_mul_bfloat16", 1096, 20, []int{33}, nvptx.Launch{Moving: true}, true, ir.BF16, 0, 16, "silu", 32, 2},
		{"gemm_nt_silu_mul_float16", 1984, 9, []int{140}, nvptx.Launch{Values: true, Moving: true, Programmatic: true}, false, ir.F16, 0, 16, "silu", 16, 2},
	}, func(x product) string {
		switch {
		case x.tile == few:
			return "few rows"
		case x.splits < 0:
			return "warps"
		}
		return fmt.Sprint(x.bits == 16, x.dtype)
	}) {
		t.Run(fmt.Sprint(x.name, " ", x.k, " ", x.splits), func(t *testing.T) {
			gpu := ptxmatrix.Hopper
			if x.splits < 0 {
				gpu = ada
			}
			k, p := describedFor(t, gpu, x.name)
			if x.tile == few {
				anySize(t)
			}
			r := rand.New(rand.NewPCG(1, uint64(x.k)))
			n := number16{x.dtype}
			m := &ptxrun.Memory{}
			add := func(b []byte) uint64 {
				if !x.odd {
					return m.Add(b)
				}
				return m.Add(append(make([]byte, n.size()), b...)) + uint64(n.size())
			}
			values, _ := n.numbers(r, x.rows*x.k, normal(1))
			if x.dtype == ir.F32 { // numbers whose parts are the smallest of bf16, and some that are too large for them
				for i := range x.k {
					values[i], values[x.k+i] = n.round(values[i]*0x1p-117), n.round(values[x.k+i]*0x1p112)
				}
			}
			values[min(3, x.rows-1)*x.k+5], values[max(0, min(4, x.rows-2))*x.k+7] = math.NaN(), math.Inf(-1)
			var bytes []byte
			for _, v := range values {
				bytes = n.put(bytes, v)
			}
			args := map[string]any{"x": add(bytes), "K": x.k, "M": x.rows}
			names := map[string][]string{"": {""}, "add": {""}, "x2": {"0", "1"}, "x3": {"0", "1", "2"}, "silu": {"_gate", "_up"}}[x.form]
			var ms []matrix
			var out [][]byte
			wide, tiles, results := 0, 0, len(x.n)
			for i, side := range names {
				cols := x.n[min(i, len(x.n)-1)]
				w := matrix{}
				if x.bits == 16 {
					w = plain(r, n, cols, x.k)
				} else {
					w = affine(r, n, cols, x.k, x.group, x.bits)
				}
				ms = append(ms, w)
				args["w"+side], args["scales"+side], args["biases"+side] = add(w.codes), add(w.scales), add(w.biases)
				if i < results {
					out = append(out, make([]byte, n.size()*(x.rows*cols+1)))
					end := side
					if x.form == "silu" {
						end = ""
					}
					args["n"+end], args["N"] = cols, cols
					args["y"+end] = m.Add(out[i])
					if x.odd {
						args["y"+end], out[i] = m.Add(out[i])+uint64(n.size()), out[i][n.size():]
					}
				}
				wide += (cols + 63) / 64
				tiles += (cols + 31) / 32
			}
			var residual []float64
			if x.form == "add" {
				var rb []byte
				residual, rb = n.numbers(r, x.rows*x.n[0], normal(1))
				args["r"] = add(rb)
			}
			groups := [3]uint64{uint64(x.rows+63) / 64, uint64(wide), 1}
			switch {
			case x.form == "silu" && x.bits == 16:
				groups = [3]uint64{uint64(x.n[0]+31) / 32, uint64(x.rows+31) / 32, 1}
			case x.form == "" || x.bits == 16:
				groups = [3]uint64{uint64(tiles), uint64(x.rows+31) / 32, 1}
			case x.form == "silu":
				groups[1] = uint64(x.n[0]+31) / 32
			}
			launchedAs(t, func(groups [3]uint64, given ptxmatrix.Given) ptxmatrix.Fit {
				if x.tile <= 0 {
					if x.tile == few {
						given.Rows = 8
					}
					f := p.Fit(groups, given)
					require.Equal(t, x.tile == few, f.Teams > 0, "%+v", f)
					return f
				}
				f, ok := ptxmatrix.FitOf(p, groups, given, x.tile, max(x.splits, -x.splits))
				require.True(t, ok)
				return f
			}, 4, m, k, p, x.launch, !x.odd, groups, [3]uint64{32, 2, 2}, args)
			dot := func(w matrix, i, j int) (sum, bound float64) {
				for e := range x.k {
					v := values[i*x.k+e] * w.w[j*x.k+e]
					sum, bound = sum+v, bound+math.Abs(v)
				}
				return sum, bound * float64(x.k+2) * 0x1p-24
			}
			for a, o := range out {
				cols := x.n[a]
				for i := range x.rows {
					for j := range cols {
						at := i*cols + j
						got := n.at(o, at)
						want, bound := dot(ms[a], i, j)
						if x.dtype == ir.F32 && bound > float64(x.k+2)*0x1p-24*math.MaxFloat32 { // then nothing is said
							continue
						}
						switch x.form {
						case "add":
							bound += n.ulp(want) / 2
							want += residual[at]
						case "silu":
							up, ub := dot(ms[1], i, j)
							gate := want
							silu := func(g float64) float64 { return g / (1 + math.Exp(-g)) }
							want = silu(gate) * up
							if want = n.round(want); math.IsInf(want, 0) {
								break
							}
							bound = math.Abs(up)*(1.1*(bound+n.ulp(gate)/2)+2*n.ulp(silu(gate))) + math.Abs(silu(gate))*(ub+n.ulp(up)/2)
							if x.dtype != ir.F16 {
								bound += 4 * n.ulp(want)
							}
						}
						if math.IsNaN(want) || math.IsInf(want, 0) {
							if want != want {
								require.Equal(t, n.theNaN(), o[at*n.size():][:n.size()], "row %d, column %d", i, j)
							} else {
								require.Equal(t, want, got, "row %d, column %d", i, j)
							}
							continue
						}
						require.InDelta(t, want, got, bound+n.ulp(want)*0.51, "array %d, row %d, column %d", a, i, j)
					}
				}
			}
		})
	}
}

// TestProductFits: of few rows blocks share the inner index, as many as there are multiprocessors for; each has stages that begin where a chunk of scales does, at least four. Their tiles are
// no taller than the rows, and memory suffices.
func TestProductFits(t *testing.T) {
	fewest(t, math.MaxInt64) // no code for few rows
	all := map[string]ptxmatrix.Kernel{}
	for _, x := range sample.Of(t, "fits of products", []struct {
		name       string
		k, columns int
		m, limit   int // rows, if they are known; how many there are at most
		tile       int
		splits     int
		part       int
		blocks     uint64
	}{
		// What was fastest on an H200 of 2, 8 and 64 rows.
		{"x3_float16_t_gs_32_b_4", 4096, 6144, 2, 0, 8, 4, 1024, 104},
		{"add_float16_t_gs_32_b_4", 4096, 4096, 2, 0, 8, 4, 1024, 64},
		{"silu_mul_float16_t_gs_32_b_4", 4096, 14336, 2, 0, 8, 1, 4096, 112},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 2, 0, 8, 4, 3584, 64},
		{"x2_float16_t_gs_32_b_4", 4096, 128256, 8, 0, 8, 1, 4096, 502},
		{"add_float16_t_gs_32_b_4", 4096, 4096, 0, 8, 8, 4, 1024, 64},
		{"x3_float16_t_gs_32_b_4", 4096, 6144, 0, 64, 64, 4, 1024, 104},
		{"add_float16_t_gs_32_b_4", 4096, 4096, 64, 0, 64, 4, 1024, 64},
		{"silu_mul_float16_t_gs_32_b_4", 4096, 14336, 64, 0, 64, 1, 4096, 112},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 64, 0, 64, 4, 3584, 64},
		{"x2_float16_t_gs_32_b_4", 4096, 128256, 64, 0, 64, 1, 4096, 502},
		// Others.
		{"add_float16_t_gs_32_b_4", 14336, 4096, 9, 0, 16, 4, 3584, 64},
		{"add_bfloat16_t_gs_128_b_4", 4096, 4096, 30, 0, 32, 4, 1024, 64},
		{"add_float16_t_gs_64_b_8", 14336, 4096, 0, 64, 64, 4, 3584, 64},
		{"add_float16_t_gs_32_b_4", 4096, 2048, 8, 0, 8, 8, 512, 64},
		{"add_float16_t_gs_32_b_4", 4096, 4096, 0, 0, 128, 1, 4096, 512},
		{"add_float16_t_gs_32_b_4", 512, 256, 8, 0, 8, 1, 512, 1},
		{"add_float16_t_gs_32_b_4", 14336, 4096, 4096, 0, 128, 2, 7168, 1024},
		// Weights of 16 bits.
		{"float16", 4096, 14336, 512, 0, 256, 1, 4096, 224},
		{"add_float16", 4096, 4096, 512, 0, 256, 2, 2048, 128},
		{"add_bfloat16", 14336, 4096, 512, 0, 256, 2, 7168, 128},
		{"x3_float16", 4096, 6144, 512, 0, 256, 1, 4096, 100},
		{"silu_mul_bfloat16", 4096, 14336, 512, 0, 256, 1, 4096, 448},
		{"float16", 4096, 14336, 384, 0, 128, 2, 2048, 336},
		{"x2_bfloat16", 4096, 28672, 128, 0, 128, 1, 4096, 113},
		{"silu_mul_float16", 4096, 14336, 0, 64, 64, 1, 4096, 112},
		{"x3_float16", 4096, 6144, 0, 8, 8, 4, 1024, 104},
		{"add_float16", 4104, 4096, 8, 0, 8, 4, 1088, 64},
	}, 3) {
		dense := !strings.Contains(x.name, "_gs_")
		p := all[x.name]
		if p == nil {
			if name := "affine_qmm_t_" + x.name + "_alN_true"; dense {
				_, p = described(t, "gemm_nt_"+x.name)
			} else {
				_, p = described(t, name)
			}
			all[x.name] = p
		}
		groups := [3]uint64{64, uint64(x.columns / 64), 1}
		switch {
		case dense:
			groups = [3]uint64{uint64(x.columns / 32), uint64(x.m+x.limit+31) / 32, 1}
		case strings.HasPrefix(x.name, "silu"):
			groups[1] *= 2
		}
		given := ptxmatrix.Given{Aligned: true, Multiprocessors: 132, Rows: x.limit, Still: func(string) bool { return true }, Constant: func(name string) (int64, bool) {
			if name == "M" {
				return int64(x.m), x.m > 0
			}
			return map[string]int64{"K": int64(x.k), "N": int64(x.columns), "n0": 4096, "n1": 1024, "n2": 1024}[name], true
		}}
		f := p.Fit(groups, given)
		grid, threads, shared := p.Launch(groups, f)
		require.Equal(t, []any{x.tile, x.splits, x.part, x.blocks}, []any{f.Rows, f.Splits, f.Part, grid[0] * grid[1]}, "%+v %+v", x, f)
		require.Zero(t, grid[0]%uint64(f.Splits), "clusters lie along the first dimension")
		require.EqualValues(t, map[bool]int{false: 512, true: 256}[f.Rows == 256], threads)
		require.LessOrEqual(t, shared, uint32(227<<10))
		require.True(t, f.Still)
		given.Still = func(name string) bool {
			return !strings.HasPrefix(name, map[bool]string{false: "scales", true: "w"}[dense])
		}
		require.False(t, p.Fit(groups, given).Still, "what moves is not read before the wait")
	}
	// Whatever is asked for fits memory, with parts that all have something to do.
	for name, p := range all {
		for _, k := range []int{128, 1024, 2304, 4096, 8320, 11008, 32768, 1 << 20} {
			for _, rows := range []int{8, 16, 32, 64, 128, 256} {
				for _, splits := range []int{1, 2, 4, 8} {
					f, ok := ptxmatrix.FitOf(p, [3]uint64{1, 4, 1}, ptxmatrix.Given{Aligned: true, Multiprocessors: 132, Still: func(string) bool { return true }, Constant: func(string) (int64, bool) { return int64(k), true }}, rows, splits)
					if !ok {
						continue
					}
					_, _, shared := p.Launch([3]uint64{1, 4, 1}, f)
					require.LessOrEqual(t, shared, uint32(227<<10), "%s %d %+v", name, k, f)
					require.Less(t, (splits-1)*f.Part, k, "%s %d %+v", name, k, f)
					require.GreaterOrEqual(t, splits*f.Part, k, "%s %d %+v", name, k, f)
					require.Equal(t, f.Part > 8192, f.Long, "%s %d %+v", name, k, f)
				}
			}
		}
	}
}

// TestDenseFits: weights of 16 bits are copied eight at a time, so that their rows have to be multiples of that, of a known length. Up to 16 rows of x are kept where there is room.
func TestDenseFits(t *testing.T) {
	_, p := described(t, "gemm_nt_float16")
	fit := func(k, rows int, aligned bool) ptxmatrix.Fit {
		return p.Fit([3]uint64{16, uint64(rows+31) / 32, 1}, ptxmatrix.Given{Aligned: aligned, Multiprocessors: 132, Rows: rows, Still: func(string) bool { return true }, Constant: func(name string) (int64, bool) {
			return map[string]int64{"K": int64(k), "N": 512}[name], name == "N" || name == "K" && k > 0
		}})
	}
	for _, k := range []int{0, 4, 1028, 4098} {
		require.False(t, fit(k, 100, true).Fits(), "%d", k)
	}
	for _, k := range []int{8, 1032, 4096, 20480} {
		for _, rows := range []int{8, 16, 64, 200} {
			f := fit(k, rows, true)
			require.True(t, f.Fits())
			require.Equal(t, f.Rows <= 16, f.Kept, "%d %d", k, rows)
			require.False(t, fit(k, rows, false).Kept)
			require.True(t, fit(k, rows, false).Fits())
		}
	}
}

// TestBeforeWait: before the wait for the launches before nothing is read but weights, by copies, which the table does not move.
func TestBeforeWait(t *testing.T) {
	for _, x := range sample.Turns(t, t.Name(), []struct {
		name            string
		rows            int
		copies, weights int // of a thread and a stage, and arguments
		groups          int
	}{
		{"affine_qmm_t_silu_mul_float16_t_gs_32_b_4_alN_false", 8, 3, 6, 1}, // two rows of codes, and scales or biases; each stage is waited for by itself
		{"gemm_nt_silu_mul_float16", 8, 4, 2, 1},
		{"gemm_nt_silu_mul_float16", 32, 4, 2, 0}, // x is in the first one's group, behind the wait
	}) {
		k, p := described(t, x.name)
		for _, still := range []bool{true, false} {
			f, ok := ptxmatrix.FitOf(p, [3]uint64{1, 8, 1}, ptxmatrix.Given{Aligned: true, Multiprocessors: 132, Constant: func(string) (int64, bool) { return 2048, true }, Still: func(string) bool { return still }}, x.rows, 2)
			require.True(t, ok)
			for _, launch := range []nvptx.Launch{{Values: true, Programmatic: true}, {Values: true, Programmatic: true, Moving: true}, {Programmatic: true}} {
				text := p.Emit(launch, f)
				before, behind, waits := strings.Cut(string(text), "griddepcontrol.wait")
				require.True(t, waits)
				require.NotContains(t, behind, "griddepcontrol.wait")
				require.NotContains(t, before, "ld.global")
				early, err := nvptx.Early(text)
				require.NoError(t, err)
				if !still || !launch.Values {
					require.NotContains(t, before, "cp.async")
					require.Empty(t, early)
					continue
				}
				require.Equal(t, x.copies, strings.Count(before, ".shared.global"))
				require.Equal(t, x.groups, strings.Count(before, "cp.async.commit_group"))
				require.Len(t, early, x.weights)
				for _, i := range early {
					require.Regexp(t, "^(w|scales|biases)_(gate|up)$", k.Args[i].Name)
				}
			}
		}
	}
}

// TestOnePartBeginsAgain: where weights of one block's part of the inner index have to be rounded twice, and those of another's need not, the cluster adds up
// what both have.
func TestOnePartBeginsAgain(t *testing.T) {
	const inner, rows = 1024, 2
	k, p := described(t, "affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0")
	n, r := number16{ir.F16}, rand.New(rand.NewPCG(5, 6))
	for _, far := range []int{-1, 3, inner/32 - 1} { // the group of weights that needs it, in none of the parts, in the first or in the second
		w := matrix{codes: make([]byte, inner/2)}
		for i := range w.codes {
			w.codes[i] = byte(r.Uint32())
		}
		for g := range inner / 32 {
			scale, bias := n.of(0.05), n.of(-0.4)
			if g == far {
				scale, bias = n.of(0x1.5ap-20), n.of(2.5)
			}
			w.scales, w.biases = binary.LittleEndian.AppendUint16(w.scales, scale), binary.LittleEndian.AppendUint16(w.biases, bias)
			for i := range 32 {
				q := w.codes[(32*g+i)/2] >> (4 * (i % 2)) & 15
				w.w = append(w.w, n.value(n.of(float64(float32(n.value(scale))*float32(q)+float32(n.value(bias))))))
			}
		}
		m := &ptxrun.Memory{}
		x, bytes := n.numbers(r, rows*inner, normal(1))
		out := make([]byte, 2*rows)
		launchedAs(t, func(groups [3]uint64, given ptxmatrix.Given) ptxmatrix.Fit {
			f, ok := ptxmatrix.FitOf(p, groups, given, 8, 2)
			require.True(t, ok)
			return f
		}, 4, m, k, p, nvptx.Launch{Values: true, Programmatic: true}, true, [3]uint64{1, 1, 1}, [3]uint64{32, 2, 2}, map[string]any{
			"x": m.Add(bytes), "w": m.Add(w.codes), "scales": m.Add(w.scales), "biases": m.Add(w.biases), "y": m.Add(out), "K": inner, "N": 1, "M": rows,
		})
		for i := range rows {
			want, bound := 0.0, 0.0
			for e, v := range w.w {
				want, bound = want+v*x[i*inner+e], bound+math.Abs(v*x[i*inner+e])
			}
			require.InDelta(t, want, n.value(binary.LittleEndian.Uint16(out[2*i:])), bound*inner*0x1p-24+0.51*n.ulp(want), "row %d, far %d", i, far)
		}
	}
}

// TestWaits leaves out, of products whose blocks have all of the inner index or share it, each instruction that orders threads, blocks, copies and tensor cores: the
// interpreter notices.
func TestWaits(t *testing.T) {
	interpreterOnly(t)
	sample.Seldom(t)
	const codes, dense = "affine_qmm_t_float16_t_gs_32_b_4_alN_false_batch_0", "gemm_nt_float16"
	for _, x := range sample.Of(t, "products whose waits are left out", []struct {
		name            string
		k, rows, splits int
		launch          nvptx.Launch
		waits           int // how many are left out, at least
	}{
		{codes, 1792, 128, 1, nvptx.Launch{Values: true}, 20},
		{codes, 1024, 8, 2, nvptx.Launch{Values: true}, 10}, // warps multiply by themselves
		{codes, 2560, 32, 2, nvptx.Launch{Values: true}, 24},
		{codes, 3072, 8, 1, nvptx.Launch{Values: true, Programmatic: true}, 5},
		{dense, 576, 256, 1, nvptx.Launch{Values: true, Programmatic: true}, 8},
		{dense, 1600, 32, 2, nvptx.Launch{Values: true}, 10},
		{dense, 1024, 8, 1, nvptx.Launch{Values: true, Programmatic: true}, 6},
	}, 4) {
		k, p := described(t, x.name)
		groups := [3]uint64{1, 1, 1}
		f, ok := ptxmatrix.FitOf(p, groups, ptxmatrix.Given{Aligned: true, Multiprocessors: 1, Constant: func(name string) (int64, bool) {
			return map[string]int64{"K": int64(x.k), "N": 4}[name], name != "M"
		}, Still: func(string) bool { return true }}, x.rows, x.splits)
		require.True(t, ok)
		require.True(t, f.Aligned)
		require.Equal(t, x.launch.Programmatic, f.Still && x.launch.Programmatic)
		lines := strings.SplitAfter(string(p.Emit(x.launch, f)), "\n")
		var waits []int
		loop, first := false, true
		for i, l := range lines {
			op := strings.TrimSuffix(strings.Fields(l + " -")[0], ";")
			loop = loop || op == "cp.async.wait_group" || op == "fence.proxy.async.shared::cta" || op == "bar.sync" // what stands before the first loop, and behind it, waits for less
			first = first && !strings.HasPrefix(op, "bar.red")
			switch op {
			case "cp.async.wait_group", "cp.async.commit_group", "fence.proxy.async.shared::cta", "bar.sync", "bar.warp.sync", "wgmma.wait_group.sync.aligned", "wgmma.commit_group.sync.aligned", "wgmma.fence.sync.aligned":
				if loop && first {
					waits = append(waits, i)
				}
			case "barrier.cluster.arrive.relaxed.aligned", "barrier.cluster.arrive.release.aligned", "barrier.cluster.wait.acquire.aligned":
				waits = append(waits, i)
			}
		}
		run := func(text string) error {
			program, err := ptxrun.Parse([]byte(text))
			require.NoError(t, err)
			m, r, n := &ptxrun.Memory{}, rand.New(rand.NewPCG(3, 4)), number16{ir.F16}
			_, values := n.numbers(r, 2*x.k, normal(1))
			xs, y := m.Add(values), m.Add(make([]byte, 16))
			var params []uint64
			if x.name == dense {
				_, w := n.numbers(r, 4*x.k, normal(1))
				params = append(params, xs, m.Add(w), y)
			} else {
				w := affine(r, n, 4, x.k, 32, 4)
				params = append(params, m.Add(w.codes), m.Add(w.scales), m.Add(w.biases), xs, y)
			}
			params = append(params, uint64(x.k), 4, 2)
			for range k.Args {
				if len(params) < len(program.Params) {
					params = append(params, 0)
				}
			}
			for len(params) < len(program.Params) {
				params = append(params, 32)
			}
			_, threads, shared := p.Launch(groups, f)
			return program.Run(m, ptxrun.Launch{Params: params, Grid: [3]uint32{uint32(x.splits), 1, 1}, Block: threads, Shared: int(shared)})
		}
		require.NoError(t, run(strings.Join(lines, "")))
		require.GreaterOrEqual(t, len(waits), x.waits)
		cluster := slices.DeleteFunc(slices.Clone(waits), func(i int) bool { return !strings.Contains(lines[i], "barrier.cluster") })
		require.Len(t, cluster, map[int]int{1: 0, 2: 4}[x.splits])
		// Threads meet, and what orders x that is kept stands before the loop; of the others there are many alike.
		rare := slices.DeleteFunc(slices.Clone(waits), func(i int) bool {
			return !strings.Contains(lines[i], "bar.") && !strings.Contains(lines[i], "fence.proxy")
		})
		some := map[bool]int{false: 2, true: 4}[f.Kept] - map[bool]int{true: 1}[x.rows == 8]
		switch { // around the results of one block are two, which products of codes have behind their second way
		case x.name == codes:
		case f.Kept: // nothing is read before the first stage
			some += 1 - 2*(x.splits-1)
		case x.splits == 1:
			some += 2
		}
		require.Len(t, rare, some, "no fence where no tensor core reads shared memory by itself")
		for _, i := range append(append(sample.Of(t, "waits of products", waits, 16), cluster...), rare...) {
			text := slices.Clone(lines)
			text[i] = ""
			require.Error(t, run(strings.Join(text, "")), "of %+v without line %d: %s", x, i+1, lines[i])
		}
	}
}
