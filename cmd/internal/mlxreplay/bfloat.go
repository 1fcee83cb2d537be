package mlxreplay

import (
	"fmt"

	"github.com/mlxc/mlxc/cmd/internal/npy"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// NumPy has no bfloat16: elements of that type are written as float32, which holds each of them, and read from
// float32, rounded to the nearest, or from uint16, their bits.

// fromFile returns the bytes of an array for a memory with elements of type t. It is an error if the array's elements
// are of another type; a memory without a type takes any.
func fromFile(a *npy.Array, t ir.DType) ([]byte, error) {
	want, ok := npyTypes[t]
	switch {
	case t == ir.BF16 && a.DType == npy.Float32:
		return record.Elements(ir.BF16, record.Numbers(ir.F32, a.Data)), nil
	case t == ir.BF16 && a.DType != npy.Uint16:
		return nil, fmt.Errorf("holds %s, where bf16 is wanted as float32, or as uint16 with its bits", a.DType)
	case ok && a.DType != want:
		return nil, fmt.Errorf("holds %s, where %s is wanted", a.DType, want)
	}
	return a.Data, nil
}

// toFile returns what a memory of type t holds as an array. Without a type, it is one of bytes.
func toFile(data []byte, t ir.DType, shape []int64) *npy.Array {
	of, ok := npyTypes[t]
	if t == ir.BF16 {
		of, ok = npy.Float32, true
	}
	if !ok {
		return &npy.Array{DType: npy.Uint8, Shape: []int{len(data)}, Data: data}
	}
	a := &npy.Array{DType: of}
	n := int64(1)
	for _, d := range shape {
		a.Shape = append(a.Shape, int(d))
		n *= d
	}
	a.Data = data[:n*t.Size()]
	if t == ir.BF16 {
		a.Data = record.Elements(ir.F32, record.Numbers(t, a.Data))
	}
	return a
}
