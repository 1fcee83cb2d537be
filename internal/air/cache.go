package air

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/internal/files/regular"
)

// Key is the digest of all that a file of a [Cache] depends on.
type Key []byte

// Cache keeps what was compiled in a folder. Several processes may use one folder: a file
// appears whole, what it holds follows from its name, and it ends with the digest of both, so
// that what a disk has damaged, or somebody has renamed, is made again. So is what is not a file of this user alone: a
// link, a pipe, another user's, or one that others may write (package regular). Where the folder cannot be written, what is
// compiled lasts until the cache is closed.
type Cache struct {
	dir string
	max int64 // bytes of all files together

	mu     sync.Mutex
	making map[string]*sync.Mutex // one at a time compiles what several ask for
	spare  string                 // a folder of this process, for what dir does not take; "": none yet
	size   int64                  // bytes of all files, as far as this process knows; -1: nothing yet
}

// DefaultCacheBytes is what a cache holds at most if nothing else is said.
const DefaultCacheBytes = 1 << 30

// OpenCache returns the cache in a folder, which is made if it is not there; "" is the
// user's own. max is the most that it holds, in bytes.
func OpenCache(dir string, max int64) (*Cache, error) {
	if max <= 0 {
		max = DefaultCacheBytes
	}
	c := &Cache{dir: dir, max: max, making: map[string]*sync.Mutex{}, size: -1}
	if dir != "" {
		return c, ours(dir)
	}
	// Some containers have no home, or one that cannot be written, or is another user's.
	user, err := os.UserCacheDir()
	if err == nil {
		c.dir = filepath.Join(user, "mlxc", "kernels")
		err = ours(c.dir)
	}
	if err != nil {
		c.dir, err = c.ownFolder()
	}
	return c, err
}

// ours makes a folder, if it is not there, that nobody else may write.
func ours(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return regular.OwnFolder(dir)
}

// ownFolder returns the folder of this process.
func (c *Cache) ownFolder() (_ string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare == "" {
		c.spare, err = os.MkdirTemp("", "mlxc-kernels-")
	}
	return c.spare, err
}

// Close removes what the cache's folder did not take.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spare == "" {
		return nil
	}
	dir := c.spare
	c.spare = ""
	return os.RemoveAll(dir)
}

// A file of the cache ends with seal and the digest of its name and of what stands before, in hexadecimal.
const seal = "\nmlxc sha256 "

const sealBytes = len(seal) + 2*sha256.Size

// fileBytes is how long a file may be.
const fileBytes = 1 << 30

func sealed(name string, data []byte) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", name)
	h.Write(data)
	return fmt.Appendf(slices.Clip(data), "%s%x", seal, h.Sum(nil))
}

// read returns what a file holds; false if it is not there, not whole, or not ours.
func read(path string) ([]byte, bool) {
	data, err := regular.ReadOwn(path, fileBytes)
	if err != nil || len(data) < sealBytes {
		return nil, false
	}
	n := len(data) - sealBytes
	if string(data) != string(sealed(filepath.Base(path), data[:n])) {
		return nil, false
	}
	return data[:n], true
}

// nameOf is the name of a file. Those of before files were sealed with their names had a dash in place of the dot.
func nameOf(key Key, what string) string { return hex.EncodeToString(key) + "." + what }

// File returns the path of the file with the key, whose contents make returns if it is not
// there. what is for people who look into the folder. The file may be executed, or loaded;
// bytes follow its contents.
func (c *Cache) File(ctx context.Context, key Key, what string, make func() ([]byte, error)) (string, error) {
	path, _, err := c.get(ctx, key, what, make)
	return path, err
}

// Data returns the contents of the file with the key, as File does.
func (c *Cache) Data(ctx context.Context, key Key, what string, make func() ([]byte, error)) ([]byte, error) {
	_, data, err := c.get(ctx, key, what, make)
	return data, err
}

// Has reports whether the cache has a file with the key, which may be damaged.
func (c *Cache) Has(key Key, what string) bool {
	c.mu.Lock()
	dirs := []string{c.dir, c.spare}
	c.mu.Unlock()
	name := nameOf(key, what)
	return slices.ContainsFunc(dirs, func(dir string) bool {
		if dir == "" {
			return false
		}
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

func (c *Cache) get(ctx context.Context, key Key, what string, make func() ([]byte, error)) (string, []byte, error) {
	name := nameOf(key, what)
	path := filepath.Join(c.dir, name)
	c.mu.Lock()
	m := c.making[name]
	if m == nil {
		m = &sync.Mutex{}
		c.making[name] = m
	}
	spare := c.spare
	c.mu.Unlock()
	m.Lock()
	defer m.Unlock()
	if ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	if data, ok := read(path); ok {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // says what was used last; in a folder of another user it does not
		return path, data, nil
	}
	if spare != "" {
		other := filepath.Join(spare, name)
		if data, ok := read(other); ok {
			return other, data, nil
		}
	}
	data, err := make()
	if err != nil {
		return "", nil, err
	}
	whole := sealed(name, data)
	if err = store(path, whole); err == nil {
		return path, data, c.trim(name, int64(len(whole)))
	}
	dir, other := c.ownFolder()
	if other == nil {
		path = filepath.Join(dir, name)
		other = store(path, whole)
	}
	if other != nil {
		return "", nil, errors.Join(err, other)
	}
	return path, data, nil
}

func store(path string, data []byte) error {
	// A link would be followed, and a pipe written to.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return atomicfile.Replace(path, func(f *os.File) error {
		if _, err := f.Write(data); err != nil {
			return err
		}
		return f.Chmod(0o700)
	})
}

// trim removes what was not used for the longest time, until the rest is no more than the
// cache may hold. It never removes keep, which has just come and has size bytes.
func (c *Cache) trim(keep string, size int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size >= 0 {
		// What other processes add is seen when this one looks again.
		if c.size += size; c.size <= c.max {
			return nil
		}
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	total := int64(0)
	for _, e := range entries {
		// What another process removes meanwhile is gone.
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() && !strings.HasPrefix(i.Name(), ".") {
			files = append(files, i)
			total += i.Size()
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		if total <= c.max {
			break
		}
		if f.Name() == keep {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= f.Size()
	}
	c.size = total
	return nil
}
