package isel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/isel"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl/decl"
)

// parse reads the body of a graph.
func parse(t *testing.T, body string) *ir.Graph {
	t.Helper()
	m, err := mlxt.Parse("test", []byte("mlxt 1\n\ngraph g {\n"+body+"\n}\n"))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m.Graphs[0]
}

// library declares kernels in the language of docs/kernels.md.
func library(t *testing.T, src string) *isel.Library {
	t.Helper()
	ds, err := decl.Parse("test.metal", src)
	require.NoError(t, err)
	return isel.NewLibrary(ds...)
}

// group takes all commands of g: a read of exactly what an earlier one wrote
// last takes its value there; results that are outputs or states are kept.
func group(t *testing.T, lib *isel.Library, g *ir.Graph) *isel.Group {
	t.Helper()
	gr := &isel.Group{Graph: g, Source: map[isel.Operand]isel.Operand{}}
	region := func(o isel.Operand) ir.Region {
		r, err := gr.Members[o.Member].Region(o.Arg)
		require.NoError(t, err)
		root, off := g.Root(r.Mem)
		r.Mem, r.Off = root, r.Off.AddConst(off)
		return r
	}
	var writes []isel.Operand
	for _, n := range g.Nodes {
		var in *decl.Instance
		var err error
		switch n := n.(type) {
		case *ir.Dispatch:
			in, err = lib.Bind(g, n)
		case *ir.Copy:
			in, err = isel.Copy(g, n, ir.F32)
		default:
			continue
		}
		require.NoError(t, err)
		gr.Members = append(gr.Members, in)
		i := len(gr.Members) - 1
		for j, a := range in.Decl.Args {
			if a.Kind != ir.DeviceArg || a.Mode != decl.Read || in.Views[j].Mem == ir.NoMem {
				continue
			}
			for _, w := range writes {
				if region(w).Equal(region(isel.Operand{Member: i, Arg: j})) {
					gr.Source[isel.Operand{Member: i, Arg: j}] = w
				}
			}
		}
		for j, a := range in.Decl.Args {
			if a.Mode != decl.Write {
				continue
			}
			o := isel.Operand{Member: i, Arg: j}
			writes = append(writes, o)
			root, _ := g.Root(in.Views[j].Mem)
			if k := g.Memories[root].Kind; k == ir.Output || k == ir.State {
				gr.Results = append(gr.Results, o)
			} else {
				gr.Spare = append(gr.Spare, o)
			}
		}
	}
	return gr
}

// format prints the dispatch that was found.
func format(m *isel.Match) string {
	g := *m.Instance.Graph
	d := *m.Dispatch()
	d.Op = ""
	g.Nodes = []ir.Node{&d}
	g.Kernels = slices.Clone(g.Kernels)
	for i := range g.Kernels {
		g.Kernels[i].Name = fmt.Sprint(i)
	}
	g.Kernels[d.Kernel].Name = m.Kernel.Function
	for _, line := range strings.Split(mlxt.Format(&ir.Module{Graphs: []*ir.Graph{&g}}), "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			return line
		}
	}
	return ""
}

const elementwise = `
  kernel @rms builtin "rmsfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @mul builtin "vv_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @mul_rows builtin "g2_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write, 3 a_strides: constant i64[2], 4 b_strides: constant i64[2])
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
`

func TestNormTakesItsScale(t *testing.T) {
	g := parse(t, `
  memory %x input 512 f32[128]
  memory %s weight 256 f32[64] = random seed 115
  memory %z output 512 f32[128]
  memory %one weight 4 f32[1] = fill 0x3f800000
  memory %t scratch 512 f32[128]
`+elementwise+`
  #0 @rms (x = %x[0:512], w = %one[0:4], out = %t[0:512], eps = 1e-05, axis_size = 64, w_stride = 0) grid threads [64, 1, 1] of [32, 1, 1] op rms_norm
  #1 @mul_rows (a = %t[0:512], b = %s[0:256], c = %z[0:512], a_strides = [64, 1], b_strides = [0, 1]) grid threads [64, 2, 1] of [64, 1, 1] op elementwise_mul
`)
	m, err := isel.Builtin().Match(group(t, isel.Builtin(), g))
	require.NoError(t, err)
	require.NotNil(t, m)
	t.Log(format(m))
}
