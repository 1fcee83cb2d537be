package record_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// TestMLXMistakes: operands that do not fit are errors that say what does not, at the call.
func TestMLXMistakes(t *testing.T) {
	var none record.Tensor
	for name, c := range map[string]struct {
		do   func(m record.MLX, x, y, ids record.Tensor)
		want string
	}{
		"name":      {func(m record.MLX, x, y, ids record.Tensor) { m.Elementwise("sort", []record.Tensor{x}) }, "no elementwise operation of 1 operands is called sort"},
		"number":    {func(m record.MLX, x, y, ids record.Tensor) { m.Elementwise("add", []record.Tensor{x}) }, "no elementwise operation of 1 operands is called add"},
		"broadcast": {func(m record.MLX, x, y, ids record.Tensor) { m.Elementwise("add", []record.Tensor{x, y}) }, "add: [6, 8] cannot be broadcast to [4, 6]"},
		"types":     {func(m record.MLX, x, y, ids record.Tensor) { m.Elementwise("add", []record.Tensor{x, ids}) }, "add takes operands of one type, not f32 and u32: AsType converts"},
		"axis":      {func(m record.MLX, x, y, ids record.Tensor) { m.Sort(x, 2) }, "sort: [4, 6] has no axis 2"},
		"axes":      {func(m record.MLX, x, y, ids record.Tensor) { m.Reduce("sum", x, []int{1, 1}) }, "sum: the axes [1 1] do not ascend"},
		"no axes":   {func(m record.MLX, x, y, ids record.Tensor) { m.Reduce("mean", x, []int{1}) }, "mean over the axes [1]: want sum, prod, max, min, and, or"},
		"left out":  {func(m record.MLX, x, y, ids record.Tensor) { m.Take(x, none) }, "take: operand 1 is a zero Tensor"},
		"inner":     {func(m record.MLX, x, y, ids record.Tensor) { m.AddMM(x, x, none, 1, 0) }, "addmm: [4, 6] times [4, 6]: the inner dimensions differ"},
		"weight":    {func(m record.MLX, x, y, ids record.Tensor) { m.RMSNorm(x, y, 1) }, "rms_norm: a weight is f32[6, 8]: want f32[6]"},
		"bits":      {func(m record.MLX, x, y, ids record.Tensor) { m.Quantize(x, 7, 0) }, "quantize: MLX has [2 3 4 5 6 8] bits in groups of [32 64 128], not 7 bits in groups of 0"},
		"attention": {func(m record.MLX, x, y, ids record.Tensor) { m.Attention(x, x, x, none, none, 1, false) }, "want [batch, heads, rows, elements]"},
		"rope": {func(m record.MLX, x, y, ids record.Tensor) {
			m.Rope(x.Reshape(record.Dims(1, 4, 6)...), ids.Slice(ir.Const(0), ir.Const(1)), none, record.Rope{Dims: 7})
		}, "rope: 7 of the elements of rows [1, 4, 6]"},
		"parts": {func(m record.MLX, x, y, ids record.Tensor) { m.Concatenate(1, []record.Tensor{x, y}) }, "concatenate: a part is f32[6, 8]: want f32[4, 8]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := record.New("t")
			c.do(s.MLX(), s.Input("x", ir.F32, 4, 6), s.Input("y", ir.F32, 6, 8), s.Input("ids", ir.U32, 3))
			require.Error(t, s.Err())
			assert.Contains(t, s.Err().Error(), c.want)
		})
	}
}

// TestMLXAnything: whatever operands and numbers it is given, an operation is recorded or is an error.
func TestMLXAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	good := 0
	for range 4000 {
		s := record.New("t")
		n := 0
		tensor := func() record.Tensor {
			if r.IntN(8) == 0 {
				return record.Tensor{}
			}
			types := []ir.DType{ir.F32, ir.F32, ir.F16, ir.BF16, ir.U32, ir.I32, ir.Bool}
			shape := make([]int64, r.IntN(5))
			for i := range shape {
				shape[i] = []int64{1, 2, 4, 32, 64}[r.IntN(5)]
			}
			n++
			x := s.Input(string(rune('a'+n)), types[r.IntN(len(types))], shape...)
			if len(shape) > 1 && r.IntN(3) == 0 {
				x = x.Transpose(0, len(shape)-1)
			}
			return x
		}
		x, y, z, u, v := tensor(), tensor(), tensor(), tensor(), tensor()
		i, b := r.IntN(6)-1, r.IntN(2) == 0
		w := record.AffineMatrix{Codes: y, Scales: z, Biases: u, Bits: int64(r.IntN(10) - 1), Group: int64(r.IntN(5) * 32), Transposed: b}
		m := s.MLX()
		switch r.IntN(22) {
		case 0:
			m.Elementwise([]string{"exp", "add", "less", "sort", ""}[r.IntN(5)], []record.Tensor{x, y}[:1+r.IntN(2)])
		case 1:
			m.AsType(x, ir.DType(r.IntN(20)))
		case 2:
			m.Contiguous(x)
		case 3:
			m.Where(x, y, z)
		case 4:
			m.Reduce([]string{"sum", "max", "and", "mean"}[r.IntN(4)], x, [][]int{{i}, {0, i}, {}}[r.IntN(3)])
		case 5:
			m.ArgReduce([]string{"argmin", "argmax", "x"}[r.IntN(3)], x, i)
		case 6:
			m.CumSum(x, i, b, r.IntN(2) == 0)
		case 7:
			m.Sort(x, i)
		case 8:
			m.ArgSort(x, i)
		case 9:
			m.Take(x, y)
		case 10:
			m.TakeAlongAxis(x, y, i)
		case 11:
			m.Concatenate(i, []record.Tensor{x, y, z}[:r.IntN(4)])
		case 12:
			m.Softmax(x, b)
			m.LogSumExp(x)
		case 13:
			m.RMSNorm(x, y, 1e-5)
		case 14:
			m.RMSNormVJP(x, y, z, 1e-5)
		case 15:
			m.LayerNormVJP(x, y, z, u, 1e-5)
		case 16:
			m.Rope(x, y, z, record.Rope{Dims: int64(r.IntN(70) - 2), Traditional: b, Base: 1e4, Scale: 1})
		case 17:
			m.Attention(x, y, z, u, v, 0.1, b)
		case 18:
			m.AddMM(x, y, z, 1, 2)
		case 19:
			m.GatherMM(x, y, z, u, b)
		case 20:
			m.QuantizedMatmul(x, w)
			m.GatherQMM(x, w, v, v, b)
			m.Dequantize(w)
		case 21:
			m.Quantize(x, w.Bits, w.Group)
		}
		if s.Err() == nil {
			good++
		}
	}
	assert.Greater(t, good, 100)
}
