// Package hazard decides which commands of a graph conflict, by the bytes that they
// touch: aliases are resolved, and strides and params are taken into account. Passes,
// replay and recording use it; the prover has its own code.
//
// # Words
//
// A hazard is a pair of accesses to the same byte of which at least one is a write: RAW
// (the later access reads what the earlier one wrote), WAR or WAW. A pillar is a
// command of unknown effects; it conflicts with everything. The depth of a graph is the
// number of commands in its longest chain of conflicts; depth∞ counts chains of RAW
// alone.
//
// # How it works
//
// A [Table] resolves once what every command touches. A sweep enters the table into a
// state of bytes (internal/analysis/bytestate), which knows the last writer of every
// byte and the readers since. Constant ranges are compared exactly. Regions that are
// strided or that params move conflict unless they are proved disjoint; each pair of
// different regions is compared once. An access that meets k cells costs O((k+1) log
// n).
//
// The package answers these questions:
//
//   - [Table.Levels], [Depth] and [ValueDepth] measure chains. They need no edges: a cell
//     holds the max level of its writer and of its readers.
//   - [Table.Latest] is what placing barriers needs: the latest earlier command that each
//     command conflicts with, also from one replay to the next.
//   - [Table.Order] is the order that conflicts demand, as an explicit graph for
//     schedulers. [Table.Hazards] also gives the reason for each edge. Edges lead from the
//     last writers and from the readers since. Where many readers meet many writers, a
//     join node stands between them, so that edges stay few. The edges are not
//     transitively reduced.
//   - [Table.Replays] is the same order for two replays in a row.
//   - [Stream] finds that order while the list is executed: for callers that take commands
//     from its front and forget those that have ended.
//   - [Table.Judge] finds what makes a recording ambiguous: races, and reads of undefined
//     bytes, that an output or state can depend on.
//   - [Tracker] compares one command with those added before, for callers that build a
//     graph command by command.
//
// It does not place barriers, move commands, or say which of several orders is better.
package hazard
