// Package softmetal is a device that executes Metal kernels on a CPU: our own from their Metal
// source, Apple-compiled ones from a .metallib, and those that an engine brings, with the
// semantics of a GPU's threads.
//
//	d, err := softmetal.New(ctx, softmetal.Options{})
//	defer d.Close()
//
// Kernels become objects of this machine by package internal/air, which needs clang
// (internal/toolchain/clang); they are remembered in the user's cache folder. They run in a
// process of their own, the executor, whose source is in host/: a kernel that writes where
// it must not ends that process with a message, and not the program that tests it. Buffers
// are shared memory with pages on both sides that nobody may touch.
//
// The threads of a threadgroup run one after another, each to its next barrier or simdgroup
// operation, where a simdgroup's threads exchange. Denormal numbers count as zero. Commands
// run in the order of the list, one at a time, on as many workers as the device has.
package softmetal
