// Package ir is the intermediate representation of GPU dispatch graphs: which kernels a program
// dispatched to Metal, in which order, and which memory every dispatch touches.
//
// # Words
//
// A [Module] is the contents of one file: graphs, and data beside them (a tokenizer, say). A
// [Graph] denotes one replay: a function from state, inputs and params to state and outputs. Its
// [Memory] objects are disjoint byte arrays (or aliases into one another); a [View] is a byte range
// of a memory, whose bounds may be affine in the graph's [Param] values. A [Dispatch] runs a
// [Kernel] on bindings; [Effects] say which bytes it reads and writes. Between commands stand a
// [Barrier] (inside one command buffer, it orders all commands before it before all commands after
// it) and a [Commit] (it ends a command buffer). An epoch is a run of commands between two
// barriers.
//
// # Meaning
//
// The commands of a recorded graph run one after another in recorded order. A device may run them
// in another order as far as barriers and commits, the list itself (in a serial graph), or edges
// between commands allow it ([Ordering]). A recording whose own order allows another outcome is
// racy. A dispatch without effects may touch every memory. docs/architecture.md draws how the
// packages fit together.
//
// # What this package does not do
//
// It computes nothing about hazards (internal/analysis/hazard), knows no kernel's meaning (msl),
// and reads and writes no file (ir/mlxt, ir/mlxg).
//
// # Smallest example
//
// See ExampleBuilder.
package ir
