// Package textgen produces text with the graphs of a language model: a
// "decode" graph (one token) and, if there is one, a "prefill" graph (several at
// once), as frontend/gguf records them, and the tokenizer beside them.
package textgen
