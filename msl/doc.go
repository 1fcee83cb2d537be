// Package msl is the kernel library: Metal sources, embedded, each kernel with
// the declaration that passes, the prover and the recorder read
// (docs/kernels.md). It compiles and runs nothing: backends do.
//
// Names and argument layouts are those of MLX 0.32.4 wherever MLX has the
// kernel, so that a recording runs on this library or on a user's own
// mlx.metallib.
package msl
