// Package metallib reads compiled Metal libraries (.metallib): containers of kernels as LLVM
// bitcode, as Apple's compiler writes them. It needs no toolchain.
//
//	lib, err := metallib.Parse("mlx.metallib", data)
//	for _, k := range lib.Kernels { … }         // names and sizes; no bitcode is read
//	k, err := lib.Describe("rmsfloat32")        // arguments, constants, threadgroup memory
//	module, err := lib.Bitcode("rmsfloat32")    // for a compiler
//
// [Parse] takes the whole file, which is best mapped (package mmap): it reads the list of
// functions only, in linear time, and copies nothing but the names. A kernel's bitcode is
// compared with its SHA-256 digest whenever it is taken out; [Library.Verify] compares all.
//
// # The container
//
// All integers are little-endian. A header of 88 bytes: "MTLB", u16 platform, u16 major and
// u16 minor version of the container, u8 kind of library, u8 target system, u16 major and u16
// minor version of the system, u64 size of the file, then u64 offset and u64 size of each of
// four sections: the list of functions, public metadata, private metadata, and bitcode.
//
// The list is a u32 count, and for each function a u32 length, which counts itself, and
// records. A record is a tag of 4 characters, a u16 length and so many bytes; ENDT, without a
// length, ends the records. The size of the section does not count the u32 count. Tags of a
// function, in any order:
//
//	NAME  the name, with a NUL behind it
//	TYPE  u8: 2 is a kernel
//	HASH  SHA-256 of the function's bytes in the bitcode section
//	MDSZ  u64: how many bytes these are
//	OFFT  3 × u64: where its public metadata, private metadata and bitcode begin, counted
//	      from the beginning of the sections
//	VERS  4 × u16: version of AIR, version of the language
//
// Public metadata is a u32 length (which counts itself in some files and not in others, so it
// is not used) and records, of which CNST lists function constants: u16 count, then for each
// its name with a NUL behind it, u8 type, u16 index, u8 1.
//
// Unknown tags are skipped, as are sections that nothing refers to.
package metallib
