package ptxcode

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// TestMatrixProducts runs products of our library whose tiles are multiplied by tensor cores, on the interpreter of
// PTX: they keep the bound of their sums, with ragged edges, and beside rows with numbers that are not finite.
func TestMatrixProducts(t *testing.T) {
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	for _, x := range []struct {
		function string
		codes    bool
		k        int
	}{{"affine_qmm_t_float_gs_32_b_4_alN_false_batch_0", true, 64}, {"gemm_nt_float32", false, 45}} {
		const rows, columns = 35, 41
		depth := x.k
		r := rand.New(rand.NewPCG(1, 2))
		c, err := s.Find(t.Context(), builtin(x.function))
		require.NoError(t, err)
		require.True(t, c.Matrices)
		text, err := c.PTX(t.Context(), nvptx.Launch{Values: true, MMA: nvptx.AllMMA})
		require.NoError(t, err)
		p, err := ptxrun.Parse(text)
		require.NoError(t, err)

		m := &ptxrun.Memory{}
		floats := func(n int, scale float64) (out []float32, at uint64) {
			var bytes []byte
			for range n {
				v := float32(r.NormFloat64() * scale)
				out, bytes = append(out, v), binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
			}
			return out, m.Add(bytes)
		}
		var memory []uint64
		w := make([]float32, columns*depth)
		if x.codes {
			codes := make([]byte, columns*depth/2)
			for i := range codes {
				codes[i] = byte(r.Uint32())
			}
			scales, at1 := floats(columns*depth/32, 0.1)
			biases, at2 := floats(columns*depth/32, 1)
			for i := range w {
				q := codes[i/2] >> (4 * (i % 2)) & 15
				w[i] = scales[i/32]*float32(q) + biases[i/32]
			}
			memory = append(memory, m.Add(codes), at1, at2)
		}
		values := make([]float32, rows*depth)
		bytes := make([]byte, 4*len(values))
		for i := range values {
			values[i] = float32(r.NormFloat64())
		}
		inf, nan, huge := 3*depth+5, 20*depth+7, 9*depth+1 // in rows 3, 20 and 9
		values[inf], values[nan], values[huge] = float32(math.Inf(-1)), float32(math.NaN()), 0x1p100
		for i, v := range values {
			binary.LittleEndian.PutUint32(bytes[4*i:], math.Float32bits(v))
		}
		memory = append(memory, m.Add(bytes))
		if !x.codes {
			var at uint64
			w, at = floats(columns*depth, 1)
			memory = append(memory, at)
		}
		y := make([]byte, 4*rows*columns)
		memory = append(memory, m.Add(y))
		var params []uint64
		next := 0
		for i := range c.Kernel.Args {
			switch a := &c.Kernel.Args[i]; {
			case a.Attribute != "":
			case a.Space == air.Device:
				params, next = append(params, memory[next]), next+1
			default:
				params = append(params, map[string]uint64{"K": uint64(depth), "N": columns, "M": rows}[a.Name])
			}
		}
		groups := [3]uint32{(columns + 31) / 32, (rows + 31) / 32, 1}
		params = append(params, uint64(32*groups[0]), uint64(2*groups[1]), 2, 32, 2, 2)
		require.NoError(t, p.Run(m, ptxrun.Launch{Params: params, Grid: groups, Block: 128}), x.function)

		for i := range rows {
			for j := range columns {
				sum, size := 0.0, 0.0
				for k := range depth {
					e := float64(values[i*depth+k]) * float64(w[j*depth+k])
					sum, size = sum+e, size+math.Abs(e)
				}
				got := float64(math.Float32frombits(binary.LittleEndian.Uint32(y[4*(i*columns+j):])))
				if math.IsInf(sum, 0) || sum != sum {
					require.True(t, got == sum || got != got && sum != sum, "%s: row %d, column %d: %g, want %g", x.function, i, j, got, sum)
					continue
				}
				require.InDelta(t, sum, got, float64(depth+2)*0x1p-24*size, "%s: row %d, column %d", x.function, i, j)
			}
		}
	}
}

// TestFactorsInParts compares products that split f32 factors into bf16 parts once for a tile with those that split
// them where they multiply: sums are equal to the bit, of factors of all magnitudes, and also where they are not
// finite.
func TestFactorsInParts(t *testing.T) {
	sample.Seldom(t)
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	const rows, columns = 70, 97
	for _, x := range []struct{ bits, group, depth int }{{4, 32, 96}, {8, 64, 128}} { // three steps of 32 columns, and four
		bits, depth := x.bits, x.depth
		r := rand.New(rand.NewPCG(3, uint64(bits)))
		m := &ptxrun.Memory{}
		floats := func(n int, of func(int) float32) uint64 {
			var bytes []byte
			for i := range n {
				bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(of(i)))
			}
			return m.Add(bytes)
		}
		normal := func(int) float32 { return float32(r.NormFloat64()) }
		codes := make([]byte, columns*depth*bits/8)
		for i := range codes {
			codes[i] = byte(r.Uint32())
		}
		special := map[int]float32{
			3*depth + 5: float32(math.Inf(-1)), 20*depth + 7: float32(math.NaN()), 9*depth + 1: 0x1p100, 69 * depth: 0x1.8p127,
			33*depth + 40: 0x1p113, 33*depth + 41: -0x1p113, 34*depth + 95: math.Float32frombits(0xff800001),
		}
		memory := map[string]uint64{
			"w": m.Add(codes), "scales": floats(columns*depth/x.group, normal), "biases": floats(columns*depth/x.group, normal),
			"x": floats(rows*depth, func(i int) float32 {
				if v, ok := special[i]; ok {
					return v
				}
				switch i / depth % 8 {
				case 1: // small ones, of which no bit may get lost either
					return float32(r.NormFloat64()) * 0x1p-130
				case 2:
					return float32(r.NormFloat64() * math.Exp2(float64(r.IntN(200)-100)))
				}
				return normal(i)
			}),
		}
		before := make([]float32, rows*columns)
		for i := range before {
			before[i] = normal(i)
		}
		memory["r"] = floats(len(before), func(i int) float32 { return before[i] })
		numbers := map[string]uint64{"K": uint64(depth), "N": columns, "M": rows}
		run := func(name string, groups [3]uint32, constants ...ir.FunctionConstant) []float32 {
			c, err := s.Find(t.Context(), builtin(name, constants...))
			require.NoError(t, err)
			text, err := c.PTX(t.Context(), nvptx.Launch{Values: true, MMA: nvptx.AllMMA})
			require.NoError(t, err)
			p, err := ptxrun.Parse(text)
			require.NoError(t, err)
			y := make([]byte, 4*rows*columns)
			memory["y"] = m.Add(y)
			memory["v"] = memory["y"]
			var params []uint64
			for i := range c.Kernel.Args {
				switch a := &c.Kernel.Args[i]; {
				case a.Attribute != "":
				case a.Space == air.Device:
					at, ok := memory[a.Name]
					require.True(t, ok, a.Name)
					params = append(params, at)
				default:
					params = append(params, numbers[a.Name]) // what says how batches lie is not read
				}
			}
			params = append(params, uint64(32*groups[0]), uint64(2*groups[1]), 2, 32, 2, 2)
			require.NoError(t, p.Run(m, ptxrun.Launch{Params: params, Grid: groups, Block: 128}), name)
			out := make([]float32, rows*columns)
			for i := range out {
				out[i] = math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:]))
			}
			return out
		}
		sums := run(fmt.Sprintf("affine_qmm_t_float_gs_%d_b_%d_alN_false_batch_0", x.group, bits), [3]uint32{(columns + 31) / 32, (rows + 31) / 32, 1})
		added := run(fmt.Sprintf("affine_qmm_t_add_float_gs_%d_b_%d_alN_false", x.group, bits), [3]uint32{(rows + 63) / 64, (columns + 63) / 64, 1})
		none := 0
		for i, sum := range sums {
			want := before[i] + sum
			if want != want {
				require.True(t, added[i] != added[i], "%d bits: row %d, column %d", bits, i/columns, i%columns)
				none++
				continue
			}
			if math.IsInf(float64(want), 0) {
				none++
			}
			require.Equal(t, math.Float32bits(want), math.Float32bits(added[i]), "%d bits: row %d, column %d: %g, want %g", bits, i/columns, i%columns, added[i], want)
		}
		require.Greater(t, none, 3*columns)
		require.Less(t, none, 6*columns)

		// Tiles of 32 rows, of three matrices: the same one three times. A rotation by no angle leaves what is finite as it is.
		const heads, dims = 3, 32
		for _, matrix := range []string{"w", "scales", "biases"} {
			for _, side := range []string{"_q", "_k", "_v"} {
				memory[matrix+side] = memory[matrix]
			}
		}
		q, k := make([]byte, 4*rows*heads*dims), make([]byte, 4*rows*dims)
		long := func(v ...uint64) uint64 {
			var bytes []byte
			for _, v := range v {
				bytes = binary.LittleEndian.AppendUint64(bytes, v)
			}
			return m.Add(bytes)
		}
		memory["q"], memory["k"], memory["offset"] = m.Add(q), m.Add(k), m.Add([]byte{7, 0, 0, 0})
		maps.Copy(numbers, map[string]uint64{"q_heads": heads, "k_heads": 1, "dims": dims, "n_v": columns, "q_strides": long(dims, heads*dims), "k_strides": long(dims, dims), "scale": 0, "base": uint64(math.Float32bits(13))})
		values := run(fmt.Sprintf("affine_qmm_t_x3_rope_float_gs_%d_b_%d", x.group, bits), [3]uint32{(rows + 31) / 32, 2 + 1 + 2, 1}, ir.FunctionConstant{Index: 2, Name: "traditional", Type: ir.Bool})
		for i, sum := range sums {
			row, column := i/columns, i%columns
			if sum != sum {
				require.True(t, values[i] != values[i], "%d bits: row %d, column %d", bits, row, column)
			} else {
				require.Equal(t, math.Float32bits(sum), math.Float32bits(values[i]), "%d bits: row %d, column %d", bits, row, column)
			}
			other := sums[min(row*columns+(column/dims*dims+(column+dims/2)%dims), len(sums)-1)]
			if column >= heads*dims || math.IsNaN(float64(sum*0+other*0)) {
				continue
			}
			got := func(b []byte, at int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b[4*at:])) }
			require.Equal(t, sum, got(q, row*heads*dims+column), "%d bits: row %d, query %d", bits, row, column)
			if column < dims {
				require.Equal(t, sum, got(k, row*dims+column), "%d bits: row %d, key %d", bits, row, column)
			}
		}
	}
}

// TestMatricesInPairs: each of our kernels multiplies its tiles by the same instructions, two steps of 8 of
// the inner index at a time, so that sums of one class have the same bits in all of them.
func TestMatricesInPairs(t *testing.T) {
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	all, _, err := prebuilt.Wanted()
	require.NoError(t, err)
	all = slices.DeleteFunc(all, func(r prebuilt.Request) bool {
		return r.Launch != (nvptx.Launch{Values: true, MMA: nvptx.AllMMA}) || strings.Contains(r.Function, "_b_8") // the same code with other numbers
	})
	require.Greater(t, len(all), 8)
	for _, r := range sample.Of(t, t.Name(), all, sample.Few) {
		c, err := s.Find(t.Context(), builtin(r.Function))
		require.NoError(t, err)
		text, err := c.PTX(t.Context(), r.Launch)
		require.NoError(t, err)
		count := strings.Count(string(text), "mma.sync.aligned.m16n8k16")
		assert.True(t, count > 0 && count%24 == 0, "%s: %d", r.Function, count)
		assert.NotContains(t, string(text), "m16n8k8", r.Function)
		assert.NotContains(t, string(text), "movmatrix", r.Function)
	}
}
