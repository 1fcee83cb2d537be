// Package mlxt reads and writes the text form of modules. Like the texts of LLVM and MLIR, it is
// complete, canonical, and made to be read and compared.
//
// [Print] writes a module, [Parse] reads one. Parse reads what Print writes back as an equal
// module, bit for bit. Print writes a module in one form only, so that two equal modules have equal
// texts, and a changed command changes one line. docs/text-format.md describes the language.
//
// # What this package does not do
//
// It reads no other file: contents that lie elsewhere stay references ([ir.Blob.Attach] loads
// them). It does not keep comments. It does not know what kernels mean, and checks a graph only
// with [ir.Module.Check].
//
// # Smallest example
//
//	mlxt 1
//
//	graph double {
//	  memory %x input 16 f32[4]
//	  memory %y output 16 f32[4]
//	  kernel @vv_Addfloat32 builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
//
//	  #0 @vv_Addfloat32 (a = %x[0:16], b = %x[0:16], c = %y[0:16]) grid threads [4, 1, 1] of [4, 1, 1]
//	      effects complete reads %x[0:16] writes must %y[0:16]
//	}
package mlxt
