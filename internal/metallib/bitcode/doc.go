// Package bitcode reads what is in a module of LLVM bitcode outside of its functions' bodies: metadata, types, global
// variables and functions.
//
// [Read] takes the bytes as a file has them, with the wrapper that Apple's compilers put
// around them or without:
//
//	m, err := bitcode.Read(data)
//	for _, node := range m.Named("air.kernel") {
//		f, ok := node.Operand(0).Function()
//	}
//
// Bodies of functions, attributes and symbol tables are skipped by their lengths, so they cost no time. The format is
// that of LLVM's manual, "LLVM Bitcode File Format", with the record numbers of llvm/Bitcode/LLVMBitCodes.h. Only
// modules of version 2 are read, which have a string table for names, as LLVM writes them since version 5.
//
// The bytes may come from anybody. Every length is checked before it is believed, time is
// linear in the number of bytes, memory is bounded (limits.go), nothing is read recursively,
// and what is wrong becomes an [Error] with the offset of the byte.
package bitcode
