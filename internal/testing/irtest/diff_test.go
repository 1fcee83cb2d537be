package irtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

func TestDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := irtest.Module(t)
		c := m.Clone()
		c.Graphs[0].Source = &ir.Source{File: "g.mlxt"}
		if d := irtest.Diff(m, c); d != "" {
			t.Fatalf("a module differs from its copy: %s", d)
		}
	})
}

func TestDiffNotices(t *testing.T) {
	m := func() *ir.Module {
		b := ir.NewBuilder("g")
		pos := b.Param("pos", 0, 9)
		x := b.Memory(ir.Memory{Name: "x", Kind: ir.Scratch, Size: 64})
		b.Fill(ir.View{Mem: x, Off: ir.Linear(0, ir.Term{Param: pos, Coeff: 4}), Len: ir.Const(4)}, 7, "")
		g, err := b.Graph()
		require.NoError(t, err)
		return &ir.Module{Graphs: []*ir.Graph{g}}
	}
	require.Empty(t, irtest.Diff(m(), m()))
	for name, change := range map[string]func(g *ir.Graph){
		"size":     func(g *ir.Graph) { g.Memories[0].Size++ },
		"bound":    func(g *ir.Graph) { g.Params[0].Max++ },
		"value":    func(g *ir.Graph) { g.Nodes[0].(*ir.Fill).Value++ },
		"offset":   func(g *ir.Graph) { g.Nodes[0].(*ir.Fill).Dst.Off = ir.Const(4) },
		"kind":     func(g *ir.Graph) { g.Nodes[0] = &ir.Barrier{} },
		"one more": func(g *ir.Graph) { g.Nodes = append(g.Nodes, &ir.Barrier{}) },
		"from":     func(g *ir.Graph) { g.Nodes[0].(*ir.Fill).From = []ir.ID{3} },
	} {
		c := m()
		change(c.Graphs[0])
		require.NotEmpty(t, irtest.Diff(m(), c), name)
	}
}

func TestDiffComparesBytesOfEmbeddedBlobs(t *testing.T) {
	a := ir.NewBlob([]byte("abc"))
	lying := ir.MappedBlob([]byte("abd"), a.Digest)
	of := func(b *ir.Blob) *ir.Module { return &ir.Module{Data: []ir.Data{{Name: "d", Blob: b}}} }
	require.Empty(t, irtest.Diff(of(a), of(ir.NewBlob([]byte("abc")))))
	require.NotEmpty(t, irtest.Diff(of(a), of(lying)))
	require.NotEmpty(t, irtest.Diff(of(a), of(ir.ExternalBlob("f", 0, 3, a.Digest))))
}
