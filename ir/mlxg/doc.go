// Package mlxg reads and writes .mlxg files, the containers of an [ir.Module]. Such a file
// holds graphs and the weights that they bind, and can be mapped.
//
// docs/file-format.md specifies the bytes, and this is the only package that knows them.
//
// # Words
//
// A file is a header with a section table, followed by sections: META (the graphs, as
// msgpack), STRS (their strings), BLOB (the blob table) and WGHT (the bytes of the embedded
// blobs). A blob is a run of bytes that never change. It is embedded, or external: a range
// of another file, such as a GGUF or safetensors file, given by path and SHA-256.
//
// # What opening costs
//
// [Open] maps the file and reads and checks META, STRS and BLOB. Weights are not copied.
// Embedded and external contents are compared with their digests, which reads them all; the
// result for each state of a large file is remembered in the user's cache directory, so
// that later calls need not read them again. [OpenOptions] can leave this out. Every blob of
// [File.Module] lies in a mapping, so it must not be used after [File.Close]. A file must
// not be shortened while it is mapped (see internal/files/mmap); writing over it with
// [WriteFile] is safe.
//
// A file may come from anywhere. Whatever its bytes are, Open returns a module that
// [ir.Module.Check] accepts, or an error that names the file, the offset and the reason.
// It allocates memory in proportion to the bytes that are really there, not to the lengths
// that they claim.
//
// # What this package does not do
//
// It does not edit files in place, find kernel libraries, or look for races. Package ir/mlxt
// has the text form.
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
