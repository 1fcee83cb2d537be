// Package term holds the expressions of kernel declarations: integer expressions for shapes and
// grids, conditions, and the terms that say what a kernel computes.
//
// All three have the same syntax and the same tree ([Expr]). Terms are written in index notation
// over scalars: a [Load] takes an element of an argument, a reduction binds an index, and every
// store is an explicit round. docs/terms.md defines the numeric meaning of each operation. [Interp]
// computes it, together with a bound on how far any evaluation that the meaning allows may differ.
//
// Package msl/decl knows what an argument is and how a declaration is laid out.
package term
