// Package mslc compiles Metal Shading Language with a stock clang to LLVM IR of the shape that
// Apple's compiler leaves in a .metallib: kernels whose parameters are pointers into address
// spaces and positions of threads, calls of air.* functions, metadata air.kernel.
//
//	u, err := mslc.Compile(ctx, "norm.metal", source, mslc.Options{})
//	for _, k := range u.Kernels { … k.Name, k.Args, k.Constants … }
//	text, err := u.Module("rms_single_row_float")
//
// A source goes through `clang -E`, then through a rewriter of tokens, which leaves C++ without
// address spaces for mslshim/metal.h, then through clang once for all kernels of the file. The
// target is nvptx64, whose calling convention passes vectors as they are; who goes on from here
// gives the module a target of its own. [Unit.Module] takes out what one kernel needs.
//
// # What a module is
//
//   - `define void @NAME(…)`: a parameter in memory is a ptr addrspace(1) (device), (2) (constant)
//     or (3) (threadgroup); the position of a thread is an integer or a vector of them. Beside it
//     stand the functions that clang did not inline; none is recursive, none is called through a
//     pointer.
//   - Threadgroup variables are globals in address space 3, arrays of bytes with the value undef.
//   - Pointers elsewhere are in the spaces that they come from, as far as that shows (space.go);
//     else generic (space 0).
//   - What Metal's library does beyond arithmetic is a call of a function of AIR, whose names and
//     signatures are those in MLX's libraries: air.exp.f32, air.simd_sum.f32, air.wg.barrier(flags,
//     1). Functions of vectors are called lane by lane. Conversions are LLVM's own instructions,
//     where Apple's compiler calls air.convert.*; from float to integer they are llvm.fptosi.sat
//     and llvm.fptoui.sat. Exchange between threads is convergent, all else is memory(none).
//   - A function constant NAME with index N is a global `_Z4NAME.MTL_FC_INIT_N_TYPE` (TYPE is a
//     letter of the C++ ABI: b, i, j, f) in address space 2, as in AIR. Kernels load it where
//     they need it: unlike AIR there is no constructor that copies it. To specialise a kernel,
//     give it a value.
//   - Named metadata air.kernel, air.function_constants, air.version, air.language_version and
//     air.compile_options are as in AIR, so that one parser reads both.
//
// # Arithmetic
//
// Fast math is off: a*b+c may become llvm.fmuladd (unless the source says `#pragma clang fp
// contract(off)`), nothing else is reordered. Each operation on half and bfloat is rounded to its
// type. Denormals may be flushed (air.compile.denorms_disable says so).
//
// It does not prove that Apple's compiler accepts a source: package mslcheck looks for more
// mistakes.
package mslc
