// Package dataflow says, for a graph whose commands run in written order, which
// writes each read may see, and which reads may see each write.
//
// [Build] goes through the list once, by the effects that the graph stores
// (pass annotate has run), on bytes of root memories: aliases resolved, strides
// and params taken into account (internal/analysis/bytestate). Ranges that params move
// are taken to overlap where they cannot be proved disjoint, and none to cover another
// where that cannot be proved.
//
// [Flow.Replace], [Flow.Reorder] and [Flow.Renumber] make it follow what passes do,
// so that one flow serves a pipeline.
//
// # Words
//
// A use is a region that a command reads, a def one that it writes. The sources
// of a use are the defs that it may see, oldest first, back to one that covers
// it; if none does, it may also see the memory's initial contents. A may-write is
// a def and a use of its range at once: it passes on the bytes that it leaves
// alone. So it ends a list of sources like a must-write, and who wants to know
// what lay under it asks its own use. A def is final if its bytes may be there
// when the replay ends, in an output or state, under a later may-write too.
//
// A command of unknown effects reads and may-writes every memory: one use and
// one def, of no region (memory [ir.NoMem]).
//
// # What this package does not do
//
// It knows nothing of order, barriers and hazards (internal/analysis/hazard): only of
// values. It changes no graph. The prover does not use it.
//
// # Smallest example
//
// See Example.
package dataflow
