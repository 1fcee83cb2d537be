// Package fusion chooses groups of commands that one dispatch can replace, and
// replaces them: the work of pass fuse.
//
// Each round follows the use-def chains (internal/analysis/dataflow) to find groups that
// a kernel of the library computes (passes/internal/isel), what each would save, and where
// its dispatch may stand. Groups that share no command are taken, the most profitable
// first, until none is left; the next round begins with what this one fused. When nothing
// more gains, elementwise groups may become generated kernels. What was decided of one
// group holds for all that are like it, and what was found around one command for all
// others around which the same stands (repeat.go).
//
// A group is vertical (a command with producers of what it reads, and theirs),
// horizontal (commands without data flow between them), or both. Its size, and how
// far its commands may lie apart, are bounded, so that a round takes time in
// proportion to the commands.
//
// # What makes a group safe
//
//   - Every member's effects are complete, and are what its kernel declares.
//   - An intermediate that the fused kernel does not write has no reader outside
//     the group, and no output, state or next replay sees it.
//   - What moves from a member's place to that of the fused dispatch conflicts with
//     nothing on the way, and moves over no commit and no command of unknown effects.
//   - Barriers stay. Where a member moved over one, another is put on the other
//     side of the fused dispatch.
//
// Not here: which kernel computes a group (isel), and how few barriers do (pass
// barriers).
package fusion
