package routes

import "github.com/mlxc/mlxc/ir"

// names are the two ways in which kernels' names have types: most have the plain name, quantized
// products and vector attention that of the Metal type.
var names = map[ir.DType]struct{ plain, metal string }{
	ir.Bool: {"bool_", "bool"},
	ir.U8:   {"uint8", "uint8_t"}, ir.U16: {"uint16", "uint16_t"},
	ir.U32: {"uint32", "uint32_t"}, ir.U64: {"uint64", "uint64_t"},
	ir.I8: {"int8", "int8_t"}, ir.I16: {"int16", "int16_t"}, ir.I32: {"int32", "int32_t"}, ir.I64: {"int64", "int64_t"},
	ir.F16: {"float16", "float16_t"}, ir.BF16: {"bfloat16", "bfloat16_t"}, ir.F32: {"float32", "float"},
}

func plain(t ir.DType) string { return names[t].plain }
func metal(t ir.DType) string { return names[t].metal }

// TypeName is the name of a type in kernels' names that have Metal's types: float, float16_t, bfloat16_t.
func TypeName(t ir.DType) string { return metal(t) }
