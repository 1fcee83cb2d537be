// Package kernelcases gives tests dispatches of MLX's own kernels, with what each must compute.
//
// The results come from NumPy: testdata/gen/kernelcases writes the cases and testdata/kernelcases
// keeps them, so that the tests need no Python. A case names a kernel of MLX 0.32.4, the values of
// its function constants and of its arguments, by their names in the kernel's description, the grid,
// and the results with the tolerance that they are held to and the reason for it. What arguments
// hold is drawn by a rule that Go and NumPy share ([Rule]), or stored.
//
// The same case runs the kernel that Apple's compiler left in MLX's library and the kernel that our
// compiler makes of MLX's source ([Case.Graph]).
//
// Cases of ggml's kernels (testdata/ggml) have steps: dispatches as ggml makes them, one after another, of kernels of
// its Metal source, with slots for names of arguments and indices for names of constants ([StepGraph]).
//
// Its tests run them on software Metal, plain and under the checker.
//
// A family is a template in a file of MLX's kernels ([Families]); the kernels of a family differ by
// types, operations and sizes of blocks.
package kernelcases
