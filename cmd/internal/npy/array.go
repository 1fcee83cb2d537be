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

// Len returns the number of elements.
func (a *Array) Len() int {
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	return n
}

// Element is a Go type for elements. float16 has none: see [Array.Float32s].
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

// Float32s returns the elements of a float32 or, exactly widened, float16
// array. Another type is an error, and so is an inconsistent array.
func (a *Array) Float32s() ([]float32, error) {
	if err := a.want(Float32, Float16); err != nil {
		return nil, err
	}
	v := make([]float32, a.Len())
	for i := range v {
		if a.DType == Float16 {
			v[i] = float16(binary.LittleEndian.Uint16(a.Data[2*i:]))
		} else {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
		}
	}
	return v, nil
}

// Float64s returns the elements of a float64 or, exactly widened, float32 or
// float16 array. Another type is an error, and so is an inconsistent array.
func (a *Array) Float64s() ([]float64, error) {
	if err := a.want(Float64, Float32, Float16); err != nil {
		return nil, err
	}
	v := make([]float64, a.Len())
	if a.DType == Float64 {
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(a.Data[8*i:]))
		}
		return v, nil
	}
	narrow, err := a.Float32s()
	for i, f := range narrow {
		v[i] = float64(f)
	}
	return v, err
}

// Int64s returns the elements of an array of any integer type or of bool (0 and
// 1). Another type is an error, and so are an inconsistent array and a uint64
// that an int64 cannot hold.
func (a *Array) Int64s() ([]int64, error) {
	if err := a.want(Int64, Int32, Int16, Int8, Uint64, Uint32, Uint16, Uint8, Bool); err != nil {
		return nil, err
	}
	v := make([]int64, a.Len())
	size := a.DType.Size()
	for i := range v {
		p := a.Data[i*size : (i+1)*size]
		switch a.DType {
		case Bool:
			if p[0] != 0 {
				v[i] = 1
			}
		case Int8:
			v[i] = int64(int8(p[0]))
		case Uint8:
			v[i] = int64(p[0])
		case Int16:
			v[i] = int64(int16(binary.LittleEndian.Uint16(p)))
		case Uint16:
			v[i] = int64(binary.LittleEndian.Uint16(p))
		case Int32:
			v[i] = int64(int32(binary.LittleEndian.Uint32(p)))
		case Uint32:
			v[i] = int64(binary.LittleEndian.Uint32(p))
		case Int64, Uint64:
			u := binary.LittleEndian.Uint64(p)
			if a.DType == Uint64 && u > math.MaxInt64 {
				return nil, fmt.Errorf("npy: element %d, %d, is more than an int64 holds", i, u)
			}
			v[i] = int64(u)
		}
	}
	return v, nil
}

// Bools returns the elements of a bool array. Another type is an error, and so
// is an inconsistent array.
func (a *Array) Bools() ([]bool, error) {
	if err := a.want(Bool); err != nil {
		return nil, err
	}
	v := make([]bool, a.Len())
	for i := range v {
		v[i] = a.Data[i] != 0
	}
	return v, nil
}

func (a *Array) want(types ...DType) error {
	if err := a.check(); err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	if !slices.Contains(types, a.DType) {
		return fmt.Errorf("npy: array of %v, want one of %v", a.DType, types)
	}
	return nil
}

// float16 widens an IEEE 754 half: 1 bit sign, 5 exponent (bias 15), 10
// fraction.
func float16(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0: // zero or subnormal: frac * 2^-24
		return math.Float32frombits(math.Float32bits(float32(frac)*0x1p-24) | sign)
	case 31: // infinity or NaN
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}
