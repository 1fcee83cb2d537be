// Package graphdiff says in words what changed between two graphs, for people
// who read what an optimizer did. It proves nothing: whether both compute the
// same is package prove's question.
//
// # How commands are matched
//
// By provenance. A command stands for the recorded commands in its From, or for
// itself. One that stands for the same as a command of the other graph is that
// command; one that stands for several of them is their fusion; what nothing
// stands for is dropped or new. Commands have moved if they are not on a longest
// common subsequence of both lists. A mark (barrier, commit) is the same mark if
// it stands before the same command.
//
// # Words
//
// A [Change] is one difference, of a [Kind], with the commands on both sides. An
// empty [Diff] means that the texts of both graphs (ir/mlxt) are equal, but for
// where contents of weights are kept, and for commands that say or do not say that
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
