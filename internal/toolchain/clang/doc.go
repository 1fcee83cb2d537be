// Package clang finds the one C++ and LLVM toolchain that is used here: clang,
// version 19 or later.
//
//	c, err := clang.Find(ctx)
//	out, err := c.Command(ctx, "-E", "kernel.cpp").Output()
//
// It may come from the system or from the Python package ziglang, a wheel that
// needs no root: `zig clang …` is clang itself, with lld and every target.
// `scripts/fetch-clang.sh` (which `make test` runs) puts that wheel in out/ if
// the system has no clang that will do.
//
// It is looked for in this order, and the first that starts and is new enough
// is taken:
//
//  1. the program that the environment variable MLXC_CLANG names, a clang or a
//     zig; it is that one or an error;
//  2. clang, clang-23, clang-22, … on PATH;
//  3. zig on PATH;
//  4. out/ziglang/zig in the source tree of this module, above the working
//     folder.
//
// How LLVM's IR is compiled differs from version to version, so tests compile kernels with [Oldest] too: clang-19 on
// PATH, or out/ziglang-19/zig, which `scripts/fetch-clang.sh oldest` fetches.
//
// Apple's clang does not count: its versions are numbered otherwise, and it has
// no GPU targets.
package clang
