package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/atomicfile"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func read(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, atomicfile.Write(path, text("one")))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, atomicfile.Write(path, text("two")))
	require.Equal(t, "two", read(t, path))
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), st.Mode().Perm(), "the mode stays")
}

// An error leaves the old file, and nothing beside it.
func TestErrorChangesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, atomicfile.Write(path, text("old")))
	boom := errors.New("boom")
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return boom
	})
	require.ErrorIs(t, err, boom)
	require.Equal(t, "old", read(t, path))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// A link stays a link: its target is replaced.
func TestLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	require.NoError(t, atomicfile.Write(target, text("old")))
	require.NoError(t, os.Symlink("target", link))
	require.NoError(t, atomicfile.Write(link, text("new")))
	require.Equal(t, "new", read(t, target))
	st, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, st.Mode()&os.ModeSymlink)
}

// A device is written into, never replaced.
func TestDeviceStaysADevice(t *testing.T) {
	require.NoError(t, atomicfile.Write(os.DevNull, func(w io.Writer) error { return nil }))
	st, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, st.Mode()&os.ModeDevice)
}
