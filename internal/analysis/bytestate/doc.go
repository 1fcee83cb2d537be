// Package bytestate says what is known of the bytes of a graph's memories: how two
// sets of bytes lie to one another, and, as commands are entered one after the other,
// which of them wrote each byte last and which read it since.
//
// # Words
//
// A region ([ir.Region]) is a set of bytes, strided or moved by params. [Facts] gives
// each one a number and remembers what was found out: its hull over all params, its
// core (bytes that it has whatever the params), which others it is disjoint from
// ([Disjoint]) or contains ([Covers]). An [Access] is a region that a command touches;
// it is solid if it is every byte of its hull, whatever the params, and most are.
//
// [State] holds cells. A solid cell stands for every byte of an interval; solid cells
// are disjoint, and are cut exactly where accesses begin and end. A loose cell stands
// for the bytes of a region that is not solid, and lies over them. A write retires the
// cells that it covers. What a cell remembers of its writer and readers are numbers of
// the caller's.
//
// # Who uses it
//
// internal/analysis/hazard keeps positions, levels or lists of commands there,
// internal/analysis/dataflow the writes that reads may see, and package values of the
// passes the levels of a list that it is still placing. The prover has its own: see
// docs/proof.md.
//
// # What it costs
//
// An access costs O((k+1) log n), k being the cells that it meets of n. Where params
// move ranges over one another k can be all of them: see [Limits].
package bytestate
