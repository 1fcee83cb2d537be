// Package dataflow says which writes each read of a graph may see, and which reads may
// see each write, if the commands run in written order.
//
// [Build] goes through the list once and uses the effects that the graph stores, so
// pass annotate must have run. It works on bytes of root memories: aliases are
// resolved, and strides and params are taken into account
// (internal/analysis/bytestate). Two ranges that params move are taken to overlap
// unless they are proved disjoint, and none is taken to cover another unless that is
// proved.
//
// [Flow.Replace], [Flow.Reorder] and [Flow.Renumber] apply to a flow what passes do to
// its graph, so that one flow serves a whole pipeline.
//
// # Words
//
// A use is a region that a command reads; a def is a region that a command writes. The
// sources of a use are the defs that it may see, oldest first, back to one that covers
// it; if none covers it, the use may also see the initial contents of the memory. A
// may-write is both a def and a use of its region, because it passes on the bytes that
// it leaves alone. So it ends a list of sources as a must-write does; what lies beneath
// it are the sources of its own use. A def is final if an output or state may hold its
// bytes when the replay ends, even beneath a later may-write.
//
// A command of unknown effects reads and may-writes every memory. It has one use and
// one def, whose region is of no memory ([ir.NoMem]).
//
// # What this package does not do
//
// It knows values only, not order, barriers or hazards (internal/analysis/hazard does).
// It changes no graph. The prover does not use it.
//
// # Smallest example
//
// See Example.
package dataflow
