// Package textgen generates text with the graphs of a language model: one for one token, perhaps one for several
// tokens at once and one that verifies guesses of what follows, and the tokenizer stored beside them. What graphs, memories and params are called, the module says
// itself ([frontend.Interface]). [Open] makes a [Model] of a module and a device; [Model.Generate] continues a prompt.
// It knows no chat templates (tokenizer/chat does) and no command line.
package textgen
