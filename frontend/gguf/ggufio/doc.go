// Package ggufio reads GGUF model files: metadata, the tensor table, and the
// tensors' bytes as slices of a read-only mapping.
//
// Layout (little-endian; the GGUF specification of the ggml project):
//
//	"GGUF" · version u32 · tensor count u64 · key count u64
//	per key:    key string · value type u32 · value
//	per tensor: name string · dimension count u32 · dims u64… · type u32 · offset u64
//	padding to general.alignment (default 32) · tensor data
//
// A string is its length (u64) and that many bytes; an array is its element
// type (u32), its count (u64) and the elements. A tensor's stored offset counts
// from the start of the data.
//
// It reads versions 2 and 3. Nothing in the file is believed: every count and length is
// compared with the bytes that are left before anything is allocated; tensors must be
// aligned, lie inside the file and not overlap; keys and names must be unique. The
// error for a file that breaks a rule is a [frontend.Error], whose offset is the byte at
// which the offending field starts. [Open] allocates at
// most 10 MB beyond the size of the file, whatever the file says.
//
// It refuses version 1 and big-endian files by name, does not know split models, and
// gives keys no meaning: which architecture or tokenizer a file has is its caller's
// business. GGUF has no checksum, so damage inside tensor data is not noticed here.
//
// A file has key/value pairs ([KV]), whose values have a value type ([ValueType]), and
// tensors, whose elements have a [Type]. ggml stores quantized elements in blocks of
// [Type.BlockElements] elements and [Type.BlockBytes] bytes.
//
// Smallest example:
//
//	f, err := ggufio.Open("model.gguf")
//	if err != nil {
//		return err
//	}
//	defer f.Close() // the slices of f.Data are dead after this
//	arch, err := f.KV.String("general.architecture")
//	for _, t := range f.Tensors {
//		fmt.Println(t.Name, t.Type, t.Dims, len(f.Data(t)))
//	}
//
// Package ggufwrite, below this one, writes small files for tests.
package ggufio
