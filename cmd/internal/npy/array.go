package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Array is an array of any number of dimensions.
type Array struct {
	DType DType
	Shape []int  // of each dimension; empty for a single element
	Data  []byte // the elements, little endian, the last index fastest
}

// Element is a Go type for elements. float16 has none.
type Element interface {
	bool | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// Of returns an array of the elements of v, the last index of shape fastest. It
// is an error if their number is not the product of shape.
func Of[T Element](v []T, shape ...int) (*Array, error) {
	var d DType
	switch any(v).(type) {
	case []bool:
		d = Bool
	case []int8:
		d = Int8
	case []int16:
		d = Int16
	case []int32:
		d = Int32
	case []int64:
		d = Int64
	case []uint8:
		d = Uint8
	case []uint16:
		d = Uint16
	case []uint32:
		d = Uint32
	case []uint64:
		d = Uint64
	case []float32:
		d = Float32
	case []float64:
		d = Float64
	}
	data, err := binary.Append(make([]byte, 0, len(v)*d.Size()), binary.LittleEndian, v)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	a := &Array{d, slices.Clone(shape), data}
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return a, nil
}

// check says what is wrong with an array that the caller made.
func (a *Array) check() error {
	if !a.DType.valid() {
		return fmt.Errorf("%v is no element type", a.DType)
	}
	want, err := dataSize(a.DType, a.Shape)
	if err != nil {
		return err
	}
	if len(a.Data) != want {
		return fmt.Errorf("shape %s of %v wants %d bytes, Data has %d", tuple(a.Shape), a.DType, want, len(a.Data))
	}
	return nil
}

// maxDims is NumPy's own limit.
const maxDims = 64

// dataSize returns the size of an array's elements in bytes. As in NumPy, a dimension
// of 0 does not excuse other dimensions whose product overflows.
func dataSize(d DType, shape []int) (int, error) {
	if len(shape) > maxDims {
		return 0, fmt.Errorf("shape has %d dimensions, the limit is %d", len(shape), maxDims)
	}
	size, empty := uint64(d.Size()), false
	for _, n := range shape {
		switch {
		case n < 0:
			return 0, fmt.Errorf("shape %s has a negative dimension", tuple(shape))
		case n == 0:
			empty = true
			continue
		}
		hi, lo := bits.Mul64(size, uint64(n))
		if hi > 0 || lo > math.MaxInt {
			return 0, fmt.Errorf("shape %s of %v has more than %d bytes", tuple(shape), d, math.MaxInt)
		}
		size = lo
	}
	if empty {
		return 0, nil
	}
	return int(size), nil
}
