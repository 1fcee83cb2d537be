// Package declarations tests the declarations of kernels, which the passes and the prover trust. [Corrupt] damages every
// declaration in every way of mutate.go, and fails if the tests of kernels (package conformance) do not notice.
// Mistakes that these cannot see, since they show on a GPU only (in a grid, a threadgroup size, a condition), are found
// by the witnesses in the Metal source: dispatches as engines make them.
//
// It is apart from the suite, so that no command links it, and public, since programs that add kernels need it:
// [Source] runs all tests of the kernels of one Metal source.
package declarations
