// Package routes says which dispatches MLX's Metal host code sends for an operation: kernel,
// function constants, grid, threadgroup, bindings, inline bytes, barriers, temporaries, and the
// copies of inputs whose layout a kernel cannot read. It records nothing and needs no kernel.
//
// An operation is a method of [Encoder], named as MLX names it. Its operands are arrays with a type, a
// shape and strides; what it sends is in [Encoder.Sent]. What decides between kernels is data where
// it is limits: one table a family, in the file of the family.
//
// Sizes are affine in the params of a graph ([Size]). A choice is made for the greatest values of the
// params ([Encoder.Most]), so that one kernel serves their whole range; grids and arguments follow the
// params. A size that a route needs as a number, such as the width of a row, must not depend on one.
//
// The facts are those of MLX at 846d1762, between two releases of 0.32. testdata/mlxhost holds what
// its own host code sent, and the test of this package compares.
package routes
