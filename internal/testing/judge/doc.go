// Package judge decides whether one graph may take the place of another, slowly and in a
// way that is easy to believe. It exists to test the prover and the passes: it shares no
// idea with the prover, and only tests import it.
//
// # How it judges
//
// [Judge] simulates both graphs. A byte holds a value, which is a hash. A command hashes
// the values that it reads, together with what it is (kernel, constants, grid,
// arguments, and the place of a view that its effects leave out), into a new value for
// each byte that it writes. So equal computations have equal values, and different ones
// have different values. A may-write also depends on the old bytes; a command of unknown
// effects reads everything and may write everything. The commands of before run one
// after another, for several replays in a row. After runs in every order that its
// barriers, commits or edges allow, and commands that race also interleave byte by byte.
// Every output and state must end with before's values, for all values of the params
// within their bounds, or for a sample if these are many.
//
// If every boundary in both graphs is a multiple of some length, one value stands for
// that many bytes.
//
// Consecutive replays are streamed: the next replay goes on where the last one ended,
// and the end of the list orders nothing. If before itself races between replays, the
// replays wait for one another instead, and the [Judgement] says so.
//
// # What computes the values
//
// There are three ways. By default a kernel is a hash function. With [Options.Terms] the
// judge knows the norms, products and sums of the builtin library, element by element,
// and that one times x is x, so that it can judge the fusion of a norm and a product.
// [Compare] lets a device run the kernels, in the same orders, and compares bits.
//
// Two weights with equal contents are different values. A dispatch is a function of all
// its reads, so splitting one in two is never called harmless.
//
// # Words
//
// A race is two commands that conflict and that nothing orders. It is harmful only if
// some outcome differs; a race whose outcomes are all equal is a remark, and so is a
// command that computes what before does not compute and that nothing needs. The
// verdict is [Undecided] where before itself leaves the differing value undefined.
//
// # Graphs, mutations and campaigns
//
// [Generate] draws graphs of opaque kernels, and [GenerateBuiltin] graphs that a device
// can run; [Pipeline] draws passes. [Mutations] lists ways to change a graph that leave
// it well-formed: what a faulty or hostile optimizer might do, harmless changes that
// look alike, and what an honest optimizer does (honest.go). [Campaign] makes many
// mutations of many graphs, judges each one, and asks a prover. Its [Report] counts the
// answers by class, and keeps the smallest example of each disagreement.
//
// # The long forms
//
// For more graphs, pipelines and terms than a run of all tests has:
//
//	go test ./internal/testing/judge -run Passes -judge.graphs=10000
//	go test ./internal/testing/judge -run OddValues -timeout 60m -judge.values=100000 -judge.first=1000000
//
// The smallest example is ExampleJudge.
package judge
