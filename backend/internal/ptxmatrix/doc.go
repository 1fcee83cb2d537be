// Package ptxmatrix writes PTX of products of matrices for GPUs of compute capability 9.0, whose tensor cores take
// factors from shared memory and add up products while threads do something else (wgmma). What a kernel computes is
// what its declaration says; only the code is another one than clang makes of the Metal source:
//
//	p := ptxmatrix.Of(kernel)                    // nil: it is none of these products
//	f := p.Fit(groups, aligned)                  // how large a tile of results a block makes
//	text := p.Emit(launch, f)                    // an entry with the parameters of nvptx.Compile
//	grid, threads, shared := p.Launch(groups, f) // of which it takes other blocks
//
// A block makes a tile of results: 128 columns, which are rows of the matrices of weights, and up to 128 rows. Four
// warpgroups share it: two take 64 of its columns each, and two others the same columns. Of each 128 elements of the
// inner index, the first two add up the products of the former half and the others those of the latter; in the end the two
// sums are added. So the order of a sum depends on its length alone.
//
// The left factor of a wgmma, in registers, are weights, which a thread decodes itself. The right one are rows of x, which lie
// in shared memory. Codes and rows are brought there by asynchronous copies, some stages ahead.
package ptxmatrix
