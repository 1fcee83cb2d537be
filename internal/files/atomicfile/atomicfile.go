// Package atomicfile replaces files as a whole: it writes a new file beside the old one
// and then renames it, so that neither an error nor a crash leaves half a file.
//
//	err := atomicfile.Write(path, func(w io.Writer) error { … })
//
// The new file is called .NAME.xxxxxxxx.tmp, with eight hexadecimal digits, and is
// locked while its writer is alive. A file that a killed writer has left is removed by
// the next one that writes NAME.
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
	"strings"
	"sync"
	"unicode/utf8"
)

// Replace writes a new file beside path, and renames it to path once it is safely on
// disk. After an error, or if the program ends, path is as it was. If path is a
// symbolic link, the file that it leads to is replaced or made, not the link.
func Replace(path string, write func(*os.File) error) (err error) {
	path = Resolve(path)
	// A device or a pipe is written to directly, because nothing can take its place.
	old, err := os.Stat(path)
	switch {
	case err == nil && !old.Mode().IsRegular():
		return into(path, write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err // for example, a link to itself, or a directory that is none
	}
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done { // even if write panics
			f.Close() // an earlier error matters; a second Close does nothing
			f.discard()
		}
	}()
	if old != nil {
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := write(f.File); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if !locks {
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := f.rename(path); err != nil {
		return err
	}
	done = true
	syncDir(filepath.Dir(path))
	if locks {
		f.Close() // the file is on disk under its name, so nothing can fail any more
	}
	return nil
}

// Resolve returns the name of the file that writing to path makes or replaces. Symbolic
// links are followed, even one whose target does not exist yet.
func Resolve(path string) string {
	for range 40 { // the number of links that a kernel follows
		if target, err := filepath.EvalSymlinks(path); err == nil {
			return target
		}
		if _, err := os.Stat(path); err == nil {
			return path // /dev/fd/3 of a pipe is a link, but not to a name
		}
		target, err := os.Readlink(path)
		if err != nil {
			return path
		}
		if !filepath.IsAbs(target) {
			dir := filepath.Dir(path)
			if real, err := filepath.EvalSymlinks(dir); err == nil {
				dir = real
			}
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return path
}

// Try returns the reason why Replace could not write path, and changes nothing. It is
// meant to be asked before work whose result would be lost. folds says that path's
// directory does not tell names apart that differ in case.
func Try(path string) (folds bool, err error) {
	path = Resolve(path)
	switch st, err := os.Stat(path); {
	case err == nil && st.IsDir():
		return false, fmt.Errorf("%s is a directory: name a file in it", path)
	case err == nil && !st.Mode().IsRegular():
		return false, nil // opening a pipe would wait for its reader
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	dir := filepath.Dir(path)
	switch st, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("there is no directory %s: make it first (%w)", dir, fs.ErrNotExist)
	case err != nil:
		return false, err
	case !st.IsDir():
		return false, fmt.Errorf("%s is no directory", dir)
	}
	f, err := createBeside(path)
	if err != nil {
		return false, err
	}
	dir, base := filepath.Split(f.path)
	folds = isAt(f.File, filepath.Join(dir, strings.TrimSuffix(base, ".tmp")+".TMP"))
	f.Close()
	f.discard()
	return folds, nil
}

// into writes to something that is not a regular file.
func into(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close() // the first error matters
		return err
	}
	return f.Close()
}

// beside is a file that is being written beside the one that it will replace.
type beside struct {
	*os.File
	path string
}

// unfinished holds the paths of all files that are being written. It is locked while a
// file is renamed, so that Abandon never removes a finished file.
var unfinished = struct {
	sync.Mutex
	paths map[string]bool
}{paths: map[string]bool{}}

// Abandon removes every file that is being written. It is for a process that is about
// to end: nothing can be replaced after it.
func Abandon() {
	unfinished.Lock() // it is never unlocked: a file to be renamed would be gone
	for path := range unfinished.paths {
		os.Remove(path)
	}
}

func (b *beside) rename(path string) error {
	unfinished.Lock()
	defer unfinished.Unlock()
	if err := os.Rename(b.path, path); err != nil {
		return err
	}
	delete(unfinished.paths, b.path)
	return nil
}

func (b *beside) discard() {
	unfinished.Lock()
	defer unfinished.Unlock()
	os.Remove(b.path)
	delete(unfinished.paths, b.path)
}

// digits is the length of the random part of the name.
const digits = 8

// ends returns how the names of the files beside path begin and end.
func ends(path string) (dir, prefix, suffix string) {
	dir, base := filepath.Split(path)
	if len(base) > 200 { // names have at most 255 bytes
		base = base[:200]
		for !utf8.ValidString(base) && len(base) > 197 {
			base = base[:len(base)-1] // do not cut a character in half: some file systems refuse that
		}
	}
	if dir == "" {
		dir = "."
	}
	return dir, "." + base + ".", ".tmp"
}

// createBeside creates and locks a file in path's directory, with permissions as the
// umask says (os.CreateTemp's files are private), and removes files that dead writers
// of the same path have left.
func createBeside(path string) (*beside, error) {
	dir, prefix, suffix := ends(path)
	removeStale(dir, prefix, suffix)
	unfinished.Lock()
	defer unfinished.Unlock()
	for range 100 {
		name := filepath.Join(dir, fmt.Sprintf("%s%0*x%s", prefix, digits, rand.Uint32(), suffix))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// Another writer that was looking for stale files may have locked or removed
		// this one in the meantime.
		if lock(f) == taken || !isAt(f, name) {
			f.Close()
			continue
		}
		unfinished.paths[name] = true
		return &beside{f, name}, nil
	}
	return nil, fmt.Errorf("no unused name for a new file beside %s", path)
}

// isAt reports whether name is still the name of f.
func isAt(f *os.File, name string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(name)
	return err == nil && os.SameFile(a, b)
}

// removeStale removes files that dead writers have left.
func removeStale(dir, prefix, suffix string) {
	d, err := os.Open(dir)
	if err != nil {
		return // whoever creates a file there will say why it failed
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			middle, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			if middle, ok = strings.CutSuffix(middle, suffix); ok && len(middle) == digits && strings.Trim(middle, "0123456789abcdef") == "" {
				removeIfDead(filepath.Join(dir, name))
			}
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

// removeIfDead removes a file whose writer is dead, which is so if its lock can be
// taken.
func removeIfDead(name string) {
	if st, err := os.Lstat(name); err != nil || !st.Mode().IsRegular() {
		return
	}
	f, err := os.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return
	}
	if l := lock(f); l == held || l == unknown && old(st) {
		os.Remove(name) // if it cannot be removed, it is in nobody's way
	}
}

// syncDir makes a rename in dir durable, on systems where directories can be synced.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // some file systems cannot; the rename itself is done
		d.Close()
	}
}

// Write is Replace for a writer that does not seek. Its output is buffered.
func Write(path string, write func(io.Writer) error) error {
	return Replace(path, func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<16)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	})
}
