// Package kernelcode finds the code of a graph's kernels as LLVM IR, whatever they come from: our own
// library, a source file, a generated kernel, or a compiled .metallib. What was compiled from source a
// cache keeps. Devices that compile kernels for something else than Apple's GPUs begin with it.
package kernelcode
