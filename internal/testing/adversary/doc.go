// Package adversary attacks the prover. It runs graphs of opaque kernels byte by byte,
// changes them as a hostile or faulty optimizer might, and looks for a change that is
// proved although it gives other bytes. It shares nothing with package prove, and only
// tests import it.
//
// # How it runs a graph
//
// A kernel without declaration is treated as a hash function. Each byte that it writes
// is a hash of the kernel and its constants, of its grid, of the bytes of its arguments
// (inline or in argument memory, for the values of the params), of the offsets of the
// views that its effects leave out, of every byte that it reads, and of the position of
// the byte written. What it touches is what the recording says, relative to its views;
// the effects that a changed graph stores are not believed. A may-write keeps some old
// bytes. A command of unknown effects reads all memory, and writes what it binds and
// one byte elsewhere.
//
// [Program.Run] executes three replays, each with its own params and inputs, in a given
// order. [Orders] draws orders that barriers and commits allow, also across the ends of
// replays. Undefined bytes are filled differently in each run.
//
// # What it does not know
//
// It does not know the terms of declared kernels (package oracle judges them, and
// backend/cpu computes them), or commands that interleave byte by byte.
//
// # Words
//
// A change is harmful if, in some order that the changed graph allows, a replay (or
// three replays in one stream) ends with other bytes in an output or state than the
// recording does in its written order.
package adversary
