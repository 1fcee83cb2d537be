//go:build unix

package regular_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/internal/files/regular"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "f"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(file, link))
	for _, c := range []struct {
		path      string
		most      int64
		want, own string // what is read, or "error: " and a part of it
	}{
		{file, 5, "12345", "12345"},
		{file, 4, "error: longer than the 4 bytes", "error: longer"},
		{link, 5, "12345", "error: too many levels of symbolic links"},
		{pipe, 5, "error: no regular file", "error: no regular file"},
		{dir, 5, "error: folder", "error: folder"},
		{"/dev/null", 5, "error: no regular file", "error: others may write"},
		{filepath.Join(dir, "none"), 5, "error: no such file", "error: no such file"},
	} {
		for i, read := range []func(string, int64) ([]byte, error){regular.Read, regular.ReadOwn} {
			want := []string{c.want, c.own}[i]
			began := time.Now()
			data, err := read(c.path, c.most)
			if len(want) > 7 && want[:7] == "error: " {
				assert.ErrorContains(t, err, want[7:], c.path)
			} else {
				require.NoError(t, err)
				assert.Equal(t, want, string(data))
			}
			assert.Less(t, time.Since(began), 2*time.Second)
		}
	}
}

func TestOwn(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(file, []byte("12345"), 0o600))
	require.NoError(t, regular.OwnFolder(dir))
	for _, mode := range []os.FileMode{0o620, 0o602, 0o666} {
		require.NoError(t, os.Chmod(file, mode))
		_, err := regular.ReadOwn(file, 5)
		assert.ErrorContains(t, err, "others may write")
	}
	require.NoError(t, os.Chmod(file, 0o644))
	_, err := regular.ReadOwn(file, 5)
	require.NoError(t, err)
	require.NoError(t, os.Link(file, filepath.Join(dir, "g")))
	_, err = regular.ReadOwn(file, 5)
	assert.ErrorContains(t, err, "other names")

	open := filepath.Join(dir, "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	require.NoError(t, regular.OwnFolder(open))
	info, err := os.Stat(open)
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm())
	assert.ErrorContains(t, regular.OwnFolder(file), "no folder")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(file, 4711, 0))
		require.NoError(t, os.Remove(filepath.Join(dir, "g")))
		_, err := regular.ReadOwn(file, 5)
		assert.ErrorContains(t, err, "belongs to the user 4711")
		require.NoError(t, os.Chown(open, 4711, 0))
		assert.ErrorContains(t, regular.OwnFolder(open), "belongs to the user 4711")
	}
}
