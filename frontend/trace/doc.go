// Package trace reads logs of what a program sent to Metal (.mlxtrace), and makes graphs of them.
//
//	l, err := trace.Open("engine.mlxtrace")
//	defer l.Close()
//	m, err := trace.Import(ctx, l, trace.Options{})
//
// Who writes a log does nothing clever: capture/mlxrec.h is one C file for any language, capture/shim.c does it for programs
// that know nothing of it. All that is clever is here: buffers become memories, whose kinds follow from who reads what
// was written when; a step that was logged several times becomes one graph, whose params are the numbers that differ. What has a place in a graph is the part
// that a buffer plays in a step (lives.go), or a part of that (windows.go), and what one step finds there is followed to who left it (places.go).
//
// # The file
//
// All integers are little-endian. The file begins with the 16 bytes "MLXTRACE", u32 1, u32 0. Then come records: u32 size of
// the payload, u32 code of the event, the payload, and zeros up to a multiple of 8. A program that dies leaves a log whose
// last record is cut; it counts as if it were not there. A payload is the event's fields one behind another:
//
//	n  u64
//	s  u32 length and so many bytes of UTF-8
//	b  u32 length and so many bytes
//
// Code 0 says which events there are. Its payload is text, a line for each: the code, the name, and the fields as NAME:TYPE.
// So a reader finds the fields that it knows whatever their order. A log with an event or field that is not known is
// refused, because it may change the meaning of others, unless its name begins with "x-". The events are those of [Events].
package trace
