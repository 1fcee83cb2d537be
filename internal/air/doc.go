// Package air is where Metal kernels meet, whatever they were made from. A kernel that Apple's
// compiler left in a .metallib and a kernel that is compiled here from Metal source are both
// LLVM IR that calls functions named air.*, and a [Kernel], which describes the arguments. From
// there one path leads to object code of this machine and one to PTX.
package air
