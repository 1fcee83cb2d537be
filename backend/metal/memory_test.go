//go:build linux

package metal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

const page = 16 << 10

// weightsOf returns a graph with a weight of 16 KiB at each offset of the file, whose last float it copies to
// output y, and with a state of so many bytes.
func weightsOf(t *testing.T, file []byte, offsets []int64, state int64) *ir.Graph {
	t.Helper()
	b := ir.NewBuilder("weights")
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: int64(4 * len(offsets))})
	for i, off := range offsets {
		blob := ir.MappedBlob(file[off:off+page:off+page], ir.Digest{byte(i)})
		w := b.Memory(ir.Memory{Name: fmt.Sprint("w", i), Kind: ir.Weight, Size: page, Align: 4, Init: ir.Init{Kind: ir.InitBlob, Blob: blob}})
		b.Copy(ir.ViewOf(y, int64(4*i), 4), ir.ViewOf(w, page-4, 4), "")
	}
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: state})
	b.Fill(ir.ViewOf(s, 0, 4), 1, "")
	g, err := b.Graph()
	require.NoError(t, err)
	return g
}

// weightFile returns so many pages of a file that is mapped until the test ends. They begin at a page of
// the GPU, of 16 KiB.
func weightFile(t *testing.T, pages int) []byte {
	t.Helper()
	content := make([]byte, (pages+1)*page)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	path := filepath.Join(t.TempDir(), "weights")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	m, err := mmap.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	first := -int(uintptr(unsafe.Pointer(unsafe.SliceData(m.Bytes())))) & (page - 1)
	return m.Bytes()[first : first+pages*page]
}

// TestWindows: a file of weights that is larger than MaxBuffer is mapped as several buffers of whole pages,
// which may overlap so that each weight lies in one. A weight at an address that kernels cannot read is copied.
func TestWindows(t *testing.T) {
	file := weightFile(t, 12)
	offsets := []int64{0, 2*page + 64, 3*page + 64, 4*page + 64, 6*page + 2, 8*page + 16, 10*page + 4}
	for _, private := range []bool{false, true} {
		m := serve(t, fakemetal.Options{MaxBuffer: 5 * page})
		l := fakemetal.Build(t)
		windows := l.Sent("newBufferWithBytesNoCopy:length:options:deallocator:")
		d := open(t, metal.Options{Private: private})
		graph := weightsOf(t, file, offsets, 64)
		graph.Memories[1+5].Align = 0 // at a multiple of 16
		if private {
			graph.Memories[1+6].Align = 0 // at no multiple of 16, which copy kernels need where no alignment is given
		}
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{graph}}, replay.Options{})
		require.NoError(t, err)
		g, err := s.Graph(t.Context(), "")
		require.NoError(t, err)
		_, err = g.Run(t.Context())
		require.NoError(t, err)
		y, err := g.Output("y")
		require.NoError(t, err)
		for i, off := range offsets {
			assert.Equal(t, file[off+page-4:off+page], y[4*i:4*i+4], "weight %d", i)
		}
		remarks := []string{"weight %w4 is copied: it lies at no multiple of 4 bytes in its file"}
		if private {
			remarks = append(remarks, "weight %w6 is copied: it lies at no multiple of 16 bytes in its file")
		} else {
			assert.Equal(t, 3, l.Sent("newBufferWithBytesNoCopy:length:options:deallocator:")-windows)
		}
		assert.Equal(t, remarks, s.Remarks())
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
		m.Close()
	}
}

// TestWorkingSet: a graph whose buffers exceed the GPU's recommended working set is refused: when it is
// compiled if its weights alone do, else, with states and frames, before anything is committed.
func TestWorkingSet(t *testing.T) {
	file := weightFile(t, 12)
	for _, c := range []struct {
		name        string
		limit       int64
		private     bool
		compiles    bool
		state       int64
		compileWant string
		runWant     string
	}{
		{"enough", 1 << 20, false, true, 64, "", ""},
		{"weights alone", 8 * page, false, false, 64, "a replay uses 147456 bytes (147456 of weights in files, 0 of other weights, 0 of states, 0 of inputs, outputs and scratch), and the GPU should have at most 131072 in use", ""},
		{"with states", 11 * page, false, true, 3 * page, "", "a replay uses 196624 bytes (147456 of weights in files, 0 of other weights, 49152 of states, 16 of inputs, outputs and scratch), and the GPU should have at most 180224 in use"},
	} {
		m := serve(t, fakemetal.Options{WorkingSet: c.limit})
		l := fakemetal.Build(t)
		d := open(t, metal.Options{})
		s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{weightsOf(t, file, []int64{0, 8 * page}, c.state)}}, replay.Options{})
		require.NoError(t, err)
		before := l.Sent("commit")
		g, err := s.Graph(t.Context(), "")
		if c.compileWant != "" {
			require.ErrorContains(t, err, c.compileWant, c.name)
		} else {
			require.NoError(t, err, c.name)
			_, err = g.Run(t.Context())
			if c.runWant != "" {
				require.ErrorContains(t, err, "metal: graph weights: "+c.runWant, c.name)
			} else {
				require.NoError(t, err, c.name)
			}
		}
		if c.compileWant+c.runWant != "" {
			assert.Zero(t, l.Sent("commit")-before, "%s: something was submitted", c.name)
		}
		require.NoError(t, s.Close())
		require.NoError(t, d.Close())
		m.Close()
	}
}

// TestPrivate: uploads, downloads and copies of private buffers work at any offset and in sizes beyond the
// staging buffer's, between devices too.
func TestPrivate(t *testing.T) {
	serve(t, fakemetal.Options{})
	d := open(t, metal.Options{Private: true})
	host := cpu.New(1)
	defer host.Close()
	q, err := d.NewQueue()
	require.NoError(t, err)
	ctx := t.Context()
	const size = 5 << 20 // more than the staging buffer has
	alloc := func(d backend.Device, use ir.MemKind) backend.Buffer {
		b, err := d.Alloc(backend.BufferSpec{Size: size, Use: use})
		require.NoError(t, err)
		return b
	}
	r := rand.New(rand.NewPCG(1, 3))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	state, weight, shared, other := alloc(d, ir.State), alloc(d, ir.Weight), alloc(d, ir.Input), alloc(host, ir.Input)
	assert.Nil(t, state.Bytes())
	assert.Nil(t, weight.Bytes())
	require.Len(t, shared.Bytes(), size)
	assert.EqualValues(t, size, state.Size())
	require.NoError(t, backend.Wait(ctx)(q.Upload(ctx, backend.At(state), data)))
	want := slices.Clone(data)
	read := func(b backend.Buffer) []byte {
		got := make([]byte, size)
		n, err := b.ReadAt(got, 0)
		require.NoError(t, err)
		require.Equal(t, size, n)
		return got
	}
	require.True(t, slices.Equal(want, read(state)))
	for _, c := range []struct{ to, from, n int64 }{{0, 16, 64}, {4, 8, 4 << 20}, {1, 2, 100000}, {3, 3, 1}, {size - 5, 0, 5}, {0, 0, 0}} {
		for _, way := range []struct{ dst, src backend.Buffer }{{weight, state}, {shared, weight}, {weight, shared}, {other, weight}, {weight, other}} {
			p, s := backend.Place{Buffer: way.dst, Offset: c.to}, backend.Place{Buffer: way.src, Offset: c.from}
			before, from := read(way.dst), read(way.src)
			queue := q
			if way.dst == other {
				queue, err = host.NewQueue()
				require.NoError(t, err)
			}
			require.NoError(t, backend.Wait(ctx)(queue.Copy(ctx, p, s, c.n)))
			copy(before[c.to:], from[c.from:c.from+c.n])
			require.True(t, slices.Equal(before, read(way.dst)), "%+v", c)
			got := make([]byte, c.n)
			if way.dst != other {
				require.NoError(t, backend.Wait(ctx)(queue.Download(ctx, got, p)))
				require.Equal(t, before[c.to:c.to+c.n], got)
			} else {
				require.NoError(t, queue.Close())
			}
		}
	}
	_, err = state.ReadAt(make([]byte, 1), size+1)
	assert.Error(t, err)
	n, err := state.ReadAt(make([]byte, 9), size-5)
	assert.ErrorContains(t, err, "unexpected EOF")
	assert.Equal(t, 5, n)
	for _, b := range []backend.Buffer{state, weight, shared, other} {
		require.NoError(t, b.Close())
	}
	require.NoError(t, q.Close())
	require.NoError(t, d.Close())
}

// TestPrivateFaults: each failure while a private buffer is written is a clear error and leaks nothing.
func TestPrivateFaults(t *testing.T) {
	for _, c := range []struct {
		fault fakemetal.Fault
		want  string
	}{
		{fakemetal.Fault{On: fakemetal.Allocation, Nth: 1}, "the system gives no buffer of 64 bytes"},
		{fakemetal.Fault{On: fakemetal.Allocation, Nth: 2}, "it is what bytes go through that the host does not see"},
		{fakemetal.Fault{On: fakemetal.Compilation, Nth: 1}, "bytes that the host does not see cannot be copied: the source does not compile"},
		{fakemetal.Fault{On: fakemetal.PipelineState, Nth: 1}, "bytes that the host does not see cannot be copied: kernel mlxc_copy_16"},
		{fakemetal.Fault{On: fakemetal.Queue, Nth: 2}, "64 bytes that the host does not see are not copied: the system gives no command queue"},
		{fakemetal.Fault{On: fakemetal.CommandBuffer, Nth: 1, Code: 8}, "64 bytes that the host does not see are not copied: metal: the command buffer failed: out of memory"},
	} {
		m := serve(t, fakemetal.Options{Faults: []fakemetal.Fault{c.fault}})
		d := open(t, metal.Options{Private: true, Cache: metal.NoCache})
		q, err := d.NewQueue()
		require.NoError(t, err)
		b, err := d.Alloc(backend.BufferSpec{Size: 64, Use: ir.State})
		if err == nil {
			err = backend.Wait(context.Background())(q.Upload(context.Background(), backend.At(b), make([]byte, 64)))
			// The device still works: the next upload, on another queue, succeeds.
			assert.NoError(t, q.Close())
			q, _ = d.NewQueue()
			assert.NoError(t, backend.Wait(context.Background())(q.Upload(context.Background(), backend.At(b), make([]byte, 64))))
			require.NoError(t, b.Close())
		}
		require.ErrorContains(t, err, c.want)
		require.NoError(t, q.Close())
		require.NoError(t, d.Close())
		m.Close()
	}
}
