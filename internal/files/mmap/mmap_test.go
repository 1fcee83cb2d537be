package mmap_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/files/mmap"
)

func TestBytesEqualFile(t *testing.T) {
	page := os.Getpagesize()
	for _, size := range []int{0, 1, page - 1, page, page + 1, 3*page + 17} {
		want := make([]byte, size)
		rng := rand.New(rand.NewPCG(1, uint64(size)))
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		path := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(path, want, 0o600))
		m, err := mmap.Open(path)
		require.NoError(t, err, "%d bytes", size)
		assert.True(t, bytes.Equal(want, m.Bytes()), "%d bytes", size)
		assert.Equal(t, size, cap(m.Bytes()), "an append must not reach past the file")
		require.NoError(t, m.Close())
		assert.Nil(t, m.Bytes())
		require.NoError(t, m.Close(), "second Close")
	}
}

func TestOutlivesName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("still here"), 0o600))
	m, err := mmap.Open(path)
	require.NoError(t, err)
	defer m.Close()
	require.NoError(t, os.Remove(path))
	assert.Equal(t, "still here", string(m.Bytes()))
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := mmap.Open(filepath.Join(dir, "absent"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = mmap.Open(dir)
	assert.ErrorContains(t, err, "not a regular file")
	assert.ErrorContains(t, err, dir)
}

// A mapping that could be written would let a bug change the user's model file.
func TestWriteFaults(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		return // there the bytes are an ordinary copy
	}
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	m, err := mmap.Open(path)
	require.NoError(t, err)
	defer m.Close()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	assert.Panics(t, func() { m.Bytes()[0] = 'x' })
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "abc", string(got))
}
