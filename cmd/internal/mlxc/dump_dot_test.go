package mlxc

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/optimize"
)

func drawn(t *testing.T, gs ...*ir.Graph) string {
	var out bytes.Buffer
	require.NoError(t, writeDot(context.Background(), &out, "file", gs))
	return out.String()
}

var edgeLine = regexp.MustCompile(`(?m)^ +(\S+) -> (\S+?)(?: \[.*\])?;$`)

// reach lists, for each command, the commands that arrows lead to, directly or through
// joins.
func reach(dot string) map[string]map[string]bool {
	next := map[string][]string{}
	for _, m := range edgeLine.FindAllStringSubmatch(dot, -1) {
		if strings.HasSuffix(m[0], " [style=invis];") {
			continue // an invisible edge, which only keeps rows in order
		}
		next[m[1]] = append(next[m[1]], m[2])
	}
	out := map[string]map[string]bool{}
	for from := range next {
		seen := map[string]bool{}
		var walk func(string)
		walk = func(n string) {
			for _, m := range next[n] {
				if !seen[m] {
					seen[m] = true
					walk(m)
				}
			}
		}
		walk(from)
		if !strings.Contains(from, "j") {
			for n := range seen {
				if strings.Contains(n, "j") {
					delete(seen, n)
				}
			}
			out[from] = seen
		}
	}
	return out
}

const conflicts = `mlxt 1

graph "odd \"name\"" {
  memory %x input 16 f32[4]
  memory %s state 16 f32[4] = fill 0x00000000
  memory %y output 16 f32[4]
  kernel @v_Silufloat32float32 builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)
  kernel @own source "own.metal" sha256 0000000000000000000000000000000000000000000000000000000000000001 "own" args(0 a: device f32 read, 1 b: device f32 write)

  #0 @v_Silufloat32float32 (in = %x[0:16], out = %s[0:16]) grid threads [4, 1, 1] of [4, 1, 1] label "a \"b\" \\ c"
  barrier
  #1 @v_Silufloat32float32 (in = %s[0:16], out = %y[0:16]) grid threads [4, 1, 1] of [4, 1, 1]
  barrier
  #2 fill %s[0:16] 0x00
  barrier
  #3 fill %s[0:8] 0x01
  barrier
  #4 @own (a = %x[0:16], b = %y[0:16]) grid threads [4, 1, 1] of [4, 1, 1]
}
`

// A recording stores no effects; its arrows are those of the effects that its kernels
// declare.
func TestDotOfARecording(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(conflicts))
	require.NoError(t, err)
	require.Equal(t, `digraph "odd \"name\"" {
  rankdir=TB; node [shape=box, fontname="Helvetica", fontsize=10];
  subgraph epoch0 { rank=same;
    n0 [label="#0 v_Silufloat32float32\na \"b\" \\ c"];
  }
  subgraph epoch1 { rank=same;
    n1 [label="#1 v_Silufloat32float32"];
  }
  subgraph epoch2 { rank=same;
    n2 [label="#2 fill"];
  }
  subgraph epoch3 { rank=same;
    n3 [label="#3 fill"];
  }
  subgraph epoch4 { rank=same;
    n4 [label="#4 own", style=dashed];
  }
  n0 -> n1;
  n0 -> n2 [style=dashed];
  n1 -> n2 [style=dashed];
  n2 -> n3 [style=dashed];
  n0 -> n4 [style=dotted];
  n1 -> n4 [style=dotted];
  n2 -> n4 [style=dotted];
  n3 -> n4 [style=dotted];
}
`, drawn(t, m.Graphs[0]))
}

// A file holds one digraph, whose braces and names are right, however many graphs there
// are.
func TestOneDigraph(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "g", []byte(conflicts))
	require.NoError(t, err)
	second := m.Graphs[0].Clone()
	second.Name = "second"
	s := drawn(t, m.Graphs[0], second)
	require.Equal(t, 1, strings.Count(s, "digraph"))
	require.Equal(t, 2, strings.Count(s, "subgraph cluster_"))
	bare := regexp.MustCompile(`"(\\.|[^"\\])*"`).ReplaceAllString(s, "")
	require.NotContains(t, bare, `"`)
	require.Equal(t, strings.Count(bare, "{"), strings.Count(bare, "}"))
	names := map[string]bool{}
	for _, n := range regexp.MustCompile(`(?m)^ +(\w+) \[`).FindAllStringSubmatch(bare, -1) {
		require.False(t, names[n[1]], "%s twice", n[1])
		names[n[1]] = true
	}
	for _, e := range edgeLine.FindAllStringSubmatch(s, -1) {
		require.True(t, e[1] == "node" || names[e[1]] && names[e[2]], "%v", e)
	}
	require.Len(t, edgeLine.FindAllStringSubmatch(s, -1), 16)
}

// The arrows are the order that conflicts demand, with joins where many readers meet
// many writers.
func TestDotIsTheOrder(t *testing.T) {
	b := ir.NewBuilder("g")
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 4096})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.State, Size: 1 << 20})
	for round := range 3 {
		for i := range int64(8) {
			b.Fill(ir.ViewOf(s, 512*i, 512), byte(i), "")
		}
		for i := range int64(8) {
			b.Copy(ir.ViewOf(y, int64(round)<<16+4096*i, 4096), ir.ViewOf(s, 0, 4096), "")
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	dot := drawn(t, g)
	require.Contains(t, dot, "shape=point")
	got := reach(dot)
	table := hazard.NewTable(context.Background(), optimize.Annotated(context.Background(), g))
	for i := range table.Len() {
		for j := i + 1; j < table.Len(); j++ {
			if table.Between(i, j) != hazard.None {
				a := table.Node(i).Num()
				c := table.Node(j).Num()
				require.True(t, got[fmt.Sprintf("n%d", a)][fmt.Sprintf("n%d", c)], "%d before %d", i, j)
			}
		}
	}
}

// Time and length of the text are linear in the graph.
func TestDotIsLinear(t *testing.T) {
	small, large := len(drawn(t, benchgraphs.Decode(2000))), len(drawn(t, benchgraphs.Decode(20000)))
	require.Less(t, large, 12*small)
}

// Rows stand in list order, with the commits between them, also where no conflict keeps
// them in order.
func TestDotOfCommits(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "t", []byte(`mlxt 1

graph g {
  memory %x input 16
  memory %y output 48

  #0 copy %x -> %y[0:16]
  commit event "first \"half\""
  #1 copy %x -> %y[16:32]
  barrier
  #2 copy %x -> %y[32:48]
}
`))
	require.NoError(t, err)
	dot := drawn(t, m.Graphs...)
	require.Contains(t, dot, `c0 [shape=plaintext, label="commit event first \"half\""];`)
	require.Contains(t, dot, "n0 -> c0 [style=invis];\n  c0 -> n1 [style=invis];\n  n1 -> n2 [style=invis];\n")
}
