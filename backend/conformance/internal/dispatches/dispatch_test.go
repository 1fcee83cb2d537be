package dispatches

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// sampled are the functions that a run takes.
func sampled(t *testing.T) []string {
	return sample.Kernels(t, t.Name(), msl.Functions(), func(f string) string { return msl.Declarations(f)[0].Family() })
}

// TestRandomDispatchesCover: the random dispatches have every feature that
// dispatches can have.
func TestRandomDispatchesCover(t *testing.T) {
	seen := map[string]int{}
	count := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	const each = 40
	total := 0
	for _, f := range sampled(t) {
		for i, d := range msl.Declarations(f) {
			for k := range each {
				x, err := random(d, rand.New(rand.NewPCG(SeedOf(f), uint64(100*i+k))), k%2 == 1)
				require.NoError(t, err)
				total++
				n := x.node
				count("threads", n.GridKind == ir.Threads)
				count("threadgroups", n.GridKind == ir.Threadgroups)
				count("threadgroups of a kernel of threads", n.GridKind == ir.Threadgroups && d.Threads != nil)
				count("threads of a kernel of threadgroups", n.GridKind == ir.Threads && d.Groups != nil)
				count("params", len(x.graph.Params) > 0)
				count("two params", len(x.graph.Params) > 1)
				count("params at several values", len(x.params) > 1)
				count("bound inline", len(x.inline) > 0)
				count("shared memory", len(x.graph.Memories) == 1)
				for _, b := range n.Bindings {
					count("scalar of params", b.Kind == ir.BindScalar)
					count("f32 param", b.Kind == ir.BindScalar && b.Type == ir.F32)
					count("offset of params", b.Kind == ir.BindView && !b.View.Off.IsConst())
					count("slack", b.Kind == ir.BindView && b.View.Len.Const%4 != 0)
				}
				for _, e := range n.Grid {
					count("grid of params", !e.IsConst())
					count("ceil grid of params", !e.IsConst() && e.Div > 1)
					count("empty grid", e.IsConst() && e.Num.Const == 0)
				}
				for i, a := range d.Args {
					if a.Kind != ir.DeviceArg || a.Mode == decl.Unused {
						continue
					}
					for j, s := range x.in.Strides[i] {
						several := !x.in.Shapes[i][j].IsConst() || x.in.Shapes[i][j].Const > 1
						count("stride 0", s == 0 && several)
						count("gaps", a.Strides != nil && j+1 == len(x.in.Strides[i]) && s > 1 && several)
						count("shape of params", !x.in.Shapes[i][j].IsConst())
						count("long", x.in.Shapes[i][j].Const > 1000)
					}
					for j := range i {
						if b := d.Args[j]; a.Mode == decl.Write && b.Kind == ir.DeviceArg && b.Mode == decl.Read && !x.inline[j] {
							count("in place", x.in.Views[i].Equal(x.in.Views[j]))
						}
					}
				}
			}
		}
	}
	for _, what := range []string{
		"threads", "threadgroups", "threadgroups of a kernel of threads", "threads of a kernel of threadgroups", "params", "two params", "params at several values",
		"bound inline", "shared memory", "scalar of params", "f32 param", "offset of params", "slack", "grid of params", "ceil grid of params", "empty grid",
		"stride 0", "gaps", "shape of params", "long", "in place",
	} {
		assert.Greater(t, seen[what], total/200, "%s, in %d dispatches", what, total)
	}
}

// TestRandomIsDeterministic: the same seed makes the same dispatch.
func TestRandomIsDeterministic(t *testing.T) {
	for _, f := range sampled(t) {
		var first string
		for range 2 {
			x, err := random(msl.Declarations(f)[0], rand.New(rand.NewPCG(SeedOf(f), 1)), false)
			require.NoError(t, err)
			if first == "" {
				first = x.String()
			}
			assert.Equal(t, first, x.String())
		}
	}
}

// TestElements: Element decodes elements of every type, also those that begin within a byte.
func TestElements(t *testing.T) {
	raw := []byte{0x21, 0x43, 0x65, 0x87, 0xff, 0xff, 0x80, 0x3f}
	for _, c := range []struct {
		t    ir.DType
		i    int64
		want float64
	}{
		{ir.U4, 0, 1}, {ir.U4, 1, 2}, {ir.U4, 7, 8}, {ir.U2, 0, 1}, {ir.U2, 2, 2}, {ir.U3, 0, 1}, {ir.U3, 2, 4}, {ir.U5, 1, 25}, {ir.U6, 1, 12}, {ir.U8, 2, 0x65},
		{ir.I8, 3, -121}, {ir.U16, 1, 0x8765}, {ir.I16, 2, -1}, {ir.U32, 0, 0x87654321}, {ir.I32, 1, 0x3f80ffff}, {ir.BF16, 3, 1}, {ir.F16, 3, 1.875},
	} {
		v, _ := Element(raw, c.t, c.i)
		if !c.t.Float() {
			assert.Equal(t, int64(c.want), v.I, "%s %d", c.t, c.i)
		}
		assert.Equal(t, c.want, v.F, "%s %d", c.t, c.i)
	}
	v, bits := Element([]byte{0, 0, 0xc0, 0x7f}, ir.F32, 0)
	assert.True(t, math.IsNaN(v.F))
	assert.Equal(t, uint64(0x7fc00000), bits)
}
