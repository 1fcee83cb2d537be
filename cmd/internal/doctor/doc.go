// Package doctor examines a device, as `mlxreplay doctor` does: it runs litmus tests, small kernels of
// known results, every kernel of the library and the conformance suite, measures what things cost, and
// says all of it in a report that a user can send and in a profile that mlxc reads.
//
//	r, err := doctor.Examine(ctx, doctor.Options{Device: d})
//	err = r.WriteText(os.Stdout)
//
// It knows no Metal: litmus tests and devices with other plans are given to it.
package doctor
