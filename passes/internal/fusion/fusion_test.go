package fusion_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/passes/internal/fusion"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// annotated parses a graph whose rows have 64 elements, and stores the effects of its dispatches.
func annotated(t *testing.T, body string) *ir.Graph {
	t.Helper()
	m, err := mlxt.Parse(context.Background(), "test", []byte(`mlxt 1

graph g {
  memory %x input 256 f32[64]
  memory %s weight 256 f32[64] = random seed 115
  memory %y output 256 f32[64]
  memory %z output 256 f32[64]
  memory %one weight 4 f32[1] = fill 0x3f800000
  memory %t scratch 256 f32[64]
  memory %u scratch 256 f32[64]
  kernel @rms builtin "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @mul builtin "vv_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
`+body+"}\n"))
	require.NoError(t, err)
	g := m.Graphs[0]
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			d.Effects, err = msl.Describe(g, d)
			require.NoError(t, err)
		}
	}
	return g
}

// list formats the nodes of g: IDs of commands, | for a barrier, c for a commit.
func list(g *ir.Graph) (s string) {
	for _, n := range g.Nodes {
		switch n.(type) {
		case *ir.Barrier:
			s += "| "
		case *ir.Commit:
			s += "c "
		default:
			if c, ok := n.(ir.Command); ok {
				s += c.Num().String() + " "
			}
		}
	}
	return s
}

const (
	norm  = "  #0 @rms (x = %x[0:256], w = %one[0:4], out = %t[0:256], eps = 1e-05, axis_size = 64, w_stride = 0) grid threads [32, 1, 1] of [32, 1, 1]\n"
	other = "  #1 @add (a = %x[0:256], b = %x[0:256], c = %u[0:256]) grid threads [64, 1, 1] of [64, 1, 1]\n"
	scale = "  #2 @mul (a = %t[0:256], b = %s[0:256], c = %y[0:256]) grid threads [64, 1, 1] of [64, 1, 1]\n"
	late  = "  #3 @add (a = %u[0:256], b = %u[0:256], c = %z[0:256]) grid threads [64, 1, 1] of [64, 1, 1]\n"
)

// A fused dispatch stands where it may, and keeps the barriers around it; where a member moved over a barrier,
// another barrier is added on the other side.
func TestWhereAFusedDispatchStands(t *testing.T) {
	for _, k := range []struct{ name, body, want string }{
		{"in the place of the last member", norm + other + "barrier\n" + scale + late, "#1 | #2 | #3 "},
		{"without a barrier between, none is added", norm + scale + other, "#2 #1 "},
		{"of barriers with nothing between, one is left", other + "barrier\n" + norm + "barrier\n" + scale + "barrier\n" + late, "#1 | #2 | #3 "},
		{"nothing is fused over a commit", norm + other + "commit event\n" + scale + late, "#0 #1 c #2 #3 "},
		{"nor over one that orders nothing", norm + other + "commit none\n" + scale + late, "#0 #1 c #2 #3 "},
	} {
		t.Run(k.name, func(t *testing.T) {
			g := annotated(t, k.body)
			fusion.Run(context.Background(), g, fusion.Options{})
			require.Equal(t, k.want, list(g))
			require.NoError(t, g.Check())
		})
	}
}

// A command of unknown effects between two commands keeps them from being fused; a command that touches none of
// their bytes does not.
func TestNothingIsFusedOverAPillar(t *testing.T) {
	for _, known := range []bool{true, false} {
		g := annotated(t, norm+other+scale+late)
		if !known {
			g.Nodes[1].(*ir.Dispatch).Effects = nil
		}
		fusion.Run(context.Background(), g, fusion.Options{})
		require.Equal(t, map[bool]string{true: "#1 #2 #3 ", false: "#0 #1 #2 #3 "}[known], list(g))
	}
}

// Stored effects that are narrower than the kernel's declared ones are not trusted: the dispatch is not fused.
func TestNarrowedEffectsAreNotBelieved(t *testing.T) {
	g := annotated(t, norm+scale)
	d := g.Nodes[0].(*ir.Dispatch)
	d.Effects.Reads = d.Effects.Reads[:1]
	fusion.Run(context.Background(), g, fusion.Options{})
	require.Equal(t, "#0 #2 ", list(g))
}

// A fusion whose modelled cost exceeds what it saves is not done.
func TestOnlyWhatGainsIsFused(t *testing.T) {
	for _, k := range []struct {
		model cost.Model
		want  string
	}{
		{cost.Model{}, "| #2 | "},
		{cost.Model{Launch: -10e-6, Bandwidth: 1e12, Rate: 1e12, Cores: 1}, "#0 | #2 "},
	} {
		g := annotated(t, norm+"barrier\n"+scale)
		fusion.Run(context.Background(), g, fusion.Options{Model: k.model})
		require.Equal(t, k.want, list(g))
	}
}

// A fused dispatch names the commands that it stands for, and uses a kernel of the graph if the graph has the one
// it needs.
func TestProvenanceAndKernelOfAFusedDispatch(t *testing.T) {
	g := annotated(t, norm+"barrier\n"+scale)
	remarks, _ := fusion.Run(context.Background(), g, fusion.Options{})
	d := g.Nodes[len(g.Nodes)-2].(*ir.Dispatch)
	require.Equal(t, []ir.ID{0, 2}, d.From)
	require.Equal(t, "rms", g.Kernels[d.Kernel].Name)
	require.Len(t, g.Kernels, 3)
	require.Len(t, remarks, 1)
	require.Equal(t, "fused #0 #2 into rmsfloat32", remarks[0].Text)
	require.True(t, remarks[0].Done)
	want, err := msl.Describe(g, d)
	require.NoError(t, err)
	require.True(t, want.Equal(d.Effects))
}

// Updating the data flow after a fusion gives the same flow as analysing the new graph.
func TestFlowAfterFusion(t *testing.T) {
	fused := 0
	for _, name := range recorded.Names(t) {
		g := recorded.Graph(t, name)
		annotate, err := passes.ParsePipeline("annotate")
		require.NoError(t, err)
		_, err = passes.Run(context.Background(), g, annotate, passes.Options{})
		require.NoError(t, err)
		remarks, flow := fusion.Run(context.Background(), g, fusion.Options{})
		fused += len(remarks)
		anew := dataflow.Build(context.Background(), g)
		require.Equal(t, anew.Commands, flow.Commands, name)
		for i := range anew.Commands {
			require.Equal(t, anew.Live(i), flow.Live(i), "%s %d", name, i)
			require.Equal(t, anew.Writes(i), flow.Writes(i), "%s %d", name, i)
			us, vs := slices.Clone(anew.Reads(i)), slices.Clone(flow.Reads(i))
			for k := range us {
				us[k].Certain, vs[k].Certain = false, false
				if len(us[k].Sources) == 0 {
					us[k].Sources, vs[k].Sources = nil, nil
				}
			}
			require.Equal(t, us, vs, "%s %d", name, i)
		}
	}
	require.Positive(t, fused)
}

// A kernel that does not round an intermediate is used only if rewrite round is allowed; otherwise a remark says so.
func TestRoundingOfAnIntermediate(t *testing.T) {
	source, err := decl.Parse("fused.metal", `
// @kernel   mul_addfloat16
// @arg 0 a  device f16[n] read
// @arg 1 b  device f16[n] read
// @arg 2 c  device f16[n] read
// @arg 3 y  device f16[n] write
// @threads  n, 1, 1
// @group    _, _, _
// @term     y[i] = round(f16, a[i] * b[i] + c[i])
`)
	ds := source.Decls
	require.NoError(t, err)
	lib := isel.NewLibrary(append(ds, msl.Declarations("vv_Multiplyfloat16")[0], msl.Declarations("vv_Addfloat16")[0])...)
	const head = `mlxt 1

graph g {
  memory %a input 128 f16[64]
  memory %b input 128 f16[64]
  memory %c input 128 f16[64]
  memory %y output 128 f16[64]
  memory %t scratch 128 f16[64]
  kernel @mul builtin "vv_Multiplyfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)
  kernel @add builtin "vv_Addfloat16" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)

  #0 @mul (a = %a[0:128], b = %b[0:128], c = %t[0:128]) grid threads [64, 1, 1] of [64, 1, 1]
`
	const sum = "  #1 @add (a = %t[0:128], b = %c[0:128], c = %y[0:128]) grid threads [64, 1, 1] of [64, 1, 1]\n"
	for _, k := range []struct {
		name, body string
		o          fusion.Options
		want, text string
	}{
		{"not allowed", sum, fusion.Options{Library: lib}, "#0 #1 ", "not fused with #0: mul_addfloat16 does not fit: it leaves out the rounding of an intermediate, which needs --allow=round"},
		{"allowed", sum, fusion.Options{Library: lib, Unrounded: true}, "#1 ", "fused #0 #1 into mul_addfloat16, which leaves out 1 rounding of an intermediate (rewrite round)"},
		{"another computation", strings.ReplaceAll(sum, "@add", "@mul"), fusion.Options{Library: lib, Unrounded: true}, "#0 #1 ", ""},
	} {
		m, err := mlxt.Parse(context.Background(), "test", []byte(head+k.body+"}\n"))
		require.NoError(t, err)
		g := m.Graphs[0]
		for _, n := range g.Nodes {
			d := n.(*ir.Dispatch)
			d.Effects, err = msl.Describe(g, d)
			require.NoError(t, err)
		}
		remarks, _ := fusion.Run(context.Background(), g, k.o)
		require.Equal(t, k.want, list(g), k.name)
		if k.text == "" {
			require.Empty(t, remarks, k.name)
			continue
		}
		require.Len(t, remarks, 1, k.name)
		require.Equal(t, k.text, remarks[0].Text, k.name)
	}
}

// If bytes are written as elements of one type and read as another, the writer's term is not
// substituted for the read: the reader is not fused with the writer.
func TestReadAsAnotherType(t *testing.T) {
	const (
		write = "  #0 @half (a = %x[0:128], b = %x[0:128], c = %t[0:128]) grid threads [64, 1, 1] of [64, 1, 1]\n  barrier\n"
		read  = "  #1 @add (a = %t[0:128], b = %s[0:128], c = %u[0:128]) grid threads [32, 1, 1] of [32, 1, 1]\n  barrier\n"
		use   = "  #2 @mul (a = %u[0:128], b = %s[0:128], c = %y[0:128]) grid threads [32, 1, 1] of [32, 1, 1]\n"
		half  = "  kernel @half builtin \"vv_Multiplyfloat16\" args(0 a: device f16 read, 1 b: device f16 read, 2 c: device f16 write)\n"
	)
	for _, k := range []struct{ body, want string }{{half + write + read + use, "#0 | #2 | "}, {half + write + read, "#0 | #1 | "}} {
		g := annotated(t, k.body)
		remarks, _ := fusion.Run(context.Background(), g, fusion.Options{Generate: true})
		require.Equal(t, k.want, list(g))
		if k.want == "#0 | #1 | " {
			require.Empty(t, remarks)
		}
	}
}
