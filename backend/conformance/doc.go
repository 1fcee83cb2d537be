// Package conformance holds the tests that every backend passes. [Run] runs
// them on a device:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func() backend.Device { return cpu.New(2) }, conformance.Options{})
//	}
//
// There are two kinds of test, which share one space of names. The first kind tests how a
// device executes graphs (order/…, param/…, state/…, error/…): commands run in written order,
// params reach offsets, lengths, grids and scalars, states live from replay to replay, and a
// graph that cannot run is an error before anything runs. The second kind tests kernels
// (kernel/NAME), by random dispatches that the declarations of package msl describe: the results
// must be those of the declaration's term, computed by an interpreter, and the kernel must touch
// the declared bytes and no others (internal/dispatches).
//
// [Goldens] runs dispatches whose results NumPy computed. Passes and the prover trust
// declarations, so a wrong one must be noticed: package declarations tests that, and has all
// tests for the kernels of one Metal source, such as one that a program adds to the library.
//
// [Sample] gives the same random dispatches, with data, to a backend's own tests of its
// internals, such as how work is split or what a view that is too short does. [Fingerprint]
// hashes their results.
//
// A backend names the tests that it does not pass: [Options.Unsupported] lists those that it
// never will, [Options.ExpectedFailure] those that it does not pass yet. An expected failure that
// passes fails the run. Nothing is skipped in silence.
//
// Words: an instance is one function of a template declaration; a family is all
// instances of one declaration in a source file.
package conformance
