// Package softmetal is a device that executes Metal kernels on a CPU: our own from their Metal
// source, Apple-compiled ones from a .metallib, and those that an engine brings, with the
// semantics of a GPU's threads.
//
//	d, err := softmetal.New(ctx, softmetal.Options{})
//	defer d.Close()
//
// Package internal/air compiles kernels to code of this machine, with clang (internal/toolchain/clang), and caches
// them in the user's cache folder. They run in a process of their own, the executor, whose source is in host/: a
// kernel that writes out of bounds ends that process with a message, and not the program that uses the device.
// Buffers are shared memory with inaccessible guard pages on both sides.
//
// The threads of a threadgroup run one after another, each up to its next barrier or simdgroup operation, at which
// the threads of a simdgroup exchange values. Denormal numbers count as zero. Commands run in the order of the list,
// one at a time, each on all workers of the device.
package softmetal
