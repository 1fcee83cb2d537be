package ir

import "fmt"

// DType is the type of one element. The packed types U2…U6 are for the codes of affine
// quantization: their elements lie bit after bit, little-endian, without padding inside a row.
type DType uint8

// The element types, named as MLX's Metal sources name the C++ types.
const (
	Invalid DType = iota
	Bool
	U8
	I8
	U16
	I16
	U32
	I32
	U64
	I64
	F16
	BF16
	F32
	U2
	U3
	U4
	U5
	U6
)

var dtypes = [...]struct {
	name string
	bits int
}{
	Invalid: {"invalid", 0},
	Bool:    {"bool", 8}, U8: {"u8", 8}, I8: {"i8", 8}, U16: {"u16", 16}, I16: {"i16", 16},
	U32: {"u32", 32}, I32: {"i32", 32}, U64: {"u64", 64}, I64: {"i64", 64},
	F16: {"f16", 16}, BF16: {"bf16", 16}, F32: {"f32", 32},
	U2: {"u2", 2}, U3: {"u3", 3}, U4: {"u4", 4}, U5: {"u5", 5}, U6: {"u6", 6},
}

// Valid reports whether d is one of the types above.
func (d DType) Valid() bool { return d > Invalid && int(d) < len(dtypes) }

// Bits returns the size of one element in bits.
func (d DType) Bits() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].bits
}

// Size returns the size of one element in bytes, and 0 for packed types.
func (d DType) Size() int64 {
	if b := d.Bits(); b%8 == 0 {
		return int64(b / 8)
	}
	return 0
}

// Float reports whether d is a floating-point type.
func (d DType) Float() bool { return d == F16 || d == BF16 || d == F32 }

// Signed reports whether d is a signed integer type.
func (d DType) Signed() bool { return d == I8 || d == I16 || d == I32 || d == I64 }

func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ParseDType is the inverse of [DType.String].
func ParseDType(s string) (DType, error) {
	for d := Invalid + 1; int(d) < len(dtypes); d++ {
		if dtypes[d].name == s {
			return d, nil
		}
	}
	return Invalid, fmt.Errorf("unknown element type %q (want one of bool, u8…u64, i8…i64, f16, bf16, f32, u2…u6)", s)
}
