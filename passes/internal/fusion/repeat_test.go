package fusion_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/passes/internal/fusion"
)

// repeated returns a graph that repeats g as several layers, some in another part of the scratch memory
// and some with small changes.
func repeated(t *rapid.T, g *ir.Graph) *ir.Graph {
	out := g.Clone()
	out.Nodes = nil
	layers := rapid.IntRange(1, 8).Draw(t, "layers")
	parts := rapid.IntRange(1, 3).Draw(t, "parts")
	sizes := make([]int64, len(g.Memories))
	for i := range out.Memories {
		if m := &out.Memories[i]; m.Kind == ir.Scratch && m.Alias == ir.NoMem {
			sizes[i] = m.Size
			m.Size *= int64(parts)
		}
	}
	for l := range layers {
		for _, x := range g.Clone().Nodes {
			move := func(v *ir.View) { v.Off = v.Off.AddConst(sizes[v.Mem] * int64(l%parts)) }
			switch n := x.(type) {
			case *ir.Dispatch:
				n.ID += ir.ID(1000 * l)
				for k := range n.Bindings {
					if n.Bindings[k].Kind == ir.BindView {
						move(&n.Bindings[k].View)
					}
				}
			case *ir.Copy:
				n.ID += ir.ID(1000 * l)
				move(&n.Src)
				move(&n.Dst)
			case *ir.Fill:
				n.ID += ir.ID(1000 * l)
				move(&n.Dst)
			}
			out.Nodes = append(out.Nodes, x)
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "defects") {
		i := rapid.IntRange(1, len(out.Nodes)-1).Draw(t, "at")
		switch rapid.IntRange(0, 4).Draw(t, "defect") {
		case 0:
			out.Nodes = slices.Insert(out.Nodes, i, ir.Node(&ir.Barrier{}))
		case 1:
			out.Nodes = slices.Insert(out.Nodes, i, ir.Node(&ir.Commit{}))
		case 2:
			out.Nodes[i], out.Nodes[i-1] = out.Nodes[i-1], out.Nodes[i]
		case 3:
			if len(out.Nodes) > 2 {
				out.Nodes = slices.Delete(out.Nodes, i, i+1)
			}
		case 4:
			by := 256 * rapid.Int64Range(-1, 1).Draw(t, "by")
			switch n := out.Nodes[i].(type) {
			case *ir.Dispatch:
				if len(n.Bindings) > 0 && n.Bindings[0].Kind == ir.BindView {
					n.Bindings[0].View.Off = n.Bindings[0].View.Off.AddConst(by)
				}
			case *ir.Copy:
				n.Src.Off = n.Src.Off.AddConst(by)
			}
		}
	}
	return out
}

// copying returns a graph in which copies of several lengths and types stand among kernels.
func copying(t *testing.T) *ir.Graph {
	m, err := mlxt.Parse(context.Background(), "copying.mlxt", []byte(`mlxt 1

graph copying {
  param $n u32 in [1, 4]
  memory %x input 1024
  memory %y output 1024
  memory %s scratch 4096 align 256
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @half builtin "v_copyfloat32float16" args(0 src: device f32 read, 1 dst: device f16 write)

  #0 copy %x[0:1024] -> %s[0:1024]
  #1 @silu (in = %s[0:1024], out = %s[1024:2048]) grid threads [256, 1, 1] of [256, 1, 1]
  barrier
  #2 copy %s[1024:2048] -> %s[0:1024]
  barrier
  #3 copy %s[0:1024] -> %s[2048:3072]
  #4 @silu (in = %s[2048:2560], out = %s[1024:1536]) grid threads [128, 1, 1] of [128, 1, 1]
  #5 copy %s[1024:1536] -> %s[3072:3584]
  #6 @add (a = %s[3072:3584], b = %s[1024:1536], c = %s[0:512]) grid threads [128, 1, 1] of [128, 1, 1]
  #7 @half (src = %s[0:512], dst = %s[512:768]) grid threads [128, 1, 1] of [128, 1, 1]
  #8 copy %s[512:768] -> %s[2048:2304]
  #9 copy %s[2048:2304] -> %y[768:1024]
  #10 copy %s[0:128 * $n] -> %s[2560:2560 + 128 * $n]
  #11 copy %s[2560:2560 + 128 * $n] -> %y[0:128 * $n]
  #12 fill %s[0:256] 0x00
  #13 copy %s[0:256] -> %y[512:768]
}
`))
	require.NoError(t, err)
	return m.Graphs[0]
}

// Reusing what was found for similar commands gives the same result as searching around each command.
func TestRepeats(t *testing.T) {
	gs := append(recorded.Graphs(t), copying(t))
	annotate, err := passes.ParsePipeline("annotate")
	require.NoError(t, err)
	fused := 0
	rapid.Check(t, func(t *rapid.T) {
		g := repeated(t, rapid.SampledFrom(gs).Draw(t, "graph"))
		if g.Check() != nil {
			return
		}
		if _, err := passes.Run(context.Background(), g, annotate, passes.Options{}); err != nil {
			return
		}
		o := fusion.Options{Generate: rapid.Bool().Draw(t, "generate")}
		run := func(o fusion.Options) (texts []string, _ string) {
			h := g.Clone()
			remarks, _ := fusion.Run(context.Background(), h, o)
			for _, m := range remarks {
				texts = append(texts, m.Text)
			}
			return texts, mlxt.Format(&ir.Module{Graphs: []*ir.Graph{h}})
		}
		remarks, text := run(o)
		wantRemarks, want := run(fusion.Anew(o))
		require.Equal(t, want, text)
		require.Equal(t, wantRemarks, remarks)
		fused += len(remarks)
	})
	require.Positive(t, fused)
}

// Chains of elementwise commands through two buffers, whose views begin anywhere: nearly all commands are wired alike,
// and where views overlap, a group that could be fused elsewhere cannot.
func TestRepeatsWithViewsAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := benchgraphs.Anywhere(rapid.IntRange(20, 120).Draw(t, "commands"), rapid.Int64Range(1, 1<<40).Draw(t, "seed"))
		run := func(o fusion.Options) string {
			h := g.Clone()
			fusion.Run(context.Background(), h, o)
			return format(h)
		}
		require.Equal(t, run(fusion.Anew(fusion.Options{Generate: true})), run(fusion.Options{Generate: true}))
	})
}
