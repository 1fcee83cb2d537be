// Package safetensors is the front end for folders of language models, as Hugging Face and MLX publish them: config.json,
// model.safetensors or several files by model.safetensors.index.json, tokenizer.json, and tokenizer_config.json. Matrices
// are dense, or quantized by MLX; an architecture is a row of a table (config.go). What a folder has fused, or one by one for
// experts, is cut and put together (rearrange.go). Of a model of text and pictures the language model is taken (wrapped.go).
//
//	m, err := safetensors.Load("folder")
//	module, err := m.Record(ctx, frontend.Options{})
//
// [File] reads the format itself. Whatever the package does not know it refuses by name.
package safetensors
