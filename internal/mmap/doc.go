// Package mmap gives a file's bytes without copying them.
//
// What: [Open] maps a whole regular file read-only; [Map.Bytes] is that
// mapping; [Map.Close] ends it. On Linux and macOS this is mmap(2), so a
// 100 MB model costs address space, not memory, and pages are read when they
// are first touched. Elsewhere the file is read into memory: same API, same
// result, different cost.
//
// What not: no writing, no partial mappings, no advice to the kernel, no
// special files (a pipe or a directory is an error).
//
// Two things to know:
//   - The slice is dead after Close. Touching it then is a memory fault, not a
//     Go error, so whoever hands out sub-slices must outlive their users.
//   - Writing to the slice faults. A file that another process shortens while
//     it is mapped faults too (SIGBUS) when the lost part is read; that is the
//     price of not copying, and model files are not edited in place.
//
// Smallest example:
//
//	m, err := mmap.Open("model.gguf")
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	magic := m.Bytes()[:4]
package mmap
