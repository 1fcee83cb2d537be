package mlxg_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// weighty returns a module with embedded weights of n bytes each.
func weighty(n int, weights ...string) *ir.Module {
	g := &ir.Graph{Name: "g"}
	for i, w := range weights {
		data := bytes.Repeat([]byte(w), n/len(w))
		g.Memories = append(g.Memories, ir.Memory{Name: w, Kind: ir.Weight, Size: int64(len(data)), Alias: ir.NoMem, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(data)}})
		_ = i
	}
	return &ir.Module{Graphs: []*ir.Graph{g}}
}

// Open finds embedded contents that do not have their digest, even if every checksum is
// right. Each state of a large file is hashed once.
func TestEmbeddedContentsHaveTheirDigests(t *testing.T) {
	defer mlxg.Settle(-time.Hour)() // whatever its age
	dir := t.TempDir()
	path := filepath.Join(dir, "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, weighty(2<<20, "abcd", "efgh"), mlxg.WriteOptions{}))
	hashed := func(o mlxg.OpenOptions) (bool, error) {
		var asked atomic.Bool
		o.CacheDir = filepath.Join(dir, "cache")
		o.Progress = func(float64) { asked.Store(true) }
		f, err := mlxg.Open(context.Background(), path, o)
		if err == nil {
			require.NoError(t, f.Close())
		}
		return asked.Load(), err
	}
	asked, err := hashed(mlxg.OpenOptions{SkipExternal: true})
	require.NoError(t, err)
	require.False(t, asked, "nobody looks at the contents")
	asked, err = hashed(mlxg.OpenOptions{})
	require.NoError(t, err)
	require.True(t, asked, "a new file")
	asked, err = hashed(mlxg.OpenOptions{})
	require.NoError(t, err)
	require.False(t, asked, "the same file")

	// The bytes change and the checksums fit them. The size and the time of the last write
	// stay the same.
	was, err := os.Stat(path)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.Index(data, []byte("efghefgh"))
	data[at+8] ^= 1
	require.NoError(t, os.WriteFile(path, mlxg.Resum(data), 0o600))
	require.NoError(t, os.Chtimes(path, was.ModTime(), was.ModTime()))
	for range 2 { // the second time shows that a wrong digest is not remembered as right
		asked, err = hashed(mlxg.OpenOptions{})
		require.ErrorContains(t, err, "bytes differ from the recorded ones")
		require.ErrorContains(t, err, "blob 1")
		require.True(t, asked)
	}
	_, err = hashed(mlxg.OpenOptions{SkipExternal: true})
	require.NoError(t, err, "without contents nothing is wrong")
}

// Each range of an external file is hashed once. It is an error if the ranges together have
// many times the bytes of the file.
func TestRangesAreHashedOnce(t *testing.T) {
	const none, all = -1, -2 // ranges whose digests are wrong
	dir := t.TempDir()
	data := bytes.Repeat([]byte("weights."), 1<<15)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.bin"), data, 0o600))
	open := func(ctx context.Context, ranges [][2]int64, lie int) (int64, error) {
		g := &ir.Graph{Name: "g"}
		for i, r := range ranges {
			d := ir.Digest(sha256.Sum256(data[r[0] : r[0]+r[1]]))
			if i == lie || lie == all {
				d[0] ^= 1
			}
			g.Memories = append(g.Memories, ir.Memory{Name: "w" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Kind: ir.Weight, Size: r[1], Alias: ir.NoMem,
				Init: ir.Init{Kind: ir.InitBlob, Blob: ir.ExternalBlob("w.bin", r[0], r[1], d)}})
		}
		path := filepath.Join(dir, "g.mlxg")
		require.NoError(t, mlxg.WriteFile(context.Background(), path, &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{}))
		var calls atomic.Int64
		f, err := mlxg.Open(ctx, path, mlxg.OpenOptions{CacheDir: filepath.Join(dir, "none"), Progress: func(float64) { calls.Add(1) }})
		if err == nil {
			require.NoError(t, f.Close())
		}
		return calls.Load(), err
	}
	n := int64(len(data))
	same := make([][2]int64, 100)
	for i := range same {
		same[i] = [2]int64{0, n}
	}
	calls, err := open(context.Background(), same, none)
	require.NoError(t, err)
	require.EqualValues(t, 1, calls, "one range, a hundred times")

	overlapping := make([][2]int64, 100)
	for i := range overlapping {
		overlapping[i] = [2]int64{int64(i), n - 100}
	}
	calls, err = open(context.Background(), overlapping, none)
	require.ErrorContains(t, err, "again and again")
	require.Zero(t, calls, "nothing is hashed before that is known")

	few := make([][2]int64, 100)
	for i := range few {
		few[i] = [2]int64{int64(i) * n / 100, n / 100}
	}
	_, err = open(context.Background(), few, 3)
	require.ErrorContains(t, err, "the file has changed since")
	require.ErrorContains(t, err, "blob 3")
	// All differ: with one alone a worker that sleeps there leaves time for all others.
	calls, err = open(context.Background(), few, all)
	require.ErrorContains(t, err, "the file has changed since")
	require.Less(t, calls, int64(100), "what differs ends it")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = open(ctx, few, none)
	require.ErrorIs(t, err, context.Canceled)
}
