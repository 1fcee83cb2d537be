// Package gguf is the front end for language models in GGUF files: it reads a
// Llama-architecture model, repacks its weights to MLX's affine quantization
// without loss, and records its decode and prefill graphs.
//
//	m, err := gguf.Load("model.gguf")
//	module, err := m.Record(ctx, gguf.Options{})
//
// What it does not know it refuses by name: an architecture, a tensor, a
// tensor's type, a kind of rope scaling.
//
// Package ggufio under it reads the bytes of the file; package tokenizer has
// the vocabulary's algorithms.
package gguf
