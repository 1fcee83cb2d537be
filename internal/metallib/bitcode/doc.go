// Package bitcode reads what a module of LLVM bitcode says of itself outside its functions'
// bodies: its metadata, types, global variables and functions.
//
// [Read] takes the bytes as a file has them, with the wrapper that Apple's compilers put
// around them or without:
//
//	m, err := bitcode.Read(data)
//	for _, node := range m.Named("air.kernel") {
//		f, ok := node.Operand(0).Function()
//	}
//
// Bodies of functions, attributes and symbol tables are skipped by their lengths, so that
// reading costs what the rest costs. The form is that of LLVM's manual, "LLVM Bitcode File
// Format", with the record numbers of llvm/Bitcode/LLVMBitCodes.h. Modules of version 2 are
// read, whose names lie in a string table of their own, as LLVM writes them since version 5.
//
// The bytes may come from anybody. Every length is checked before it is believed, time is
// linear in the number of bytes, memory is bounded (limits.go), nothing is read recursively,
// and what is wrong becomes an [Error] with the offset of the byte.
package bitcode
