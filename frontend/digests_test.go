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

// The progress of a recording rises by what was read too, in pieces of a large tensor, and ends at 1, whatever is left to read.
func TestProgressOfDigests(t *testing.T) {
	large := make([]byte, 5*ir.Piece/2)
	for _, c := range []struct {
		options frontend.Options
		blobs   int
		want    []float64
	}{
		{frontend.Options{Mapped: true}, 1, []float64{0.25, 0.5, 0.5 + 0.5*16/40, 0.5 + 0.5*32/40, 1}},
		{frontend.Options{Mapped: true}, 2, []float64{0.25, 0.5, 0.5 + 0.25*16/40, 0.5 + 0.25*24/40, 0.5 + 0.25*32/40, 0.5 + 0.25*40/40, 0.5 + 0.25*48/40, 0.5 + 0.25*56/40, 0.5 + 0.25*64/40, 0.5 + 0.25*72/40, 1}},
		{frontend.Options{Mapped: true}, 0, []float64{0.25, 0.5, 1}},
		{frontend.Options{External: "m"}, 0, []float64{0.25, 0.5, 1}},
		{frontend.Options{Mapped: true, Unread: true}, 1, []float64{0.5, 1}},
		{frontend.Options{}, 0, []float64{0.5, 1}},
	} {
		var told []float64
		c.options.Progress = func(done float64) { told = append(told, done) }
		d := frontend.NewDigests(c.options)
		for i := range c.blobs {
			d.Mapped("m", int64(i), large)
		}
		d.Ready(0.5)
		d.Ready(1)
		require.NoError(t, d.Compute(t.Context()))
		require.IsIncreasing(t, told)
		require.Subset(t, c.want, told) // of two tensors at once the pieces come in any order
		require.Equal(t, 1.0, told[len(told)-1])
		require.GreaterOrEqual(t, len(told), min(len(c.want), 8))
	}
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
