// Package mslcheck checks Metal Shading Language on any machine with a stock clang:
// whether a source parses and type-checks, whether it keeps the rules that Metal adds
// to C++, and what the arguments of its kernels are.
//
//	lib, err := mslcheck.Check(ctx, "norm.metal", source)
//	// err: norm.metal:31:9: error: use of undeclared identifier 'lne'
//	for _, k := range lib.Kernels { … k.Host, k.Params, k.ThreadgroupBytes … }
//
// A source goes through `clang -E` with empty Metal headers, then through a
// rewriter of tokens, which knows as much of MSL's grammar as it needs
// (attributes, address spaces, kernels, their instances, function constants,
// threadgroup variables) and leaves C++ that includes mslshim/check.h. clang sees
// that C++ three times:
//
//   - flat: no address spaces, C++17, syntax and types;
//   - spaces: every address space a true one, C++14 (MSL 3.1's base): a pointer
//     into one space passed for a pointer into another is an error;
//   - object: flat, compiled at -O1, which also yields the size of each
//     kernel's threadgroup variables.
//
// rules.go checks what C++ does not see: an argument without an attribute, two
// arguments in one slot, a pointer without an address space, keywords that MSL lacks,
// and the like.
//
// A kernel's *host name* is the name by which a host asks the library for it. An
// *instance* is a template kernel with its template arguments. A *slot* is N in
// [[buffer(N)]].
//
// It does not prove that Apple's compiler accepts a source, and says nothing about
// speed or fast-math. The shim declares what the kernels here use, not all of Metal's
// library (no textures, no atomics); a new function is a new line in mslshim/check.h. Under
// `spaces`, structs cannot be copied to or from device memory: read their members
// instead. Nothing is executed.
package mslcheck
