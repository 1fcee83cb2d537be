// Package atomicfile replaces files whole: written beside, then renamed, so that
// neither an error nor a crash leaves half a file.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Replace writes a new file beside path and renames it over path once it
// is safely on disk. An error, or an end of the program, leaves what was at
// path as it was.
func Replace(path string, write func(*os.File) error) (err error) {
	// A link is followed: its target is replaced, not the link. A device or a pipe
	// is written into: nothing can be put in its place.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return into(path, write)
	}
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // the error is the one before; a second Close changes nothing
			os.Remove(f.Name())
		}
	}()
	if old, err := os.Stat(path); err == nil && old.Mode().IsRegular() {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// into writes to something that is no regular file.
func into(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close() // the first error is the one that counts
		return err
	}
	return f.Close()
}

// createBeside creates a file in path's directory, readable as the umask says
// (os.CreateTemp's files are private).
func createBeside(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	for range 100 {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.%08x.tmp", base[:min(len(base), 200)], rand.Uint32())), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("no unused name for a new file beside %s", path)
}

// syncDir makes a rename in dir durable, where directories can be synced.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems cannot; the rename itself is done
		d.Close()
	}
}

// Write is Replace for a writer that needs no seeking; output is buffered.
func Write(path string, write func(io.Writer) error) error {
	return Replace(path, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<16)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	})
}
