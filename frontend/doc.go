// Package frontend is what front ends have in common. A front end reads models of one kind of file and records
// their graphs; each is a package below this one, and exports one [Source]:
//
//	var Source = frontend.Source{Name: "GGUF", Holds: "language models", Match: match, Open: open}
//
// The commands know front ends by a table of sources (cmd/internal/inputs/sources.go) and nothing else of them: a
// [Source] says which files it reads, a [Model] is an open one, which is recorded by [Options] that all front ends
// understand.
//
// The module of a language model has two data beside its graphs: the tokenizer ([TokenizerData]), and an [Interface]
// ([InterfaceData]), which says what its graphs and their memories and params are for. Whoever generates text reads
// the interface, and assumes no names. [Describe] writes both.
//
// A file that breaks a rule of its format is an [Error], which has the file, the byte and the reason. Whatever a
// front end does not know, it refuses by name.
package frontend
