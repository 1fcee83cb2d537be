// Package values finds the values of scratch memory and moves them to other bytes.
//
// # Words
//
// A web (the term is that of register allocation: Muchnick, Advanced Compiler Design and Implementation, 16.3) is a
// set of accesses that must move together: all writes that one read may see, and all reads of those writes. Mostly it
// is one write and its readers. Its extent goes from its first byte touched to its last, and its overhang is how far
// the views of the accesses reach beyond that. A web is pinned if it cannot be moved, for example because it reads
// bytes that nothing wrote ([Set.Why]).
//
// Moving all accesses of a web by the same distance changes no value, as long as no other web
// touches its new bytes between its first command and its last. Whoever moves a web must ensure
// that, and add the order that the new neighbours need.
//
// # What this package does not do
//
// It decides nothing: passes rename and plan choose the places.
//
// # Smallest example
//
// See Example.
package values
