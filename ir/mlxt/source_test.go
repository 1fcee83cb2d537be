package mlxt_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

func TestSource(t *testing.T) {
	const text = `mlxt 1
graph a {
}
graph b {
  memory %x scratch 4
	memory %y scratch 4   memory %z scratch 4
  // a comment
  group "é"  group "b"
    #0 fill %x
      0
  end end barrier
}
`
	m, err := mlxt.Parse(context.Background(), "dir/g.mlxt", []byte(text))
	require.NoError(t, err)
	s := m.Graphs[1].Source
	require.Equal(t, "dir/g.mlxt", s.File)
	require.Equal(t, []ir.Pos{{Line: 5, Col: 3, Offset: 31}, {Line: 6, Col: 2, Offset: 52}, {Line: 6, Col: 24, Offset: 74}}, s.Memories)
	require.Len(t, s.Nodes, 6)
	require.Equal(t, ir.Pos{Line: 8, Col: 3, Offset: 111}, s.Nodes[0])
	require.Equal(t, ir.Pos{Line: 8, Col: 15, Offset: 123}, s.Nodes[1], "columns count bytes")
	require.Equal(t, ir.Pos{Line: 9, Col: 5, Offset: 137}, s.Nodes[2])
	require.Equal(t, 11, s.Nodes[3].Line)
	require.Equal(t, ir.Pos{Line: 11, Col: 11, Offset: 166}, s.Nodes[5])
	for _, p := range append(s.Memories, s.Nodes...) {
		require.Contains(t, "mg#eb", string(text[p.Offset]))
	}
}

// A defect that the parser finds is an *ir.Error, those that Check finds are
// ir.Errors; errors.As finds the first of either.
func TestErrorTypes(t *testing.T) {
	for text, line := range map[string]int{
		"mlxt 1\ngraph g {\n  x\n}\n": 3,
		"mlxt 1\ngraph g {\n}\ngraph h {\n  memory %x scratch 0\n}\ngraph h {\n}\n": 5,
	} {
		_, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(text))
		var e *ir.Error
		require.True(t, errors.As(err, &e))
		require.Equal(t, "g.mlxt", e.File)
		require.Equal(t, line, e.Pos.Line)
	}
}
