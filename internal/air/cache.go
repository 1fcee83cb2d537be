package air

import (
	"cmp"
	"context"
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
)

// Key is the digest of all that a file of a [Cache] depends on.
type Key []byte

// Cache keeps what was compiled in a folder. Several processes may use one folder: a file
// appears whole, and what it holds follows from its name.
type Cache struct {
	dir string
	max int64 // bytes of all files together

	mu     sync.Mutex
	making map[string]*sync.Mutex // one at a time compiles what several ask for
}

// DefaultCacheBytes is what a cache holds at most if nothing else is said.
const DefaultCacheBytes = 1 << 30

// OpenCache returns the cache in a folder, which is made if it is not there; "" is the
// user's own. max is the most that it holds, in bytes.
func OpenCache(dir string, max int64) (*Cache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			// Without a home, as in some containers: what is compiled lasts as long as
			// temporary files do.
			user = filepath.Join(os.TempDir(), fmt.Sprint("cache-", os.Getuid()))
		}
		dir = filepath.Join(user, "mlxc", "kernels")
	}
	if max <= 0 {
		max = DefaultCacheBytes
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Cache{dir: dir, max: max, making: map[string]*sync.Mutex{}}, nil
}

// File returns the path of the file with the key, whose contents make returns if it is not
// there. what is for people who look into the folder. The file may be executed.
func (c *Cache) File(ctx context.Context, key Key, what string, make func() ([]byte, error)) (string, error) {
	name := hex.EncodeToString(key) + "-" + what
	path := filepath.Join(c.dir, name)
	c.mu.Lock()
	m := c.making[name]
	if m == nil {
		m = &sync.Mutex{}
		c.making[name] = m
	}
	c.mu.Unlock()
	m.Lock()
	defer m.Unlock()
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	now := time.Now()
	if err := os.Chtimes(path, now, now); err == nil {
		return path, nil
	}
	data, err := make()
	if err != nil {
		return "", err
	}
	err = atomicfile.Replace(path, func(f *os.File) error {
		if _, err := f.Write(data); err != nil {
			return err
		}
		return f.Chmod(0o700)
	})
	if err != nil {
		return "", err
	}
	return path, c.trim(name)
}

// trim removes what was not used for the longest time, until the rest is no more than the
// cache may hold. It never removes keep.
func (c *Cache) trim(keep string) error {
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
	return nil
}
