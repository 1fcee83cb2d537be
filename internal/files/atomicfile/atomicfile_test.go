package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/files/atomicfile"
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

// An error leaves the old file unchanged, and no new file beside it.
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

// So does a panic.
func TestPanicChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, atomicfile.Write(path, text("old")))
	require.PanicsWithValue(t, "boom", func() { _ = atomicfile.Write(path, func(io.Writer) error { panic("boom") }) })
	require.Equal(t, "old", read(t, path))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// A symbolic link stays a link: the file that it leads to is replaced.
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

// Writing to a link whose target does not exist makes the target, through other links
// and directories.
func TestDanglingLink(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	require.NoError(t, os.Symlink("sub", filepath.Join(dir, "way")))
	require.NoError(t, os.Symlink("../target", filepath.Join(dir, "sub", "second")))
	require.NoError(t, os.Symlink("way/second", filepath.Join(dir, "first")))
	require.NoError(t, atomicfile.Write(filepath.Join(dir, "first"), text("new")))
	require.Equal(t, "new", read(t, filepath.Join(dir, "target")))
	st, err := os.Lstat(filepath.Join(dir, "first"))
	require.NoError(t, err)
	require.NotZero(t, st.Mode()&os.ModeSymlink)

	require.NoError(t, os.Symlink("ring", filepath.Join(dir, "ring")))
	require.Error(t, atomicfile.Write(filepath.Join(dir, "ring"), text("x")))
}

// The next writer of a file removes what dead writers have left beside it, but nothing
// of a living one and nothing that only looks similar.
func TestStaleFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	stay := []string{".f.0000.tmp", ".f.0123456x.tmp", ".g.01234567.tmp", "f.01234567.tmp", ".f.01234567.tmp.x", ".f.012345678.tmp"}
	for _, name := range append(stay, ".f.01234567.tmp", ".f.89abcdef.tmp") {
		require.NoError(t, os.WriteFile(file(name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(file(".f.aaaaaaaa.tmp"), 0o755))
	stay = append(stay, ".f.aaaaaaaa.tmp", "f")
	require.NoError(t, atomicfile.Write(file("f"), func(w io.Writer) error {
		before, err := os.ReadDir(dir)
		require.NoError(t, err)
		// A second writer finds the file of the first one locked.
		require.NoError(t, atomicfile.Write(file("f"), text("second")))
		after, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, after, len(before)+1, "the new f alone")
		return text("first")(w)
	}))
	require.Equal(t, "first", read(t, file("f")))
	var names []string
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.ElementsMatch(t, stay, names)
}

// Many writers of one file do not disturb each other.
func TestWritersTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 40 {
				assert.NoError(t, atomicfile.Write(path, text(strings.Repeat(string(rune('a'+i)), 1000))))
			}
		})
	}
	wg.Wait()
	s := read(t, path)
	require.Equal(t, strings.Repeat(s[:1], 1000), s)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestTry(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	_, err := atomicfile.Try(path)
	require.NoError(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left")
	_, err = atomicfile.Try(dir)
	require.ErrorContains(t, err, "is a directory")
	_, err = atomicfile.Try(filepath.Join(dir, "no", "f"))
	require.ErrorContains(t, err, "there is no directory "+filepath.Join(dir, "no"))
	require.NoError(t, atomicfile.Write(path, text("old")))
	_, err = atomicfile.Try(path)
	require.NoError(t, err)
	require.Equal(t, "old", read(t, path))
	_, err = atomicfile.Try(filepath.Join(path, "f"))
	require.Error(t, err)
	if os.Getuid() != 0 { // root may write anywhere
		require.NoError(t, os.Chmod(dir, 0o555))
		defer os.Chmod(dir, 0o755)
		_, err = atomicfile.Try(path)
		require.ErrorIs(t, err, os.ErrPermission)
	}
}

// A writer that is killed leaves its file, which the next writer removes. A writer that
// abandons leaves nothing. Neither touches the old file.
func TestEndedWriters(t *testing.T) {
	if path := os.Getenv("ATOMICFILE_CHILD"); path != "" {
		_ = atomicfile.Write(path, func(w io.Writer) error {
			if os.Getenv("ATOMICFILE_ABANDON") != "" {
				atomicfile.Abandon()
				os.Exit(7)
			}
			_, _ = os.Stdout.WriteString("writing\n")
			time.Sleep(time.Hour)
			return nil
		})
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, atomicfile.Write(path, text("old")))
	files := func() int {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(entries)
	}
	child := func(env ...string) *exec.Cmd {
		c := exec.Command(os.Args[0], "-test.run=^TestEndedWriters$")
		c.Env = append(append(os.Environ(), "ATOMICFILE_CHILD="+path), env...)
		return c
	}
	c := child()
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	_, err = out.Read(make([]byte, 8))
	require.NoError(t, err)
	require.Equal(t, 2, files())
	require.NoError(t, atomicfile.Write(path, text("older")))
	require.Equal(t, 2, files(), "a living writer keeps its file")
	require.NoError(t, c.Process.Kill())
	_ = c.Wait()
	require.Equal(t, 2, files())
	_, err = atomicfile.Try(path)
	require.NoError(t, err)
	require.Equal(t, 1, files())

	var exit *exec.ExitError
	require.ErrorAs(t, child("ATOMICFILE_ABANDON=1").Run(), &exit)
	require.Equal(t, 7, exit.ExitCode())
	require.Equal(t, 1, files())
	require.Equal(t, "older", read(t, path))
}

// A long name, cut inside a character, still gives a name that every system accepts.
func TestLongName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+strings.Repeat("ä", 120))
	require.NoError(t, atomicfile.Write(path, func(io.Writer) error {
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.True(t, utf8.ValidString(entries[0].Name()))
		return nil
	}))
}

// A device is written to, never replaced.
func TestDeviceStaysADevice(t *testing.T) {
	require.NoError(t, atomicfile.Write(os.DevNull, func(w io.Writer) error { return nil }))
	st, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, st.Mode()&os.ModeDevice)
}
