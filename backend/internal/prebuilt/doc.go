// Package prebuilt has our own kernels as PTX, compiled beforehand, so that who has an NVIDIA GPU needs no
// LLVM:
//
//	a, err := prebuilt.Own()
//	k, err := a.Find(prebuilt.NewRequest("norm.metal", source, "rmsfloat32"))
//	// k.PTX, and k.Description, whose arguments are to be bound; or why it is not there
//
// The archive is the file kernels.bin, which `make ptx` (the command in make/) makes and which is part of
// the program. Each kernel says by a digest of which source it is: one whose source is another today is
// not found, and so is every kernel once what compiles them is another. Whoever asks then compiles it,
// which needs clang. docs/rationale.md says why the archive is kept so.
package prebuilt
