// Package gguf is the front end for language models in GGUF files. It reads a model of
// one of [Architectures], repacks its weights without loss to MLX's affine
// quantization or leaves them in the blocks of the file, and records its decode and prefill graphs.
//
//	m, err := gguf.Load("model.gguf")
//	module, err := m.Record(ctx, frontend.Options{})
//
// Whatever it does not know it refuses by name, all of a file at once: an architecture, a key, a tensor, a tensor's
// type, a kind of rope scaling. An architecture is a file, arch_NAME.go, and a row of a table (config.go).
//
// Package ggufio below it reads the bytes of the file. Package tokenizer turns text
// into token IDs.
package gguf
