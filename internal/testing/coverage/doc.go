// Command coverage compiles kernels of compiled Metal libraries as a device of this machine
// would, and counts what fails and why.
//
//	go run ./internal/testing/coverage out/metallib/mlx-0.32.4.metallib out/metallib/mlx-0.16.3.metallib
//
// A kernel passes if clang disassembles it, package air compiles it, and the object needs
// nothing but memcpy, memmove and memset. A kernel with function constants is compiled twice:
// all of them 0, and all 1 (true). With -checked kernels are compiled as the checker runs them,
// and may also call the two functions of the checker; with -target TRIPLE they become objects
// of another machine; with -ptx they become PTX, which must call nothing that it does not define.
//
// Kernels of a family differ only in the types and numbers in their names. One of each family comes first, and the
// others follow; -seed chooses which, and their order. So the first thousand show most of what can fail.
//
// The work may be spread: -shard 2/8 takes every eighth kernel. It may be broken off: with
// -results FILE each result is a line of the file, and what passed there is not compiled
// again by the same compiler and the same package air. The exit code is 1 if something fails.
package main
