//go:build linux || darwin

package replay_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// If a graph file is truncated while it is replayed, the error names the file: in a kernel, with any number of
// workers, in a command buffer's goroutine, in a copy, and when states are reset.
func TestCutFile(t *testing.T) {
	const n = 1 << 20
	record1 := func(t *testing.T, op func(s *record.Session, w record.Tensor)) string {
		s := record.New("g")
		op(s, s.Weight("w", ir.NewBlob(make([]byte, 4*n)), ir.F32, n))
		g, err := s.Graph()
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "g.mlxg")
		require.NoError(t, mlxg.WriteFile(context.Background(), path, &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{}))
		return path
	}
	add := func(s *record.Session, w record.Tensor) { s.Add(w, w, record.Into(s.Output("y", ir.F32, n))) }
	for _, k := range []struct {
		name    string
		workers int
		op      func(s *record.Session, w record.Tensor)
		queue   bool
	}{
		{"kernel", 1, add, false},
		{"kernel on workers", 4, add, false},
		{"copy", 2, func(s *record.Session, w record.Tensor) { s.Copy(s.Output("y", ir.F32, n), w, "") }, false},
		{"queue", 2, add, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			path := record1(t, k.op)
			f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
			require.NoError(t, err)
			defer f.Close()
			d := cpu.New(k.workers)
			defer d.Close()
			s, err := replay.Open(d, f.Module, replay.Options{})
			require.NoError(t, err)
			defer s.Close()
			g, err := s.Graph(context.Background(), "g")
			require.NoError(t, err)
			run := func() error { _, err := g.Run(context.Background()); return err }
			if k.queue {
				run = func() error { return submit(t, d, f.Module.Graphs[0]) }
			}
			require.NoError(t, run())
			time.Sleep(time.Millisecond) // so that workers may be asleep or spinning
			require.NoError(t, os.Truncate(path, 64<<10))
			err = run()
			var fault *mmap.FaultError
			require.True(t, errors.As(err, &fault), "%v", err)
			require.Equal(t, path, fault.Path)
			require.ErrorContains(t, err, "it was cut while it was in use")
			require.Error(t, run(), "the device still works, and still says so")
		})
	}
}

// submit executes the commands of g as one command buffer.
func submit(t *testing.T, d backend.Device, g *ir.Graph) error {
	ctx := context.Background()
	q, err := d.NewQueue()
	require.NoError(t, err)
	scope := &backend.Scope{Graph: g}
	for i := range g.Memories {
		b, err := backend.AllocMemory(ctx, d, q, &g.Memories[i])
		require.NoError(t, err)
		defer b.Close()
		scope.Places = append(scope.Places, backend.At(b))
	}
	c, err := q.CommandBuffer(ctx, backend.Recording{Scope: scope})
	require.NoError(t, err)
	for _, n := range g.Nodes {
		require.NoError(t, c.Encode(n))
	}
	err = backend.Wait(ctx)(c.Commit(ctx, "", ir.OrderEvent))
	require.NoError(t, q.Close())
	return err
}
