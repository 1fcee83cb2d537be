// Package bytestate knows how sets of bytes of a graph's memories lie relative to one
// another (do two share a byte, does one contain the other), and which command wrote
// each byte last, and which commands have read it since.
//
// # Words
//
// A region ([ir.Region]) is a set of bytes; it may be strided, and params may move it.
// [Facts] numbers the regions of a graph and remembers what it has computed about each:
// its hull (the range from its first to its last byte, over all values of the params),
// its core (bytes that belong to it for every value), and which other regions it is
// disjoint from ([Disjoint]) or contains ([Covers]). An [Access] is a region that a
// command touches. It is solid if it consists of every byte of its hull for every value
// of the params; most are.
//
// [State] is filled with the accesses of the commands, one command after the other, and
// keeps cells. A solid cell stands for every byte of an interval; solid cells are
// disjoint, and are cut exactly where accesses begin and end. A loose cell stands for
// the bytes of a region that is not solid, and may overlap other cells. A write removes
// the cells that it covers. What a cell remembers of its writer and its readers are
// numbers that the caller chooses.
//
// # Who uses it
//
// internal/analysis/hazard enters positions, levels or lists of commands;
// internal/analysis/dataflow enters the writes that reads may see; and
// passes/internal/values enters the levels of a list that it is still placing. The
// prover has its own code for this: see docs/proof.md.
//
// # What it costs
//
// An access costs O((k+1) log n), where it meets k of the n cells. If params move
// ranges over one another, k can be n. [Limits] bounds this.
package bytestate
