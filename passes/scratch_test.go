package passes_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/passes"
)

// scratchGraph draws a graph of declared kernels, copies and fills over a small
// reused arena, a second scratch memory and an alias, ordered by barriers: values
// overwritten whole or in part, written in place, read by several, some of a
// length that a param gives, some bound by views that reach further, in memories of
// one storage mode or two. Each write of the output has bytes of its own. With
// simple set every value is read whole and there are no states.
func scratchGraph(t *rapid.T, simple bool) *ir.Graph {
	b := ir.NewBuilder("g")
	n := ir.Linear(0, ir.Term{Param: b.Param("n", 1, 3), Coeff: 1})
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 256})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4096})
	st := b.Memory(ir.Memory{Name: "st", Kind: ir.State, Size: 256, Init: ir.FillU32(0)})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 256, Align: 16})
	u := b.Memory(ir.Memory{Name: "u", Kind: ir.Scratch, Size: 128, Storage: ir.Storage(rapid.IntRange(0, 1).Draw(t, "storage"))})
	lo := b.Alias("lo", s, 32, 128)
	add := b.Kernel(msl.Declarations("vv_Addfloat32")[0].Kernel("add"))
	mems := []ir.MemID{s, s, u, lo}
	if !simple {
		mems = append(mems, st)
	}
	defined := []ir.View{ir.ViewOf(x, 0, 64), {Mem: x, Len: n.Scale(16)}}
	if !simple {
		defined = append(defined, ir.ViewOf(st, 16, 64))
	}
	out := int64(0)
	root := func(v ir.View) (ir.MemID, int64, int64) {
		g := b.Unfinished()
		m, off := g.Root(v.Mem)
		lo, _, _ := g.Range(v.Off)
		_, end, _ := g.Range(v.End())
		return m, lo + off, end + off
	}
	meet := func(v, w ir.View) bool {
		m, a, z := root(v)
		k, c, e := root(w)
		return m == k && a < e && c < z
	}
	dst := func(length ir.Affine, not ...ir.View) ir.View {
		_, size, _ := b.Unfinished().Range(length)
		for range 20 {
			if rapid.IntRange(0, 4).Draw(t, "output") == 0 && out+64 <= 4096 {
				break
			}
			m := rapid.SampledFrom(mems).Draw(t, "dst")
			v := ir.View{Mem: m, Off: ir.Const(16 * rapid.Int64Range(0, (b.Unfinished().Memories[m].Size-size)/16).Draw(t, "off")), Len: length}
			if !slices.ContainsFunc(not, func(w ir.View) bool { return meet(v, w) }) {
				return v
			}
		}
		out += 64
		return ir.View{Mem: y, Off: ir.Const(out - 64), Len: length}
	}
	enter := func(v ir.View) {
		if simple {
			defined = slices.DeleteFunc(defined, func(w ir.View) bool { return meet(v, w) })
		}
		defined = append(defined, v)
	}
	for range rapid.IntRange(1, 14).Draw(t, "commands") {
		var like []ir.View
		p := rapid.SampledFrom(defined).Draw(t, "a")
		for _, v := range defined {
			if v.Len.Equal(p.Len) {
				like = append(like, v)
			}
		}
		switch rapid.IntRange(0, 7).Draw(t, "command") {
		case 0:
			v := dst(ir.Const(16 * rapid.Int64Range(1, 4).Draw(t, "len")))
			b.Fill(v, 1, "")
			enter(v)
		case 1:
			v := dst(p.Len, p)
			b.Copy(v, p, "")
			enter(v)
		default:
			q := rapid.SampledFrom(like).Draw(t, "b")
			v := p
			if b.Unfinished().Memories[p.Mem].Kind != ir.Scratch || (q.Mem != p.Mem || !q.Off.Equal(p.Off)) && meet(p, q) || rapid.IntRange(0, 3).Draw(t, "in place") > 0 {
				v = dst(p.Len, p, q)
			}
			count := ir.Const(p.Len.Const / 4)
			if !p.Len.IsConst() {
				count = n.Scale(4)
			}
			// A view may be longer than what the kernel touches.
			long := func(v ir.View) ir.View {
				if _, end, _ := b.Unfinished().Range(v.End()); end+16 <= b.Unfinished().Memories[v.Mem].Size && rapid.IntRange(0, 3).Draw(t, "long") == 0 {
					v.Len = v.Len.AddConst(16)
				}
				return v
			}
			b.Dispatch(ir.Dispatch{Kernel: add, Bindings: []ir.Binding{ir.BufferArg(0, long(p)), ir.BufferArg(1, long(q)), ir.BufferArg(2, long(v))},
				GridKind: ir.Threads, Grid: [3]ir.Extent{{Num: count, Div: 1}, ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{4, 1, 1}})
			enter(v)
		}
	}
	g, err := b.Graph()
	require.NoError(t, err)
	afterPasses(t, g, "annotate,barriers")
	require.Zero(t, g.Stats().Unannotated)
	return g
}

// afterPasses runs a pipeline on g.
func afterPasses(t require.TestingT, g *ir.Graph, pipeline string) []*passes.Report {
	p, err := passes.ParsePipeline(pipeline)
	require.NoError(t, err)
	rs, err := passes.Run(context.Background(), g, p, passes.Options{})
	require.NoError(t, err)
	return rs
}

// touches is what a command may touch for some value of the params, byte by byte.
type touches struct{ reads, writes map[[2]int64]bool }

func touchesOf(g *ir.Graph) (out []touches) {
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		e := c.Touches()
		x := touches{map[[2]int64]bool{}, map[[2]int64]bool{}}
		mark := func(set map[[2]int64]bool, r ir.Region) {
			r = bytestate.Rooted(g, r)
			if g.Memories[r.Mem].Kind.ReadOnly() {
				return
			}
			r.Runs([]uint32{3}, func(lo, end int64) bool { // lengths grow with n
				for ; lo < end; lo++ {
					set[[2]int64{int64(r.Mem), lo}] = true
				}
				return true
			})
		}
		for _, r := range e.Reads {
			mark(x.reads, r)
		}
		for _, w := range e.Writes {
			mark(x.writes, w.Region)
		}
		out = append(out, x)
	}
	return out
}

func common(a, b map[[2]int64]bool) bool {
	for x := range a {
		if b[x] {
			return true
		}
	}
	return false
}

func (a touches) conflicts(b touches) bool {
	return common(a.writes, b.reads) || common(a.writes, b.writes) || common(a.reads, b.writes)
}

// slowDepth is the longest chain of conflicting commands, by all pairs.
func slowDepth(g *ir.Graph) int {
	ts := touchesOf(g)
	return longest(len(ts), func(i, j int) bool { return ts[i].conflicts(ts[j]) })
}

// slowValueDepth is the longest chain of values: j reads a byte that i wrote last.
func slowValueDepth(g *ir.Graph) int {
	ts := touchesOf(g)
	return longest(len(ts), func(i, j int) bool {
		for x := range ts[j].reads {
			if !ts[i].writes[x] {
				continue
			}
			last := true
			for k := i + 1; k < j; k++ {
				last = last && !ts[k].writes[x]
			}
			if last {
				return true
			}
		}
		return false
	})
}

func longest(n int, edge func(i, j int) bool) int {
	level, depth := make([]int, n), 0
	for j := range n {
		level[j] = 1
		for i := range j {
			if level[i] >= level[j] && edge(i, j) {
				level[j] = level[i] + 1
			}
		}
		depth = max(depth, level[j])
	}
	return depth
}

func scratchBytes(g *ir.Graph) int64 { return g.Stats().Bytes.Scratch }

func remarks(rs []*passes.Report) (out string) {
	for _, r := range rs {
		for _, m := range r.Remarks {
			out += fmt.Sprintln(r.Pass, m)
		}
	}
	return out
}
