// Package nvptx compiles Metal kernels for NVIDIA's GPUs. [Compile] makes PTX of a kernel with clang alone: package air
// reads and prepares its module, and what threads exchange they exchange by instructions of a warp (exchange.go). For
// that it finds out which threads of a warp execute a block together, its active mask (members.go), by where values are
// uniform and control flow diverges (uniform.go). entry.go writes the entry, which finds out where in the grid a thread
// is; wait.go has the kernel wait for the grids before it as late as it may. Products of simdgroup matrices may be made
// by tensor cores (matrix.go, mma.go).
package nvptx
