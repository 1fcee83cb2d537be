// Package host compiles Metal kernels for a CPU. [Build] makes a shared object of a kernel, with clang alone:
//
//  1. Package air reads and prepares its module, and clang optimizes that text. Helper functions are inlined; what is
//     left is one function which calls what exchanges between threads: simdgroup operations and barriers.
//  2. A kernel that exchanges nothing becomes a loop over the threads of a row (row.go), which clang may vectorise. Any
//     other becomes a coroutine of LLVM's (coroutine.go): a thread runs to its next exchange, leaves its operands in
//     memory, and suspends; the executor exchanges for the threads that wait at one place, and resumes them.
//  3. clang compiles that to a shared object, which says by a table of sites what is exchanged where. abi.h, which C
//     and Go read, is the layout of what both sides share.
//
// A kernel that is to be checked (Checked of [air.Input]) is always a coroutine, is inlined and otherwise left as it
// is, and asks the executor before each access to memory whether that is right (instrument.go), by what its address was
// computed from (origin.go). Values that nothing has defined are followed to where they are used (undefined.go).
package host
