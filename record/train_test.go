package record_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// replayed records a graph and runs it once on the CPU, with inputs and params by name. It
// returns the graph and its f32 outputs and states.
func replayed(t testing.TB, make func(r *record.Session), inputs map[string][]float32, params map[string]float64) (*ir.Graph, map[string][]float32) {
	t.Helper()
	in := map[string][]byte{}
	for name, x := range inputs {
		in[name] = ir.ValueBytes(x)
	}
	g, bytes := replayedBytes(t, make, in, params)
	out := map[string][]float32{}
	for name, b := range bytes {
		for i := 0; i+4 <= len(b); i += 4 {
			out[name] = append(out[name], math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
		}
	}
	return g, out
}

// replayedBytes is replayed for memories of any type.
func replayedBytes(t testing.TB, make func(r *record.Session), inputs map[string][]byte, params map[string]float64) (*ir.Graph, map[string][]byte) {
	t.Helper()
	r := record.New("t")
	make(r)
	g, err := r.Graph()
	require.NoError(t, err)
	device := cpu.New(1)
	defer device.Close()
	s, err := replay.Open(device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	require.NoError(t, err)
	defer s.Close()
	p, err := s.Graph(context.Background(), "t")
	require.NoError(t, err)
	for name, v := range params {
		require.NoError(t, p.SetParam(name, v))
	}
	for name, x := range inputs {
		if _, ok := p.Size(name, ir.Input); ok {
			require.NoError(t, p.SetInput(name, x))
		} else {
			require.NoError(t, p.SetState(name, x))
		}
	}
	_, err = p.Run(context.Background())
	require.NoError(t, err)
	out := map[string][]byte{}
	for _, m := range g.Memories {
		switch m.Kind {
		case ir.State:
			out[m.Name], err = p.State(m.Name)
		case ir.Output:
			out[m.Name], err = p.Output(m.Name)
		}
		require.NoError(t, err)
	}
	return g, out
}

func functions(g *ir.Graph) (out []string) {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			out = append(out, g.Kernels[d.Kernel].Function)
		}
	}
	return out
}

// near compares with a tolerance that is relative to the max value.
func near(t testing.TB, want, got []float32, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	size := 0.0
	for _, v := range want {
		size = max(size, math.Abs(float64(v)))
	}
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-5*size, "%s[%d]", what, i)
	}
}

func numbers(r *rand.Rand, n int64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

// TestLayerNormAgainstMLX compares with what mx.fast.layer_norm and its gradient
// give (testdata/gen/train.py).
func TestLayerNormAgainstMLX(t *testing.T) {
	data, err := os.ReadFile("../testdata/train.json")
	require.NoError(t, err, "make it with testdata/gen/train.py")
	var file struct {
		Eps       float32
		LayerNorm []struct {
			Rows, N    int64
			X, G, W, B []float32
			Cases      []struct {
				HasW bool `json:"has_w"`
				HasB bool `json:"has_b"`
				Y    []float32
				GX   []float32
				GW   []float32
				GB   []float32
			}
		} `json:"layer_norm"`
	}
	require.NoError(t, json.Unmarshal(data, &file))
	require.NotEmpty(t, file.LayerNorm)
	for _, s := range file.LayerNorm {
		for _, c := range s.Cases {
			name := fmt.Sprintf("%dx%d weight %t bias %t", s.Rows, s.N, c.HasW, c.HasB)
			g, got := replayed(t, func(r *record.Session) {
				x, g := r.Input("x", ir.F32, s.Rows, s.N), r.Input("g", ir.F32, s.Rows, s.N)
				var w, b record.Tensor
				into := []record.Option{record.Into(r.Output("gx", ir.F32, s.Rows, s.N))}
				if c.HasW {
					w = r.Input("w", ir.F32, s.N)
					into = append(into, record.Into(r.Output("gw", ir.F32, s.N)))
				}
				if c.HasB {
					b = r.Input("b", ir.F32, s.N)
				}
				into = append(into, record.Into(r.Output("gb", ir.F32, s.N)))
				r.LayerNorm(x, w, b, file.Eps, record.Into(r.Output("y", ir.F32, s.Rows, s.N)))
				gx, gw, gb := r.LayerNormGrad(x, w, g, file.Eps, into...)
				require.Equal(t, x.Shape, gx.Shape)
				require.Equal(t, w.Shape, gw.Shape)
				require.Equal(t, record.Dims(s.N), gb.Shape)
			}, pick(map[string][]float32{"x": s.X, "g": s.G, "w": s.W, "b": s.B}, c.HasW, c.HasB), nil)
			near(t, c.Y, got["y"], name+" y")
			near(t, c.GX, got["gx"], name+" gx")
			if c.HasW {
				near(t, c.GW, got["gw"], name+" gw")
			}
			if c.HasB {
				near(t, c.GB, got["gb"], name+" gb")
			}
			sum := "col_reduce_small_1_reduce_sumfloat32"
			if s.Rows >= 32 {
				sum = "col_reduce_looped_1_32_32_reduce_sumfloat32"
			}
			want := []string{"layer_normfloat32", sum, "vjp_layer_normfloat32"}
			if c.HasW {
				want = append(want, sum)
			}
			require.Equal(t, want, functions(g), name)
		}
	}
}

func pick(m map[string][]float32, w, b bool) map[string][]float32 {
	if !w {
		delete(m, "w")
	}
	if !b {
		delete(m, "b")
	}
	return m
}

// LayerNorm may write over x and its gradient over g, because the sum for the bias's
// gradient is recorded before.
func TestLayerNormInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	x, gr, w := numbers(r, 5*70), numbers(r, 5*70), numbers(r, 70)
	inputs := map[string][]float32{"x": x, "g": gr, "w": w}
	run := func(inPlace bool) (*ir.Graph, map[string][]float32) {
		return replayed(t, func(r *record.Session) {
			x, g, w := r.State("x", ir.F32, 5, 70), r.State("g", ir.F32, 5, 70), r.Input("w", ir.F32, 70)
			into, y := g, x
			if !inPlace {
				into, y = r.State("gx", ir.F32, 5, 70), r.State("y", ir.F32, 5, 70)
			}
			r.LayerNormGrad(x, w, g, 1e-3, record.Into(into), record.Into(r.Output("gw", ir.F32, 70)), record.Into(r.Output("gb", ir.F32, 70)))
			r.LayerNorm(x, w, record.Tensor{}, 1e-3, record.Into(y))
		}, inputs, nil)
	}
	_, apart := run(false)
	g, same := run(true)
	assert.Equal(t, apart["gx"], same["g"])
	assert.Equal(t, apart["y"], same["x"])
	assert.Equal(t, apart["gw"], same["gw"])
	assert.Equal(t, apart["gb"], same["gb"])
	// The gradient overwrites g after the sum of g, and the norm overwrites x after the
	// gradient.
	assert.Equal(t, []string{"sum_rows", "|", "layer_norm_grad", "|", "sum_rows", "layer_norm"}, shape(g))
}

func TestLayerNormRoutes(t *testing.T) {
	for _, c := range []struct {
		t              ir.DType
		n              int64
		norm, gradient string
		group          [2]uint32
	}{
		{ir.F32, 6656, "layer_normfloat32", "vjp_layer_normfloat32", [2]uint32{832, 832}},
		{ir.F32, 6657, "layer_norm_loopedfloat32", "vjp_layer_normfloat32", [2]uint32{1024, 864}},
		{ir.F32, 8193, "layer_norm_loopedfloat32", "vjp_layer_norm_loopedfloat32", [2]uint32{1024, 1024}},
		{ir.F16, 100, "layer_normfloat16", "vjp_layer_normfloat16", [2]uint32{32, 32}},
		{ir.BF16, 300, "layer_normbfloat16", "vjp_layer_normbfloat16", [2]uint32{64, 64}},
		{ir.F16, 7000, "layer_norm_loopedfloat16", "vjp_layer_normfloat16", [2]uint32{1024, 896}},
		{ir.BF16, 8200, "layer_norm_loopedbfloat16", "vjp_layer_norm_loopedbfloat16", [2]uint32{1024, 1024}},
	} {
		r := record.New("t")
		x := r.Input("x", c.t, 2, c.n)
		r.LayerNorm(x, record.Tensor{}, record.Tensor{}, 1e-5)
		r.LayerNormGrad(x, record.Tensor{}, x, 1e-5)
		g, err := r.Graph()
		require.NoError(t, err)
		var got []*ir.Dispatch
		for _, n := range g.Nodes {
			if d, ok := n.(*ir.Dispatch); ok && d.Op != "sum_rows" {
				got = append(got, d)
			}
		}
		require.Equal(t, c.norm, g.Kernels[got[0].Kernel].Function)
		require.Equal(t, c.group[0], got[0].Threadgroup[0])
		require.Equal(t, c.gradient, g.Kernels[got[1].Kernel].Function)
		require.Equal(t, c.group[1], got[1].Threadgroup[0])
	}
}

// Norms without a weight or bias share a single 1 and 0 of each type, whichever operation
// comes first.
func TestNormsShareTheirConstants(t *testing.T) {
	for _, first := range []bool{true, false} {
		r := record.New("t")
		x, h, b := r.Input("x", ir.F32, 2, 8), r.Input("h", ir.F16, 2, 8), r.Input("b", ir.BF16, 2, 8)
		if first {
			r.RMSNorm(x, 1e-5)
		}
		for range 2 {
			r.LayerNorm(x, record.Tensor{}, record.Tensor{}, 1e-5)
			r.LayerNorm(h, record.Tensor{}, record.Tensor{}, 1e-5)
			r.LayerNorm(b, record.Tensor{}, record.Tensor{}, 1e-5)
		}
		r.RMSNorm(x, 1e-5)
		g, err := r.Graph()
		require.NoError(t, err)
		var names []string
		for _, m := range g.Memories {
			if m.Kind == ir.Weight {
				names = append(names, m.Name)
			}
		}
		require.ElementsMatch(t, []string{"one", "zero", "one_f16", "zero_f16", "one_bf16", "zero_bf16"}, names)
	}
}

func TestSumRows(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, c := range [][2]int64{{1, 1}, {7, 33}, {31, 200}, {32, 5}, {100, 129}, {512, 40}, {1031, 33}} { // the last two in parts, of which one is shorter
		x := numbers(r, c[0]*c[1])
		want := make([]float32, c[1])
		for j := range want {
			sum := 0.0
			for i := range c[0] {
				sum += float64(x[i*c[1]+int64(j)])
			}
			want[j] = float32(sum)
		}
		g, got := replayed(t, func(r *record.Session) {
			r.SumRows(r.Input("x", ir.F32, c[0], c[1]), record.Into(r.Output("y", ir.F32, c[1])))
		}, map[string][]float32{"x": x}, nil)
		near(t, want, got["y"], fmt.Sprint(c))
		require.Len(t, functions(g), map[int64]int{512: 2, 1031: 3}[c[0]]+map[bool]int{true: 1}[c[0] < 512], c)
	}
	// The rows are part of a wider matrix, and their number is a param.
	_, got := replayed(t, func(r *record.Session) {
		x := r.Input("x", ir.F32, 4, 3)
		x.Shape = []ir.Affine{r.Param("n", 1, 4), ir.Const(2)}
		r.SumRows(x, record.Into(r.Output("y", ir.F32, 2)))
	}, map[string][]float32{"x": {1, 2, 9, 10, 20, 9, 100, 200, 9, 9, 9, 9}}, map[string]float64{"n": 3})
	require.Equal(t, []float32{111, 222}, got["y"])
}

func TestTransposedProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, c := range [][3]int64{{1, 1, 1}, {5, 7, 3}, {40, 33, 65}} {
		m, n, k := c[0], c[1], c[2]
		x, w := numbers(r, m*k), numbers(r, k*n)
		want := make([]float32, m*n)
		turned := make([]float32, m*k)
		for i := range m {
			for j := range n {
				sum := 0.0
				for l := range k {
					sum += float64(x[i*k+l]) * float64(w[l*n+j])
					turned[l*m+i] = x[i*k+l]
				}
				want[i*n+j] = float32(sum)
			}
		}
		g, got := replayed(t, func(r *record.Session) {
			w := r.Input("w", ir.F32, k, n)
			r.MatmulNN(r.Input("x", ir.F32, m, k), w, record.Into(r.Output("nn", ir.F32, m, n)))
			r.MatmulTN(r.Input("turned", ir.F32, k, m), w, record.Into(r.Output("tn", ir.F32, m, n)))
		}, map[string][]float32{"x": x, "turned": turned, "w": w}, nil)
		near(t, want, got["nn"], "nn")
		require.Equal(t, got["nn"], got["tn"], "one class, one order")
		require.Equal(t, []string{"gemm_nn_float32", "gemm_tn_float32"}, functions(g))
	}
	// The size of the batch is a param.
	_, got := replayed(t, func(r *record.Session) {
		x, w := r.Input("x", ir.F32, 4, 1), r.Input("w", ir.F32, 4, 2)
		n := r.Param("n", 1, 4)
		x.Shape, w.Shape = []ir.Affine{n, ir.Const(1)}, []ir.Affine{n, ir.Const(2)}
		r.MatmulTN(x, w, record.Into(r.Output("y", ir.F32, 1, 2)))
	}, map[string][]float32{"x": {1, 10, 100, 1000}, "w": {1, 2, 3, 4, 5, 6, 7, 8}}, map[string]float64{"n": 3})
	require.Equal(t, []float32{531, 642}, got["y"])
}

// A transposing copy and the product that follows it are fused into one command: their
// composed term is that of gemm_nn, whose sums have the same order as those of gemm_nt.
func TestTransposingCopyIsFused(t *testing.T) {
	r := record.New("t")
	w, turned := r.Input("w", ir.F32, 64, 48), r.Scratch(ir.F32, record.Dims(48, 64)...)
	r.CopyTo("transpose", turned, w.Transpose(0, 1))
	r.Matmul(r.Input("x", ir.F32, 40, 64), record.Dense(turned), record.Into(r.Output("y", ir.F32, 40, 48)))
	g, err := r.Graph()
	require.NoError(t, err)
	after := (&ir.Module{Graphs: []*ir.Graph{g}}).Clone().Graphs[0]
	_, err = passes.Run(context.Background(), after, passes.DefaultPipeline(), passes.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"gemm_nn_float32"}, functions(after))
	require.Equal(t, prove.Proved, prove.Check(context.Background(), g, after, prove.Options{}).Verdict)
}

func TestElementwise(t *testing.T) {
	nan := float32(math.NaN())
	_, got := replayed(t, func(r *record.Session) {
		x, row, col, one := r.Input("x", ir.F32, 2, 3), r.Input("row", ir.F32, 3), r.Input("col", ir.F32, 2, 1), r.Input("one", ir.F32, 1)
		to := func(name string) record.Option { return record.Into(r.Output(name, ir.F32, 2, 3)) }
		r.Sub(x, x, to("zero"))
		r.Sub(x, row, to("sub"))
		r.Scale(x, record.Float(0.5), to("half"))
		rate := r.ParamF32("rate", 0, 10)
		r.Scale(x, rate, to("scaled"))
		r.Relu(r.Input("signs", ir.F32, 4), record.Into(r.Output("relu", ir.F32, 4)))
		r.ElementwiseAll("out0[i, j] = round(f32, in0[i, j] * in1[j] + in2[i]); out1[i, j] = round(f32, in3[0] - s0 * s1)",
			[]record.Tensor{x, row, col, one}, []record.Scalar{rate, record.Float(2)}, to("all0"), record.Label("both"), to("all1"))
		w := r.State("w", ir.F32, 3)
		r.Elementwise("out0[i] = round(f32, in0[i] - s0 * in1[i])", []record.Tensor{w, row}, []record.Scalar{rate}, record.Into(w))
		r.Elementwise("out0[i] = round(f32, in0[0] + 1.0)", []record.Tensor{one}, nil, record.Into(r.Output("filled", ir.F32, 2)))
	}, map[string][]float32{"x": {1, 2, 3, 4, 5, 6}, "row": {10, 20, 30}, "col": {100, 200}, "one": {7}, "signs": {-1, 0, 2, nan}, "w": {1, 1, 1}},
		map[string]float64{"rate": 4})
	assert.Equal(t, []float32{0, 0, 0, 0, 0, 0}, got["zero"])
	assert.Equal(t, []float32{-9, -18, -27, -6, -15, -24}, got["sub"])
	assert.Equal(t, []float32{0.5, 1, 1.5, 2, 2.5, 3}, got["half"])
	assert.Equal(t, []float32{4, 8, 12, 16, 20, 24}, got["scaled"])
	assert.Equal(t, []float32{0, 0, 2}, got["relu"][:3])
	assert.True(t, math.IsNaN(float64(got["relu"][3])))
	assert.Equal(t, []float32{110, 140, 190, 240, 300, 380}, got["all0"])
	assert.Equal(t, []float32{-1, -1, -1, -1, -1, -1}, got["all1"])
	assert.Equal(t, []float32{-39, -79, -119}, got["w"])
	assert.Equal(t, []float32{8, 8}, got["filled"])
}

// The term says which operands and results are f16.
func TestElementwiseHalf(t *testing.T) {
	r := record.New("t")
	h := r.Input("h", ir.F16, 2, 3)
	y := r.Elementwise("out0[i] = round(f16, in0_f16[i] * s0)", []record.Tensor{h}, []record.Scalar{record.Float(3)})
	require.Equal(t, ir.F16, y.DType)
	z := r.Elementwise("out0[i] = round(f32, in0_f16[i])", []record.Tensor{y}, nil)
	require.Equal(t, ir.F32, z.DType)
	_, err := r.Graph()
	require.NoError(t, err)
}

func TestTrainingMistakes(t *testing.T) {
	terms := "docs/kernels.md, Generated kernels"
	cases := []struct {
		name string
		make func(r *record.Session)
		want string
	}{
		{"weight of another length", func(r *record.Session) {
			r.LayerNorm(r.Input("x", ir.F32, 4, 8), r.Input("w", ir.F32, 4), record.Tensor{}, 1e-5)
		}, "record t: layer_norm: a weight of f32[4] for rows of 8 f32: want 8 of them, or one for all"},
		{"bias of another type", func(r *record.Session) {
			r.LayerNorm(r.Input("x", ir.F16, 4, 8), record.Tensor{}, r.Input("b", ir.F32, 8), 1e-5)
		}, "record t: layer_norm: a bias of f32[8] for rows of 8 f16: want 8 of them, or one for all"},
		{"rows of integers", func(r *record.Session) {
			r.LayerNorm(r.Input("x", ir.I32, 4, 8), record.Tensor{}, record.Tensor{}, 1e-5)
		}, "record t: layer_norm takes f32, f16 or bf16, not i32[4, 8]"},
		{"gradient of another shape", func(r *record.Session) {
			r.LayerNormGrad(r.Input("x", ir.F32, 4, 8), record.Tensor{}, r.Input("g", ir.F32, 8, 4), 1e-5)
		}, "record t: layer_norm_grad: x f32[4, 8] and g f32[8, 4]: want the same contiguous rows of f32, f16 or bf16"},
		{"gradient of another type", func(r *record.Session) {
			r.LayerNormGrad(r.Input("x", ir.F16, 4, 8), record.Tensor{}, r.Input("g", ir.BF16, 4, 8), 1e-5)
		}, "record t: layer_norm_grad: x f16[4, 8] and g bf16[4, 8]: want the same contiguous rows of f32, f16 or bf16"},
		{"repeated rows into others", func(r *record.Session) {
			x := r.Input("x", ir.F32, 4, 8)
			x.Strides = []int64{0, 1}
			r.LayerNorm(x, record.Tensor{}, record.Tensor{}, 1e-5, record.Into(r.Output("y", ir.F32, 4, 8)))
		}, "record t: layer_norm gives f32[4, 8] with the strides [0 1] of its operand, Into has f32[4, 8] with strides [8 1]: CopyTo copies the result to others"},
		{"spare of another shape", func(r *record.Session) {
			x := r.Input("x", ir.F32, 4, 8)
			r.LayerNormGrad(x, r.Input("w", ir.F32, 8), x, 1e-5, record.Spare(r.State("s", ir.F32, 8, 4)))
		}, "record t: layer_norm_grad keeps f32[4, 8] in between, Spare has f32[8, 4] with strides [4 1]"},
		{"copy between types", func(r *record.Session) {
			r.CopyTo("copy", r.State("y", ir.F16, 4, 8), r.Input("x", ir.BF16, 4, 8))
		}, "record t: copy: cannot copy bf16 to f16: both are of one type; Encoder.Copy copies bytes"},
		{"sum of integers", func(r *record.Session) {
			r.SumRows(r.Input("x", ir.U32, 4, 8))
		}, "record t: sum_rows: u32[4, 8]: want rows of f32, f16 or bf16, each contiguous"},
		{"inner sizes differ", func(r *record.Session) {
			r.MatmulNN(r.Input("x", ir.F32, 4, 8), r.Input("w", ir.F32, 4, 8))
		}, "record t: matmul_nn: x f32[4, 8] times w f32[4, 8]: want contiguous [M, K] and [K, N] of one type: f32, f16 or bf16"},
		{"numbers of rows differ", func(r *record.Session) {
			r.MatmulTN(r.Input("x", ir.F32, 4, 8), r.Input("w", ir.F32, 5, 8))
		}, "record t: matmul_tn: x f32[4, 8], transposed, times w f32[5, 8]: want contiguous [K, M] and [K, N] of one type: f32, f16 or bf16"},
		{"no term", func(r *record.Session) {
			r.Elementwise("in0 * in1", nil, nil)
		}, `record t: elementwise: generated kernel "in0 * in1": result 0 does not begin with "out0[i, j] = ". A term looks like out0[i] = round(f32, in0[i] * in1[i] + s0); see ` + terms},
		{"not canonical", func(r *record.Session) {
			r.Elementwise("out0[i] = round(f32, in0[i]*2.0)", nil, nil)
		}, `record t: elementwise: generated kernel "out0[i] = round(f32, in0[i]*2.0)": is not canonical: "round(f32, in0[i]*2.0)" is written "round(f32, in0[i] * 2.0)". A term looks like out0[i] = round(f32, in0[i] * in1[i] + s0); see ` + terms},
		{"an integer", func(r *record.Session) {
			r.Elementwise("out0[i] = round(f32, in0[i] * 2)", nil, nil)
		}, `record t: elementwise: generated kernel "out0[i] = round(f32, in0[i] * 2)": 2: not an operation of elements (write 2.0 for the number 2). A term looks like out0[i] = round(f32, in0[i] * in1[i] + s0); see ` + terms},
		{"too few operands", func(r *record.Session) {
			r.Elementwise("out0[i] = round(f32, in0[i] * in1[i])", []record.Tensor{r.Input("x", ir.F32, 4)}, nil)
		}, "record t: elementwise: out0[i] = round(f32, in0[i] * in1[i]): the term has 2 operands in0, in1, …, the call 1"},
		{"a constant too many", func(r *record.Session) {
			r.Elementwise("out0[i] = round(f32, -in0[i])", []record.Tensor{r.Input("x", ir.F32, 4)}, []record.Scalar{record.Float(1)})
		}, "record t: elementwise: out0[i] = round(f32, -in0[i]): the term has 0 constants s0, s1, …, the call 1"},
		{"several results", func(r *record.Session) {
			r.Elementwise("out0[i] = round(f32, -in0[i]); out1[i] = in0[i]", []record.Tensor{r.Input("x", ir.F32, 4)}, nil)
		}, "record t: elementwise: out0[i] = round(f32, -in0[i]); out1[i] = in0[i]: the term has 2 results: use ElementwiseAll"},
		{"operands do not fit", func(r *record.Session) {
			r.Sub(r.Input("x", ir.F32, 4, 8), r.Input("w", ir.F32, 4))
		}, "record t: elementwise_sub: out0[i, j] = round(f32, in0[i, j] - in1[j]): in1 is f32[4]: want contiguous f32, 8 elements of a row of the result [4, 8]"},
		{"a strided operand", func(r *record.Session) {
			r.Relu(r.Input("x", ir.F32, 4, 8).Transpose(0, 1))
		}, "record t: relu: out0[i] = round(f32, select(in0[i] <= 0.0, 0.0, in0[i])): in0 is f32[8, 4]: want contiguous f32, 32 elements of the result [8, 4]"},
		{"an operand of another type", func(r *record.Session) {
			r.Relu(r.Input("x", ir.U32, 4))
		}, "record t: relu takes f32, f16 or bf16, not u32[4]"},
		{"no shape", func(r *record.Session) {
			r.Elementwise("out0[i] = round(f32, in0[0])", []record.Tensor{r.Input("x", ir.F32, 1)}, nil)
		}, "record t: elementwise: out0[i] = round(f32, in0[0]): no operand is indexed as the result is, so its shape is not known: give it with Into"},
		{"too many places", func(r *record.Session) {
			r.Relu(r.Input("x", ir.F32, 4), record.Into(r.Output("a", ir.F32, 4)), record.Into(r.Output("b", ir.F32, 4)))
		}, "record t: relu: out0[i] = round(f32, select(in0[i] <= 0.0, 0.0, in0[i])): 2 options Into for 1 results"},
		{"on a part of an operand", func(r *record.Session) {
			w := r.State("w", ir.F32, 12)
			to, from := w, w
			from.Shape, to.Shape, to.Off = record.Dims(8), record.Dims(8), ir.Const(16)
			r.Relu(from, record.Into(to))
		}, "record t: #0 out0[i] = round(f32, select(in0[i] <= 0.0, 0.0, in0[i])): out0 %w[16:48] overlaps in0 %w[0:32]: it may only be the same view: offset, shape, strides and element size"},
	}
	for _, c := range cases {
		r := record.New("t")
		c.make(r)
		_, err := r.Graph()
		requireMistake(t, err, c.want, c.name)
	}
}

// This records a norm and its gradient, given the gradient g of its result.
func ExampleSession_LayerNormGrad() {
	r := record.New("norm")
	x, g := r.Input("x", ir.F32, 8, 64), r.Input("g", ir.F32, 8, 64)
	w, b := r.State("w", ir.F32, 64), r.State("b", ir.F32, 64)
	r.LayerNorm(x, w, b, 1e-5, record.Into(r.Output("y", ir.F32, 8, 64)))
	_, gw, gb := r.LayerNormGrad(x, w, g, 1e-5, record.Into(r.Output("gx", ir.F32, 8, 64)))
	fmt.Println(gw.Shape[0].Const, gb.Shape[0].Const)
	_, err := r.Graph()
	fmt.Println(err)
	// Output:
	// 64 64
	// <nil>
}

// This is a step of gradient descent, which writes the weight in place.
func ExampleSession_Elementwise() {
	r := record.New("sgd")
	w, g := r.State("w", ir.F32, 16, 4), r.Input("g", ir.F32, 16, 4)
	rate := r.ParamF32("rate", 0, 1)
	r.Elementwise("out0[i] = round(f32, in0[i] - s0 * in1[i])", []record.Tensor{w, g}, []record.Scalar{rate}, record.Into(w))
	graph, err := r.Graph()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(graph.Kernels[0].Library.Kind, graph.Kernels[0].Function)
	// Output: generated out0[i] = round(f32, in0[i] - s0 * in1[i])
}

// These are the gradients of a linear layer y = x·Wᵀ.
func ExampleSession_MatmulTN() {
	r := record.New("linear")
	x, w, gy := r.Input("x", ir.F32, 8, 32), r.State("w", ir.F32, 4, 32), r.Input("gy", ir.F32, 8, 4)
	gw := r.MatmulTN(gy, x) // of the matrix
	gx := r.MatmulNN(gy, w) // of the input
	gb := r.SumRows(gy)     // of a bias
	fmt.Println(len(gw.Shape), gw.Shape[0].Const, gw.Shape[1].Const, gx.Shape[0].Const, gx.Shape[1].Const, gb.Shape[0].Const)
	// Output: 2 4 32 8 32 4
}
