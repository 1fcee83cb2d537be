// Package mlxt is the text form of modules: complete, canonical and made to
// be read and compared, as LLVM's and MLIR's are.
//
// [Print] writes a module, [Parse] reads one. What Print writes, Parse reads
// back equal, value for value and bit for bit; what Parse accepts, Print writes
// in one form only, so that two equal modules have equal texts and a changed
// command changes one line. docs/text-format.md describes the language.
//
// # What this package does not do
//
// It reads no other file: contents that lie elsewhere stay references
// ([ir.Blob.Attach] loads them), and comments are not kept. It knows no
// kernel's meaning, and beyond [ir.Module.Check] judges no graph.
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
