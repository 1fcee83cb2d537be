package record_test

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
	"github.com/mlxc/mlxc/record"
)

// everyOperation records the operations of a session on operands of type of, with their results as outputs. Operands
// are states, whose names it returns with their numbers of elements.
func everyOperation(r *record.Session, of ir.DType) map[string]int64 {
	operands := map[string]int64{}
	in := func(name string, shape ...int64) record.Tensor {
		t := r.State(name, of, shape...)
		operands[name] = t.Elements().Const
		return t
	}
	to := func(name string, t ir.DType, shape ...int64) record.Option {
		return record.Into(r.Output(name, t, shape...))
	}
	x, y, row, square := in("x", 6, 64), in("y", 6, 64), in("row", 64), in("square", 64, 64)
	one := x.Rows(ir.Const(0), ir.Const(1))
	r.Add(x, y, to("add", of, 6, 64))
	r.Sub(x, y, to("sub", of, 6, 64))
	r.Sub(x, row, to("sub a row", of, 6, 64))
	r.Mul(x, row, to("mul by a row", of, 6, 64))
	r.Scale(x, record.Float(0.3), to("scale", of, 6, 64))
	r.Relu(x, to("relu", of, 6, 64))
	r.Silu(x, to("silu", of, 6, 64))
	r.Sigmoid(x, to("sigmoid", of, 6, 64))
	r.Gelu(x, to("gelu", of, 6, 64))
	r.GeluErf(x, to("gelu_erf", of, 6, 64))
	r.Softcap(x, 3, to("softcap", of, 6, 64))
	r.Softmax(x, to("softmax", of, 6, 64))
	r.RMSNorm(x, 1e-5, to("rms_norm", of, 6, 64))
	r.LayerNorm(x, row, row, 1e-5, to("layer_norm", of, 6, 64))
	r.LayerNormGrad(x, row, y, 1e-5, to("gx", of, 6, 64), to("gw", of, 64), to("gb", of, 64))
	r.SumRows(x, to("sum_rows", of, 64))
	r.Argmax(x, to("argmax", ir.U32, 6))
	r.TopK(x, 3, to("ids", ir.U32, 6, 3), to("top", of, 6, 3))
	r.Sample(x, record.Sampling{Temp: record.Float(0), TopP: record.Float(1)}, to("sample", ir.U32, 6))
	r.Matmul(one, record.Dense(square), to("matmul of one row", of, 1, 64))
	r.Matmul(x, record.Dense(square), to("matmul", of, 6, 64))
	r.Matmul(x, record.Dense(y), to("matmul by few rows", of, 6, 6))
	r.Matmul(one, record.Dense(y.Rows(ir.Const(0), ir.Const(1))), to("matmul of two rows", of, 1, 1))
	r.MatmulNN(x, square, to("matmul_nn", of, 6, 64))
	r.MatmulTN(x, y, to("matmul_tn", of, 64, 64))
	r.WeightedSum(in("experts", 3, 2, 64), in("weights", 3, 2), to("weighted_sum", of, 3, 64))
	r.Rope(in("heads", 5, 2, 64), ir.Const(3), 1e4, false, to("rope", of, 5, 2, 64))
	cache := in("cache", 8, 2, 64)
	r.SDPA(in("queries", 5, 4, 64), cache, cache, ir.Const(8), 0.125, to("sdpa", of, 5, 4, 64))
	r.CopyTo("copy", r.Output("copy", of, 64, 64), square.Transpose(0, 1))
	ids := r.StateFrom("which", ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(ir.ValueBytes([]uint32{5, 0, 63}))}, ir.I32, 3)
	if of == ir.F32 {
		r.Embed(ids, record.Dense(square), to("embed", of, 3, 64))
		r.Elementwise("out0[i] = round(f32, in0[i] * in0[i] + s0)", []record.Tensor{x}, []record.Scalar{record.Float(1)}, to("elementwise", of, 6, 64))
		return operands
	}
	r.EmbedNarrow(ids, square, to("embed", of, 3, 64))
	name := of.String()
	r.Elementwise("out0[i] = round("+name+", in0_"+name+"[i] * in0_"+name+"[i] + s0)", []record.Tensor{x}, []record.Scalar{record.Float(1)}, to("elementwise", of, 6, 64))
	return operands
}

// widened returns what memory of a type holds.
func widened(t ir.DType, b []byte) (out []float64) {
	for i := 0; i < len(b); i += int(t.Size()) {
		switch t {
		case ir.F16:
			out = append(out, term.F16Value(binary.LittleEndian.Uint16(b[i:])))
		case ir.BF16:
			out = append(out, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[i:]))<<16)))
		case ir.F32:
			out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))))
		default:
			out = append(out, float64(binary.LittleEndian.Uint32(b[i:])))
		}
	}
	return out
}

// Every operation of a session takes f16 and bf16, and computes what it does in f32 but for roundings to the type.
func TestEveryOperationIn16Bits(t *testing.T) {
	operands := everyOperation(record.New("t"), ir.F32)
	r := rand.New(rand.NewPCG(1, 44))
	numbers := map[string][]float32{}
	for _, name := range slices.Sorted(maps.Keys(operands)) {
		for range operands[name] {
			numbers[name] = append(numbers[name], float32(r.IntN(255)-127)/64) // all types have these
		}
	}
	of := func(dtype ir.DType) (*ir.Graph, map[string][]float64) {
		in := map[string][]byte{}
		for name, x := range numbers {
			in[name] = record.Elements(dtype, x)
		}
		g, bytes := replayedBytes(t, func(r *record.Session) { everyOperation(r, dtype) }, in, nil)
		out := map[string][]float64{}
		for _, m := range g.Memories {
			if m.Kind == ir.Output {
				out[m.Name] = widened(m.DType, bytes[m.Name])
			}
		}
		return g, out
	}
	_, want := of(ir.F32)
	for dtype, unit := range map[ir.DType]float64{ir.F16: 1.0 / (1 << 11), ir.BF16: 1.0 / (1 << 8)} {
		g, got := of(dtype)
		for _, m := range g.Memories {
			require.False(t, m.DType == ir.F32 && m.Kind == ir.Output, "%s of %s", m.Name, dtype)
		}
		for name, w := range want {
			exact := map[string]bool{"argmax": true, "ids": true, "top": true, "sample": true, "copy": true, "embed": true, "relu": true}[name]
			for i := range w {
				if d := math.Abs(got[name][i] - w[i]); d > 8*unit*(1+math.Abs(w[i])) || exact && d != 0 { // goldens are exact
					t.Errorf("%s in %s, element %d: %v, in f32 %v", name, dtype, i, got[name][i], w[i])
					break
				}
			}
		}
	}
}
