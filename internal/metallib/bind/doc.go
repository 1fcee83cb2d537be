// Package bind compares what the dispatches of a graph bind with what compiled kernels require.
//
//	report, err := bind.Check(ctx, g, func(k *ir.Kernel) bind.Library { … })
//	for _, f := range report.Faults { … }
//
// A graph names kernels of compiled Metal libraries, and its recorder wrote their tables of
// arguments, constants and effects by hand or from a source. The compiled kernel says of
// itself which slots it has and under which function constants, which of them it only reads,
// how many bytes a reference takes, and how many threads a threadgroup may have. Where the two
// contradict each other, the dispatch does something else than the graph says.
//
// A fault is a contradiction. A doubt is what may be right and should be looked at; most
// doubts are of effects that say less than the kernel's arguments allow.
//
// # What a compiled kernel may touch
//
// [Effects] bounds the bytes that a dispatch touches, from its kernel's arguments alone: a
// reference exactly its bytes; a pointer the whole memory that is bound, because the view's
// length is not known to the kernel; nothing through an argument that the kernel does not use,
// or that its function constants take away; and writes only through arguments that are not
// marked as read. All writes are may-writes.
//
// It takes graphs that [ir.Check] has accepted.
package bind
