package record

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Tensor is an array in a memory: an offset, an element type, a shape, of which the
// outermost dimension may depend on params, and strides. Tensors are values: slicing one
// returns another tensor of the same memory. A tensor can be used only with the encoder
// that it comes from. Its fields may be changed, but copies share the elements of Shape and
// Strides, so replace these slices and do not write into them.
type Tensor struct {
	Mem     ir.MemID
	owner   uint32      // the number of the encoder
	Off     ir.Affine   // in bytes
	DType   ir.DType    // of the elements
	Shape   []ir.Affine // outermost dimension first
	Strides []int64     // in elements

	serial uint32 // the allocation that it is a part of; 0: declared memory
	stack  uint32 // in the arena: 1 + the index of its allocation in arena.taken; else 0

	bad *string // why the tensor cannot be used, or nil
}

// wrong makes t a tensor that cannot be used. Slicing has no encoder to which it could
// report a mistake, so the operation that uses t reports it.
func (t Tensor) wrong(format string, args ...any) Tensor {
	if t.bad == nil {
		s := fmt.Sprintf(format, args...)
		t.bad = &s
	}
	return t
}

// Dims returns constant dimensions, for shapes.
func Dims(ns ...int64) []ir.Affine {
	out := make([]ir.Affine, len(ns))
	for i, n := range ns {
		out[i] = ir.Const(n)
	}
	return out
}

// contiguous returns the row-contiguous strides of shape. Only the outermost dimension may
// depend on params.
func contiguous(shape []ir.Affine) ([]int64, error) {
	strides := make([]int64, len(shape))
	return strides, fillContiguous(strides, shape)
}

func fillContiguous(strides []int64, shape []ir.Affine) error {
	step := ir.Const(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if !step.IsConst() {
			return fmt.Errorf("only the outermost dimension of a tensor may depend on params")
		}
		strides[i] = step.Const
		step = shape[i].Scale(step.Const)
	}
	return nil
}

// Rank returns the number of dimensions.
func (t Tensor) Rank() int { return len(t.Shape) }

// Elements returns the number of elements of a row-contiguous tensor.
func (t Tensor) Elements() ir.Affine {
	n := ir.Const(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		n = t.Shape[i].Scale(n.Const)
	}
	return n
}

// view returns the bytes from the tensor's first to its last element.
func (t *Tensor) view() ir.View {
	n, constant := int64(1), true
	for i := range t.Shape {
		if constant = constant && t.Shape[i].IsConst(); constant {
			n += (t.Shape[i].Const - 1) * t.Strides[i]
		}
	}
	if constant {
		return ir.View{Mem: t.Mem, Off: t.Off, Len: ir.Const(n * t.DType.Size())}
	}
	last := ir.Const(1)
	for i, d := range t.Shape {
		last = last.Add(d.AddConst(-1).Scale(t.Strides[i]))
	}
	return ir.View{Mem: t.Mem, Off: t.Off, Len: last.Scale(t.DType.Size())}
}

// Row returns row i of the outermost dimension, a tensor of one dimension less. i may
// depend on params. It may go beyond the shape of t, but not beyond the memory.
func (t Tensor) Row(i ir.Affine) Tensor {
	if t.Rank() == 0 {
		return t.wrong("Row of a tensor without dimensions")
	}
	t.Off = t.Off.Add(i.Scale(t.Strides[0] * t.DType.Size()))
	t.Shape, t.Strides = t.Shape[1:], t.Strides[1:]
	return t
}

// Rows returns n rows of the outermost dimension from row i on. Both may depend on params.
// They may go beyond the shape of t, but not beyond the memory.
func (t Tensor) Rows(i, n ir.Affine) Tensor {
	if t.Rank() == 0 {
		return t.wrong("Rows of a tensor without dimensions")
	}
	t.Off = t.Off.Add(i.Scale(t.Strides[0] * t.DType.Size()))
	t.Shape = append([]ir.Affine{n}, t.Shape[1:]...)
	return t
}

// Slice returns n bytes of t from its byte off on, as a tensor of u8. off counts from the
// beginning of t, not of the memory.
func (t Tensor) Slice(off, n ir.Affine) Tensor {
	if v := t.view(); off.IsConst() && n.IsConst() && v.Len.IsConst() && (off.Const < 0 || n.Const < 0 || off.Const > v.Len.Const-n.Const) {
		return t.wrong("Slice of %d bytes from byte %d on of a tensor of %d", n.Const, off.Const, v.Len.Const)
	}
	t.Off, t.DType = t.Off.Add(off), ir.U8
	t.Shape, t.Strides = []ir.Affine{n}, []int64{1}
	return t
}

// region returns the bytes of t's elements, without the gaps between them.
func (t Tensor) region() ir.Region {
	r := ir.Region{Mem: t.Mem, Off: t.Off, Run: ir.Const(t.DType.Size())}
	for i := len(t.Shape) - 1; i >= 0; i-- {
		step := t.Strides[i] * t.DType.Size()
		if len(r.Dims) == 0 && r.Run.IsConst() && r.Run.Const == step {
			r.Run = t.Shape[i].Scale(step) // runs without a gap between them become one
			continue
		}
		r.Dims = append(r.Dims, ir.Dim{Count: t.Shape[i], Stride: step})
	}
	slices.Reverse(r.Dims)
	return r
}

// contiguous reports whether the elements lie one after another.
func (t Tensor) contiguous() bool {
	if len(t.Shape) != len(t.Strides) {
		return false
	}
	step := int64(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		d := t.Shape[i]
		if d.IsConst() && d.Const == 1 { // the stride of a single element does not matter
			continue
		}
		if t.Strides[i] != step || i > 0 && !d.IsConst() {
			return false
		}
		step *= d.Const
	}
	return true
}

// Reshape returns a row-contiguous tensor in another shape with as many elements. It copies
// nothing.
func (t Tensor) Reshape(shape ...ir.Affine) Tensor {
	strides, err := contiguous(shape)
	if err != nil {
		return t.wrong("Reshape: %v", err)
	}
	if !t.contiguous() {
		return t.wrong("Reshape of a tensor with strides %v, which is not row-contiguous", t.Strides)
	}
	n := ir.Const(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i].IsConst() && shape[i].Const < 1 {
			return t.wrong("Reshape: a dimension of %d", shape[i].Const)
		}
		n = shape[i].Scale(n.Const)
	}
	if have := t.Elements(); !have.Equal(n) {
		number := func(ir.ParamID) string { return "param" }
		return t.wrong("Reshape of %s elements to %s", have.Format(number), n.Format(number))
	}
	t.Shape, t.Strides = shape, strides
	return t
}

// Transpose returns t with dimensions i and j swapped. It copies nothing.
func (t Tensor) Transpose(i, j int) Tensor {
	if n := t.Rank(); i < 0 || j < 0 || i >= n || j >= n {
		return t.wrong("Transpose of dimensions %d and %d of %d", i, j, n)
	}
	t.Shape, t.Strides = append([]ir.Affine(nil), t.Shape...), append([]int64(nil), t.Strides...)
	t.Shape[i], t.Shape[j] = t.Shape[j], t.Shape[i]
	t.Strides[i], t.Strides[j] = t.Strides[j], t.Strides[i]
	return t
}

// QTensor is a matrix [N, K] in MLX's affine quantization: a code q in group g of a row
// stands for the weight scale[g]·q + bias[g].
type QTensor struct {
	W              Tensor // u32 [N, K·Bits/32]: codes, the first one in the lowest bits
	Scales, Biases Tensor // f32 [N, K/Group]
	N, K           int64
	Bits, Group    int64 // bits of a code, and codes that share a scale and a bias
}

// Matrix is a weight matrix [N, K]: quantized, in a block format of GGML, or dense f32 or f16.
type Matrix struct {
	Q     *QTensor
	GGML  *GGMLMatrix
	Dense Tensor
}

// Quantized returns q as a [Matrix].
func Quantized(q QTensor) Matrix { return Matrix{Q: &q} }

// Blocks returns m as a [Matrix].
func Blocks(m GGMLMatrix) Matrix { return Matrix{GGML: &m} }

// Dense returns a dense [N, K] tensor as a [Matrix].
func Dense(t Tensor) Matrix { return Matrix{Dense: t} }

func (m Matrix) dims() (n, k int64) {
	if m.Q != nil {
		return m.Q.N, m.Q.K
	}
	if m.GGML != nil {
		return m.GGML.N, m.GGML.K
	}
	return m.Dense.Shape[0].Const, m.Dense.Shape[1].Const
}
