package mlxg_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// referring returns a module whose data are parts of the file called name.
func referring(t *testing.T, dir, name string, places ...[2]int64) *ir.Module {
	whole, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}}
	for i, p := range places {
		part := whole[p[0] : p[0]+p[1]]
		m.Data = append(m.Data, ir.Data{Name: string(rune('a' + i)), Blob: ir.ExternalBlob(name, p[0], p[1], sha256.Sum256(part))})
	}
	return m
}

func write(t *testing.T, path string, m *ir.Module) {
	require.NoError(t, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}))
}

// A container that replaces one to which it refers embeds those contents. A file that is not
// a container, or whose contents are not loaded, is never replaced.
func TestReplacedFileIsCarried(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	old := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}}
	old.Data = append(old.Data, ir.Data{Name: "big", Blob: ir.NewBlob(bytes.Repeat([]byte("weights "), 4096))})
	write(t, file("g.mlxg"), old)
	require.NoError(t, os.Symlink("g.mlxg", file("link.mlxg")))
	f, err := mlxg.Open(ctx, file("g.mlxg"), mlxg.OpenOptions{})
	require.NoError(t, err)
	big := f.Module.Lookup("big")
	at, ok := f.Offset(big)
	require.True(t, ok)
	want, err := big.Bytes()
	require.NoError(t, err)
	want = bytes.Clone(want)
	require.NoError(t, f.Close())
	before, err := os.ReadFile(file("g.mlxg"))
	require.NoError(t, err)

	for _, name := range []string{"g.mlxg", "link.mlxg", "hard.mlxg"} {
		os.Remove(file("hard.mlxg"))
		require.NoError(t, os.Link(file("g.mlxg"), file("hard.mlxg")))
		m := referring(t, dir, "g.mlxg", [2]int64{at, big.Length})
		err := mlxg.WriteFile(ctx, file(name), m, mlxg.WriteOptions{})
		require.ErrorContains(t, err, "was opened without its contents", name)
		now, err := os.ReadFile(file("g.mlxg"))
		require.NoError(t, err)
		require.True(t, bytes.Equal(before, now), name)

		x, err := mlxg.AttachExternal(ctx, m, file("some.mlxt"), mlxg.OpenOptions{Only: func(path string) bool { return path == file("g.mlxg") }})
		require.NoError(t, err)
		require.NoError(t, mlxg.WriteFile(ctx, file(name), m, mlxg.WriteOptions{}), name)
		require.NoError(t, x.Close())
		back, err := mlxg.Open(ctx, file(name), mlxg.OpenOptions{Verify: true})
		require.NoError(t, err)
		require.Equal(t, "", back.Module.Lookup("a").Path)
		got, err := back.Module.Lookup("a").Bytes()
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		require.NoError(t, back.Close())
		require.NoError(t, os.WriteFile(file("g.mlxg"), before, 0o600))
	}

	require.NoError(t, os.WriteFile(file("model.gguf"), []byte("GGUF and weights"), 0o600))
	m := referring(t, dir, "model.gguf", [2]int64{4, 5})
	x, err := mlxg.AttachExternal(ctx, m, file("some.mlxt"), mlxg.OpenOptions{})
	require.NoError(t, err)
	defer x.Close()
	require.ErrorContains(t, mlxg.WriteFile(ctx, file("model.gguf"), m, mlxg.WriteOptions{}), "is the file to be written: its contents would be lost")
	m = referring(t, dir, "model.gguf", [2]int64{4, 5})
	m.Data[0].Blob.Path = "absent.mlxg"
	require.ErrorContains(t, mlxg.WriteFile(ctx, file("absent.mlxg"), m, mlxg.WriteOptions{}), "is the file to be written")
}

// Contents that have moved within a container are found by their digests. Other contents are
// never taken for them.
func TestMovedContents(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "g.mlxg")
	one, two := bytes.Repeat([]byte{1}, 5000), bytes.Repeat([]byte{2}, 5000)
	build := func(parts ...[]byte) *ir.Module {
		m := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}}
		for i, p := range parts {
			m.Data = append(m.Data, ir.Data{Name: string(rune('a' + i)), Blob: ir.NewBlob(p)})
		}
		return m
	}
	write(t, path, build(one, two))
	f, err := mlxg.Open(ctx, path, mlxg.OpenOptions{})
	require.NoError(t, err)
	at, ok := f.Offset(f.Module.Lookup("b"))
	require.True(t, ok)
	require.NoError(t, f.Close())
	refer := func() *ir.Module { return referring(t, dir, "g.mlxg", [2]int64{at, 5000}) }
	m := refer()
	for _, parts := range [][][]byte{{two}, {make([]byte, 1<<20), one, two}, {two, one}} {
		write(t, path, build(parts...))
		x, err := mlxg.AttachExternal(ctx, m, filepath.Join(dir, "t.mlxt"), mlxg.OpenOptions{CacheDir: t.TempDir()})
		require.NoError(t, err)
		got, err := m.Data[0].Blob.Bytes()
		require.NoError(t, err)
		require.True(t, bytes.Equal(two, got))
		require.NoError(t, m.Data[0].Blob.Verify())
		require.NoError(t, x.Close())
	}
	write(t, path, build(one))
	_, err = mlxg.AttachExternal(ctx, m, filepath.Join(dir, "t.mlxt"), mlxg.OpenOptions{})
	require.ErrorContains(t, err, "g.mlxg")

	// A wrong digest in the blob table is not believed.
	write(t, path, build(one, two))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	i := bytes.LastIndex(data, two)
	data[i+7]++
	require.NoError(t, os.WriteFile(path, data, 0o600))
	m.Data[0].Blob.Offset = 16 << 10
	_, err = mlxg.AttachExternal(ctx, m, filepath.Join(dir, "t.mlxt"), mlxg.OpenOptions{})
	require.ErrorContains(t, err, "sha256 is")
}

// A container in memory is read like a file, and Length returns its size.
func TestRead(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "g.mlxg")
	write(t, path, smallModule(t))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	n, ok := mlxg.Length(data[:min(len(data), mlxg.HeaderSize)])
	require.True(t, ok)
	require.EqualValues(t, len(data), n)
	for cut := range 60 {
		_, _ = mlxg.Length(data[:cut])
	}
	_, ok = mlxg.Length([]byte("mlxt 1"))
	require.False(t, ok)
	huge := bytes.Clone(data)
	for i := 16 + 16; i < 16+24; i++ {
		huge[i] = 0xff
	}
	_, ok = mlxg.Length(huge)
	require.False(t, ok)

	f, err := mlxg.Read(ctx, "pipe", data, mlxg.OpenOptions{Verify: true, SkipExternal: true})
	require.NoError(t, err)
	var again bytes.Buffer
	require.NoError(t, mlxg.Write(ctx, &again, f.Module, mlxg.WriteOptions{}))
	assert.True(t, bytes.Equal(data, again.Bytes()))
	require.NoError(t, f.Close())
	_, err = mlxg.Read(ctx, "pipe", data[:len(data)-1], mlxg.OpenOptions{})
	require.ErrorContains(t, err, "pipe: ")
}

// Anything but a regular file is written from front to back, without seeking.
func TestWriteToAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	m := smallModule(t)
	done := make(chan []byte)
	go func() {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r)
		done <- b.Bytes()
	}()
	err = mlxg.WriteFile(context.Background(), "/dev/fd/"+strconv.Itoa(int(w.Fd())), m, mlxg.WriteOptions{})
	require.NoError(t, w.Close())
	got := <-done
	require.NoError(t, err)
	var want bytes.Buffer
	require.NoError(t, mlxg.Write(context.Background(), &want, m, mlxg.WriteOptions{}))
	require.True(t, bytes.Equal(want.Bytes(), got))
}

// If a container or a file of weights is cut while it is read, the error names it, even if
// several goroutines hash it.
func TestCutWhileInUse(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "g.mlxg")
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{{Name: "a", Blob: ir.NewBlob(make([]byte, 1<<20))}}}
	write(t, path, m)
	f, err := mlxg.Open(ctx, path, mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Truncate(path, 20<<10))
	var fault *mmap.FaultError
	err = mlxg.WriteFile(ctx, filepath.Join(dir, "copy.mlxg"), f.Module, mlxg.WriteOptions{})
	require.ErrorAs(t, err, &fault)
	require.Equal(t, path, fault.Path)
	require.NoFileExists(t, filepath.Join(dir, "copy.mlxg"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left")
	require.ErrorAs(t, mlxg.Write(ctx, &bytes.Buffer{}, f.Module, mlxg.WriteOptions{}), &fault)
}
