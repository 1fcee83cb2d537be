//go:build linux || darwin

package replay_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// mapping records what a device is asked to map.
type mapping struct {
	*testdevice.Device
	mu    sync.Mutex
	sizes []int
}

func (m *mapping) Map(data []byte, readOnly bool) (backend.Buffer, error) {
	m.mu.Lock()
	m.sizes = append(m.sizes, len(data))
	m.mu.Unlock()
	return m.Device.Map(data, readOnly)
}

// weightsOf is a graph that adds the first floats of weights that lie in a file at the given
// offsets, 16 KiB each.
func weightsOf(t *testing.T, file []byte, offsets []int64) *ir.Graph {
	const size = 16 << 10
	b := ir.NewBuilder("g")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: int64(4 * len(offsets))})
	for i, off := range offsets {
		blob := ir.MappedBlob(file[off:off+size:off+size], ir.Digest{byte(i)})
		w := b.Memory(ir.Memory{Name: fmt.Sprint("w", i), Kind: ir.Weight, Size: size, Align: 4, Init: ir.Init{Kind: ir.InitBlob, Blob: blob}})
		b.Copy(ir.ViewOf(y, int64(4*i), 4), ir.ViewOf(w, size-4, 4), "")
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// Weights in a file are mapped as windows of whole pages, which overlap where a weight would otherwise straddle two;
// none is larger than the max buffer size. Misaligned weights, and those in no file, are copied.
func TestWindows(t *testing.T) {
	const page = 16 << 10
	content := make([]byte, 40*page+100)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	m, err := mmap.Open(path)
	require.NoError(t, err)
	defer m.Close()
	c := cpu.New(1)
	defer c.Close()
	for _, k := range []struct {
		name    string
		file    []byte
		offsets []int64
		limit   func(*backend.Info)
		windows int
		most    int
		remarks []string
	}{
		{"one window", m.Bytes(), []int64{0, page + 64, 8*page + 4}, func(i *backend.Info) {}, 1, 41 * page, nil},
		{"two windows, one page in both", m.Bytes(), []int64{0, 2*page + 64, 3*page + 64, 5*page + 128}, func(i *backend.Info) { i.MaxBuffer = 5 * page }, 2, 5 * page, nil},
		{"greatest offset", m.Bytes(), []int64{0, 2 * page, 4 * page}, func(i *backend.Info) { i.MaxOffset = 3 * page }, 2, 5 * page, nil},
		{"last page of the file", m.Bytes(), []int64{39*page + 100}, func(i *backend.Info) { i.PageSize = int64(os.Getpagesize()) }, 1, 41 * page, nil},
		{"misaligned", m.Bytes(), []int64{0, page + 2}, func(i *backend.Info) {}, 1, page, []string{"weight %w1 is copied: it lies at no multiple of 4 bytes in its file"}},
		{"no file", content, []int64{0}, func(i *backend.Info) {}, 0, 0, []string{"weight %w0 is copied: it is in no file that is mapped"}},
		{"too small a buffer", m.Bytes(), []int64{64}, func(i *backend.Info) { i.MaxBuffer = page }, 0, 0, []string{"weight %w0 is copied: the pages that it lies in are more than the 16384 bytes of a buffer"}},
		{"no mapping", m.Bytes(), []int64{0, 64}, func(i *backend.Info) { i.PageSize = 0 }, 0, 0, nil},
	} {
		for _, private := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, private %t", k.name, private), func(t *testing.T) {
				d := &mapping{Device: testdevice.New(c, testdevice.Options{Private: private, Info: func(i *backend.Info) {
					i.PageSize = 4 << 10 // the page size that mmap(2) aligns to
					k.limit(i)
				}})}
				var loaded []float64
				loading := func(graph string, done float64) { loaded = append(loaded, done) }
				s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{weightsOf(t, k.file, k.offsets)}}, replay.Options{Loading: loading})
				require.NoError(t, err)
				g, err := s.Graph(context.Background(), "")
				require.NoError(t, err)
				_, err = g.Run(context.Background())
				require.NoError(t, err)
				y, err := g.Output("y")
				require.NoError(t, err)
				for i, off := range k.offsets {
					require.Equal(t, k.file[off+page-4:off+page], y[4*i:4*i+4], "weight %d", i)
				}
				require.NotEmpty(t, loaded)
				require.IsNonDecreasing(t, loaded)
				require.Equal(t, 1.0, loaded[len(loaded)-1], "all weights are there")
				require.Len(t, d.sizes, k.windows)
				for _, n := range d.sizes {
					require.LessOrEqual(t, n, k.most)
				}
				require.ElementsMatch(t, k.remarks, s.Remarks())
				require.NoError(t, s.Close())
				require.Empty(t, d.Leaks())
			})
		}
	}
}

// A weight that asks for no alignment is mapped wherever its elements lie, unless kernels of the device have wider loads.
func TestWeightsOfNoAlignment(t *testing.T) {
	const page = 16 << 10
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, os.WriteFile(path, make([]byte, 4*page), 0o600))
	m, err := mmap.Open(path)
	require.NoError(t, err)
	defer m.Close()
	c := cpu.New(1)
	defer c.Close()
	require.Zero(t, c.Info().Loads)
	for loads, remarks := range map[int64][]string{0: nil, 16: {"weight %w0 is copied: it lies at no multiple of 16 bytes in its file"}} {
		d := &mapping{Device: testdevice.New(c, testdevice.Options{Info: func(i *backend.Info) { i.Loads = loads }})}
		graph := weightsOf(t, m.Bytes(), []int64{page + 8})
		for i := range graph.Memories {
			graph.Memories[i].Align = 0
		}
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{graph}}, replay.Options{})
		require.NoError(t, err)
		g, err := s.Graph(context.Background(), "")
		require.NoError(t, err)
		_, err = g.Run(context.Background())
		require.NoError(t, err)
		require.ElementsMatch(t, remarks, s.Remarks())
		require.Len(t, d.sizes, 1-len(remarks))
		require.NoError(t, s.Close())
	}
}
