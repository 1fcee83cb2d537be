// Package ggufwrite builds small GGUF files in memory, for tests.
//
// A file consists of key/value pairs and tensors, written in the order given and padded
// as GGUF version 3 (or 2) requires.
//
// The package does not check what a reader must check (duplicate keys, odd alignments,
// shapes that do not fit the blocks of a type), so that a test can build a wrong file
// on purpose. It holds the whole file in memory.
//
// Smallest example:
//
//	var w ggufwrite.File
//	w.KV("general.architecture", "llama")
//	w.KV("llama.block_count", uint32(2))
//	w.Tensor("output_norm.weight", ggufio.F32, []uint64{4}, make([]byte, 16))
//	data, err := w.Bytes()
package ggufwrite
