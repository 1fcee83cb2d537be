package ir_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

const carrying = `mlxt 1
graph g {
  param $pos u32 in [0, 7] += 1
  memory %in input 64 f32[16]
  memory %st state 64 f32[16]
  memory %out output 64 f32[16] every
  memory %ids input 64 u32[16]
  memory %raw output 64
  memory %s scratch 64
  memory %tail alias %in + 32 size 32
  kernel @k metallib "k.metallib" sha256 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff "k" args(0 a: device f32 read, 1 o: device f32 write)
  #0 copy %in -> %out
  #1 copy %in -> %raw
  NODES
}
`

func TestCarry(t *testing.T) {
	for nodes, want := range map[string]string{
		"#2 carry %out[0:4] -> %in[4:8]":                                                             "",
		"#2 carry %out[0:4] -> %st[8*$pos:8*$pos + 4]":                                               "",
		"#2 carry %out[0:4] -> %in[0:4] #3 carry %out[4:8] -> %in[4:8]":                              "",
		"#2 carry %out[0:4] -> %in[0:4] #3 copy %in[4:8] -> %s[0:4]":                                 "",
		"#2 carry %out[0:4] -> %in[0:4] #3 copy %out[0:4] -> %s[0:4]":                                "", // reads what is carried
		"#2 carry %out[0:4] -> %in[0:4] #3 copy %in[0:4] -> %s[0:4]":                                 "#3 copy: touches %in[0:4], which #2 carried before",
		"#2 carry %out[0:4] -> %in[32:36] #3 copy %tail[0:4] -> %s[0:4]":                             "#3 copy: touches %tail[0:4], which #2 carried before",
		"#2 carry %out[0:4] -> %in[0:4] #3 fill %out[0:1] 0x00":                                      "#3 fill: touches %out[0:1], which #2 carried before",
		"#2 carry %out[0:4] -> %st[4*$pos:4*$pos + 4] #3 fill %st[16:20] 0x00":                       "touches %st[16:20]",
		"#2 carry %out[0:4] -> %in[0:4] #3 carry %out[0:4] -> %in[2:6]":                              "#3 carry: touches %in[2:6], which #2 carried before",
		"#2 carry %out[0:4] -> %in[0:4] #3 @k (a = %in, o = %s) grid threads [1, 1, 1] of [1, 1, 1]": "touches %in[0:64]", // binds it, and may do anything
		"#2 carry %out[0:4] -> %in[0:4] #3 @k (a = %st, o = %s) grid threads [1, 1, 1] of [1, 1, 1]": "",
		"#2 carry %out[0:4] -> %in[0:8]":                                                             "#2 carry: carries 4 bytes to 8 bytes",
		"#2 carry %out[0:4] -> %ids[0:4]":                                                            "#2 carry: carries f32 to u32",
		"#2 carry %raw[0:4] -> %in[0:4]":                                                             "#2 carry: carries invalid to f32 (say the element types of both memories: they are one, or integers of one size)",
		"#2 carry %s[0:4] -> %in[0:4]":                                                               "#2 carry: carries from scratch to input memory",
		"#2 carry %out[0:4] -> %s[0:4]":                                                              "#2 carry: carries from output to scratch memory",
		"#2 carry %out[0:4] -> %in[60:68]":                                                           "leaves the memory",
	} {
		m, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(strings.Replace(carrying, "NODES", nodes, 1)))
		if want != "" {
			require.ErrorContains(t, err, want, nodes)
			continue
		}
		require.NoError(t, err, nodes)
		g := m.Graphs[0]
		require.Equal(t, int64(1), g.Params[0].Advance)
		require.True(t, g.Memories[2].Every)
		c := g.Nodes[2].(*ir.Carry)
		fixed := g.Fixed()
		in := c.Dst.Mem == 0
		require.Equal(t, []bool{!in, false, false, true, false, false, !in}, fixed)
		require.Equal(t, mlxt.Format(m), mlxt.Format(m.Clone()))
		require.Contains(t, mlxt.Format(m), strings.Split(nodes, " #3")[0])
	}

	// A graph may have 64 carries, because each is compared with all commands after it.
	g := &ir.Graph{Name: "g", Memories: []ir.Memory{{Name: "o", Kind: ir.Output, Size: 128, DType: ir.U8, Alias: ir.NoMem}, {Name: "i", Kind: ir.Input, Size: 128, DType: ir.U8, Alias: ir.NoMem}}}
	for i := range 65 {
		require.NoError(t, g.Check())
		g.Nodes = append(g.Nodes, &ir.Carry{ID: ir.ID(i), Src: ir.ViewOf(0, int64(i), 1), Dst: ir.ViewOf(1, int64(i), 1)})
	}
	require.ErrorContains(t, g.Check(), "#64 carry: is one carry more than a graph may have (at most 64)")
}

// What a graph says about several replays in one submission is refused if it is contradictory.
func TestBursts(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"$pos u32 in [0, 7] += 1", "$pos f32 in [0, 7] += 1"}:                  "param $pos: is of type f32 and advances (u32 params advance)",
		{"+= 1", "+= 4294967296"}:                                               "more than 4294967295",
		{"+= 1", "-= 3"}:                                                        "",
		{"%s scratch 64", "%s scratch 64 every"}:                                "%s: is no output and keeps every replay's contents",
		{"%tail alias %in + 32 size 32", "%tail alias %out + 32 size 32 every"}: "%tail: is no output and keeps every replay's contents",
	} {
		text := strings.Replace(strings.Replace(carrying, "NODES", "", 1), change[0], change[1], 1)
		_, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(text))
		if want == "" {
			require.NoError(t, err, change)
			continue
		}
		require.ErrorContains(t, err, want, change)
	}
}
