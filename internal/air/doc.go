// Package air compiles Metal kernels for a CPU. It is where kernels meet, whatever they were
// made from: one that Apple's compiler left in a .metallib and one that was compiled here
// from Metal source are both LLVM IR that calls functions named air.*, and a [Kernel], which
// describes the arguments.
//
// [BuildHost] makes a shared object of a kernel, with clang alone:
//
//  1. [parseModule] takes the text apart, as far as it must: functions, globals, declarations.
//  2. prepare.go takes out what is Apple's (target, metadata, promises about aliasing), gives
//     function constants their values, and gives every air.* function that exchanges nothing
//     between threads its body (package calls).
//  3. clang optimizes that text. Helper functions are inlined; what is left is one function
//     which calls what exchanges between threads: simdgroup operations and barriers.
//  4. A kernel that exchanges nothing becomes a loop over the threads of a row (row.go), which
//     clang may vectorise. Any other becomes a coroutine of LLVM's (coroutine.go): a thread
//     runs to its next exchange, leaves its operands in memory, and suspends; the executor
//     exchanges for the threads that wait at one place, and resumes them.
//  5. clang compiles that to a shared object, which says by a table of sites what is exchanged
//     where. abi.h, which C and Go read, is the layout of what both sides share.
//
// A kernel that is to be checked ([Input.Checked]) is always a coroutine, is inlined and otherwise
// left as it is, and asks the executor before each access to memory whether that is right
// (instrument.go), by what its address was computed from (origin.go). Values that nothing has defined are followed to
// where they are used (undefined.go).
//
// [PTX] compiles a kernel for NVIDIA's GPUs: what threads exchange they exchange there, by
// instructions of a warp (ptxexchange.go), so nothing becomes a coroutine. Products of simdgroup matrices may be made by
// tensor cores (ptxmatrix.go, ptxmma.go).
package air
