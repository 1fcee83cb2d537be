package ptxcode

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/record"
)

// TestBlocks runs the products of GGML's blocks with a vector, and their rows: the weights are those of the CPU to the
// bit, whose goldens are the gguf package's.
func TestBlocks(t *testing.T) {
	sample.Seldom(t)
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	const n = 9
	for _, name := range sample.Of(t, "PTX of blocks", strings.Fields("q4_0 q4_1 q5_0 q5_1 q8_0 iq4_nl mxfp4 q2_K q3_K q4_K q5_K q6_K"), 4) {
		f, ok := record.GGMLFormatNamed(name)
		require.True(t, ok)
		r := rand.New(rand.NewPCG(6, uint64(f)))
		const k = 512
		blocks := make([]byte, n*f.RowBytes(k))
		for i := range blocks {
			blocks[i] = byte(r.Uint32())&0xb7 | 0x20 // f16 and exponents that are neither infinite nor far apart
		}
		ids := make([]byte, 4*n)
		for i := range n {
			binary.LittleEndian.PutUint32(ids[4*i:], uint32(n-1-i))
		}
		word := func(v int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(v)) }
		want := &cpu.Call{Threads: [3]int{k, n, 1}}
		want.Device[0], want.Device[1], want.Device[2] = ids, blocks, make([]byte, 4*n*k)
		want.Constant[3], want.Constant[4] = word(k), word(n)
		cpu.Lookup("ggml_get_rows_"+name+"_f32").Run(want, &cpu.Worker{}, 0, n)

		run := func(function string, l ptxrun.Launch, memory map[string][]byte, values map[string]uint64) {
			c, err := s.Find(t.Context(), builtin(function))
			require.NoError(t, err)
			text, err := c.PTX(t.Context(), nvptx.Launch{Values: true})
			require.NoError(t, err)
			p, err := ptxrun.Parse(ofWholeSimdgroups(text))
			require.NoError(t, err)
			m := &ptxrun.Memory{}
			var params []uint64
			for i := range c.Kernel.Args {
				switch a := &c.Kernel.Args[i]; {
				case a.Attribute != "":
				case memory[a.Name] != nil:
					params = append(params, m.Add(memory[a.Name]))
				default:
					params = append(params, values[a.Name])
				}
			}
			l.Params = append(params, l.Params...)
			require.NoError(t, p.Run(m, l), function)
		}
		rows := make([]byte, 4*n*k)
		run("ggml_get_rows_"+name+"_f32", ptxrun.Launch{Params: []uint64{k, n, 1, 32, 1, 1 | nvptx.WholeThreadgroups}, Grid: [3]uint32{k / 32, n, 1}, Block: 32},
			map[string][]byte{"ids": ids, "w": blocks, "out": rows}, map[string]uint64{"K": k, "V": n})
		require.Equal(t, want.Device[2], rows, name)

		x, y := make([]byte, 4*k), make([]byte, 4*n)
		vector := make([]float64, k)
		for i := range vector {
			v := float32(r.NormFloat64())
			vector[i] = float64(v)
			binary.LittleEndian.PutUint32(x[4*i:], math.Float32bits(v))
		}
		run("ggml_mul_mv_"+name+"_f32", ptxrun.Launch{Params: []uint64{64, 2, 1, 32, 2, 1 | nvptx.WholeThreadgroups}, Grid: [3]uint32{2, 1, 1}, Block: 64},
			map[string][]byte{"w": blocks, "x": x, "y": y}, map[string]uint64{"K": k, "N": n})
		for i := range n {
			sum, size := 0.0, 0.0
			for j, v := range vector {
				e := v * float64(math.Float32frombits(binary.LittleEndian.Uint32(rows[4*((n-1-i)*k+j):])))
				sum, size = sum+e, size+math.Abs(e)
			}
			require.InDelta(t, sum, math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:])), 4e-6*size, "%s: row %d", name, i)
		}
	}
}
