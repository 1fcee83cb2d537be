// Package litmus tests on a GPU what Metal's documentation leaves open, and whether the assumptions of
// backend/metal hold there.
//
//	results, err := litmus.Run(ctx, litmus.Options{})
//	model.Litmus.Fences = verdict.Passing(results, "fence/*")
//
// A litmus test is a small program of Metal messages whose result depends on the order of its steps: a
// chain of steps over one buffer, each x·m + a with other constants, every second step slow. It runs many
// times with the mechanism that should order the steps, such as a fence, and as often without it, which
// is the control. So there are three verdicts. Wrong results with the mechanism: [Failed], or [NotKept]
// where the backend does not rely on it. Wrong results only without it: [Passed]. None either way:
// [NotSeen], which says nothing, since the test cannot show that the mechanism is what helps. No number
// of runs proves an order. Tests of values have no control: their results do not depend on chance.
//
// On Linux the package's tests run it on internal/testing/fakemetal, and see every litmus test fail on a
// device that breaks what the test is about.
package litmus
