// Package air is where Metal kernels meet, whatever they were made from: one that Apple's compiler left in a .metallib
// and one that was compiled here from Metal source are both LLVM IR that calls functions named air.*, and a [Kernel],
// which describes the arguments.
//
// [Input.Open] reads the module of a kernel (package llvm) and refuses what no kernel needs (allowed.go).
// [Module.Prepare] takes out what is Apple's (target, metadata, promises about aliasing), gives function constants
// their values, and gives every air.* function that exchanges nothing between threads its body (package calls). What
// functions are left exchange between threads: exchange.go says what, and [Builder] runs clang on the text.
//
// Package host makes code of this machine of a kernel, package nvptx PTX for NVIDIA's GPUs.
package air
