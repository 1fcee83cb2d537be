package record_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// f32s returns the little-endian bytes of f32 numbers.
func f32s(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// evaluate finishes a recording, runs it once with these inputs (bytes by name) and
// params, and returns its outputs as 32-bit words.
func evaluate(r *record.Session, inputs map[string][]byte, params map[string]float64) (map[string][]uint32, error) {
	g, err := r.Graph()
	if err != nil {
		return nil, err
	}
	return evaluateGraph(g, inputs, params)
}

func evaluateGraph(g *ir.Graph, inputs map[string][]byte, params map[string]float64) (map[string][]uint32, error) {
	bytes, err := evaluateBytes(g, inputs, params)
	out := map[string][]uint32{}
	for name, b := range bytes {
		for ; len(b) > 0; b = b[4:] {
			out[name] = append(out[name], binary.LittleEndian.Uint32(b))
		}
	}
	return out, err
}

// evaluateBytes returns the outputs as they lie in memory.
func evaluateBytes(g *ir.Graph, inputs map[string][]byte, params map[string]float64) (map[string][]byte, error) {
	device := cpu.New(1)
	defer device.Close()
	s, err := replay.Open(device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Graph(context.Background(), "")
	if err != nil {
		return nil, err
	}
	for name, v := range params {
		if err := p.SetParam(name, v); err != nil {
			return nil, err
		}
	}
	for name, data := range inputs {
		if err := p.SetInput(name, data); err != nil {
			return nil, err
		}
	}
	if _, err := p.Run(context.Background()); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, m := range g.Memories {
		if m.Kind != ir.Output {
			continue
		}
		b, err := p.Output(m.Name)
		if err != nil {
			return nil, err
		}
		out[m.Name] = slices.Clone(b)
	}
	return out, nil
}

func asFloats(v []uint32) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = math.Float32frombits(x)
	}
	return out
}

func ExampleSession_Softmax() {
	r := record.New("softmax")
	x := r.Input("x", ir.F32, 2, 3)
	r.Softmax(x, record.Into(r.Output("y", ir.F32, 2, 3)))
	out, err := evaluate(r, map[string][]byte{"x": f32s(0, 0, 0, 1000, 1000, -1000)}, nil)
	fmt.Printf("%.3f %v\n", asFloats(out["y"]), err)
	// Output: [0.333 0.333 0.333 0.500 0.500 0.000] <nil>
}

func ExampleSession_Gelu() {
	r := record.New("gelu")
	x := r.Input("x", ir.F32, 3)
	r.Gelu(x, record.Into(r.Output("tanh", ir.F32, 3)))
	r.GeluErf(x, record.Into(r.Output("erf", ir.F32, 3)))
	out, err := evaluate(r, map[string][]byte{"x": f32s(-2, 0, 2)}, nil)
	fmt.Printf("%.4f %.4f %v\n", asFloats(out["tanh"]), asFloats(out["erf"]), err)
	// Output: [-0.0454 0.0000 1.9546] [-0.0455 0.0000 1.9545] <nil>
}

func ExampleSession_Softcap() {
	r := record.New("softcap")
	x := r.Input("x", ir.F32, 3)
	r.Softcap(x, 30, record.Into(r.Output("y", ir.F32, 3)))
	out, err := evaluate(r, map[string][]byte{"x": f32s(1, 30, 1000)}, nil)
	fmt.Printf("%.2f %v\n", asFloats(out["y"]), err)
	// Output: [1.00 22.85 30.00] <nil>
}

// A router picks the two best of four experts, for each of two tokens.
func ExampleSession_TopK() {
	r := record.New("route")
	logits := r.Input("logits", ir.F32, 2, 4)
	r.TopK(logits, 2, record.Into(r.Output("ids", ir.U32, 2, 2)), record.Into(r.Output("values", ir.F32, 2, 2)))
	out, err := evaluate(r, map[string][]byte{"logits": f32s(0.1, 0.9, 0.5, 0.9, -1, -2, -3, -4)}, nil)
	fmt.Println(out["ids"], asFloats(out["values"]), err)
	// Output: [1 3 0 1] [0.9 0.9 -1 -2] <nil>
}

// Each of two tokens goes through two of three experts, which double, negate and swap
// its two elements. Their results are then added up with weights.
func ExampleSession_GatherMatmul() {
	r := record.New("experts")
	x := r.Input("x", ir.F32, 2, 2)
	ids := r.Input("ids", ir.U32, 2, 2)
	weights := r.Input("weights", ir.F32, 2, 2)
	experts := r.Weight("experts", ir.NewBlob(f32s(2, 0, 0, 2, -1, 0, 0, -1, 0, 1, 1, 0)), ir.F32, 3, 2, 2)
	y := r.GatherMatmul(x, record.Dense(experts), ids)
	r.WeightedSum(y, weights, record.Into(r.Output("y", ir.F32, 2, 2)))
	out, err := evaluate(r, map[string][]byte{
		"x": f32s(1, 2, 3, 4), "ids": words(0, 1, 2, 0), "weights": f32s(0.5, 0.5, 1, 0),
	}, nil)
	fmt.Println(asFloats(out["y"]), err)
	// Output: [0.5 1 4 3] <nil>
}

// gatherCase is one layout of a gathered product.
type gatherCase struct {
	rows, slots, e, n, k, bits, group int64
	each                              bool // each slot has a row of x of its own
	param                             bool // the number of rows is a param
	want                              string
}

// Every kernel that GatherMatmul may choose gives the right products, and NaN where an
// id is outside the stack.
func TestGatherMatmul(t *testing.T) {
	for _, c := range []gatherCase{
		{1, 2, 4, 24, 96, 4, 32, false, false, "affine_gather_qmv_float_gs_32_b_4"},
		{3, 2, 4, 24, 96, 4, 32, false, false, "affine_gather_qmv_float_gs_32_b_4"},
		{3, 1, 4, 24, 96, 4, 32, false, false, "affine_gather_qmv_float_gs_32_b_4"},
		{3, 2, 4, 24, 96, 4, 32, true, false, "affine_gather_qmv_float_gs_32_b_4"},
		{1, 1, 1, 1, 64, 8, 64, true, false, "affine_gather_qmv_float_gs_64_b_8"},
		{2, 3, 4, 16, 512, 4, 64, false, false, "affine_gather_qmv_fast_float_gs_64_b_4"},
		{2, 3, 4, 8, 256, 8, 32, true, false, "affine_gather_qmv_fast_float_gs_32_b_8"},
		{2, 3, 4, 9, 256, 8, 32, true, false, "affine_gather_qmv_float_gs_32_b_8"},
		{32, 32, 3, 2, 32, 8, 32, true, false, "affine_gather_qmv_float_gs_32_b_8"},
		{41, 25, 3, 2, 32, 8, 32, true, false, "gather_qmv_float_gs_32_b_8"}, // more indices than can be bound inline
		{3, 2, 4, 11, 37, 32, 0, false, false, "gather_gemv_float32"},
		{3, 2, 4, 11, 37, 32, 0, true, false, "gather_gemv_float32"},
		{3, 2, 4, 11, 37, 16, 0, false, false, "gather_gemv_float16_float32"},
		{3, 2, 4, 11, 37, 16, 0, true, true, "gather_gemv_float16_float32"},
		{3, 2, 4, 11, 37, 16, 0, false, true, "gather_gemv_float16"},
		{3, 2, 4, 11, 37, 16, 0, true, false, "gather_gemv_bfloat16"},
		{3, 2, 4, 24, 96, 4, 32, false, true, "gather_qmv_float_gs_32_b_4"},
		{3, 2, 4, 24, 128, 8, 64, true, true, "gather_qmv_float_gs_64_b_8"},
		{3, 2, 4, 24, 96, 3, 32, false, false, "affine_gather_qmv_float_gs_32_b_3"},
		{2, 3, 4, 8, 512, 5, 128, true, false, "affine_gather_qmv_fast_float_gs_128_b_5"},
		{2, 3, 4, 8, 256, 6, 64, true, false, "affine_gather_qmv_fast_float_gs_64_b_6"},
		{3, 2, 4, 24, 128, 2, 128, true, true, "gather_qmv_float_gs_128_b_2"},
		{3, 2, 4, 24, 96, 4, 32, false, false, "affine_gather_qmv_float16_t_gs_32_b_4"},
		{2, 3, 4, 8, 512, 4, 64, true, false, "affine_gather_qmv_fast_bfloat16_t_gs_64_b_4"},
		{3, 2, 4, 24, 128, 8, 64, true, true, "gather_qmv_bfloat16_t_gs_64_b_8"},
		{41, 25, 3, 2, 32, 6, 32, true, false, "gather_qmv_float16_t_gs_32_b_6"},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(c.rows), uint64(c.k)))
			r := record.New("t")
			shape := []int64{c.rows, c.k}
			count := c.rows * c.k
			if c.each {
				shape, count = []int64{c.rows, c.slots, c.k}, count*c.slots
			}
			xs := make([]float32, count)
			for i := range xs {
				xs[i] = float32(rng.IntN(9) - 4)
			}
			x := r.Input("x", c.typ(), shape...)
			ids := make([]uint32, c.rows*c.slots)
			for i := range ids {
				ids[i] = uint32(rng.IntN(int(c.e)))
			}
			if len(ids) > 3 {
				ids[2], ids[3] = uint32(c.e), math.MaxUint32
			}
			// at returns element k of row n of matrix e. Elements are small integers, so
			// that sums are exact in any order.
			matrix, at := c.experts(r, rng)
			id, to := r.Input("ids", ir.U32, c.rows, c.slots), r.Output("y", c.typ(), c.rows, c.slots, c.n)
			params := map[string]float64{}
			if c.param {
				rows := r.Param("rows", 1, uint32(c.rows))
				params["rows"] = float64(c.rows)
				for _, tensor := range []*record.Tensor{&x, &id, &to} {
					tensor.Shape[0] = rows
				}
			}
			r.GatherMatmul(x, matrix, id, record.Into(to))
			g, err := r.Graph()
			require.NoError(t, err)
			require.Equal(t, c.want, g.Kernels[0].Function)
			out, err := evaluateBytes(g, map[string][]byte{"x": record.Elements(c.typ(), xs), "ids": words(ids...)}, params)
			require.NoError(t, err)
			for i, id := range ids {
				row := int64(i) / c.slots
				if c.each {
					row = int64(i)
				}
				for n := range c.n {
					want := float32(0)
					for k := range c.k {
						if int64(id) < c.e {
							want += xs[row*c.k+k] * at(int64(id), n, k)
						} else {
							want = float32(math.NaN())
						}
					}
					at := (int64(i)*c.n + n) * c.typ().Size()
					require.Equal(t, record.Elements(c.typ(), []float32{want}), out["y"][at:at+c.typ().Size()], "slot %d, element %d, want %v", i, n, want)
				}
			}
		})
	}
}

// typ is the type of vectors and results.
func (c *gatherCase) typ() ir.DType {
	switch {
	case strings.Contains(c.want, "bfloat16"):
		return ir.BF16
	case strings.Contains(c.want, "float16_t") || strings.HasSuffix(c.want, "_float16"):
		return ir.F16
	}
	return ir.F32
}

// experts makes a stack of matrices, and a function that returns an element of it.
func (c *gatherCase) experts(r *record.Session, rng *rand.Rand) (record.Matrix, func(e, n, k int64) float32) {
	if c.group == 0 {
		v := make([]float32, c.e*c.n*c.k)
		var halves []byte
		for i := range v {
			v[i] = float32(rng.IntN(3))
			halves = binary.LittleEndian.AppendUint16(halves, []uint16{0, 0x3c00, 0x4000}[int(v[i])])
		}
		at := func(e, n, k int64) float32 { return v[(e*c.n+n)*c.k+k] }
		if c.typ() == ir.BF16 {
			return record.Dense(r.Weight("experts", ir.NewBlob(record.Elements(ir.BF16, v)), ir.BF16, c.e, c.n, c.k)), at
		}
		if c.bits == 16 {
			return record.Dense(r.Weight("experts", ir.NewBlob(halves), ir.F16, c.e, c.n, c.k)), at
		}
		return record.Dense(r.Weight("experts", ir.NewBlob(f32s(v...)), ir.F32, c.e, c.n, c.k)), at
	}
	codes := make([]byte, c.e*c.n*c.k*c.bits/8)
	for i := range codes {
		codes[i] = byte(rng.Uint32())
	}
	groups := c.e * c.n * c.k / c.group
	scales, biases := make([]float32, groups), make([]float32, groups)
	for i := range groups {
		scales[i], biases[i] = float32(rng.IntN(3)-1), float32(rng.IntN(5)-2)
	}
	q := record.Quantized(record.QTensor{
		W:      r.Weight("w", ir.NewBlob(codes), ir.U32, c.e, c.n, c.k*c.bits/32),
		Scales: r.Weight("s", ir.NewBlob(record.Elements(c.typ(), scales)), c.typ(), c.e, c.n, c.k/c.group),
		Biases: r.Weight("b", ir.NewBlob(record.Elements(c.typ(), biases)), c.typ(), c.e, c.n, c.k/c.group),
		N:      c.n, K: c.k, Bits: c.bits, Group: c.group,
	})
	return q, func(e, n, k int64) float32 {
		i := (e*c.n+n)*c.k + k
		code := 0
		for bit := range c.bits {
			at := i*c.bits + bit
			code |= int(codes[at/8]>>(at%8)&1) << bit
		}
		return scales[i/c.group]*float32(code) + biases[i/c.group]
	}
}

// The number of rows of a layer with dense experts may be a param.
func TestMoEOfParams(t *testing.T) {
	r := record.New("t")
	n := r.Param("n", 1, 5)
	x, y := r.Input("x", ir.F32, 5, 3), r.Output("y", ir.F32, 5, 2)
	x.Shape[0], y.Shape[0] = n, n
	gate := r.Weight("gate", ir.NewBlob(f32s(1, 0, 0, 0, 1, 0, 0, 0, 1)), ir.F32, 3, 3)
	experts := r.Weight("experts", ir.NewBlob(f32s(1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0)), ir.F32, 3, 2, 3)
	ids, logits := r.TopK(r.Matmul(x, record.Dense(gate)), 2)
	r.WeightedSum(r.GatherMatmul(x, record.Dense(experts), ids), r.Softmax(logits), record.Into(y))
	out, err := evaluate(r, map[string][]byte{"x": f32s(7, 7, -90, -90, 5, 5, 1000, 2, 3)}, map[string]float64{"n": 3})
	require.NoError(t, err)
	// Experts 0 and 1 of (7, 7, −90); 1 and 2 of (−90, 5, 5); 0 of (1000, 2, 3).
	require.Equal(t, []float32{7, (7.0 - 90) / 2, (5.0 - 80) / 2, 2.5, 1000, 2}, asFloats(out["y"])[:6])
}

func TestMoEMistakes(t *testing.T) {
	stack := func(r *record.Session, t ir.DType, shape ...int64) record.Matrix {
		return record.Dense(r.RandomWeight("w", 1, t, shape...))
	}
	quantized := func(r *record.Session) record.QTensor {
		return record.QTensor{
			W: r.RandomWeight("w", 1, ir.U32, 4, 8, 8), Scales: r.RandomWeight("s", 2, ir.F32, 4, 8, 2), Biases: r.RandomWeight("b", 3, ir.F32, 4, 8, 2),
			N: 8, K: 64, Bits: 4, Group: 32,
		}
	}
	for _, c := range []struct {
		want string
		make func(r *record.Session)
	}{
		{"softcap: the cap is 0, want a finite number above 0", func(r *record.Session) { r.Softcap(r.Input("x", ir.F32, 8), 0) }},
		{"topk: k is 9 for rows of 8 elements, [2, 8]: want 1 to 8", func(r *record.Session) { r.TopK(r.Input("x", ir.F32, 2, 8), 9) }},
		{"topk: k is 0 for rows of 8 elements, [2, 8]: want 1 to 8", func(r *record.Session) { r.TopK(r.Input("x", ir.F32, 2, 8), 0) }},
		{"topk gives u32[2, 3], Into has u32[2, 4]", func(r *record.Session) {
			r.TopK(r.Input("x", ir.F32, 2, 8), 3, record.Into(r.Output("y", ir.U32, 2, 4)))
		}},
		{"topk: there are more options Into than results", func(r *record.Session) {
			into := record.Into(r.Output("y", ir.U32, 2, 3))
			r.TopK(r.Input("x", ir.F32, 2, 8), 3, into, into)
		}},
		{"sum_rows: there are more options Into than results", func(r *record.Session) {
			x, into := r.Input("x", ir.F32, 2, 8), record.Into(r.Output("y", ir.F32, 8))
			r.LayerNormGrad(x, record.Tensor{}, x, 1e-5, record.Into(r.Output("gx", ir.F32, 2, 8)), into, into)
		}},
		{"topk gives u32 indices and f32 elements, Into has f16[2, 3]", func(r *record.Session) {
			r.TopK(r.Input("x", ir.F32, 2, 8), 3, record.Into(r.Output("y", ir.F16, 2, 3)))
		}},
		{"gather_matmul: dense experts are f32[4, 8]: want row-contiguous f32 [E, N, K], or f16", func(r *record.Session) {
			r.GatherMatmul(r.Input("x", ir.F32, 2, 8), stack(r, ir.F32, 4, 8), r.Input("ids", ir.U32, 2, 3))
		}},
		{"gather_matmul: ids are i32[2, 3]: want row-contiguous u32 [T, k], k constant", func(r *record.Session) {
			r.GatherMatmul(r.Input("x", ir.F32, 2, 8), stack(r, ir.F32, 4, 5, 8), r.Input("ids", ir.I32, 2, 3))
		}},
		{"gather_matmul: x [2, 9] with ids [2, 3] and matrices [4, 5, 8]: want row-contiguous x [T, K] or [T, k, K] for ids [T, k] and matrices [E, N, K]", func(r *record.Session) {
			r.GatherMatmul(r.Input("x", ir.F32, 2, 9), stack(r, ir.F32, 4, 5, 8), r.Input("ids", ir.U32, 2, 3))
		}},
		{"gather_matmul: x [2, 4, 8] with ids [2, 3] and matrices [4, 5, 8]: want row-contiguous x [T, K] or [T, k, K] for ids [T, k] and matrices [E, N, K]", func(r *record.Session) {
			r.GatherMatmul(r.Input("x", ir.F32, 2, 4, 8), stack(r, ir.F32, 4, 5, 8), r.Input("ids", ir.U32, 2, 3))
		}},
		{"topk: a tensor has at least one dimension", func(r *record.Session) { r.TopK(r.Input("x", ir.F32), 1) }},
		{"gather_matmul: quantized experts [0, 0] of 0 bits in groups of 0: each row must be whole groups and whole 32-bit words", func(r *record.Session) {
			r.GatherMatmul(r.Input("x", ir.F32, 2, 8), record.Quantized(record.QTensor{}), r.Input("ids", ir.U32, 2, 3))
		}},
		{"gather_matmul: quantized experts [8, 80] of 4 bits in groups of 32: each row must be whole groups and whole 32-bit words", func(r *record.Session) {
			q := quantized(r)
			q.K = 80
			r.GatherMatmul(r.Input("x", ir.F32, 2, 80), record.Quantized(q), r.Input("ids", ir.U32, 2, 3))
		}},
		{"gather_matmul: quantized experts have codes of type u32, scales of type f16 and biases of type f32: want u32, f32 and f32", func(r *record.Session) {
			q := quantized(r)
			q.Scales = r.RandomWeight("half", 2, ir.F16, 4, 8, 2)
			r.GatherMatmul(r.Input("x", ir.F32, 2, 64), record.Quantized(q), r.Input("ids", ir.U32, 2, 3))
		}},
		{"gather_matmul: quantized experts have codes [4, 8, 8], scales [4, 8, 2] and biases [4, 8, 2]: want [4, 8, 16] and twice [4, 8, 4] for 4 matrices [8, 128] of 4 bits in groups of 32", func(r *record.Session) {
			q := quantized(r)
			q.K = 128
			r.GatherMatmul(r.Input("x", ir.F32, 2, 128), record.Quantized(q), r.Input("ids", ir.U32, 2, 3))
		}},
		{"gather_matmul: quantized experts have codes [32, 8], scales [4, 8, 2] and biases [4, 8, 2]: want row-contiguous [E, N, K·bits/32] and twice [E, N, K/group]", func(r *record.Session) {
			q := quantized(r)
			q.W = q.W.Reshape(record.Dims(32, 8)...)
			r.GatherMatmul(r.Input("x", ir.F32, 2, 64), record.Quantized(q), r.Input("ids", ir.U32, 2, 3))
		}},
		{"weighted_sum: x [2, 3, 8] with weights [3, 2]: want row-contiguous [T, k, N] and [T, k]", func(r *record.Session) {
			r.WeightedSum(r.Input("x", ir.F32, 2, 3, 8), r.Input("w", ir.F32, 3, 2))
		}},
	} {
		r := record.New("t")
		c.make(r)
		_, err := r.Graph()
		requireMistake(t, err, "record t: "+c.want)
	}
}
