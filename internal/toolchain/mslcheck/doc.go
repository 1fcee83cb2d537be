// Package mslcheck checks Metal Shading Language on any machine with a stock
// clang: does a source parse and type-check, does it keep the rules that Metal
// adds to C++, and what are its kernels' arguments.
//
//	lib, err := mslcheck.Check(ctx, "norm.metal", source)
//	// err: norm.metal:31:9: error: use of undeclared identifier 'lne'
//	for _, k := range lib.Kernels { … k.Host, k.Params, k.ThreadgroupBytes … }
//
// A source goes through `clang -E` with empty Metal headers, then through a
// rewriter of tokens, which knows as much of MSL's grammar as it needs
// (attributes, address spaces, kernels, their instances, function constants,
// threadgroup variables) and leaves C++ that includes shim/msl.h. clang sees
// that C++ three times:
//
//   - flat: no address spaces, C++17, syntax and types;
//   - spaces: every address space a true one, C++14 (MSL 3.1's base): a pointer
//     into one space passed for a pointer into another is an error;
//   - object: flat, compiled at -O1, which also yields the size of each
//     kernel's threadgroup variables.
//
// What C++ cannot see is in rules.go: an argument without an attribute, two
// arguments in one slot, a pointer without address space, keywords that MSL
// lacks, …
//
// Words: a kernel's *host name* is what a host asks the library for; an
// *instance* is a template kernel with its arguments; a *slot* is N of
// [[buffer(N)]].
//
// What it is not: no proof that Apple's compiler takes a source, nothing about
// speed or fast-math, and the shim declares what kernels here use, not all of
// Metal's library (no textures, no atomics): a new function is a line in
// shim/msl.h. Structs cannot be copied to or from device memory under
// `spaces`; read their members. Nothing runs.
package mslcheck
