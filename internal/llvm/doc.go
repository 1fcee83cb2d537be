// Package llvm reads the text of LLVM's intermediate representation, and prints it. [Parse] takes a module apart into
// types, globals, declarations and functions, [Function.Blocks] a function into its blocks, [Read] an instruction into
// its result, operation and operands, each with its place in the line: who changes an instruction changes that part of
// the text, and all else stays as clang has printed it.
//
// [NewFlow] says how control flows through blocks: which loops there are, which lies in which, and which blocks
// dominate others.
//
// The text may be anybody's. What is not understood is an error or no instruction, never a guess, and the work grows
// with the length of the text.
package llvm
