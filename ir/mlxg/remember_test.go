package mlxg_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// What the recorder has hashed is not hashed again, unless the model's file has changed since before it was opened.
func TestDigestsOfARecording(t *testing.T) {
	defer mlxg.Settle(-time.Hour)() // whatever its age
	for _, changed := range []bool{false, true} {
		dir := t.TempDir()
		model, path, cache := filepath.Join(dir, "model"), filepath.Join(dir, "g.mlxg"), filepath.Join(dir, "cache")
		data := bytes.Repeat([]byte("weights "), 1<<10)
		require.NoError(t, os.WriteFile(model, data, 0o644))
		info, err := os.Stat(model)
		require.NoError(t, err)
		b := ir.ExternalBlob("model", 8, 1<<12, sha256.Sum256(data[8:8+1<<12]))
		m := &ir.Module{Graphs: []*ir.Graph{{Name: "g", Memories: []ir.Memory{{Name: "w", Kind: ir.Weight, Size: b.Length, Alias: ir.NoMem, Init: ir.Init{Kind: ir.InitBlob, Blob: b}}}}}}
		require.NoError(t, mlxg.WriteFile(t.Context(), path, m, mlxg.WriteOptions{}))
		if changed {
			data[100]++
			require.NoError(t, os.WriteFile(model, data, 0o644))
			require.NoError(t, os.Chtimes(model, time.Time{}, info.ModTime().Add(time.Second)))
		}
		mlxg.Remember(m, path, cache, map[string]os.FileInfo{model: info})
		asked := false
		f, err := mlxg.Open(t.Context(), path, mlxg.OpenOptions{CacheDir: cache, Progress: func(float64) { asked = true }})
		require.Equal(t, changed, asked)
		if changed {
			require.ErrorContains(t, err, "the file has changed since")
			continue
		}
		require.NoError(t, err)
		require.NoError(t, f.Close())
		f, err = mlxg.Open(t.Context(), path, mlxg.OpenOptions{CacheDir: cache, Verify: true, Progress: func(float64) { asked = true }})
		require.NoError(t, err)
		require.True(t, asked, "asked to verify")
		require.NoError(t, f.Close())
	}
}
