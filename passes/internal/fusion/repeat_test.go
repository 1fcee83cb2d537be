package fusion_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
			if d, ok := x.(*ir.Dispatch); ok {
				d.ID += ir.ID(1000 * l)
				for k := range d.Bindings {
					if v := &d.Bindings[k].View; d.Bindings[k].Kind == ir.BindView {
						v.Off = v.Off.AddConst(sizes[v.Mem] * int64(l%parts))
					}
				}
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
			if d, ok := out.Nodes[i].(*ir.Dispatch); ok && len(d.Bindings) > 0 && d.Bindings[0].Kind == ir.BindView {
				v := &d.Bindings[0].View
				v.Off = v.Off.AddConst(256 * rapid.Int64Range(-1, 1).Draw(t, "by"))
			}
		}
	}
	return out
}

// Reusing what was found for similar commands gives the same result as searching around each command.
func TestRepeats(t *testing.T) {
	gs := recorded.Graphs(t)
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
