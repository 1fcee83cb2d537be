// Package simd holds the inner loops of the CPU backend: dot products against
// quantized and plain weights, the matrix products of a prefill, and the
// elementwise loops around them. All arithmetic is float32 with float32
// accumulation; floats of 16 bits (f16, bf16) are widened to float32 before it and
// rounded after it ([HalfTo], [ToHalf]).
//
// Each loop exists several times: in Go ("generic", every architecture), as
// assembly for amd64 with AVX2, FMA and F16C and with AVX-512, and for arm64 with Advanced
// SIMD ("neon"). The best one that the machine has is chosen once, when the
// program starts; the environment variable MLXC_SIMD (generic, avx2, avx512,
// neon) or [Use] picks another. They differ in the order of additions and so in
// the last bits of a sum.
//
// The assembly, and the Go that chooses, is written by the program in gen
// (go generate): a loop is one function there, for a machine of vectors whose
// operations become instructions of AVX2, AVX-512 or Advanced SIMD. Avo
// (github.com/mmcloughlin/avo), which writes assembly for Go too, knows amd64
// alone, and its programs name instructions: a machine over it would still be
// ours to write, and a second one for arm64. So gen has no dependency.
//
// The loops for arm64 use what every arm64 has. Its dot products of bytes
// (SDOT) and its arithmetic on half floats have no place here: x is float32, and
// sums are. AVX-512's arithmetic on half floats (AVX512-FP16) is left out for that
// reason too. On other machines TestNEON runs the loops for arm64 in an emulator.
//
// # What this package is not
//
// It knows no tensors, shapes or strides beyond the ones in an argument list,
// starts no goroutine and allocates nothing: the caller divides rows between
// cores and hands in scratch. Every function checks the lengths that it was
// given and panics with both numbers when they disagree, because the assembly
// behind it would read past the end.
//
// # Words
//
//   - row: the k weights that make one output; a matrix w is n rows, one after
//     another ([n, k], the layout of a linear layer's weight).
//   - group: 32, 64 or 128 neighbouring weights of a row which share a scale and
//     a bias.
//   - quantized row: MLX's affine quantization. Weight e of a row is
//     scales[e/group]*q(e) + biases[e/group]. With 4 bits, q(e) is bits
//     4*(e%8)… of the little-endian uint32 number e/8, so that byte i holds
//     weight 2i in its low half and weight 2i+1 in its high half. With 8 bits
//     q(e) is byte e.
//   - block: one of GGML's ([Blocks]): 32 or 256 weights with their scales among
//     the codes, in the order of the file.
//   - xsum: the sums of x over each group ([GroupSums]); with them the biases
//     cost one multiplication a group: Σ (s·q+b)·x = s·Σ q·x + b·Σ x.
//   - panel: a few rows decoded to float32 and transposed, in scratch, during a
//     matrix product.
//
// # Errors
//
// A sum of k products is within 1e-5 of the exact one, relative to the sum of
// the products' absolute values, for k up to 65536. With an infinity or a NaN
// among the inputs a result that depends on it is an infinity or a NaN, but
// which of the two may depend on the implementation.
//
// # Example
//
// One 4-bit linear layer of n rows applied to one vector:
//
//	xsum := make([]float32, k/group)
//	simd.GroupSums(xsum, x, group)
//	simd.MatVecQ4(y, x, xsum, w, scales, biases, k, group) // len(y) == n
package simd
