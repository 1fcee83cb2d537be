// Package ir is the intermediate representation of GPU dispatch graphs: what a
// program dispatched to Metal, in the order in which it did, with the memory
// that every dispatch touches.
//
// # Words
//
// A [Module] is what one file holds: graphs, and data beside them (a
// tokenizer, say). A [Graph] denotes one replay: a function from state, inputs
// and params to state and outputs. Its [Memory] objects are disjoint byte
// arrays (or aliases into one another); a [View] is a byte range of a memory,
// whose bounds may be affine in the graph's [Param] values. A [Dispatch] runs
// a [Kernel] on bindings; [Effects] say which bytes it reads and writes.
// Between commands stand a [Barrier] (orders what is before it with what is
// after it inside one command buffer) and a [Commit] (ends a command buffer).
// An epoch is what stands between two barriers.
//
// # Meaning
//
// The commands of a recorded graph run one after another in recorded order.
// What of that a device must keep is said by barriers and commits, by the list itself
// (a serial graph), or by edges between commands ([Ordering]). A recording whose own
// order allows another outcome is racy. A dispatch without effects may touch every
// memory.
// docs/architecture.md draws how the packages fit together.
//
// # What this package does not do
//
// It computes nothing about hazards (internal/analysis/hazard), knows no kernel's
// meaning (msl), reads and writes no file (ir/mlxt, ir/mlxg).
//
// # Smallest example
//
// See ExampleBuilder.
package ir
