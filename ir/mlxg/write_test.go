package mlxg_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// writerEnv is an environment variable. If it is set, the test binary writes containers to
// the file that it names, again and again, until it is killed.
const writerEnv = "MLXG_TEST_WRITE"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerEnv); path != "" {
		for seed := uint64(0); ; seed++ {
			if err := mlxg.WriteFile(context.Background(), path, bigModule(seed), mlxg.WriteOptions{}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

// bigModule has 8 MB of embedded contents.
func bigModule(seed uint64) *ir.Module {
	data := make([]byte, 8<<20)
	if err := (ir.Init{Kind: ir.InitRandom, Seed: seed}).Write(data); err != nil {
		panic(err)
	}
	return &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{{Name: "d", Blob: ir.NewBlob(data)}}}
}

// A writer that is killed at any moment leaves a whole file. To not depend on the speed of
// the machine, it is killed when the temporary file has a certain size, or when the file was
// replaced a certain number of times.
func TestKilledWriterLeavesAWholeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, bigModule(1<<40), mlxg.WriteOptions{}))
	exe, err := os.Executable()
	require.NoError(t, err)
	beside := func() (size int64) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			if st, err := e.Info(); err == nil && e.Name() != "g.mlxg" { // the temporary file may just have been renamed
				size = max(size, st.Size())
			}
		}
		return size
	}
	for i := range 8 {
		old, err := os.Stat(path)
		require.NoError(t, err)
		replaced := func() bool {
			now, err := os.Stat(path)
			require.NoError(t, err)
			return !os.SameFile(old, now)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), writerEnv+"="+path)
		var out bytes.Buffer
		cmd.Stderr = &out
		require.NoError(t, cmd.Start())
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			if i%2 == 0 && beside() > int64(i)<<20 || i%2 == 1 && replaced() {
				break
			}
			if time.Since(start) > 5*time.Minute {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				t.Fatalf("the writer does not get as far as it should: %s", out.String())
			}
		}
		require.NoError(t, cmd.Process.Kill())
		var exit *exec.ExitError
		require.ErrorAs(t, cmd.Wait(), &exit)
		require.Empty(t, out.String())
		f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{Verify: true})
		require.NoError(t, err, "killed in round %d", i)
		require.NoError(t, f.Close())
	}
}

// After an error in the middle of the weights, the old file is there and no other.
func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, smallModule(t), mlxg.WriteOptions{}))
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	m := bigModule(1)
	m.Data = append(m.Data, ir.Data{Name: "wrong", Blob: ir.MappedBlob([]byte("abc"), ir.Digest{1})})
	require.ErrorContains(t, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}), "sha256 of its bytes")
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(old, now))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "something was left behind")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	assert.Error(t, mlxg.WriteFile(context.Background(), filepath.Join(dir, "d"), m, mlxg.WriteOptions{}))
	assert.ErrorIs(t, mlxg.WriteFile(context.Background(), filepath.Join(dir, "absent", "g.mlxg"), smallModule(t), mlxg.WriteOptions{}), os.ErrNotExist)
}

// A file can be written over while it is open, because the old mapping stays valid.
func TestWriteOverAnOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, bigModule(1), mlxg.WriteOptions{}))
	require.NoError(t, os.Chmod(path, 0o640))
	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, mlxg.WriteFile(context.Background(), path, f.Module, mlxg.WriteOptions{}))
	require.NoError(t, f.Module.Data[0].Blob.Verify())
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), st.Mode().Perm(), "the file's permissions changed")
}

var errFull = errors.New("disk full")

// fullAfter fails after n bytes.
type fullAfter struct{ n int }

func (w *fullAfter) Write(p []byte) (int, error) {
	if len(p) > w.n {
		return w.n, errFull
	}
	w.n -= len(p)
	return len(p), nil
}

func TestWriterErrorsAreReported(t *testing.T) {
	m := smallModule(t)
	size := len(smallFile(t))
	for n := 0; n < size; n += 61 {
		require.ErrorIs(t, mlxg.Write(context.Background(), &fullAfter{n}, m, mlxg.WriteOptions{}), errFull, "after %d bytes", n)
	}
	require.NoError(t, mlxg.Write(context.Background(), &fullAfter{size}, m, mlxg.WriteOptions{}))
}

// Writing 64 MB of weights allocates far less than 64 MB.
func TestWriteStreams(t *testing.T) {
	data := make([]byte, 64<<20)
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{{Name: "d", Blob: ir.NewBlob(data)}}}
	path := filepath.Join(t.TempDir(), "g.mlxg")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// Opening a file with 100 MB of weights without checking them reads and copies none of them.
func TestOpenCopiesNoWeights(t *testing.T) {
	const size = 100 << 20
	m := smallModule(t)
	m.Data = append(m.Data, ir.Data{Name: "big", Blob: ir.ExternalBlob("big.bin", 0, size, sha256.Sum256(nil))})
	var b bytes.Buffer
	require.NoError(t, mlxg.Write(context.Background(), &b, m, mlxg.WriteOptions{}))
	parts := mlxg.Split(b.Bytes())
	// The external blob becomes an embedded one, whose bytes are a hole in the file.
	row := []byte("\xa7big.bin\x00\xce\x06\x40\x00\x00")
	require.Equal(t, 1, bytes.Count(parts[2].Data, row))
	parts[2].Data = bytes.Replace(parts[2].Data, row, []byte("\xa0\xcd\x02\x00\xce\x06\x40\x00\x00"), 1)
	data := mlxg.Join(parts...)
	require.Len(t, parts[3].Data, 512)
	entry := data[16+28*3:]
	binary.LittleEndian.PutUint64(entry[16:], 512+size)
	data = mlxg.ResumHeader(data)
	path := filepath.Join(t.TempDir(), "big.mlxg")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	require.NoError(t, os.Truncate(path, int64(len(data))+size))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{SkipExternal: true})
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	defer f.Close()
	blob, err := f.Module.Lookup("big").Bytes()
	require.NoError(t, err)
	assert.Len(t, blob, size)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
	t.Logf("%d bytes opened in %v, %d bytes allocated", len(data)+size, took, after.TotalAlloc-before.TotalAlloc)

	_, err = mlxg.Open(context.Background(), path, mlxg.OpenOptions{SkipExternal: true, Verify: true})
	assert.ErrorContains(t, err, "section WGHT: checksum of its")
}

// Progress rises by pieces of the contents that are embedded, up to 1.
func TestProgressOfWriting(t *testing.T) {
	var told []float64
	o := mlxg.WriteOptions{Progress: func(done float64) { told = append(told, done) }}
	require.NoError(t, mlxg.WriteFile(t.Context(), filepath.Join(t.TempDir(), "g.mlxg"), bigModule(1), o))
	require.IsIncreasing(t, told)
	require.Len(t, told, (1<<23+ir.Piece-1)/ir.Piece)
	require.InDelta(t, float64(ir.Piece)/(1<<23), told[0], 1e-3)
	require.Equal(t, 1.0, told[len(told)-1])
}
