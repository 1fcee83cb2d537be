// Package mlxg reads and writes .mlxg files, the container of an [ir.Module]:
// graphs, and the weights that they bind, in one file that can be mapped.
//
// docs/file-format.md specifies the bytes; this package follows it and nothing
// else does.
//
// # Words
//
// A file is a header with a section table, and sections: META (the graphs, as
// msgpack), STRS (their strings), BLOB (the blob table) and WGHT (the bytes of
// the embedded blobs). A blob is immutable contents: embedded, or external,
// which is a range of another file (a GGUF, a safetensors) by path and SHA-256.
//
// # What opening costs
//
// [Open] maps the file. It reads and checks META, STRS and BLOB; no byte of
// WGHT is read or copied before somebody asks for it. External blobs are mapped
// too; their digests are computed once for each state of a file and remembered
// in the user's cache directory. Every blob of [File.Module] lies in a mapping,
// so it dies with [File.Close], and nobody may shorten a file while it is mapped
// (see internal/files/mmap); writing over it with [WriteFile] is safe.
//
// A file is input from anywhere: whatever its bytes are, Open returns a module
// that [ir.Module.Check] accepts, or an error that names the file, the offset
// and the reason; memory is allocated in proportion to the bytes that were
// really there, not to the lengths that they claim.
//
// # What this package does not do
//
// It edits no file in place, resolves no kernel library, and says nothing about
// races. The text form is package ir/mlxt.
//
// # Smallest example
//
//	if err := mlxg.WriteFile(ctx, "decode.mlxg", module, mlxg.WriteOptions{}); err != nil {
//		return err
//	}
//	f, err := mlxg.Open(ctx, "decode.mlxg", mlxg.OpenOptions{})
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	g := f.Module.Graph("decode")
package mlxg
