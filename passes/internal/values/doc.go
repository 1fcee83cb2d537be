// Package values finds the values of scratch memory and moves them to other bytes.
//
// # Words
//
// A web (the term is that of register allocation: Muchnick, Advanced Compiler
// Design and Implementation, 16.3) is a set of accesses that must move together: where
// one read may see several writes, these writes, and all that read them. Mostly it is
// one write and its readers. Its extent goes from the first byte touched to the last;
// by how much views reach further is its overhang. A web is pinned if it cannot move,
// because it reads bytes that nothing wrote, say ([Set.Why]).
//
// Shifting all accesses of a web by one distance changes no value, as long as no
// other web touches its new bytes between its first command and its last. Who
// moves one answers for that, and for what order the new neighbours need.
//
// # What this package does not do
//
// It decides nothing: passes rename and plan choose the places.
//
// # Smallest example
//
// See Example.
package values
