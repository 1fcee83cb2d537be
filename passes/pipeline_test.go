package passes_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/record"
)

func TestParsePipeline(t *testing.T) {
	for _, k := range []struct{ in, want string }{
		{"", "[annotate fuse dce rename schedule barriers plan]"},
		{"none", "[]"},
		{"barriers", "[barriers]"},
		{" annotate , barriers ", "[annotate barriers]"},
	} {
		p, err := passes.ParsePipeline(k.in)
		require.NoError(t, err, k.in)
		names := []string{}
		for _, s := range p {
			names = append(names, s.String())
		}
		require.Equal(t, k.want, "["+join(names)+"]", k.in)
	}
	var all []string
	for _, p := range passes.All() {
		all = append(all, p.Name)
	}
	there := "(there are " + strings.Join(all, ", ") + ")"
	for _, k := range []struct{ in, want string }{
		{"fusee", `there is no pass "fusee" ` + there},
		{"annotate,", `there is no pass "" ` + there},
		{"barriers,annotate", "pass annotate must run before barriers: barriers follow from effects: without them every dispatch conflicts with every other"},
		{"barriers{x=1}", `pass barriers has no option "x"`},
		{"barriers{x", "pass barriers: { without }"},
		{"barriers{x}", `pass barriers: want option=value, found "x"`},
	} {
		_, err := passes.ParsePipeline(k.in)
		require.EqualError(t, err, k.want, k.in)
	}
}

func join(s []string) string {
	out := ""
	for i, x := range s {
		if i > 0 {
			out += " "
		}
		out += x
	}
	return out
}

// annotateAndBarriers is the pipeline that changes no command.
func annotateAndBarriers(t require.TestingT) passes.Pipeline {
	p, err := passes.ParsePipeline("annotate,barriers")
	require.NoError(t, err)
	return p
}

// small records a norm, its weight and a residual.
func small(t *testing.T) *ir.Graph {
	r := record.New("small")
	x := r.Input("x", ir.F32, 2, 64)
	w := r.Weight("w", ir.NewBlob(make([]byte, 256)), ir.F32, 64)
	y := r.Output("y", ir.F32, 2, 64)
	r.Add(r.Mul(r.RMSNorm(x, 1e-5), w), x, record.Into(y))
	g, err := r.Graph()
	require.NoError(t, err)
	return g
}

func TestAnnotateGivesExactEffects(t *testing.T) {
	g := small(t)
	require.Equal(t, 3, g.Stats().Unannotated)
	rs, err := passes.Run(context.Background(), g, annotateAndBarriers(t), passes.Options{})
	require.NoError(t, err)
	require.Zero(t, g.Stats().Unannotated)
	require.Equal(t, 3, rs[0].Changed)
	norm := g.Nodes[0].(*ir.Dispatch)
	require.Equal(t, "%x[0:512]", g.FormatRegion(norm.Effects.Reads[0]))
	require.Equal(t, "%one[0:4]", g.FormatRegion(norm.Effects.Reads[1]), "stride 0 reads one element")
	require.True(t, norm.Effects.Writes[0].Must)
	require.Equal(t, []ir.ID{0}, norm.From)
}

// A recorder's declaration that disagrees with the kernel's is replaced and
// reported.
func TestAnnotateReportsALyingRecorder(t *testing.T) {
	g := small(t)
	d := g.Nodes[0].(*ir.Dispatch)
	d.Effects = &ir.Effects{Complete: true, Reads: []ir.Region{ir.ViewOf(0, 0, 4).Contiguous()}}
	rs, err := passes.Run(context.Background(), g, annotateAndBarriers(t), passes.Options{})
	require.NoError(t, err)
	require.Len(t, rs[0].Remarks, 1)
	require.Equal(t, "#0 rms_norm: done: the recorder's effects differ from those of the declaration, which replace them", rs[0].Remarks[0].String())
	require.Len(t, d.Effects.Reads, 2)
}

// A dispatch that no declaration describes keeps unknown effects, gets a remark, and has barriers
// before and after it.
func TestUnknownKernelStaysUnknown(t *testing.T) {
	g := small(t)
	g.Kernels[g.Nodes[0].(*ir.Dispatch).Kernel].Function = "nobody_knows"
	rs, err := passes.Run(context.Background(), g, annotateAndBarriers(t), passes.Options{})
	require.NoError(t, err)
	require.Equal(t, `#0 rms_norm: not done: #0: the builtin library has no function "nobody_knows"`, rs[0].Remarks[0].String())
	require.Equal(t, 1, g.Stats().Unannotated)
}

func TestAfterSeesEveryPass(t *testing.T) {
	var seen []string
	_, err := passes.Run(context.Background(), small(t), passes.DefaultPipeline(), passes.Options{After: func(s passes.Step, g *ir.Graph) error {
		seen = append(seen, s.String())
		return nil
	}})
	require.NoError(t, err)
	var want []string
	for _, p := range passes.All() {
		if p.Default {
			want = append(want, p.Name)
		}
	}
	require.Equal(t, want, seen)
}

func TestRunRefusesABrokenGraph(t *testing.T) {
	g := small(t)
	g.Nodes[0].(*ir.Dispatch).Kernel = 99
	_, err := passes.Run(context.Background(), g, passes.DefaultPipeline(), passes.Options{})
	require.ErrorContains(t, err, "runs kernel 99 of 3")
}
