package mlxg_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
)

// A written module opens as an equal module, which is written as the same bytes again, both
// to a file and to a stream.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		m := irtest.Module(t)
		first, second := filepath.Join(dir, "first.mlxg"), filepath.Join(dir, "second.mlxg")
		require.NoError(t, mlxg.WriteFile(context.Background(), first, m, mlxg.WriteOptions{}))
		f, err := mlxg.Open(context.Background(), first, mlxg.OpenOptions{SkipExternal: true, Verify: true})
		require.NoError(t, err)
		defer f.Close()
		require.Empty(t, irtest.Diff(m, f.Module))
		require.NoError(t, mlxg.WriteFile(context.Background(), second, f.Module, mlxg.WriteOptions{}))
		a, err := os.ReadFile(first)
		require.NoError(t, err)
		b, err := os.ReadFile(second)
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), "second write differs")
		var stream bytes.Buffer
		require.NoError(t, mlxg.Write(context.Background(), &stream, m, mlxg.WriteOptions{}))
		require.True(t, bytes.Equal(a, stream.Bytes()), "stream differs from file")
	})
}

// Absent and empty lists stay different. An absent shape is unknown and an empty one is that
// of a scalar; absent provenance is the command itself and empty provenance is nothing.
func TestAbsentIsNotEmpty(t *testing.T) {
	m := smallModule(t)
	g := m.Graphs[0]
	g.Memories[0].DType, g.Memories[0].Shape = ir.F32, []int64{}
	g.Memories[1].DType, g.Memories[1].Shape = ir.Invalid, nil
	g.Nodes = append(g.Nodes,
		&ir.Fill{ID: 100, Dst: ir.ViewOf(1, 0, 4), From: []ir.ID{}},
		&ir.Fill{ID: 101, Dst: ir.ViewOf(1, 0, 4), From: nil})
	got := roundTrip(t, m).Graphs[0]
	assert.NotNil(t, got.Memories[0].Shape)
	assert.Nil(t, got.Memories[1].Shape)
	n := len(got.Nodes)
	assert.NotNil(t, got.Nodes[n-2].(*ir.Fill).From)
	assert.Nil(t, got.Nodes[n-1].(*ir.Fill).From)
}

// Blobs with equal contents are stored once, with the max alignment that any of their
// memories wants, and are opened as one blob.
func TestBlobsAreShared(t *testing.T) {
	data := bytes.Repeat([]byte("weight"), 100)
	m := smallModule(t)
	g := m.Graphs[0]
	for i, align := range []int64{0, 4096} {
		g.Memories = append(g.Memories, ir.Memory{
			Name: string(rune('p' + i)), Kind: ir.Weight, Size: 600, Align: align, Alias: ir.NoMem,
			Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(bytes.Clone(data))},
		})
	}
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 1, bytes.Count(raw, data))
	assert.Zero(t, bytes.Index(raw, data)%4096)

	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{Verify: true, SkipExternal: true})
	require.NoError(t, err)
	defer f.Close()
	mems := f.Module.Graphs[0].Memories
	assert.Same(t, mems[len(mems)-1].Init.Blob, mems[len(mems)-2].Init.Blob)
	weights := f.Weights()
	assert.Equal(t, raw[len(raw)-len(weights):], weights)
}

func TestSourceHoldsOffsets(t *testing.T) {
	m := smallModule(t)
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{}))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{SkipExternal: true})
	require.NoError(t, err)
	defer f.Close()
	src := f.Module.Graphs[0].Source
	assert.Equal(t, path, src.File)
	require.Len(t, src.Nodes, len(m.Graphs[0].Nodes))
	require.Len(t, src.Memories, len(m.Graphs[0].Memories))
	// A memory is an array of 9 elements. A dispatch is an array of 11, whose first is 0.
	for _, p := range src.Memories {
		assert.EqualValues(t, 0x99, raw[p.Offset])
	}
	for i, n := range m.Graphs[0].Nodes {
		if _, ok := n.(*ir.Dispatch); ok {
			assert.EqualValues(t, []byte{0x9b, 0}, raw[src.Nodes[i].Offset:][:2])
		}
	}
}

// A defect that only Check finds is reported with the file, the offset and a hint.
func TestCheckErrorsCarryOffsets(t *testing.T) {
	m := smallModule(t)
	var b bytes.Buffer
	require.NoError(t, mlxg.Write(context.Background(), &b, m, mlxg.WriteOptions{}))
	f, err := mlxg.OpenBytes(context.Background(), "g.mlxg", b.Bytes(), mlxg.OpenOptions{})
	require.NoError(t, err)
	at := f.Graphs[0].Source.Nodes[1].Offset

	// The length of the fill at node 1 is made longer than its memory.
	raw := bytes.Clone(b.Bytes())
	i := bytes.Index(raw[at:], []byte{0x93, 1, 0, 16})
	require.Positive(t, i)
	raw[int(at)+i+3] = 127
	_, err = mlxg.OpenBytes(context.Background(), "g.mlxg", mlxg.Resum(raw), mlxg.OpenOptions{})
	var defect *ir.Error
	require.ErrorAs(t, err, &defect)
	assert.Equal(t, "g.mlxg", defect.File)
	assert.Equal(t, at, defect.Pos.Offset)
	assert.ErrorContains(t, err, "leaves the memory (64 bytes)")
}

// A module that Open would refuse is not written.
func TestWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g.mlxg")
	for _, c := range []struct {
		name, want string
		break_     func(*ir.Module)
	}{
		{"invalid module", "%y", func(m *ir.Module) { m.Graphs[0].Memories[1].Size = -1 }},
		{"absolute path", "is absolute", func(m *ir.Module) {
			m.Data = append(m.Data, ir.Data{Name: "d", Blob: ir.ExternalBlob("/etc/passwd", 0, 1, ir.Digest{})})
		}},
		{"library path that is no UTF-8", "no UTF-8", func(m *ir.Module) {
			m.Graphs[0].Kernels[0].Library = ir.Library{Kind: ir.Metallib, Path: "\xff"}
		}},
		{"blob without bytes", "cannot embed", func(m *ir.Module) {
			m.Data = append(m.Data, ir.Data{Name: "d", Blob: &ir.Blob{Length: 4}})
		}},
		{"negative length", "contents are -1 bytes", func(m *ir.Module) {
			m.Data = append(m.Data, ir.Data{Name: "d", Blob: ir.ExternalBlob("a", 0, -1, ir.Digest{})})
		}},
		{"bytes that are not those of the digest", "sha256 of its bytes", func(m *ir.Module) {
			m.Data = append(m.Data, ir.Data{Name: "d", Blob: ir.MappedBlob([]byte("abc"), ir.Digest{1})})
		}},
		{"two lengths of one digest", "have one digest", func(m *ir.Module) {
			m.Data = append(m.Data,
				ir.Data{Name: "d", Blob: ir.MappedBlob([]byte("abc"), ir.Digest{1})},
				ir.Data{Name: "e", Blob: ir.MappedBlob([]byte("abcd"), ir.Digest{1})})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := smallModule(t)
			c.break_(m)
			err := mlxg.WriteFile(context.Background(), path, m, mlxg.WriteOptions{})
			assert.ErrorContains(t, err, c.want)
			assert.ErrorContains(t, err, path)
			assert.ErrorContains(t, mlxg.Write(context.Background(), new(bytes.Buffer), m, mlxg.WriteOptions{}), c.want)
			entries, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			assert.Empty(t, entries, "something was left behind")
		})
	}
}

// Everything but the blobs is ordinary memory, which may be used after Close.
func TestNodesOutliveTheFile(t *testing.T) {
	want := smallModule(t).Graphs[0]
	path := filepath.Join(t.TempDir(), "g.mlxg")
	require.NoError(t, mlxg.WriteFile(context.Background(), path, smallModule(t), mlxg.WriteOptions{}))
	f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{SkipExternal: true})
	require.NoError(t, err)
	got := f.Module.Graphs[0]
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "second Close")
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	require.NotPanics(t, func() {
		assert.Equal(t, want.Nodes, got.Nodes)
		assert.Equal(t, want.Kernels, got.Kernels)
	})
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := mlxg.Open(context.Background(), filepath.Join(dir, "absent"), mlxg.OpenOptions{})
	assert.ErrorIs(t, err, os.ErrNotExist)
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = mlxg.Open(context.Background(), empty, mlxg.OpenOptions{})
	assert.ErrorContains(t, err, "no .mlxg file")
	_, err = mlxg.Open(context.Background(), dir, mlxg.OpenOptions{})
	assert.ErrorContains(t, err, "not a regular file")
}

func roundTrip(t *testing.T, m *ir.Module) *ir.Module {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, mlxg.Write(context.Background(), &b, m, mlxg.WriteOptions{}))
	got, err := mlxg.OpenBytes(context.Background(), "g.mlxg", b.Bytes(), mlxg.OpenOptions{Verify: true})
	require.NoError(t, err)
	return got
}
