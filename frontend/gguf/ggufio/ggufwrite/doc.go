// Package ggufwrite builds small GGUF files in memory, for tests.
//
// What: key/value pairs and tensors in the order given, padded and laid out as
// GGUF 3 (or 2) wants it.
//
// What not: it does not check what a reader must check (duplicate keys, odd
// alignments, shapes that do not fit a type's blocks), so that a test can build
// a wrong file on purpose; and it holds the whole file in memory.
//
// Smallest example:
//
//	var w ggufwrite.File
//	w.KV("general.architecture", "llama")
//	w.KV("llama.block_count", uint32(2))
//	w.Tensor("output_norm.weight", ggufio.F32, []uint64{4}, make([]byte, 16))
//	data, err := w.Bytes()
package ggufwrite
