package record_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// narrowBytes encodes normal numbers, which the 16-bit type t represents exactly.
func narrowBytes(t ir.DType, x []float32) (out []byte) {
	for _, v := range x {
		bits := math.Float32bits(v)
		h := uint16(bits >> 16)
		if t == ir.F16 {
			h = uint16(bits>>16&0x8000 | (bits&0x7fffffff-(127-15)<<23)>>13)
		}
		out = binary.LittleEndian.AppendUint16(out, h)
	}
	return out
}

func narrowNumbers(t ir.DType, b []byte) (out []float32) {
	for ; len(b) > 0; b = b[2:] {
		h := binary.LittleEndian.Uint16(b)
		v := math.Float32frombits(uint32(h) << 16)
		if t == ir.F16 {
			v = float32(math.Ldexp(float64(h&0x3ff|0x400), int(h>>10&0x1f)-25))
			if h>>10&0x1f == 0 {
				v = float32(math.Ldexp(float64(h&0x3ff), -24))
			}
			if h&0x8000 != 0 {
				v = -v
			}
		}
		out = append(out, v)
	}
	return out
}

// Norms and gradients in 16-bit types equal MLX's in f32 for the same numbers, up to the rounding of results, of
// intermediates of the norm, and of each row's contribution to gw.
func TestNarrowLayerNormAgainstMLX(t *testing.T) {
	data, err := os.ReadFile("../testdata/train.json")
	require.NoError(t, err, "make it with testdata/gen/train.py")
	var file struct {
		Eps    float32
		Narrow []struct {
			Type                      string
			Rows, N                   int64
			X, G, W, B, Y, GX, GW, GB []float32
		}
	}
	require.NoError(t, json.Unmarshal(data, &file))
	require.Len(t, file.Narrow, 4)
	for _, c := range file.Narrow {
		of, unit := ir.F16, math.Ldexp(1, -11)
		if c.Type == "bf16" {
			of, unit = ir.BF16, math.Ldexp(1, -8)
		}
		in := map[string][]byte{}
		for name, v := range map[string][]float32{"x": c.X, "g": c.G, "w": c.W, "b": c.B} {
			in[name] = narrowBytes(of, v)
			require.Equal(t, v, narrowNumbers(of, in[name]), "the inputs are of the type")
		}
		_, got := replayedBytes(t, func(r *record.Session) {
			x, g, w := r.Input("x", of, c.Rows, c.N), r.Input("g", of, c.Rows, c.N), r.Input("w", of, c.N)
			to := func(name string, shape ...int64) record.Option { return record.Into(r.Output(name, of, shape...)) }
			r.LayerNorm(x, w, r.Input("b", of, c.N), file.Eps, to("y", c.Rows, c.N))
			r.LayerNormGrad(x, w, g, file.Eps, to("gx", c.Rows, c.N), to("gw", c.N), to("gb", c.N))
		}, in, nil)
		for _, v := range []struct {
			name      string
			want      []float32
			roundings float64
		}{{"y", c.Y, 3}, {"gx", c.GX, 1}, {"gw", c.GW, 3}, {"gb", c.GB, 1}} {
			size := 0.0
			for _, e := range v.want {
				size = max(size, math.Abs(float64(e)))
			}
			have := narrowNumbers(of, got[v.name])
			require.Len(t, have, len(v.want))
			for i, want := range v.want {
				require.InDelta(t, want, have[i], v.roundings*unit*size, "%s %dx%d %s[%d]", c.Type, c.Rows, c.N, v.name, i)
			}
		}
	}
}

// Rows that lie under a stride of 0 are normalized once, and the result repeats them.
func TestRepeatedRowsOfLayerNorm(t *testing.T) {
	const k = 70
	r := rand.New(rand.NewPCG(4, 4))
	x, w := numbers(r, 3*k), numbers(r, k)
	normed := func(x []float32) []float32 { // for the rows without repeats
		_, got := replayed(t, func(r *record.Session) {
			n := int64(len(x) / k)
			r.LayerNorm(r.Input("x", ir.F32, n, k), r.Input("w", ir.F32, k), record.Tensor{}, 1e-3, record.Into(r.Output("y", ir.F32, n, k)))
		}, map[string][]float32{"x": x, "w": w}, nil)
		return got["y"]
	}
	for _, c := range []struct {
		shape, strides []int64 // of x
		rows           int64   // number of rows that are normalized
		result         []int64 // its strides
	}{
		{[]int64{4, k}, []int64{0, 1}, 1, []int64{0, 1}},
		{[]int64{2, 3, k}, []int64{0, k, 1}, 3, []int64{0, k, 1}},
		{[]int64{3, 2, k}, []int64{k, 0, 1}, 3, []int64{k, 0, 1}},
		{[]int64{1, 2, k}, []int64{0, 0, 1}, 1, []int64{k, 0, 1}}, // stride 0 of a dimension of 1 row repeats nothing
	} {
		t.Run(fmt.Sprint(c.shape, c.strides), func(t *testing.T) {
			g, got := replayed(t, func(r *record.Session) {
				in := r.Input("x", ir.F32, 3, k)
				in.Shape, in.Strides = record.Dims(c.shape...), c.strides
				y := r.LayerNorm(in, r.Input("w", ir.F32, k), record.Tensor{}, 1e-3)
				require.Equal(t, in.Shape, y.Shape)
				require.Equal(t, c.result, y.Strides)
				r.CopyTo("spread", r.Output("y", ir.F32, c.shape...), y)
				same := r.Output("same", ir.F32, c.rows, k)
				same.Shape, same.Strides = y.Shape, y.Strides
				r.LayerNorm(in, r.Input("w2", ir.F32, k), record.Tensor{}, 1e-3, record.Into(same))
			}, map[string][]float32{"x": x, "w": w, "w2": w}, nil)
			require.Equal(t, ir.Const(c.rows*32), g.Nodes[0].(*ir.Dispatch).Grid[0].Num, "threads: 32 a row that is normalized")
			want := normed(x[:c.rows*k])
			require.Equal(t, want, got["same"])
			var spread []float32
			for i := range got["y"] {
				at, rest := int64(0), int64(i)
				for d := len(c.shape) - 1; d >= 0; d-- {
					at += rest % c.shape[d] * c.strides[d]
					rest /= c.shape[d]
				}
				spread = append(spread, want[at])
			}
			require.Equal(t, spread, got["y"])
		})
	}
	// The number of repeats may depend on a param.
	_, got := replayed(t, func(r *record.Session) {
		in := r.Input("x", ir.F32, 1, k)
		in.Shape, in.Strides = []ir.Affine{r.Param("n", 1, 4), ir.Const(k)}, []int64{0, 1}
		out := r.Output("y", ir.F32, 4, k)
		out.Shape = in.Shape
		r.CopyTo("spread", out, r.LayerNorm(in, r.Input("w", ir.F32, k), record.Tensor{}, 1e-3))
	}, map[string][]float32{"x": x[:k], "w": w}, map[string]float64{"n": 3})
	one := normed(x[:k])
	require.Equal(t, append(append(append([]float32(nil), one...), one...), one...), got["y"][:3*k])
}

// To normalize another axis than the last, it is first copied into rows, also in 16-bit types.
func TestLayerNormOfAnotherAxis(t *testing.T) {
	const rows, columns = 5, 33
	r := rand.New(rand.NewPCG(5, 5))
	x := numbers(r, rows*columns)
	for _, of := range []ir.DType{ir.F16, ir.BF16} {
		turned := make([]float32, len(x))
		for i := range x {
			x[i] = math.Float32frombits(math.Float32bits(x[i]) &^ 0xffff) // exact in f16 and bf16
			turned[i%columns*rows+i/columns] = x[i]
		}
		_, got := replayedBytes(t, func(r *record.Session) {
			to := func(name string) record.Option { return record.Into(r.Output(name, of, rows, columns)) }
			r.LayerNorm(r.Input("x", of, rows, columns), record.Tensor{}, record.Tensor{}, 1e-5, to("y"))
			lying := r.Scratch(of, record.Dims(rows, columns)...)
			r.CopyTo("rows", lying, r.Input("turned", of, columns, rows).Transpose(0, 1))
			r.LayerNorm(lying, record.Tensor{}, record.Tensor{}, 1e-5, to("z"))
		}, map[string][]byte{"x": narrowBytes(of, x), "turned": narrowBytes(of, turned)}, nil)
		require.Equal(t, got["y"], got["z"])
	}
}

// The rows' contributions to gw may lie in the memory of g, and gx in that of x, as in MLX.
func TestSpareOfLayerNormGrad(t *testing.T) {
	const rows, k = 32, 64
	r := rand.New(rand.NewPCG(6, 6))
	in := map[string][]float32{"x": numbers(r, rows*k), "g": numbers(r, rows*k), "w": numbers(r, k)}
	var scratch [2]int64
	var results [2]map[string][]float32
	for i := range 2 {
		var g *ir.Graph
		g, results[i] = replayed(t, func(r *record.Session) {
			x, g, w := r.State("x", ir.F32, rows, k), r.State("g", ir.F32, rows, k), r.Input("w", ir.F32, k)
			options := []record.Option{record.Into(x), record.Into(r.Output("gw", ir.F32, k)), record.Into(r.Output("gb", ir.F32, k))}
			if i == 1 {
				options = append(options, record.Spare(g))
			}
			r.LayerNormGrad(x, w, g, 1e-3, options...)
		}, in, nil)
		for _, m := range g.Memories {
			if m.Kind == ir.Scratch {
				scratch[i] += m.Size
			}
		}
	}
	require.Equal(t, [2]int64{rows * k * 4, 0}, scratch)
	for _, name := range []string{"x", "gw", "gb"} {
		require.Equal(t, results[0][name], results[1][name], name)
	}
}
