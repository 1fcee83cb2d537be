// Package textgen generates text with the graphs of a language model, as frontend/gguf
// records them: a graph "decode" for one token, perhaps a graph "prefill" for several
// tokens at once, and the tokenizer stored beside them. [Open] makes a [Model] of a
// module and a device; [Model.Generate] continues a prompt. It knows no chat templates
// (tokenizer/chat does) and no command line.
package textgen
