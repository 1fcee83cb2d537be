package record

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Tensor is an array in a memory: an element type, a shape whose dimensions
// may depend on params, and strides. Tensors are values: slicing one gives
// another of the same memory, and no place but the tensor's own says where it
// lies. Every one comes from an encoder and is of use with that one only; its
// fields may be changed, but copies share the elements of Shape and Strides: give
// a copy a new slice.
type Tensor struct {
	Mem     ir.MemID
	owner   uint32    // the encoder
	Off     ir.Affine // bytes
	DType   ir.DType
	Shape   []ir.Affine
	Strides []int64 // elements

	serial uint32 // of the allocation that it is part of; 0: declared memory
	stack  uint32 // of the arena: 1 + its index in the list of what lives

	bad *string // why there is no such view; whoever uses it says so
}

// wrong makes t a view that cannot be used. Slicing has no encoder to report to, so the
// operation that uses t reports what is wrong.
func (t Tensor) wrong(format string, args ...any) Tensor {
	if t.bad == nil {
		s := fmt.Sprintf(format, args...)
		t.bad = &s
	}
	return t
}

// Dims makes constant dimensions.
func Dims(ns ...int64) []ir.Affine {
	out := make([]ir.Affine, len(ns))
	for i, n := range ns {
		out[i] = ir.Const(n)
	}
	return out
}

// contiguous returns the row-contiguous strides of shape, whose outermost
// dimension alone may depend on params.
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

// Row returns row i of the outermost dimension; i may depend on params. It is
// compared with the size of the memory, not with the shape.
func (t Tensor) Row(i ir.Affine) Tensor {
	if t.Rank() == 0 {
		return t.wrong("Row of a tensor without dimensions")
	}
	t.Off = t.Off.Add(i.Scale(t.Strides[0] * t.DType.Size()))
	t.Shape, t.Strides = t.Shape[1:], t.Strides[1:]
	return t
}

// Rows returns n rows of the outermost dimension from row i on; both may depend
// on params. They are compared with the size of the memory, not with the shape.
func (t Tensor) Rows(i, n ir.Affine) Tensor {
	if t.Rank() == 0 {
		return t.wrong("Rows of a tensor without dimensions")
	}
	t.Off = t.Off.Add(i.Scale(t.Strides[0] * t.DType.Size()))
	t.Shape = append([]ir.Affine{n}, t.Shape[1:]...)
	return t
}

// Slice returns n bytes of t from byte off of it on, as a tensor of u8: offsets
// add up, so that a slice of a slice lies where one expects it.
func (t Tensor) Slice(off, n ir.Affine) Tensor {
	if v := t.view(); off.IsConst() && n.IsConst() && v.Len.IsConst() && (off.Const < 0 || n.Const < 0 || off.Const > v.Len.Const-n.Const) {
		return t.wrong("Slice of %d bytes from byte %d on of a tensor of %d", n.Const, off.Const, v.Len.Const)
	}
	t.Off, t.DType = t.Off.Add(off), ir.U8
	t.Shape, t.Strides = []ir.Affine{n}, []int64{1}
	return t
}

// region returns the bytes of t's elements, without those between them.
func (t Tensor) region() ir.Region {
	r := ir.Region{Mem: t.Mem, Off: t.Off, Run: ir.Const(t.DType.Size())}
	for i := len(t.Shape) - 1; i >= 0; i-- {
		step := t.Strides[i] * t.DType.Size()
		if len(r.Dims) == 0 && r.Run.IsConst() && r.Run.Const == step {
			r.Run = t.Shape[i].Scale(step) // runs that touch are one
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
		if d.IsConst() && d.Const == 1 { // its stride says nothing
			continue
		}
		if t.Strides[i] != step || i > 0 && !d.IsConst() {
			return false
		}
		step *= d.Const
	}
	return true
}

// Reshape gives a row-contiguous tensor another shape of as many elements: a
// view, no dispatch.
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

// Transpose swaps dimensions i and j: a view, no dispatch.
func (t Tensor) Transpose(i, j int) Tensor {
	if n := t.Rank(); i < 0 || j < 0 || i >= n || j >= n {
		return t.wrong("Transpose of dimensions %d and %d of %d", i, j, n)
	}
	t.Shape, t.Strides = append([]ir.Affine(nil), t.Shape...), append([]int64(nil), t.Strides...)
	t.Shape[i], t.Shape[j] = t.Shape[j], t.Shape[i]
	t.Strides[i], t.Strides[j] = t.Strides[j], t.Strides[i]
	return t
}

// QTensor is a matrix [N, K] in MLX's affine quantization: code q of group g
// means scale[g]·q + bias[g].
type QTensor struct {
	W              Tensor // u32 [N, K·Bits/32]
	Scales, Biases Tensor // f32 [N, K/Group]
	N, K           int64
	Bits, Group    int64
}

// Matrix is a weight matrix [N, K]: quantized, or dense f32 or f16.
type Matrix struct {
	Q     *QTensor
	Dense Tensor
}

// Quantized makes a Matrix of q.
func Quantized(q QTensor) Matrix { return Matrix{Q: &q} }

// Dense makes a Matrix of a dense [N, K] tensor.
func Dense(t Tensor) Matrix { return Matrix{Dense: t} }

func (m Matrix) dims() (n, k int64) {
	if m.Q != nil {
		return m.Q.N, m.Q.K
	}
	return m.Dense.Shape[0].Const, m.Dense.Shape[1].Const
}
