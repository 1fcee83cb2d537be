package mlxfn

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Type is the type of elements, as files number them.
type Type int32

// The types of elements.
const (
	Bool Type = iota
	Uint8
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	Float16
	Float32
	Float64
	BFloat16
	Complex64
)

// types has MLX's name of each type, the bytes of an element, and what we call it; ir.Invalid: we do not have it.
var types = [...]struct {
	name string
	size int64
	ours ir.DType
}{
	Bool: {"bool", 1, ir.Bool}, Uint8: {"uint8", 1, ir.U8}, Uint16: {"uint16", 2, ir.U16}, Uint32: {"uint32", 4, ir.U32}, Uint64: {"uint64", 8, ir.U64},
	Int8: {"int8", 1, ir.I8}, Int16: {"int16", 2, ir.I16}, Int32: {"int32", 4, ir.I32}, Int64: {"int64", 8, ir.I64},
	Float16: {"float16", 2, ir.F16}, Float32: {"float32", 4, ir.F32}, Float64: {"float64", 8, ir.Invalid},
	BFloat16: {"bfloat16", 2, ir.BF16}, Complex64: {"complex64", 8, ir.Invalid},
}

func (t Type) String() string {
	if t < 0 || int(t) >= len(types) {
		return fmt.Sprintf("type %d", int32(t))
	}
	return types[t].name
}

// Size returns the bytes of an element.
func (t Type) Size() int64 { return types[t].size }

// Ours returns the type as graphs have it, ir.Invalid where they have none.
func (t Type) Ours() ir.DType { return types[t].ours }

// Array is what a file says of an array: no strides, and no contents.
type Array struct {
	Shape []int64
	Type  Type
}

func (a Array) String() string { return fmt.Sprintf("%s%v", a.Type, a.Shape) }

// elements returns the number of elements; the reader has seen to it that it fits.
func (a Array) elements() int64 {
	n := int64(1)
	for _, d := range a.Shape {
		n *= d
	}
	return n
}

// File is what a .mlxfn file holds.
type File struct {
	Name      string
	Version   string // of the MLX that has written it
	Shapeless bool   // the functions are for any shapes; those in the file are of an example
	Metadata  string
	Functions []Function

	data []byte
}

// Function is one trace. Its values are counted: those with a lower number are there before those with a higher one.
type Function struct {
	Keywords []string // of the last inputs, in their order
	Inputs   []int    // values
	Outputs  []int    // values
	Values   []Array
	Constant map[int]Constant // of values that are constants
	Nodes    []Node           // in an order in which each has its operands
}

// Constant is where the contents of a constant lie in the file.
type Constant struct{ Offset, Length int64 }

// Positional returns how many inputs have no name.
func (f *Function) Positional() int { return len(f.Inputs) - len(f.Keywords) }

// Node is a primitive with its operands and results.
type Node struct {
	Name  string // MLX's, of its factory
	At    int64  // the offset of the name in the file
	GPU   bool   // traced for a stream of a GPU
	In    []int  // values
	Out   []int  // values
	State []any  // its fields, as the table of states says
}
