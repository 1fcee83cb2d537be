// Package oracle says whether one graph may stand in for another, slowly and
// in a way that is easy to believe. It exists to test what decides that fast:
// it shares no idea with it, and nothing but tests imports it.
//
// # How it judges
//
// [Judge] simulates both graphs. A byte holds a token, an opaque value; a
// command turns the tokens that it reads, and what it is (kernel, constants,
// grid, arguments), into a fresh token for each byte that it writes. Equal
// computations have equal tokens and no others do. A may-write depends on the
// old byte too; a command of unknown effects reads and may write everything.
// The commands of before run one after another, for several replays in a row.
// After runs in every order that its barriers and commits allow, and commands
// that race also run through one another byte by byte. Every output and state
// must end with before's tokens, for all values of the params within their
// bounds, or a sample where these are many.
//
// Where every boundary in both graphs is a multiple of some length, one token
// stands for so many bytes.
//
// Consecutive replays are streamed: the list of a graph is a cycle, whose
// boundary orders nothing. Where before's own list races around the cycle, the
// replays wait for one another instead, and the [Judgement] says so.
//
// # What it does not know
//
// Terms, but for a few: with [Options.Terms] it knows the norms, products and
// sums of the builtin library, element by element, and that one times x is x, so
// that it can judge the fusion of a norm and a product. Other rewrites that
// replace commands by a kernel whose declared term composes theirs have to be
// told, as an [Equivalence]. Two weights of equal contents are different values.
// A dispatch is a function of all its reads, so splitting one in two is never
// harmless.
//
// # Words
//
// A race is two commands that conflict and that nothing orders. It is harmful
// only if some outcome differs; one whose outcomes are all equal is a remark, as
// is a command that computes what before does not and that nothing needs.
// [Undecided] is the verdict where before itself leaves the differing value
// undefined.
//
// # Mutations and campaigns
//
// [Mutations] lists ways to change a graph that leave it well-formed: what a
// faulty or a hostile optimizer might do, harmless changes that look alike, and
// what an honest optimizer does (honest.go). [Generate] draws graphs to change.
// [Campaign] makes many mutations of many graphs, judges each and asks a prover;
// its [Report] counts answers by class and keeps the smallest example of each
// disagreement.
//
// The smallest example is ExampleJudge.
package oracle
