// Package mlxfn is the front end for functions that MLX has exported (mlx::core::export_function): .mlxfn files.
//
// A file holds traces of one function, each for other shapes: a list of MLX's primitives, with the constants that the
// function has captured. [Parse] reads it in memory that grows with the size of the file alone, whatever that claims. A trace
// becomes a graph by the operations of package record, by a table with a row for each primitive (primitives.go):
//
//	m, err := mlxfn.Open("step.mlxfn")
//	module, err := m.Record(ctx, frontend.Options{})
//
// What cannot be recorded is named, all of it at once.
package mlxfn
