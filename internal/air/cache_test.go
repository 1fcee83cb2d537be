package air_test

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
)

// maker makes a file's contents, and counts.
type maker struct {
	data  string
	times atomic.Int32
}

func (m *maker) make() ([]byte, error) {
	m.times.Add(1)
	return []byte(m.data), nil
}

func open(t *testing.T, dir string, most int64) *air.Cache {
	t.Helper()
	c, err := air.OpenCache(dir, most)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// TestCache: what was made is found again, by this cache and by another one on the same folder;
// what a disk has damaged is made anew.
func TestCache(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "a", "b")
	m := &maker{data: "an object"}
	c := open(t, dir, 0)
	assert.False(t, c.Has(air.Key("1"), "kernel.so"))
	path, err := c.File(ctx, air.Key("1"), "kernel.so", m.make)
	require.NoError(t, err)
	assert.True(t, c.Has(air.Key("1"), "kernel.so"))
	data, err := open(t, dir, 0).Data(ctx, air.Key("1"), "kernel.so", m.make)
	require.NoError(t, err)
	assert.Equal(t, m.data, string(data))
	assert.EqualValues(t, 1, m.times.Load())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(whole), m.data))
	for i, damaged := range []string{"", "an obj", string(whole[:len(whole)-1]), "An" + string(whole[2:]), string(whole) + "x"} {
		require.NoError(t, os.WriteFile(path, []byte(damaged), 0o700))
		data, err := c.Data(ctx, air.Key("1"), "kernel.so", m.make)
		require.NoError(t, err)
		assert.Equal(t, m.data, string(data))
		assert.EqualValues(t, 2+i, m.times.Load(), "%q", damaged)
	}
	_, err = c.File(ctx, air.Key("2"), "kernel.so", func() ([]byte, error) { return nil, errors.New("does not compile") })
	require.ErrorContains(t, err, "does not compile")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = c.File(ended, air.Key("1"), "kernel.so", m.make)
	require.ErrorIs(t, err, context.Canceled)
}

// TestCacheTogether: several caches on one folder, each used by several.
func TestCacheTogether(t *testing.T) {
	dir := t.TempDir()
	m := &maker{data: strings.Repeat("data", 1000)}
	var wait sync.WaitGroup
	for range 4 {
		c := open(t, dir, 0)
		for range 8 {
			wait.Go(func() {
				data, err := c.Data(context.Background(), air.Key("k"), "module.json", m.make)
				assert.NoError(t, err)
				assert.Equal(t, m.data, string(data))
			})
		}
	}
	wait.Wait()
	assert.LessOrEqual(t, m.times.Load(), int32(4), "each cache makes it once at most")
}

// TestCacheFolder: a folder that does not take files is no reason to fail, and what lies beside
// it is removed in the end.
func TestCacheFolder(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	check := func(c *air.Cache) {
		t.Helper()
		m := &maker{data: "x"}
		for range 2 {
			path, err := c.File(context.Background(), air.Key("k"), "kernel.so", m.make)
			require.NoError(t, err)
			assert.True(t, strings.HasPrefix(path, temporary), path)
		}
		assert.EqualValues(t, 1, m.times.Load())
		require.NoError(t, c.Close())
		left, err := os.ReadDir(temporary)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	// A folder that is gone, and whose name a file has.
	dir := filepath.Join(t.TempDir(), "kernels")
	c, err := air.OpenCache(dir, 0)
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	check(c)
	// No home.
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	c, err = air.OpenCache("", 0)
	require.NoError(t, err)
	check(c)
	// A home that cannot be written.
	t.Setenv("XDG_CACHE_HOME", dir)
	c, err = air.OpenCache("", 0)
	require.NoError(t, err)
	check(c)
	// Whoever names a folder is told that it cannot be.
	_, err = air.OpenCache(filepath.Join(dir, "below"), 0)
	require.Error(t, err)
}

// TestCacheBound: what was not used for the longest time goes first.
func TestCacheBound(t *testing.T) {
	dir, data := t.TempDir(), strings.Repeat("d", 1000)
	c := open(t, dir, 4500)
	make := func() ([]byte, error) { return []byte(data), nil }
	paths := map[string]string{}
	for i, k := range []string{"a", "b", "c", "d"} {
		path, err := c.File(context.Background(), air.Key(k), "x", make)
		require.NoError(t, err)
		paths[k] = path
		past := time.Now().Add(time.Duration(i-100) * time.Minute)
		require.NoError(t, os.Chtimes(path, past, past))
	}
	_, err := c.File(context.Background(), air.Key("a"), "x", make) // used again
	require.NoError(t, err)
	_, err = c.File(context.Background(), air.Key("e"), "x", make)
	require.NoError(t, err)
	total := int64(0)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		total += info.Size()
	}
	assert.LessOrEqual(t, total, int64(4500))
	assert.FileExists(t, paths["a"])
	assert.NoFileExists(t, paths["b"])
	assert.FileExists(t, paths["d"])
}

// What is not a file of this user alone, or has another's name, is made anew.
func TestCacheOfOthers(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		plant func(t *testing.T, path, other string)
	}{
		{"a link to a good file", func(t *testing.T, path, other string) {
			require.NoError(t, os.Rename(path, other))
			require.NoError(t, os.Symlink(other, path))
		}},
		{"a link to nothing", func(t *testing.T, path, other string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink(other+"-none", path))
		}},
		{"a pipe", func(t *testing.T, path, _ string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, syscall.Mkfifo(path, 0o700))
		}},
		{"a second name", func(t *testing.T, path, other string) { require.NoError(t, os.Link(path, other)) }},
		{"a file that others may write", func(t *testing.T, path, _ string) { require.NoError(t, os.Chmod(path, 0o777)) }},
		{"another kernel's file", func(t *testing.T, path, _ string) {
			require.NoError(t, os.Rename(filepath.Join(filepath.Dir(path), hex.EncodeToString([]byte("other"))+".kernel.so"), path))
		}},
		{"another user's file", func(t *testing.T, path, _ string) {
			if os.Geteuid() != 0 {
				t.Skip("only root may give a file away")
			}
			require.NoError(t, os.Chown(path, 4711, -1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, elsewhere := t.TempDir(), t.TempDir()
			m, another := &maker{data: "an object"}, &maker{data: "of another"}
			cache := open(t, dir, 0)
			_, err := cache.File(ctx, air.Key("other"), "kernel.so", another.make)
			require.NoError(t, err)
			path, err := cache.File(ctx, air.Key("key"), "kernel.so", m.make)
			require.NoError(t, err)
			c.plant(t, path, filepath.Join(elsewhere, "x"))
			for range 2 {
				data, err := open(t, dir, 0).Data(ctx, air.Key("key"), "kernel.so", m.make)
				require.NoError(t, err)
				assert.Equal(t, m.data, string(data))
			}
			assert.EqualValues(t, 2, m.times.Load(), "made when it was not there, and anew once")
			assert.NoFileExists(t, filepath.Join(elsewhere, "x-none"), "a link was followed")
			info, err := os.Lstat(path)
			require.NoError(t, err)
			assert.True(t, info.Mode().IsRegular() && info.Mode().Perm() == 0o700)
		})
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	open(t, dir, 0)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm(), "others may no longer write the folder")
}
