package mlxt_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// weights returns a graph with a weight of each size.
func weights(t *testing.T, sizes ...int) *ir.Module {
	b := ir.NewBuilder("g")
	for i, n := range sizes {
		data := make([]byte, n)
		require.NoError(t, ir.Init{Kind: ir.InitRandom, Seed: uint64(i)}.Write(data))
		b.Memory(ir.Memory{Name: "w" + string(rune('a'+i)), Kind: ir.Weight, Size: int64(n), Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(data)}})
	}
	g, err := b.Graph()
	require.NoError(t, err)
	return &ir.Module{Graphs: []*ir.Graph{g}}
}

// Contents larger than the printer's buffer are written in pieces.
func TestLargeContents(t *testing.T) {
	m := weights(t, 1, 2, 3, 48<<10-1, 48<<10, 48<<10+1, 1<<20+7)
	got, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(mlxt.Format(m)))
	require.NoError(t, err)
	require.Empty(t, irtest.Diff(m, got))
}

func TestContentsAboveTheLimitAreReferences(t *testing.T) {
	m := weights(t, 8, 9, 10)
	asked := 0
	o := mlxt.Options{InlineLimit: 8, External: func(b *ir.Blob) (string, int64, bool) {
		asked++
		return "g.mlxg", 16384 * b.Length, b.Length == 10
	}}
	var text bytes.Buffer
	require.NoError(t, o.Print(&text, m))
	require.Equal(t, 2, asked)
	got, err := mlxt.Parse(context.Background(), "g.mlxt", text.Bytes())
	require.NoError(t, err)

	want := m.Clone()
	in := &want.Graphs[0].Memories[2].Init
	in.Blob = ir.ExternalBlob("g.mlxg", 163840, 10, in.Blob.Digest)
	require.Empty(t, irtest.Diff(want, got))

	// Without External, or without a limit, everything is inline.
	for _, o := range []mlxt.Options{{InlineLimit: 8}, {External: o.External}} {
		text.Reset()
		require.NoError(t, o.Print(&text, m))
		require.Equal(t, mlxt.Format(m), text.String())
	}
}

type failingWriter struct{ left int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("disk is full")

func TestPrintReportsTheWriter(t *testing.T) {
	m := weights(t, 1<<20)
	for _, left := range []int{0, 1 << 17} {
		err := mlxt.Print(&failingWriter{left}, m)
		require.ErrorIs(t, err, errFull)
		require.EqualError(t, err, "print module: disk is full")
	}
	require.NoError(t, mlxt.Print(&failingWriter{1 << 21}, m))
}

func TestPrintRefusesWhatCheckRefuses(t *testing.T) {
	m := weights(t, 8)
	m.Graphs[0].Nodes = []ir.Node{&ir.Fill{Dst: ir.ViewOf(0, 0, 8)}, &ir.GroupEnd{}}
	var out strings.Builder
	err := mlxt.Print(&out, m)
	require.Empty(t, out.String())
	const first = "graph g: #0 fill: destination %wa[0:8] writes weight memory (weights and inputs are read-only to a graph)"
	const second = "graph g: node 1: closes a group that is not open"
	require.EqualError(t, err, "print module: "+first+"\n"+second)
	var defects ir.Errors
	require.ErrorAs(t, err, &defects)
	require.Equal(t, "// print module: "+first+"\n// "+second+"\n", mlxt.Format(m))
}

func TestPrintNeedsEmbeddedContents(t *testing.T) {
	m := &ir.Module{Graphs: []*ir.Graph{{Name: "g"}}, Data: []ir.Data{{Name: "d", Blob: ir.ExternalBlob("", 0, 3, ir.Digest{})}}}
	require.Equal(t, "// print module: contents of \"\" [0:3] are not loaded: open the graph together with that file\n", mlxt.Format(m))
}
