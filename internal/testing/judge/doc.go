// Package oracle decides whether one graph may take the place of another, slowly and in
// a way that is easy to believe. It exists to test the prover, which decides the same
// fast: it shares no idea with it, and only tests import it.
//
// # How it judges
//
// [Judge] simulates both graphs. A byte holds a token, which is an opaque value. A
// command turns the tokens that it reads, together with what it is (kernel, constants,
// grid, arguments), into a new token for each byte that it writes. Equal computations
// have equal tokens, and different ones have different tokens. A may-write also depends
// on the old byte; a command of unknown effects reads everything and may write
// everything. The commands of before run one after another, for several replays in a
// row. After runs in every order that its barriers and commits allow, and commands that
// race also interleave byte by byte. Every output and state must end with before's
// tokens, for all values of the params within their bounds, or for a sample if these
// are many.
//
// If every boundary in both graphs is a multiple of some length, one token stands for
// that many bytes.
//
// Consecutive replays are streamed: the next replay goes on where the last one ended,
// and the end of the list orders nothing. If before itself races between replays, the
// replays wait for one another instead, and the [Judgement] says so.
//
// # What it does not know
//
// It knows few terms. With [Options.Terms] it knows the norms, products and sums of the
// builtin library, element by element, and that one times x is x, so that it can judge
// the fusion of a norm and a product. Any other rewrite that replaces commands by a
// kernel with the composed term must be described by an [Equivalence]. Two weights with
// equal contents are different values. A dispatch is a function of all its reads, so
// splitting one in two is never called harmless.
//
// # Words
//
// A race is two commands that conflict and that nothing orders. It is harmful only if
// some outcome differs; a race whose outcomes are all equal is a remark, and so is a
// command that computes what before does not compute and that nothing needs. The
// verdict is [Undecided] where before itself leaves the differing value undefined.
//
// # Mutations and campaigns
//
// [Mutations] lists ways to change a graph that leave it well-formed: what a faulty or
// hostile optimizer might do, harmless changes that look alike, and what an honest
// optimizer does (honest.go). [Generate] draws graphs to change. [Campaign] makes many
// mutations of many graphs, judges each one, and asks a prover. Its [Report] counts the
// answers by class, and keeps the smallest example of each disagreement.
//
// The smallest example is ExampleJudge.
package judge
