// Package doctor examines a device, as `mlxreplay doctor` does: it runs litmus tests, small kernels with
// known results, every kernel of the library and the conformance suite, measures the times of operations,
// and writes a report that a user can send and a profile that mlxc reads.
//
//	r, err := doctor.Examine(ctx, doctor.Options{Device: d})
//	err = r.WriteText(os.Stdout)
//
// It does not use Metal itself: the caller gives it the litmus tests and devices with other plans.
package doctor
