//go:build linux || darwin

package mmap_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/files/mmap"
)

func cut(t *testing.T) (*mmap.Map, string) {
	path := filepath.Join(t.TempDir(), "model")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	m, err := mmap.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	require.NoError(t, os.Truncate(path, 5))
	return m, path
}

// Reading a file that was cut is an error with its name, on several goroutines at once.
func TestCutFileIsAnError(t *testing.T) {
	m, path := cut(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			sum := byte(0)
			err := mmap.Guard(func() error {
				for _, b := range m.Bytes()[1<<19:] {
					sum += b
				}
				return nil
			})
			var fault *mmap.FaultError
			if !errors.As(err, &fault) {
				t.Errorf("got %v", err)
				return
			}
			if fault.Path != path || fault.Offset != 1<<19 {
				t.Errorf("got %+v", fault)
			}
		})
	}
	wg.Wait()
	require.ErrorContains(t, &mmap.FaultError{Path: path, Offset: 9, Had: 1 << 20}, "byte 9 cannot be read any more: it has 5 bytes now, it had 1048576")
}

// A deferred Close does not hide which file was cut. Reading a mapping after its own
// Close still is a bug.
func TestCutAndClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	read := func(size int64, closeFirst bool) error {
		require.NoError(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
		return mmap.Guard(func() error {
			m, err := mmap.Open(path)
			if err != nil {
				return err
			}
			defer m.Close()
			b := m.Bytes()
			if err := os.Truncate(path, size); err != nil {
				return err
			}
			if closeFirst {
				m.Close()
			}
			if b[1<<19] != 0 {
				return errors.New("not zero")
			}
			return nil
		})
	}
	var fault *mmap.FaultError
	require.ErrorAs(t, read(5, false), &fault)
	require.Equal(t, path, fault.Path)
	require.NoError(t, read(1<<20, false))
	require.Panics(t, func() { _ = read(1<<20, true) })
}

// A mapped file is in use under all of its names, until it is closed.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.WriteFile(file(name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Symlink("a", file("link")))
	require.NoError(t, os.Link(file("a"), file("hard")))
	m, err := mmap.Open(file("link"))
	require.NoError(t, err)
	for _, name := range []string{"a", "link", "hard"} {
		require.True(t, mmap.InUse(file(name)), name)
	}
	require.False(t, mmap.InUse(file("b")))
	require.False(t, mmap.InUse(file("nobody")))
	require.NoError(t, m.Close())
	require.False(t, mmap.InUse(file("a")))
}

// Other panics, and faults elsewhere, are not caught.
func TestGuardCatchesNothingElse(t *testing.T) {
	cut(t)
	require.PanicsWithValue(t, "mine", func() { _ = mmap.Guard(func() error { panic("mine") }) })
	require.Panics(t, func() { _ = mmap.Guard(func() error { var p *int; *p = 1; return nil }) })
	boom := errors.New("boom")
	require.Equal(t, boom, mmap.Guard(func() error { return boom }))
}

// The system refuses to write bytes that no longer exist; the error names the file.
func TestExplain(t *testing.T) {
	m, path := cut(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "copy"))
	require.NoError(t, err)
	defer f.Close()
	gone := m.Bytes()[1<<19 : 1<<19+100]
	_, err = f.Write(gone)
	require.Error(t, err)
	require.ErrorContains(t, mmap.Explain(err, gone), path+": byte 524288 cannot be read any more")
	require.Equal(t, err, mmap.Explain(err, []byte("mine")))
}
