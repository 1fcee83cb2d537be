// Package litmus finds out on a GPU what Metal's documentation leaves open, and whether what
// backend/metal relies on holds there.
//
//	results, err := litmus.Run(ctx, litmus.Options{})
//	profile.Litmus.Fences = verdict.Passing(results, "fence/*")
//
// A litmus test is a small program, sent as Metal messages, that computes something else if an order
// is not kept: a chain of steps over one memory, each x·m + a with numbers of its own, every second
// one slow. It runs many times with what is to order it, and as often with that left out, which is
// its control. So there are three answers. It was wrong with the order: [Failed], or [NotKept] where
// nothing relies on it. It was wrong without the order alone: [Passed]. It was right both times:
// [NotSeen], which says nothing, for a program in which nothing goes wrong without the order cannot
// show that the order is what helps. No number of runs proves an order. Tests of values, which need
// no luck, have no control.
//
// On Linux the package's tests run it on internal/testkit/fakemetal, where every test is seen to fail
// on a device that does not keep what it is about.
package litmus
