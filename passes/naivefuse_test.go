package passes_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

// naiveFuse is a fusion as one may write it first: a norm, one or more barriers and a
// multiplication that binds the norm's output become one dispatch in the norm's place, and
// the barriers go. It compares buffers, not bytes, looks for no other reader of the norm's
// output, and chooses the fused kernel by the norm's kernel alone.
func naiveFuse(g *ir.Graph) (fused int) {
	var out []ir.Node
	for i := 0; i < len(g.Nodes); {
		j := i + 1
		for j < len(g.Nodes) {
			if _, ok := g.Nodes[j].(*ir.Barrier); !ok {
				break
			}
			j++
		}
		d := naivelyFused(g, g.Nodes[i], j-i-1, at(g.Nodes, j))
		if d == nil {
			out = append(out, g.Nodes[i])
			i++
			continue
		}
		out = append(out, d)
		fused++
		i = j + 1
	}
	g.Nodes = out
	return fused
}

func at(nodes []ir.Node, i int) ir.Node {
	if i < len(nodes) {
		return nodes[i]
	}
	return nil
}

func naivelyFused(g *ir.Graph, a ir.Node, barriers int, b ir.Node) *ir.Dispatch {
	norm, ok1 := a.(*ir.Dispatch)
	mul, ok2 := b.(*ir.Dispatch)
	if !ok1 || !ok2 || barriers == 0 || norm.Op != "rms_norm" || mul.Op != "elementwise_mul" {
		return nil
	}
	buffer := func(d *ir.Dispatch, slot uint8) ir.MemID {
		x := d.Binding(slot)
		if x == nil || x.Kind != ir.BindView {
			return ir.NoMem
		}
		root, _ := g.Root(x.View.Mem)
		return root
	}
	t := buffer(norm, 2)
	if t == ir.NoMem || t != buffer(mul, 0) && t != buffer(mul, 1) {
		return nil
	}
	slot := uint8(0)
	if t == buffer(mul, 0) {
		slot = 1
	}
	scale, result := mul.Binding(slot), mul.Binding(2)
	if norm.Binding(3) == nil || scale == nil || result == nil {
		return nil
	}
	d := *norm
	d.ID, d.From, d.Op = mul.ID, []ir.ID{norm.ID, mul.ID}, "rms_norm_mul"
	d.Bindings = slices.Clone(norm.Bindings)
	switch k := g.Kernels[norm.Kernel]; k.Function {
	case "rmsfloat32": // its weight is ones in the recordings: the scale takes its place
		d.Binding(1).View = scale.View
		if x := d.Binding(5); x != nil {
			x.Bytes = []byte{1, 0, 0, 0}
		}
	case "rms_norm_f32", "rms_norm_f16", "rms_norm_bf16":
		k.Function = strings.Replace(k.Function, "norm", "norm_mul", 1)
		k.Name += "_mul"
		g.Kernels = append(g.Kernels, k)
		d.Kernel = ir.KernelID(len(g.Kernels) - 1)
	default:
		return nil
	}
	d.Binding(2).View = result.View
	d.Effects = nil
	if norm.Effects != nil && mul.Effects != nil {
		d.Effects = &ir.Effects{
			Complete: norm.Effects.Complete && mul.Effects.Complete,
			Reads:    append(slices.Clone(norm.Effects.Reads), mul.Effects.Reads...),
			Writes:   mul.Effects.Writes,
		}
	}
	return &d
}

// The graphs about mistakes of fusion notice those of naiveFuse: with it in the place of
// the pass fuse, in the same pipelines, a line of each no longer holds.
func TestDefectsNoticeNaiveFusion(t *testing.T) {
	const fuse = "annotate,fuse{generate=false}"
	broken := map[string]bool{}
	naive := func(t *testing.T, d defect, pipeline string) outcome {
		o := transform(t, d.graph, "annotate")
		naiveFuse(o.graph)
		rest := strings.TrimPrefix(strings.TrimPrefix(pipeline, fuse), ",")
		if rest == "" {
			return o
		}
		p, err := passes.ParsePipeline(rest)
		require.NoError(t, err)
		if _, err := passes.Run(context.Background(), o.graph, p, passes.Options{}); err != nil {
			broken[d.name] = true // not even the form of the graph is right
			return transform(t, d.graph, pipeline)
		}
		return o
	}
	for _, d := range defects(t) {
		for _, e := range d.expects {
			if e.word.check == nil {
				continue
			}
			for _, p := range e.word.pipelines(e) {
				if strings.HasPrefix(p, fuse) && (!fusesAlone(p) || d.ordered()) {
					require.NoError(t, e.word.check(e, transform(t, d.graph, p)), "ours: %s: %s", d.name, e.line)
					if e.word.check(e, naive(t, d, p)) != nil {
						broken[d.name] = true
					}
				}
			}
		}
	}
	t.Logf("noticed by %v", slices.Sorted(maps.Keys(broken)))
	for _, name := range []string{"F1", "F2", "F3", "F4", "F5", "F7", "F9a", "F9b", "F9c", "F12"} {
		require.True(t, broken[name], "%s does not notice the fusion that it is about", name)
	}
	for _, name := range []string{"F9ok", "F1ok"} {
		require.False(t, broken[name], name)
	}
}
