package frontend_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// Every blob has the digest of its own bytes once all are computed, and a cancelled recording has none.
func TestDigests(t *testing.T) {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(i * i / 7)
	}
	var d frontend.Digests
	var blobs []*ir.Blob
	for i := range int64(100) {
		blobs = append(blobs, d.External("../model", i, data[i:2*i:2*i]), d.Mapped("model", i, data[i:3*i:3*i]))
	}
	require.NoError(t, d.Compute(t.Context()))
	for i, b := range blobs {
		at := int64(i / 2)
		require.Equal(t, ir.Digest(sha256.Sum256(data[at:at+b.Length])), b.Digest)
		require.NoError(t, b.Verify())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d.Mapped("model", 0, data)
	require.ErrorIs(t, d.Compute(ended), context.Canceled)
}

// Without reading, contents of different places have different digests, and none of them gets into a container.
func TestUnreadDigests(t *testing.T) {
	data := make([]byte, 64)
	d := frontend.Digests{Unread: true}
	seen := map[ir.Digest]bool{}
	for _, b := range []*ir.Blob{d.Mapped("a", 0, data), d.Mapped("a", 8, data), d.Mapped("b", 0, data), d.Mapped("a", 0, data[:32])} {
		require.False(t, seen[b.Digest])
		seen[b.Digest] = true
		require.Error(t, b.Verify())
	}
	require.NoError(t, d.Compute(t.Context()))
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{{Name: "x", Blob: d.Mapped("a", 0, data)}}}
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.ErrorContains(t, mlxg.WriteFile(t.Context(), path, m, mlxg.WriteOptions{}), "bytes differ from the recorded ones")
	_, err := os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
}
