package ptxcode

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestStagedProducts compares products whose vector lies in threadgroup memory, which take codes for subnormal
// numbers, with the product that each replaces: results are equal to the bit, for elements of all magnitudes, for
// those that are not finite, and at any alignment. Elements as a model has them take the fast path.
func TestStagedProducts(t *testing.T) {
	sample.Seldom(t)
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	programs := map[string]*ptxrun.Program{}
	for i, x := range []struct {
		kernel           string
		k, n             int
		rows, simdgroups int // of a threadgroup
		off              int // bytes behind a multiple of 16 where operands lie
		matrices         []string
	}{
		{"whole", 1024, 64, 56, 14, 0, []string{""}},
		{"whole", 512, 8, 56, 14, 4, []string{""}},
		{"whole_silu_mul", 1024, 32, 28, 14, 0, []string{"_gate", "_up"}},
		{"piped", 4096, 24, 16, 10, 0, []string{""}},
		{"piped_add", 2048, 8, 16, 10, 0, []string{""}},
		{"piped_add", 4096, 16, 16, 10, 4, []string{""}},
		{"piped_x3", 2048, 8, 24, 16, 0, []string{"0", "1", "2"}},
	} {
		for _, g := range []int{32} {
			what := fmt.Sprintf("%s, groups of %d, K = %d, N = %d, %d bytes off", x.kernel, g, x.k, x.n, x.off)
			r := rand.New(rand.NewPCG(7, uint64(x.k+g)))
			m := &ptxrun.Memory{}
			add := func(n int, word func(i int) uint32) uint64 {
				bytes := make([]byte, x.off, x.off+4*n)
				for i := range n {
					bytes = binary.LittleEndian.AppendUint32(bytes, word(i))
				}
				return m.Add(bytes) + uint64(x.off)
			}
			normal := func(int) float32 { return float32(r.NormFloat64()) }
			floats := func(n int, of func(i int) float32) uint64 {
				return add(n, func(i int) uint32 { return math.Float32bits(of(i)) })
			}
			kinds := []struct {
				name string
				fast bool
				of   func(i int) float32
			}{
				{"as of a model", true, normal},
				{"of all sizes that fit", true, func(int) float32 {
					return float32(math.Exp2(77*r.Float64()-90)) * float32(r.IntN(3)-1)
				}},
				{"large", true, func(int) float32 { return float32(r.NormFloat64()) * 0x1p70 }},
				{"small", true, func(int) float32 { return float32(1+r.Float64()) * float32(r.IntN(2)) * 0x1p-104 }},
				{"zero", true, func(i int) float32 { return float32(math.Copysign(0, float64(i%3-1))) }},
				{"smaller", false, func(int) float32 { return float32(r.NormFloat64()) * 0x1p-120 }},
				{"subnormal", false, func(int) float32 { return float32(r.NormFloat64()) * 0x1p-140 }},
				{"larger", false, func(int) float32 { return float32(r.NormFloat64()) * 0x1p110 }},
				{"of all sizes", false, func(int) float32 { return float32(r.NormFloat64() * math.Exp2(float64(r.IntN(250)-140))) }},
				{"with one infinite", false, func(i int) float32 {
					if i == 300 {
						return float32(math.Inf(-1))
					}
					return normal(i)
				}},
				{"with one that is no number", false, func(i int) float32 {
					if i == x.k-1 {
						return math.Float32frombits(0xffc12345)
					}
					return normal(i)
				}},
			}
			memory := map[string]uint64{}
			for _, of := range x.matrices {
				memory["w"+of] = add(x.n*x.k/8, func(int) uint32 { return r.Uint32() })
				memory["scales"+of], memory["biases"+of] = floats(x.n*x.k/g, normal), floats(x.n*x.k/g, normal)
			}
			memory["r"] = floats(x.n, normal)
			values := map[string]uint64{"in_vec_size": uint64(x.k), "out_vec_size": uint64(x.n), "n0": uint64(x.n), "n1": uint64(x.n), "n2": uint64(x.n)}
			run := func(function string, groups, simdgroups int, outputs ...string) (out [][]byte, steps int) {
				p := programs[function]
				c, err := s.Find(t.Context(), builtin(function))
				require.NoError(t, err)
				if p == nil {
					text, err := c.PTX(t.Context(), nvptx.Launch{Values: true, Programmatic: true})
					require.NoError(t, err)
					assert.NotContains(t, string(text), ".ftz")
					p, err = ptxrun.Parse(ofWholeSimdgroups(text))
					require.NoError(t, err)
					programs[function] = p
				}
				at := map[string]uint64{}
				for _, name := range outputs {
					y := make([]byte, x.off+4*x.n)
					out, at[name] = append(out, y[x.off:]), m.Add(y)+uint64(x.off)
				}
				var params []uint64
				for i := range c.Kernel.Args {
					a := &c.Kernel.Args[i]
					if a.Attribute != "" {
						continue
					}
					v, ok := at[a.Name]
					if !ok {
						v, ok = memory[a.Name]
					}
					if !ok {
						v = values[a.Name]
					}
					params = append(params, v)
				}
				grid := [3]uint32{1, uint32(groups), 1}
				params = append(params, 32, uint64(simdgroups*groups), 1, 32, uint64(simdgroups), 1|nvptx.WholeThreadgroups)
				before := p.Steps
				require.NoError(t, p.Run(m, ptxrun.Launch{Params: params, Grid: grid, Block: uint32(32 * simdgroups)}), "%s: %s", what, function)
				return out, p.Steps - before
			}
			least := 0
			for j, kind := range kinds {
				if i > 0 && j > 0 && j%3 != i%3 {
					continue // all of them with the first shape
				}
				memory["x"] = floats(x.k, kind.of)
				var products [][]byte // of each matrix
				for _, of := range x.matrices {
					for _, name := range []string{"w", "scales", "biases"} {
						memory[name] = memory[name+of]
					}
					y, _ := run(fmt.Sprintf("affine_qmv_fast_float_gs_%d_b_4_batch_0_pr_0_hgs_0_r_4", g), x.n/8, 2, "y")
					products = append(products, y[0])
				}
				outputs := []string{"y"}
				if len(x.matrices) == 3 {
					outputs = []string{"y0", "y1", "y2"}
				}
				got, steps := run(fmt.Sprintf("affine_qmv_%s_float_gs_%d_b_4", x.kernel, g), (len(outputs)*x.n+x.rows-1)/x.rows, x.simdgroups, outputs...)
				want := products
				switch {
				case strings.HasSuffix(x.kernel, "silu_mul"):
					want, _ = run(fmt.Sprintf("affine_qmv_fast_silu_mul_float_gs_%d_b_4", g), x.n/8, 2, "y")
				case strings.HasSuffix(x.kernel, "add"):
					want, _ = run(fmt.Sprintf("affine_qmv_fast_add_float_gs_%d_b_4", g), x.n/8, 4, "y")
				}
				require.Equal(t, want, got, "%s, elements %s", what, kind.name)
				switch {
				case x.off != 0: // all are read one by one
				case least == 0:
					least = steps
				case kind.fast:
					assert.Equal(t, least, steps, "%s, elements %s: instructions", what, kind.name)
				default:
					assert.Greater(t, steps, least*5/4, "%s, elements %s: instructions", what, kind.name)
				}
			}
		}
	}
}
