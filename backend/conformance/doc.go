// Package conformance holds the tests that every backend passes. [Run] runs
// them on a device:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func() backend.Device { return cpu.New(2) }, conformance.Options{})
//	}
//
// There are two kinds of test, in one map of names. Those of the first kind say what a
// device means (order/…, param/…, state/…, error/…): commands run in written order, params
// reach offsets, lengths, grids and scalars, states live from replay to replay, and what
// cannot run is an error before anything runs. Those of the second kind test kernels
// (kernel/NAME). They are made from the declarations of package msl: random dispatches that
// a declaration describes, whose results must be those of the declaration's term, computed
// by an interpreter, and which must touch the declared bytes and no others. dispatch.go
// makes the dispatches, check.go runs and judges them.
//
// Passes and the prover would trust a declaration that lies. So [Corrupt] damages every
// declaration in every way of mutate.go and fails where the tests of kernels do not notice.
// What they cannot know, because it shows on a GPU only (a grid, a threadgroup size, a
// condition), is compared with the witnesses in the Metal source: dispatches as engines make
// them.
//
// [Goldens] runs dispatches whose results NumPy computed. [Source] does all of this for the
// kernels of one Metal source, such as one that a program adds to the library.
//
// [Sample] hands the same random dispatches, with data, to a backend's own tests of what
// cannot be seen from outside a device: how units may be split, or what a view that is too
// short does. [Fingerprint] hashes their results.
//
// A backend names what it does not pass: [Options.Unsupported] lists what it never will,
// [Options.ExpectedFailure] what it does not pass yet. An expected failure that passes fails
// the run. Nothing is skipped in silence.
//
// Words: an instance is one function of a template declaration; a family is all
// instances of one declaration in a source file.
package conformance
