// Package hazard decides which commands conflict, on bytes: aliases resolved,
// strides and params taken into account. Passes use it; the prover does not (it
// has its own).
//
// # Words
//
// A hazard is a pair of accesses to one byte, one of them a write: RAW (the later
// one reads what the earlier one wrote), WAR, WAW. Ranges that only touch share
// no byte. A pillar is a command of unknown effects; it conflicts with
// everything. The depth of a graph is the number of commands in its longest
// chain of conflicts, and depth∞ that of value edges alone.
//
// # How it works
//
// A [Table] resolves what every command touches, once. A sweep enters it into a
// state of bytes (internal/analysis/bytestate), which knows for every byte the last
// writer and the readers since. Ranges of constants are compared exactly, strided and
// param-dependent regions as far as they can be proved disjoint, each pair of distinct
// expressions once. An access costs O((k+1) log n), k being the number of cells that
// it meets.
//
//   - [Table.Levels], [Depth] and [ValueDepth] need no edges: a cell holds the
//     greatest level of its writer and of its readers.
//   - [Table.Latest] is what placing barriers needs: the last earlier command
//     that each one conflicts with, across replays too.
//   - [Table.Order] is the explicit order, for schedulers; [Table.Hazards] the
//     same with the reason of each edge. Edges lead to the last writers and to the
//     readers since. Where many readers meet many writers a join node stands
//     between, so that edges stay few; nothing is transitively reduced.
//   - [Table.Replays] is the same of two replays in a row.
//   - [Stream] finds the same order as the list goes on, for who takes commands from
//     its front and forgets those that have ended.
//   - [Table.Judge] finds what makes a recording ambiguous: races and undefined reads
//     that an output or state can see.
//   - [Tracker] compares one command with those added so far, for who builds
//     a graph as it goes.
//
// What it does not do: place barriers, move commands, or say which orders are
// good.
package hazard
