package values_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/passes/internal/values"
)

// build parses commands over a scratch memory %s of 1024 bytes with alias %a, and
// finds its webs.
func build(t *testing.T, commands string) (*ir.Graph, *values.Set) {
	m, err := mlxt.Parse(context.Background(), "t", []byte(`mlxt 1
graph g {
  param $n u32 in [1, 4]
  memory %x input 1024
  memory %y output 1024
  memory %s scratch 1024 align 256
  memory %a alias %s + 256 size 512
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @own source "own.metal" sha256 0000000000000000000000000000000000000000000000000000000000000001 "own" args(0 a: device f32 read, 1 b: device f32 write)
`+commands+"}\n"))
	require.NoError(t, err)
	g := m.Graphs[0]
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && g.Kernels[d.Kernel].Library.Kind == ir.Builtin {
			d.Effects, err = msl.Describe(g, d)
			require.NoError(t, err)
		}
	}
	return g, values.Build(context.Background(), dataflow.Build(context.Background(), g))
}

func show(s *values.Set) (out []string) {
	for _, w := range s.Webs {
		x := fmt.Sprintf("[%d:%d] #%d-#%d align %d", w.Lo, w.End, w.First, w.Last, w.Align)
		if w.After > 0 {
			x += fmt.Sprintf(" reach %d", w.After)
		}
		if w.Pinned() {
			x = fmt.Sprintf("[%d:%d] %s", w.Lo, w.End, s.Why(&w))
		}
		out = append(out, x)
	}
	return out
}

const add = " grid threads [16, 1, 1] of [16, 1, 1]\n"

// Two values use the same bytes one after the other, one of them through an alias; the second is written in place.
func TestWebs(t *testing.T) {
	_, s := build(t, `
  #0 copy %x[0:64] -> %a[0:64]
  #1 @add (a = %s[256:320], b = %x[0:64], c = %s[256:320])`+add+`
  #2 copy %s[256:320] -> %y[0:64]
`)
	require.Equal(t, []string{"[256:320] #0-#1 align 64", "[256:320] #1-#2 align 64"}, show(s))
	require.True(t, s.Inplace(0, 1, 1))
	require.False(t, s.Inplace(1, 0, 1))
	require.Equal(t, int32(0), s.OfRead(1, 0))
	require.Equal(t, int32(-1), s.OfRead(1, 1), "an input")
	require.Equal(t, int32(1), s.OfWrite(1, 0))
}

// Writes that one read sees together are one web. A web that reads undefined bytes is pinned. Views may reach further
// than accesses, and params move accesses within the web's extent. For a kernel without declaration the complete
// effects count.
func TestWebsThatMoveTogetherOrNot(t *testing.T) {
	_, s := build(t, `
  #0 copy %x[0:64] -> %s[16:80]
  #1 copy %x[0:32] -> %s[80:112]
  #2 copy %s[16:112] -> %y[0:96]
  #3 copy %s[512:528] -> %y[96:112]
  #4 copy %x[0:64] -> %a[0:64]
  #5 @own (a = %a[0:64], b = %y[128:192]) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %a[0:64] writes must %y[128:192]
  #6 @add (a = %x[0:64], b = %x[0:64], c = %s[640:768])`+add+`
  #7 copy %x[0:16*$n] -> %s[832:16*$n + 832]
`)
	require.Equal(t, []string{
		"[16:112] #0-#2 align 16",
		"[512:528] #3 copy may read bytes of it that nothing wrote",
		"[256:320] #4-#5 align 64",
		"[640:704] #6-#6 align 64 reach 64",
		"[832:896] #7-#7 align 64",
	}, show(s))
}

// Everything that may lie in one view of a kernel without declaration moves with the view, together with the rest of
// the view and regions without bytes. A region that no view contains stays, and a view that contains no region
// keeps its memory as it is.
func TestWebsOfForeignKernels(t *testing.T) {
	const own = " grid threads [1, 1, 1] of [1, 1, 1] effects complete "
	g, s := build(t, `
  #0 copy %x[0:64] -> %s[64:128]
  #1 copy %x[0:64] -> %s[160:224]
  #2 @own (a = %s[0:256], b = %y[0:64])`+own+`reads %s[64:128], %s[128:128] writes must %y[0:64]
  #3 @own (a = %s[128:256], b = %y[64:128])`+own+`reads %s[160:224] writes must %y[64:128]
  #4 copy %x[0:64] -> %s[512:576]
  #5 copy %x[0:64] -> %s[640:704]
  #6 @own (a = %s[512:704], b = %y[128:192])`+own+`reads %s[512:576], %s[640:704] writes must %y[128:192]
  #7 copy %x[0:64] -> %s[768:832]
  #8 @own (a = %x[0:64], b = %y[192:256])`+own+`reads %s[768:832] writes must %y[192:256]
`)
	require.Equal(t, []string{
		"[64:128] #0-#2 align 64 reach 128",
		"[160:224] #1-#3 align 64 reach 32",
		"[512:704] #4-#6 align 256",
		"[768:832] #8 own touches it outside of its views, and its kernel has no declaration",
	}, show(s))
	require.Equal(t, int64(64), s.Webs[0].Before)
	require.Equal(t, int64(32), s.Webs[1].Before)
	require.Empty(t, s.Held(s.Webs[0].Mem))
	g.Memories = append(g.Memories, ir.Memory{Name: "new", Kind: ir.Scratch, Size: 1024, Alias: ir.NoMem})
	s.Move(&s.Webs[0], ir.MemID(len(g.Memories)-1), 128)
	require.NoError(t, g.Check())
	d := g.Nodes[2].(*ir.Dispatch)
	require.Equal(t, "%new[64:320]", g.FormatView(d.Bindings[0].View))
	require.Equal(t, "%new[128:192]", g.FormatRegion(d.Effects.Reads[0]))

	_, s = build(t, `
  #0 copy %x[0:64] -> %s[64:128]
  #1 @own (a = %s[512:576], b = %y[0:64])`+own+`reads %x[0:64] writes must %y[0:64]
  #2 copy %s[64:128] -> %y[64:128]
`)
	require.Equal(t, []string{"[64:128] #0-#2 align 64"}, show(s))
	require.Equal(t, "#1 own binds bytes of it that its effects leave out", s.Held(s.Webs[0].Mem))
}

// Move changes views and effects alike, so that they name the root memory.
func TestMove(t *testing.T) {
	g, s := build(t, `
  #0 copy %x[0:64] -> %a[64:128]
  #1 @add (a = %s[320:384], b = %x[0:64], c = %y[0:64])`+add)
	g.Memories = append(g.Memories, ir.Memory{Name: "new", Kind: ir.Scratch, Size: 256, Alias: ir.NoMem})
	m := ir.MemID(len(g.Memories) - 1)
	s.Move(&s.Webs[0], m, 128)
	require.NoError(t, g.Check())
	d := g.Nodes[1].(*ir.Dispatch)
	require.Equal(t, "%new[128:192]", g.FormatView(g.Nodes[0].(*ir.Copy).Dst))
	require.Equal(t, "%new[128:192]", g.FormatView(d.Bindings[0].View))
	e, err := msl.Describe(g, d)
	require.NoError(t, err)
	require.True(t, e.Equal(d.Effects), "the effects are those of the declaration")
}

// Levels of a value, of its reader, and of a command that overwrites its bytes. (The tests of the pass
// rename compare levels with a slow count on random graphs.)
func TestLevels(t *testing.T) {
	_, s := build(t, `
  #0 copy %x[0:64] -> %s[0:64]
  #1 copy %s[0:64] -> %y[0:64]
  #2 copy %x[0:64] -> %s[32:96]
  #3 copy %s[32:96] -> %y[64:128]
  #4 copy %x[0:64] -> %s[128:192]
`)
	l := values.NewLevels(t.Context(), s.Flow)
	var levels []int32
	for i := range s.Flow.Commands {
		read, write := s.Flow.Reads(i)[0].Region, s.Flow.Writes(i)[0].Region
		level := max(l.After(read, false), l.After(write, true)) + 1
		l.Add(read, false, level)
		l.Add(write, true, level)
		levels = append(levels, level)
	}
	require.Equal(t, []int32{1, 2, 3, 4, 1}, levels)
}
