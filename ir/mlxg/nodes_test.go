package mlxg_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/passes"
)

// A large graph is read in pieces by several goroutines, and equals the one that was written.
func TestPiecesAreTheWhole(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	m := nodesModule(100_003)
	g := m.Graphs[0]
	for i := range g.Nodes {
		switch i % 17 {
		case 3:
			g.Nodes[i] = &ir.Barrier{}
		case 5:
			g.Nodes[i] = &ir.Commit{Order: ir.OrderEvent, Label: fmt.Sprint(i)}
		}
	}
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}))
	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
	require.NoError(t, err)
	defer f.Close()
	got := f.Module.Graphs[0]
	require.Len(t, got.Nodes, len(g.Nodes))
	require.Len(t, got.Source.Nodes, len(g.Nodes))
	last := int64(0)
	for i := range g.Nodes {
		require.Equal(t, g.Nodes[i], got.Nodes[i])
		require.Greater(t, got.Source.Nodes[i].Offset, last)
		last = got.Source.Nodes[i].Offset
	}
	// Commands share lists of bindings until Own gives each command its own.
	shared := func() (n int) {
		of := map[*ir.Binding]bool{}
		for _, x := range got.Nodes {
			if d, ok := x.(*ir.Dispatch); ok {
				if of[&d.Bindings[0]] {
					n++
				}
				of[&d.Bindings[0]] = true
			}
		}
		return n
	}
	require.Positive(t, shared())
	_, err = passes.Run(context.Background(), got, nil, passes.Options{})
	require.NoError(t, err)
	require.Zero(t, shared())
	for i := range g.Nodes {
		require.Equal(t, g.Nodes[i], got.Nodes[i])
	}
}

// If several pieces have errors, that of the first wrong node is returned.
func TestPiecesFailAtTheFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	m := nodesModule(100_000)
	path := filepath.Join(t.TempDir(), "g.mlxg")
	wrong := func(at ...int) error {
		for _, i := range at {
			m.Graphs[0].Nodes[i].(*ir.Dispatch).Kernel = 7
		}
		require.NoError(t, mlxg.WriteUnchecked(path, m))
		for _, i := range at {
			m.Graphs[0].Nodes[i].(*ir.Dispatch).Kernel = 0
		}
		_, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
		return err
	}
	require.ErrorContains(t, wrong(99_999), "node 99999: kernel is 7")
	require.ErrorContains(t, wrong(70_000, 40_000, 99_999), "node 40000: kernel is 7")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := mlxg.Open(ctx, path, mlxg.OpenOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// A command of a large graph takes at most 600 bytes of memory.
func TestBytesOfACommand(t *testing.T) {
	const n = 200_000
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, nodesModule(n), mlxg.WriteOptions{}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	allocated := float64(after.TotalAlloc-before.TotalAlloc) / n
	require.Less(t, allocated, 600.0)
	require.Less(t, float64(after.Mallocs-before.Mallocs)/n, 0.1)
	require.NoError(t, f.Close())
}
