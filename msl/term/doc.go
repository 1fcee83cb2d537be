// Package term holds the expressions of kernel declarations: integer
// expressions of shapes and grids, conditions, and the terms that say what a
// kernel computes.
//
// One syntax and one tree ([Expr]) serve all three. Terms are written in index
// notation over scalars: a [Load] takes an element of an argument, reductions
// bind an index, every store is an explicit round. docs/terms.md gives the
// numeric meaning of each operation; [Interp] computes it, together with a
// bound on how far any evaluation that the meaning allows may lie from it.
//
// Not here: what an argument is and how a declaration is laid out (msl/decl).
package term
