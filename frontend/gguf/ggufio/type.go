package ggufio

import "fmt"

// Type is the element type of a tensor, with ggml's numbering (enum ggml_type).
type Type uint32

// The element types that ggml has. Numbers that are not listed were withdrawn (see
// [Type.Removed]) or never used.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// typeInfo describes one block of a type. If bytes is 0, the type was withdrawn.
type typeInfo struct {
	name     string
	elements uint64
	bytes    uint64
}

// types has block sizes as ggml_blck_size and ggml_type_size return them.
var types = map[Type]typeInfo{
	F32:     {"F32", 1, 4},
	F16:     {"F16", 1, 2},
	Q4_0:    {"Q4_0", 32, 18},
	Q4_1:    {"Q4_1", 32, 20},
	4:       {"Q4_2", 0, 0},
	5:       {"Q4_3", 0, 0},
	Q5_0:    {"Q5_0", 32, 22},
	Q5_1:    {"Q5_1", 32, 24},
	Q8_0:    {"Q8_0", 32, 34},
	Q8_1:    {"Q8_1", 32, 36},
	Q2_K:    {"Q2_K", 256, 84},
	Q3_K:    {"Q3_K", 256, 110},
	Q4_K:    {"Q4_K", 256, 144},
	Q5_K:    {"Q5_K", 256, 176},
	Q6_K:    {"Q6_K", 256, 210},
	Q8_K:    {"Q8_K", 256, 292},
	IQ2_XXS: {"IQ2_XXS", 256, 66},
	IQ2_XS:  {"IQ2_XS", 256, 74},
	IQ3_XXS: {"IQ3_XXS", 256, 98},
	IQ1_S:   {"IQ1_S", 256, 50},
	IQ4_NL:  {"IQ4_NL", 32, 18},
	IQ3_S:   {"IQ3_S", 256, 110},
	IQ2_S:   {"IQ2_S", 256, 82},
	IQ4_XS:  {"IQ4_XS", 256, 136},
	I8:      {"I8", 1, 1},
	I16:     {"I16", 1, 2},
	I32:     {"I32", 1, 4},
	I64:     {"I64", 1, 8},
	F64:     {"F64", 1, 8},
	IQ1_M:   {"IQ1_M", 256, 56},
	BF16:    {"BF16", 1, 2},
	31:      {"Q4_0_4_4", 0, 0},
	32:      {"Q4_0_4_8", 0, 0},
	33:      {"Q4_0_8_8", 0, 0},
	TQ1_0:   {"TQ1_0", 256, 54},
	TQ2_0:   {"TQ2_0", 256, 66},
	36:      {"IQ4_NL_4_4", 0, 0},
	37:      {"IQ4_NL_4_8", 0, 0},
	38:      {"IQ4_NL_8_8", 0, 0},
	MXFP4:   {"MXFP4", 32, 17},
	NVFP4:   {"NVFP4", 64, 36},
	Q1_0:    {"Q1_0", 128, 18},
	Q2_0:    {"Q2_0", 64, 18},
}

// String is ggml's name in capitals ("Q4_K"), or "type(99)" for a number ggml
// does not have.
func (t Type) String() string {
	if info, ok := types[t]; ok {
		return info.name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

// Known reports whether ggml has the type today, so that its size is known.
func (t Type) Known() bool { return types[t].bytes != 0 }

// Removed reports whether ggml once had the type and withdrew it.
func (t Type) Removed() bool {
	info, ok := types[t]
	return ok && info.bytes == 0
}

// BlockElements is the number of elements in a block, 1 for plain types, 0 for
// a type that is not [Type.Known].
func (t Type) BlockElements() uint64 { return types[t].elements }

// BlockBytes is the number of bytes of a block, 0 for a type that is not
// [Type.Known].
func (t Type) BlockBytes() uint64 { return types[t].bytes }

// ValueType is the type of a metadata value (enum gguf_type).
type ValueType uint32

// The value types of GGUF 2 and 3.
const (
	Uint8   ValueType = 0
	Int8    ValueType = 1
	Uint16  ValueType = 2
	Int16   ValueType = 3
	Uint32  ValueType = 4
	Int32   ValueType = 5
	Float32 ValueType = 6
	Bool    ValueType = 7
	String  ValueType = 8
	Array   ValueType = 9
	Uint64  ValueType = 10
	Int64   ValueType = 11
	Float64 ValueType = 12
)

// valueTypes lists, by type, the name and the size in bytes of a value (0: string or
// array).
var valueTypes = [...]struct {
	name string
	size int
}{
	Uint8: {"u8", 1}, Int8: {"i8", 1}, Uint16: {"u16", 2}, Int16: {"i16", 2},
	Uint32: {"u32", 4}, Int32: {"i32", 4}, Float32: {"f32", 4}, Bool: {"bool", 1},
	String: {"string", 0}, Array: {"array", 0},
	Uint64: {"u64", 8}, Int64: {"i64", 8}, Float64: {"f64", 8},
}

// String is the short name: u8, i32, f32, bool, string, array, …
func (v ValueType) String() string {
	if int(v) < len(valueTypes) {
		return valueTypes[v].name
	}
	return fmt.Sprintf("valuetype(%d)", uint32(v))
}

// Known reports whether GGUF has the value type.
func (v ValueType) Known() bool { return int(v) < len(valueTypes) }
