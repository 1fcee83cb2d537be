// Package report says what costs most in a recording, in the words of the engine that recorded
// it: dispatches that one kernel of the library would do, commands whose results nobody reads,
// barriers that no conflict asks for, dispatches that leave cores or lanes idle, and kernels
// of which nobody knows what they touch. `mlxc report` prints it.
//
// It finds out nothing itself. What can be fused and dropped is what the default pipeline of
// package optimize does under its proof; a barrier is called needless if package prove proves
// the graph without it; times are those of package cost.
//
//	r, err := report.Of(ctx, g, report.Options{})
//	for _, f := range r.Findings {
//		fmt.Println(f.Saves, f.What, f.Count)
//	}
//
// The times that findings save do not add up: barriers within a fusion go with it, and a
// dispatch may already run on cores that another one leaves idle. What all of them together
// save, so far as an optimizer can, is the difference of [Report.Now] and [Report.Optimized].
package report
