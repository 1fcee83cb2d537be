// Package conformance holds the tests that every backend passes. [Run] runs
// them on a device:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func() backend.Device { return cpu.New(2) }, conformance.Options{})
//	}
//
// There are two kinds of test, in one map of names. Tests of what a device
// means (order/…, param/…, state/…, error/…): commands run in written order,
// params reach offsets, lengths, grids and scalars, states live from replay to
// replay, what cannot run is an error before anything runs. And tests of
// kernels (kernel/NAME), made from the declarations of package msl: random
// dispatches that a declaration describes, whose results must be those of the
// declaration's term, computed by an interpreter, and which must touch the
// declared bytes and no others. dispatch.go makes the dispatches, check.go runs
// and judges them.
//
// A declaration that lies would be trusted by passes and by the prover. So
// [Corrupt] damages every declaration in every way of mutate.go and fails where
// the tests of kernels do not notice. What they cannot know, because it shows on
// a GPU only (a grid, a threadgroup size, a condition), is compared with
// dispatches as engines make them, which witness.txt lists.
//
// [Sample] hands the same dispatches, with data, to a backend's own tests of what
// cannot be seen from outside a device: how units may be split, what a view that
// is too short does. [Fingerprint] hashes their results.
//
// A backend names what it does not pass: [Options.Unsupported] for ever,
// [Options.ExpectedFailure] for now; an expected failure that passes fails the
// run. Nothing is skipped in silence.
//
// Words: an instance is one function of a template declaration; a family is all
// instances of one declaration in a source file.
package conformance
