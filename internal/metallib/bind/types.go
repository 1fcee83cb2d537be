package bind

import (
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// metalTypes are Metal's scalar types.
var metalTypes = map[string]ir.DType{
	"bool": ir.Bool, "char": ir.I8, "uchar": ir.U8, "short": ir.I16, "ushort": ir.U16, "int": ir.I32, "uint": ir.U32,
	"long": ir.I64, "ulong": ir.U64, "half": ir.F16, "bfloat": ir.BF16, "float": ir.F32,
}

// scalarOf returns the scalar type of a scalar or vector type of Metal: int for packed_int3. ok is false for structs.
func scalarOf(metal string) (t ir.DType, ok bool) {
	t, ok = metalTypes[strings.TrimRight(strings.TrimPrefix(metal, "packed_"), "234")]
	return t, ok
}

// sameBits reports whether two types represent numbers in the same way, except for the sign.
func sameBits(a, b ir.DType) bool {
	return a.Bits() == b.Bits() && isFloat(a) == isFloat(b) && (a == ir.BF16) == (b == ir.BF16)
}

func isFloat(t ir.DType) bool { return t == ir.F16 || t == ir.BF16 || t == ir.F32 }
