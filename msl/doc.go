// Package msl is the kernel library. It embeds Metal sources, and above each kernel there its
// declaration, which passes, the prover and the recorder read (docs/kernels.md). It compiles and
// runs nothing: backends do.
//
// If MLX 0.32.4 has a kernel, its name and its arguments here are those of MLX, so that a recording
// runs on this library or on a user's own mlx.metallib.
package msl
