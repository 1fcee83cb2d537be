// Package values finds the values of scratch memory and moves them to other bytes.
//
// # Words
//
// A web (the term is that of register allocation: Muchnick, Advanced Compiler
// Design and Implementation, 16.3) is the accesses that must move together: the
// writes that some read may see together, and all their reads. Mostly it is one
// write and its readers. Its extent is the hull of the bytes touched; views that
// reach further are its overhang. A web is pinned if it cannot move: it reads
// bytes that nothing wrote, or a command binds it whose kernel has no declaration.
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
