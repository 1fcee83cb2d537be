// Package adversary attacks the prover: it runs graphs of opaque kernels byte by byte,
// changes them as a hostile or faulty optimizer might, and looks for a change that is
// proved and gives other bytes. It shares nothing with package prove, and nothing but
// tests imports it.
//
// # How it runs a graph
//
// A kernel without declaration is a hash function: each byte that it writes is a hash
// of the kernel and its constants, its grid, the bytes of its arguments (inline, or in
// argument memory, for the values of the params), where the views begin that its
// effects leave out, every byte that it reads, and the place of the byte written. What
// it touches is what the recording says, relative to its views: the effects that a
// changed graph stores are not believed. A may-write keeps some old bytes; a command
// of unknown effects reads all memory and writes what it binds and one byte elsewhere.
//
// [Run] executes three replays, each with its own params and inputs, in a given order;
// [Orders] draws orders that barriers and commits allow, across the ends of replays.
// What is undefined is filled with other bytes in each run.
//
// # What it does not know
//
// Terms of declared kernels, which package oracle judges and backend/cpu computes, and
// commands that run through one another byte by byte.
//
// # Words
//
// A change is harmful if some order that the changed graph allows ends a replay, or
// three of them in one stream, with other bytes in an output or a state than the
// recording run in its written order.
package adversary
