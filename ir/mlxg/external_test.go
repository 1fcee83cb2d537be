package mlxg_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// external is a container that refers to two ranges of an external file. Both files lie in a
// directory of their own.
type external struct {
	dir, graph, weights, cache string
	contents                   []byte
	module                     *ir.Module
}

func newExternal(t *testing.T) *external {
	t.Cleanup(mlxg.OnlyTimes())
	t.Helper()
	dir := t.TempDir()
	x := &external{dir: dir, graph: filepath.Join(dir, "g", "decode.mlxg"), weights: filepath.Join(dir, "w", "model.bin"), cache: filepath.Join(dir, "cache")}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "g"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "w"), 0o755))
	x.contents = bytes.Repeat([]byte("0123456789abcdef"), 1000)
	x.write(t, x.contents)
	blob := func(off, n int64) *ir.Blob {
		return ir.ExternalBlob("../w/model.bin", off, n, sha256.Sum256(x.contents[off:off+n]))
	}
	b := ir.NewBuilder("decode")
	b.Memory(ir.Memory{Name: "a", Kind: ir.Weight, Size: 1000, Init: ir.Init{Kind: ir.InitBlob, Blob: blob(0, 1000)}})
	b.Memory(ir.Memory{Name: "b", Kind: ir.Weight, Size: 6000, Init: ir.Init{Kind: ir.InitBlob, Blob: blob(10000, 6000)}})
	g, err := b.Graph()
	require.NoError(t, err)
	x.module = &ir.Module{Graphs: []*ir.Graph{g}}
	require.NoError(t, mlxg.WriteFile(context.Background(), x.graph, x.module, mlxg.WriteOptions{}))
	return x
}

// write replaces the external file, with a time that is old enough for its digests to be
// remembered.
func (x *external) write(t *testing.T, contents []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(x.weights, contents, 0o600))
	x.date(t, time.Unix(1_700_000_000, 123456789))
}

func (x *external) date(t *testing.T, at time.Time) {
	t.Helper()
	require.NoError(t, os.Chtimes(x.weights, at, at))
}

func (x *external) open(o mlxg.OpenOptions) (*mlxg.File, error) {
	o.CacheDir = x.cache
	return mlxg.Open(context.Background(), x.graph, o)
}

func (x *external) mustOpen(t *testing.T, o mlxg.OpenOptions) {
	t.Helper()
	f, err := x.open(o)
	require.NoError(t, err)
	defer f.Close()
	got, err := f.Module.Graphs[0].Memories[1].Init.Blob.Bytes()
	require.NoError(t, err)
	require.Equal(t, x.contents[10000:16000], got)
}

// changed returns the contents with one byte of the second range inverted.
func (x *external) changed() []byte {
	c := bytes.Clone(x.contents)
	c[12345] ^= 0xff
	return c
}

func TestExternal(t *testing.T) {
	x := newExternal(t)
	x.mustOpen(t, mlxg.OpenOptions{})
	raw, err := os.ReadFile(x.graph)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "0123456789abcdef", "the weights were embedded")

	// A range that two memories use has one entry in the blob table.
	g := x.module.Graphs[0]
	twin := g.Memories[0]
	b := *twin.Init.Blob
	twin.Name, twin.Init.Blob = "twin", &b
	g.Memories = append(g.Memories, twin)
	require.NoError(t, mlxg.WriteFile(context.Background(), x.graph, x.module, mlxg.WriteOptions{}))
	f, err := x.open(mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	mems := f.Module.Graphs[0].Memories
	assert.Same(t, mems[0].Init.Blob, mems[2].Init.Blob)
}

func TestExternalMoved(t *testing.T) {
	x := newExternal(t)
	require.NoError(t, os.Rename(x.weights, x.weights+".old"))
	_, err := x.open(mlxg.OpenOptions{})
	assert.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, `section BLOB: blob 0: external file "../w/model.bin" cannot be read as `+x.weights)
	f, err := x.open(mlxg.OpenOptions{SkipExternal: true})
	require.NoError(t, err)
	defer f.Close()
	assert.Empty(t, irtest.Diff(x.module, f.Module))
	_, err = f.Module.Graphs[0].Memories[0].Init.Blob.Bytes()
	assert.ErrorContains(t, err, "not loaded")

	// Both files can be moved together, because paths are relative to the container.
	y := newExternal(t)
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(y.dir, moved))
	f, err = mlxg.Open(context.Background(), filepath.Join(moved, "g", "decode.mlxg"), mlxg.OpenOptions{CacheDir: y.cache})
	require.NoError(t, err)
	f.Close()
}

func TestExternalChanged(t *testing.T) {
	x := newExternal(t)
	x.write(t, x.changed())
	_, err := x.open(mlxg.OpenOptions{})
	require.Error(t, err)
	want, got := sha256.Sum256(x.contents[10000:16000]), sha256.Sum256(x.changed()[10000:16000])
	for _, part := range []string{x.graph, "blob 1", `"../w/model.bin"`, x.weights, "[10000:16000]", ir.Digest(want).String(), ir.Digest(got).String(), "restore it, or record the graph again"} {
		assert.ErrorContains(t, err, part)
	}
}

func TestExternalShorter(t *testing.T) {
	x := newExternal(t)
	require.NoError(t, os.Truncate(x.weights, 15999))
	_, err := x.open(mlxg.OpenOptions{})
	assert.ErrorContains(t, err, "[10000:16000] ends past external file")
	assert.ErrorContains(t, err, "which has 15999 bytes")
	require.NoError(t, os.Truncate(x.weights, 0))
	_, err = x.open(mlxg.OpenOptions{})
	assert.ErrorContains(t, err, "which has 0 bytes")
}

func TestExternalIsNoFile(t *testing.T) {
	x := newExternal(t)
	require.NoError(t, os.Remove(x.weights))
	require.NoError(t, os.Mkdir(x.weights, 0o755))
	_, err := x.open(mlxg.OpenOptions{})
	assert.ErrorContains(t, err, "is no regular file")
}

// A remembered digest is believed while the size and time of the file are the same. A change
// that keeps both is found only with Verify.
func TestDigestsAreRemembered(t *testing.T) {
	x := newExternal(t)
	x.mustOpen(t, mlxg.OpenOptions{})
	x.write(t, x.changed()) // same size, same time
	f, err := x.open(mlxg.OpenOptions{})
	require.NoError(t, err, "the digest was computed again")
	f.Close()
	_, err = x.open(mlxg.OpenOptions{Verify: true})
	require.ErrorContains(t, err, "sha256 is")
	_, err = x.open(mlxg.OpenOptions{})
	require.ErrorContains(t, err, "sha256 is", "what Verify found was not remembered")

	// With another time, digests are computed again.
	x.write(t, x.contents)
	x.date(t, time.Unix(1_700_000_001, 0))
	x.mustOpen(t, mlxg.OpenOptions{})
	// A difference of one nanosecond is enough.
	x.write(t, x.changed())
	x.date(t, time.Unix(1_700_000_001, 1))
	_, err = x.open(mlxg.OpenOptions{})
	require.ErrorContains(t, err, "sha256 is")
}

// A symbolic link shares the remembered digests of its file, but another file with the same
// size and time does not.
func TestDigestsAreOfOneFile(t *testing.T) {
	x := newExternal(t)
	x.mustOpen(t, mlxg.OpenOptions{})
	other := filepath.Join(x.dir, "w", "other.bin")
	require.NoError(t, os.WriteFile(other, x.changed(), 0o600))
	at := time.Unix(1_700_000_000, 123456789)
	require.NoError(t, os.Chtimes(other, at, at))
	require.NoError(t, os.Remove(x.weights))
	require.NoError(t, os.Symlink("other.bin", x.weights))
	_, err := x.open(mlxg.OpenOptions{})
	require.ErrorContains(t, err, "sha256 is")
}

// Of a file that was written a moment ago nothing is remembered, because it may be written
// again within one tick of the file system's clock.
func TestYoungFileIsNotRemembered(t *testing.T) {
	x := newExternal(t)
	x.date(t, time.Now().Add(time.Hour)) // young, however long this test takes
	x.mustOpen(t, mlxg.OpenOptions{})
	_, err := os.Stat(x.cache)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Whatever the cache file holds, a right external file is accepted and a wrong one is not.
func TestCorruptCache(t *testing.T) {
	x := newExternal(t)
	x.mustOpen(t, mlxg.OpenOptions{})
	entries, err := os.ReadDir(x.cache)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	path := filepath.Join(x.cache, entries[0].Name())
	good, err := os.ReadFile(path)
	require.NoError(t, err)

	corrupt := map[string][]byte{
		"empty": {}, "noise": []byte("\x00\xff\n\n"), "truncated": good[:len(good)-3], "no end": good[:bytes.LastIndex(good, []byte("end"))],
		"more after the end": append(bytes.Clone(good), "range 1 2 ff\n"...), "huge": bytes.Repeat([]byte("range 0 1000 00\n"), 1<<20),
		"other digest":  bytes.Replace(good, []byte("range 0 1000 "), []byte("range 0 1000 0"), 1),
		"other version": bytes.Replace(good, []byte("digests 2"), []byte("digests 1"), 1),
	}
	for i := 0; i < len(good); i += 3 {
		c := bytes.Clone(good)
		c[i] ^= 1
		corrupt[fmt.Sprintf("byte %d", i)] = c
	}
	for name, text := range corrupt {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		x.write(t, x.contents)
		x.mustOpen(t, mlxg.OpenOptions{})
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(good), string(after), "%s: not replaced", name)

		require.NoError(t, os.WriteFile(path, text, 0o600))
		x.write(t, x.changed())
		_, err = x.open(mlxg.OpenOptions{})
		require.ErrorContains(t, err, "sha256 is", "%s: believed", name)
	}
}

// A wrong digest in the cache only costs time, and does not make a right file count as wrong.
func TestWrongCache(t *testing.T) {
	x := newExternal(t)
	x.mustOpen(t, mlxg.OpenOptions{})
	entries, err := os.ReadDir(x.cache)
	require.NoError(t, err)
	path := filepath.Join(x.cache, entries[0].Name())
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	wrong := bytes.Replace(good, []byte("range 0 1000 "), []byte("range 0 1000 00"), 1)
	i := bytes.Index(wrong, []byte("\nrange 10000"))
	wrong = slices.Delete(wrong, i-2, i)
	i = bytes.Index(wrong, []byte("end "))
	wrong = fmt.Appendf(wrong[:i], "end %08x\n", crc32.Checksum(wrong[:i], crc32.MakeTable(crc32.Castagnoli)))
	require.NoError(t, os.WriteFile(path, wrong, 0o600))
	x.mustOpen(t, mlxg.OpenOptions{})
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(good), string(after))
}

// A cache that cannot be written only costs time.
func TestCacheThatCannotBeWritten(t *testing.T) {
	x := newExternal(t)
	require.NoError(t, os.WriteFile(x.cache, []byte("a file where the directory should be"), 0o600))
	x.mustOpen(t, mlxg.OpenOptions{})
	x.mustOpen(t, mlxg.OpenOptions{})
}

// Without CacheDir the user's cache directory is used. It is not an error if there is none.
func TestUsersCache(t *testing.T) {
	x := newExternal(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "c"))
	base, err := os.UserCacheDir()
	require.NoError(t, err)
	f, err := mlxg.Open(context.Background(), x.graph, mlxg.OpenOptions{})
	require.NoError(t, err)
	f.Close()
	entries, err := os.ReadDir(filepath.Join(base, "mlxc", "digests"))
	require.NoError(t, err)
	assert.Len(t, entries, 1)

	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	f, err = mlxg.Open(context.Background(), x.graph, mlxg.OpenOptions{})
	require.NoError(t, err)
	f.Close()
}

func TestEmbedExternal(t *testing.T) {
	x := newExternal(t)
	f, err := x.open(mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	alone := filepath.Join(t.TempDir(), "alone.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), alone, f.Module, mlxg.WriteOptions{EmbedExternal: true}))
	require.NoError(t, os.Remove(x.weights))
	e, err := mlxg.Open(context.Background(), alone, mlxg.OpenOptions{Verify: true})
	require.NoError(t, err)
	defer e.Close()
	b := e.Module.Graphs[0].Memories[1].Init.Blob
	assert.Empty(t, b.Path)
	got, err := b.Bytes()
	require.NoError(t, err)
	assert.Equal(t, x.contents[10000:16000], got)

	skipped, err := x.open(mlxg.OpenOptions{SkipExternal: true})
	require.NoError(t, err)
	defer skipped.Close()
	assert.ErrorContains(t, mlxg.WriteFile(context.Background(), alone, skipped.Module, mlxg.WriteOptions{EmbedExternal: true}), "cannot embed")
}

// If a module is written into another directory, its paths change so that they name the same
// files.
func TestBase(t *testing.T) {
	x := newExternal(t)
	f, err := x.open(mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	deep := filepath.Join(x.dir, "out", "deep")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	out := filepath.Join(deep, "o.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), out, f.Module, mlxg.WriteOptions{Base: filepath.Dir(x.graph)}))
	o, err := mlxg.Open(context.Background(), out, mlxg.OpenOptions{CacheDir: x.cache})
	require.NoError(t, err)
	defer o.Close()
	assert.Equal(t, "../../w/model.bin", o.Module.Graphs[0].Memories[0].Init.Blob.Path)
	assert.Equal(t, "../w/model.bin", f.Module.Graphs[0].Memories[0].Init.Blob.Path, "the module itself was changed")
}
