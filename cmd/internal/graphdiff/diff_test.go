package graphdiff_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/cmd/internal/graphdiff"
	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

const base = `mlxt 1
graph g {
  param $n u32 in [1, 4]
  memory %x input 64 f32[16]
  memory %y output 64 f32[16]
  memory %s scratch 256
  memory %a alias %s + 64 size 64
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)
  kernel @vv_Addfloat32 builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

  #0 @silu (in = %x[0:64], out = %s[0:64]) grid threads [16, 1, 1] of [16, 1, 1]
  #1 @silu (in = %x[0:64], out = %a[0:64]) grid threads [16, 1, 1] of [16, 1, 1]
  barrier
  #2 @vv_Addfloat32 (a = %s[0:64], b = %s[64:128], c = %s[128:192]) grid threads [16, 1, 1] of [16, 1, 1]
  barrier
  commit fence
  #3 copy %s[128:192] -> %y[0:64]
  #4 fill %s[192:256] 0x01
}
`

func parse(t require.TestingT, text string) *ir.Graph {
	m, err := mlxt.Parse(context.Background(), "g", []byte(text))
	require.NoError(t, err)
	return m.Graphs[0]
}

func compare(t require.TestingT, before, after *ir.Graph) *graphdiff.Diff {
	d, err := graphdiff.Graphs(context.Background(), before, after)
	require.NoError(t, err)
	return d
}

func show(d *graphdiff.Diff) string {
	out := d.Summary() + "\n"
	for _, c := range d.Changes {
		out += fmt.Sprintf("%s: %s\n", c.Kind, c.Text)
	}
	return out
}

// Each case replaces some text of the graph.
func TestWords(t *testing.T) {
	const all = "5 commands before, 5 after, "
	for _, k := range []struct {
		name    string
		replace []string
		want    string
	}{
		{"nothing", nil, "equal, 5 commands\n"},
		{"said to stand for itself", []string{"0x01", "0x01 from #4"}, "equal, 5 commands\n"},
		{"param", []string{"[1, 4]", "[1, 5]"}, all + "1 param change\nparam: $n, u32 in [1, 4], is now $n, u32 in [1, 5]\n"},
		{"constraint", []string{"  memory %x", "  require $n <= 3\n  memory %x"}, all + "1 param change\nparam: new constraint $n <= 3\n"},
		{"interface", []string{"%x input 64 f32[16]", "%x input 128 f32[32]"}, all + "2 interface changes\ninterface: input %x: bytes: 64 before, 128 after\ninterface: input %x: shape [16] before, [32] after\n"},
		{"scratch grows", []string{"scratch 256", "scratch 512"}, all + "1 memory change\nmemory: scratch %s: bytes: 256 before, 512 after\n"},
		{"scratch is new", []string{"  memory %a", "  memory %t scratch 8\n  memory %a"}, all + "1 memory change\nmemory: scratch %t, 8 bytes, is new\n"},
		{"alias moves", []string{"%s + 64", "%s + 0"}, all + "1 memory change, 1 view change\nmemory: scratch %a: place: %s + 64 before, %s + 0 after\nview: #1 v_Silufloat32float32: out %a[0:64] before, %a[0:64] after\n"},
		{"dropped", []string{"  #4 fill %s[192:256] 0x01\n", ""}, "5 commands before, 4 after, 1 dropped\ndropped: #4 fill\n"},
		{"added", []string{"0x01\n", "0x01\n  #9 fill %s[192:256] 0x02\n"}, "5 commands before, 6 after, 1 added\nadded: #9 fill\n"},
		{"fused", []string{"  #0 @silu (in = %x[0:64], out = %s[0:64]) grid threads [16, 1, 1] of [16, 1, 1]\n", "", "out = %a[0:64]) grid threads [16, 1, 1] of [16, 1, 1]", "out = %a[0:64]) grid threads [16, 1, 1] of [16, 1, 1] from #0, #1"},
			"5 commands before, 4 after, 2 fused into 1\nfused: #0 v_Silufloat32float32, #1 v_Silufloat32float32 are now #1 by v_Silufloat32float32\n"},
		{"split", []string{"0x01\n", "0x01 from #4\n  #9 fill %s[192:256] 0x02 from #4\n", "#4 fill %s[192:256]", "#4 fill %s[192:200]"},
			"5 commands before, 6 after, 1 added, 1 view change\nadded: #9 fill\nview: #4 fill: destination %s[192:256] before, %s[192:200] after\n"},
		{"a barrier less", []string{"  barrier\n  #2", "  #2"}, all + "1 barrier change\nbarrier: removed before #2 vv_Addfloat32\n"},
		{"a barrier more", []string{"  #1", "  barrier\n  #1"}, all + "1 barrier change\nbarrier: added before #1 v_Silufloat32float32\n"},
		{"marks change places", []string{"  barrier\n  commit fence\n", "  commit fence\n  barrier\n"}, all + "1 barrier change\nbarrier: marks before #3 copy stand in another order\n"},
		{"commit", []string{"fence", "event"}, all + "1 commit change\ncommit: commit before #3 copy: order fence before, event after\n"},
		{"no commit", []string{"  commit fence\n", ""}, all + "1 commit change\ncommit: removed before #3 copy: order fence\n"},
		{"view", []string{"c = %s[128:192]", "c = %s[192:256]"}, all + "1 view change\nview: #2 vv_Addfloat32: c %s[128:192] before, %s[192:256] after\n"},
		{"another name", []string{"out = %a[0:64]", "out = %s[64:128]"}, all + "1 view change\nview: #1 v_Silufloat32float32: out %a[0:64] before, %s[64:128] after, the same bytes\n"},
		{"constant", []string{"0x01", "0x02"}, all + "1 constant change\nconstant: #4 fill: value 0x01 before, 0x02 after\n"},
		{"grid", []string{"[16, 1, 1] of [16, 1, 1]", "[16, 1, 1] of [8, 1, 1]"}, all + "1 command change\ncommand: #0 v_Silufloat32float32: grid threads [16, 1, 1] of [16 1 1] before, threads [16, 1, 1] of [8 1 1] after\n"},
		{"effects", []string{"[16, 1, 1] of [16, 1, 1]\n", "[16, 1, 1] of [16, 1, 1]\n effects complete reads %x[0:64] writes must %s[0:64]\n"}, all + "1 effects change\neffects: #0 v_Silufloat32float32: unknown before, stated after\n"},
		{"label", []string{"[16, 1, 1] of [16, 1, 1]\n", "[16, 1, 1] of [16, 1, 1] label \"hi\"\n"}, all + "1 label change\nlabel: #0 v_Silufloat32float32: label \"\" before, \"hi\" after\n"},
		{"group", []string{"  #4", "  group \"last\"\n  #4", "0x01\n", "0x01\n  end\n"}, all + "2 label changes\nlabel: group \"last\" added before #4 fill\nlabel: end of a group added at the end\n"},
		{"kernel", []string{`builtin "vv_Addfloat32"`, `builtin "vv_Multiplyfloat32"`}, all + "1 command change, 1 kernel change\ncommand: #2 vv_Multiplyfloat32: function vv_Addfloat32 before, vv_Multiplyfloat32 after\nkernel: @vv_Addfloat32: function vv_Addfloat32 before, vv_Multiplyfloat32 after\n"},
	} {
		t.Run(k.name, func(t *testing.T) {
			text := base
			for i := 0; i < len(k.replace); i += 2 {
				require.Contains(t, text, k.replace[i])
				text = strings.Replace(text, k.replace[i], k.replace[i+1], 1)
			}
			if diff := cmp.Diff(k.want, show(compare(t, parse(t, base), parse(t, text)))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestMovedAndBound(t *testing.T) {
	b, a := parse(t, base), parse(t, base)
	// #0 is moved after #1, so the fewest commands that moved are one.
	a.Nodes[0], a.Nodes[1] = a.Nodes[1], a.Nodes[0]
	d := compare(t, b, a)
	require.Len(t, d.Of(graphdiff.Moved), 1)
	require.Len(t, d.Changes, 1)
}

const arguments = `mlxt 1
graph g {
  param $p u32 in [1, 64]
  memory %x input 256 f32[64]
  memory %y output 256 f32[64]
  memory %c argument 64 = values(0: i64 $p, 8: i64 1)
  kernel @k generated "out0[i] = round(f32, in0[i] * 2.0)" args(0 in0: device f32 read, 1 out0: device f32 write)
  kernel @g1_copyfloat32float32 builtin "g1_copyfloat32float32" args(0 src: device f32 read, 1 dst: device f32 write, 3 src_stride: constant i64)

  #0 @g1_copyfloat32float32 (src = %x[0:256], dst = %y[0:256], src_stride = STRIDE) grid threads [64, 1, 1] of [64, 1, 1]
}
`

// A constant that is moved into argument memory is not reported as one that changed.
func TestConstantsMove(t *testing.T) {
	with := func(stride string) *ir.Graph { return parse(t, strings.Replace(arguments, "STRIDE", stride, 1)) }
	at := "#0 g1_copyfloat32float32: src_stride = "
	for _, k := range []struct{ before, after, want string }{
		{"$p", "%c[0:8]", "i64 $p is now kept at %c[0:8]"},
		{"%c[0:8]", "$p", "i64 $p is now inline, was at %c[0:8]"},
		{"1", "%c[8:16]", "0x0100000000000000 is now kept at %c[8:16]"},
		{"2", "%c[8:16]", "0x0200000000000000 before, 0x0100000000000000 after"},
		{"$p", "2*$p", "i64 $p before, i64 2*$p after"},
	} {
		d := compare(t, with(k.before), with(k.after))
		require.Len(t, d.Changes, 1, "%s, %s", k.before, k.after)
		require.Equal(t, graphdiff.Constants, d.Changes[0].Kind)
		require.Equal(t, at+k.want, d.Changes[0].Text)
	}
}

// A diff is empty exactly if the texts of both graphs are equal, whatever is changed in
// one of them.
func TestEqualIsEqualText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := irtest.Module(t)
		if len(m.Graphs) == 0 {
			return
		}
		b := m.Graphs[0]
		a := b.Clone()
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			change(t, a)
		}
		// That a command names its own ID in From is no difference, as documented.
		for _, g := range []*ir.Graph{a, b} {
			for _, n := range g.Nodes {
				if c, ok := n.(ir.Command); ok {
					if d, ok := n.(*ir.Dispatch); ok && d.From == nil {
						d.From = []ir.ID{c.Num()}
					}
				}
			}
		}
		text := func(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }
		d := compare(t, b, a)
		if same := text(b) == text(a); same != d.Equal() {
			t.Fatalf("texts equal: %v, diff: %s\n%s\n%s", same, show(d), text(b), text(a))
		}
	})
}

// change changes one thing; the result need not be valid.
func change(t *rapid.T, g *ir.Graph) {
	n := len(g.Nodes)
	at := func() int { return rapid.IntRange(0, n-1).Draw(t, "node") }
	mem := func() *ir.Memory {
		return &g.Memories[rapid.IntRange(0, len(g.Memories)-1).Draw(t, "memory")]
	}
	what := rapid.IntRange(0, 8).Draw(t, "what")
	if n == 0 && what < 6 || len(g.Memories) == 0 && what >= 6 {
		return
	}
	switch what {
	case 0:
		i := at()
		g.Nodes = append(g.Nodes[:i], g.Nodes[i+1:]...)
	case 1:
		i, j := at(), at()
		g.Nodes[i], g.Nodes[j] = g.Nodes[j], g.Nodes[i]
	case 2:
		i := at()
		g.Nodes = append(g.Nodes[:i:i], append([]ir.Node{&ir.Barrier{}}, g.Nodes[i:]...)...)
	case 3:
		if d, ok := g.Nodes[at()].(*ir.Dispatch); ok && len(d.Bindings) > 0 {
			b := &d.Bindings[rapid.IntRange(0, len(d.Bindings)-1).Draw(t, "binding")]
			switch b.Kind {
			case ir.BindView:
				b.View.Off = b.View.Off.AddConst(4)
			case ir.BindBytes:
				b.Bytes[0]++
			default:
				b.Expr = b.Expr.AddConst(1)
			}
		}
	case 4:
		if d, ok := g.Nodes[at()].(*ir.Dispatch); ok {
			if d.Effects == nil || len(d.Effects.Writes) == 0 {
				d.Grid[0].Num = d.Grid[0].Num.AddConst(1)
			} else {
				d.Effects.Writes[0].Must = !d.Effects.Writes[0].Must
			}
		}
	case 5:
		if c, ok := g.Nodes[at()].(*ir.Commit); ok {
			c.Order = (c.Order + 1) % 3
		}
	case 6:
		mem().Size++
	case 7:
		m := mem()
		m.Storage = 1 - m.Storage
	case 8:
		mem().Align = 512
	}
}

// A million commands take seconds, not hours.
func BenchmarkDiff(b *testing.B) {
	for _, n := range []int{1e3, 1e5} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := parse(b, base)
			x := g.Nodes[0].(*ir.Dispatch)
			g.Nodes = g.Nodes[:0]
			for i := range n {
				d := *x
				d.ID = ir.ID(i)
				g.Nodes = append(g.Nodes, &d, &ir.Barrier{})
			}
			a := g.Clone()
			for i := 0; i+2 < len(a.Nodes); i += 8 {
				a.Nodes[i], a.Nodes[i+2] = a.Nodes[i+2], a.Nodes[i]
			}
			for b.Loop() {
				compare(b, g, a)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/command")
		})
	}
}
