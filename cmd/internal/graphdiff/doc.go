// Package graphdiff describes in words what changed between two graphs, for people who
// want to read what an optimizer did. It proves nothing: package prove decides whether
// both graphs compute the same.
//
// # How commands are matched
//
// Commands are matched by provenance. A command stands for the recorded commands in its
// From, or for itself if it has none. A command that stands for the same as a command
// of the other graph is the same command. A command that stands for several commands of
// the other graph is their fusion. A command without a counterpart was dropped or
// added. Commands have moved if they are not on a longest common subsequence of both
// lists. A mark (a barrier or commit, say) is the same mark if it stands before the
// same command.
//
// # Words
//
// A [Change] is one difference, of a [Kind], with the commands concerned on both sides.
// An empty [Diff] means that the texts of both graphs (ir/mlxt) are equal, except for
// where contents of weights are kept, and for commands that say, or do not say, that
// they stand for themselves.
//
// It takes O(n log n) for n commands.
//
// # Smallest example
//
//	d, err := graphdiff.Graphs(ctx, before, after)
//	…
//	for _, c := range d.Changes {
//		fmt.Println(c.Kind, c.Text)
//	}
package graphdiff
