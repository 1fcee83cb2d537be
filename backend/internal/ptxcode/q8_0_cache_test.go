package ptxcode

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// TestQ8Cache runs what writes a cache of 8 bits, to the bit of what its declaration says, and attention to what it wrote.
func TestQ8Cache(t *testing.T) {
	cache, err := air.OpenCache(t.TempDir(), 0)
	require.NoError(t, err)
	s := New(cache, "")
	causal := ir.FunctionConstant{Index: 22, Name: "do_causal", Type: ir.Bool, Bits: 1}
	run := func(m *ptxrun.Memory, name string, groups [3]uint32, block uint32, values map[string]uint64, constants ...ir.FunctionConstant) {
		t.Helper()
		c, err := s.Find(t.Context(), builtin(name, constants...))
		require.NoError(t, err)
		text, err := c.PTX(t.Context(), nvptx.Launch{Values: true})
		require.NoError(t, err)
		p, err := ptxrun.Parse(ofWholeSimdgroups(text))
		require.NoError(t, err)
		var params []uint64
		for i := range c.Kernel.Args {
			if a := &c.Kernel.Args[i]; a.Attribute == "" {
				v, ok := values[a.Name]
				require.True(t, ok, "%s: argument %s", name, a.Name)
				params = append(params, v)
			}
		}
		params = append(params, uint64(groups[0]*block), uint64(groups[1]), uint64(groups[2]), uint64(block), 1, 1|nvptx.WholeThreadgroups)
		require.NoError(t, p.Run(m, ptxrun.Launch{Params: params, Grid: groups, Block: block}), name)
	}

	r := rand.New(rand.NewPCG(7, 8))
	const positions, kv, heads, d = 70, 2, 4, 64
	const n = kv * d
	inf := float32(math.Inf(1))
	var x [2][]float32 // keys and values
	for i := range x {
		x[i] = make([]float32, positions*n)
		for g := 0; g < len(x[i]); g += 32 {
			size := float32(math.Ldexp(1, r.IntN(8)-6))
			for e := range 32 {
				x[i][g+e] = float32(r.NormFloat64()) * size
			}
		}
		// Codes that lie between two, on either side of 0; and what has none.
		copy(x[i], []float32{127, 0.5, 1.5, -0.5, -1.5, 2.5, 126.5, -126.5, 0.49999997, -0.49999997})
		copy(x[i][n*(positions-1):], []float32{inf, 1})
		copy(x[i][n*(positions-1)+64:], []float32{float32(math.NaN()), 1})
		for e := range 32 {
			x[i][n*(positions-1)+32+e] *= 0x1p-70
		}
	}
	m := &ptxrun.Memory{}
	floats := func(v []float32) uint64 { return m.Add(record.Elements(ir.F32, v)) }
	var codes, scales [2][]byte
	values := map[string]uint64{"new_keys": floats(x[0]), "new_values": floats(x[1])}
	for i, name := range []string{"key", "value"} {
		codes[i], scales[i] = make([]byte, len(x[i])), make([]byte, len(x[i])/16)
		values[name+"s"], values[name+"_scales"] = m.Add(codes[i]), m.Add(scales[i])
	}
	run(m, "kv_write_q8_0_float32", [3]uint32{1, positions, 2}, n, values)
	var stored [2][]float64 // what the codes stand for
	for i := range x {
		stored[i] = make([]float64, len(x[i]))
		for g := 0; g < len(x[i]); g += 32 {
			var top float32
			for _, v := range x[i][g : g+32] {
				if top = max(top, float32(math.Abs(float64(v)))); v != v {
					top = inf
				}
			}
			if top != top { // the max of Go
				top = inf
			}
			scale := top / 127
			require.Equal(t, record.Elements(ir.F16, []float32{scale}), scales[i][g/16:g/16+2], "scale %d", g/32)
			for e, v := range x[i][g : g+32] {
				want := math.Round(float64(v * (1 / scale)))
				if top < 0x1p-60 || top == inf {
					want = 0
				}
				require.Equal(t, want, float64(int8(codes[i][g+e])), "code %d of %v, greatest %v", g+e, v, top)
				half := float64(float32(scale))
				if exponent := math.Ilogb(half); half != 0 && exponent >= -14 { // to 11 bits
					half = math.Ldexp(math.RoundToEven(math.Ldexp(half, 10-exponent)), exponent-10)
				}
				stored[i][g+e] = want * half
			}
		}
	}

	queries := make([]float32, heads*d)
	for i := range queries {
		queries[i] = float32(r.NormFloat64())
	}
	for _, visible := range []int{1, 3, 33, positions - 1} {
		out := make([]byte, 4*heads*d)
		values["queries"], values["out"] = floats(queries), m.Add(out)
		values["gqa_factor"], values["N"], values["scale"] = heads/kv, uint64(visible), uint64(math.Float32bits(0.125))
		for _, name := range []string{"k", "v"} {
			values[name+"_head_stride"], values[name+"_seq_stride"] = d, n
		}
		run(m, "sdpa_rows_float_q8_0_64_64", [3]uint32{heads, 1, 1}, 256, values, causal)
		for h := range heads {
			at := h / (heads / kv) * d
			weights, sum := make([]float64, visible), 0.0
			for j := range weights {
				score := 0.0
				for e := range d {
					score += float64(queries[h*d+e]) * stored[0][j*n+at+e]
				}
				weights[j] = math.Exp(score / 8)
				sum += weights[j]
			}
			for e := range d {
				want, size := 0.0, 0.0
				for j, w := range weights {
					v := w / sum * stored[1][j*n+at+e]
					want, size = want+v, size+math.Abs(v)
				}
				got := float64(math.Float32frombits(binary.LittleEndian.Uint32(out[4*(h*d+e):])))
				require.InDelta(t, want, got, 3e-6*size+1e-9, fmt.Sprintf("%d keys, head %d, element %d", visible, h, e))
			}
		}
	}
}
