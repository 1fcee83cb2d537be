// Package mmap gives a file's bytes without copying them.
//
// [Open] maps a whole regular file read-only, [Map.Bytes] is the mapping, and
// [Map.Close] ends it. On Linux and macOS this is mmap(2), so a 100 MB model costs
// address space and not memory, and pages are read when they are first touched. On
// other systems the file is read into memory, with the same results at another cost.
//
// It does not write, map parts of files, advise the kernel, or open special files (a
// pipe or a directory is an error).
//
// Two things to know:
//   - The slice is dead after Close. Touching it then is a memory fault, not a
//     Go error, so whoever hands out sub-slices must outlive their users.
//   - Writing to the slice faults. A file that another process shortens while
//     it is mapped faults too (SIGBUS) when the lost part is read; that is the
//     price of not copying. [Guard] makes an error of it that names the file, on
//     the goroutine that calls it and while it runs. Three things it cannot do:
//     it does not see bytes that change and stay (a digest does, when it is
//     computed), it does not help code that is not Go's (a GPU that reads the
//     mapping), and it does not help goroutines without a Guard of their own.
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
