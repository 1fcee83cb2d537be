// Package ptxmatrix writes PTX of products of matrices and of attention, most of it for GPUs of compute capability 9.0. Their tensor cores
// take factors from shared memory and add up products while threads do something else (wgmma). What a kernel computes is
// what its declaration says; only the code is not the one that clang makes of the Metal source:
//
//	k := ptxmatrix.Of(kernel, constants, gpu)    // nil: there is no code for it
//	f := k.Fit(groups, given)                    // how much a block does
//	text := k.Emit(launch, f)                    // an entry with the parameters of nvptx.Compile
//	grid, threads, shared := k.Launch(groups, f) // which is launched with other blocks
//
// In a product a block makes 256 columns of results, for which it needs 256 rows of weights, and up to 128 rows. Each of its four
// warpgroups has 64 of the columns. The inner index is taken in stages of 128 elements: while one is multiplied, asynchronous copies bring
// the next ones to shared memory. The left factor of a wgmma are weights, in registers, which a thread decodes itself; the right one are
// rows of x, in shared memory. Where there would be too few blocks for a GPU, up to eight, a cluster, share the inner index, and make a part of the results each. In which
// order a sum is added depends on its length and on how many blocks share it.
//
// Weights of 16 bits that are no codes are not decoded: both factors of a wgmma lie in shared memory then, stages have 64 elements, and there are blocks of 256
// rows and 128 columns too.
//
// On other GPUs a block makes 256 columns of up to 64 rows, and each of its eight warps multiplies by itself (mma.sync).
//
// In a product of many rows with GGML's blocks the same is done with weights that are f32: each is the sum of two numbers of 16 bits, or a whole number, in units of its
// block, and a rest that its group shares.
//
// So is a product of many rows of f32, whose elements of x are the sum of three numbers of bf16, and weights a whole number, in units of their group, and a rest that it shares.
//
// In a product with a vector (mma.sync) a block takes 16 rows of weights after others, affine codes, GGML's blocks or weights that are no codes, and each of its warps has a part of
// the inner index. So are up to eight rows of x with affine codes multiplied.
//
// In attention a block has 64 queries of a head, and goes through the keys in tiles of 64, or 32, from the first one that a query sees. Of few queries a cluster of eight blocks has one, or several whose heads share a key head, and shares the keys.
package ptxmatrix
