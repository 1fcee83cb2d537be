package isel_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/passes/internal/isel"
)

// parse reads the body of a graph.
func parse(t *testing.T, body string) *ir.Graph {
	t.Helper()
	m, err := mlxt.Parse(context.Background(), "test", []byte("mlxt 1\n\ngraph g {\n"+body+"\n}\n"))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m.Graphs[0]
}

// library declares kernels in the language of docs/kernels.md.
func library(t *testing.T, src string) *isel.Library {
	t.Helper()
	source, err := decl.Parse("test.metal", src)
	ds := source.Decls
	require.NoError(t, err)
	return isel.NewLibrary(ds...)
}

// group returns a group of all commands of g. A read of exactly what an earlier command last wrote takes its value
// from there, and results that are outputs or states are kept.
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
  kernel @rope builtin "rope_single_float32" constants(1 forward: bool true, 2 traditional: bool false) args(0 in: device f32 read, 1 out: device f32 write, 2 offset: constant i32, 3 scale: constant f32, 4 stride: constant i64, 10 base: constant f32)
`

// memories begins the graphs of the tests: their params, memories and kernels.
const memories = `
  param $n u32 in [1, 8]
  memory %x input 4096 f32[1024]
  memory %r input 512 f32[128]
  memory %s weight 512 f32[128] = random seed 115
  memory %y output 4096 f32[1024]
  memory %z output 512 f32[128]
  memory %cache state 4096 f32[16, 64]
  memory %one weight 4 f32[1] = fill 0x3f800000
  memory %two weight 4 f32[1] = fill 0x40000000
  memory %t scratch 4096 f32[1024]
  memory %u scratch 4096 f32[1024]
` + elementwise

func rope(id, in, out, heads string) string {
	return "  #" + id + " @rope (in = " + in + ", out = " + out + ", offset = $n, scale = 1, stride = 64, base = 13.287712) grid threads [32, " + heads + ", 1] of [32, 1, 1]\n"
}

func TestMatch(t *testing.T) {
	const norm = `
  #0 @rms (x = %x[0:512], w = %one[0:4], out = %t[0:512], eps = 1e-05, axis_size = 64, w_stride = 0) grid threads [64, 1, 1] of [32, 1, 1]
`
	const mulRows = `
  #1 @mul_rows (a = %t[0:512], b = %s[0:256], c = %z[0:512], a_strides = [64, 1], b_strides = [0, 1]) grid threads [64, 2, 1] of [64, 1, 1]
`
	for _, k := range []struct {
		name, body string
		want       string // the dispatch; "" if there is none
		miss       string // what the error says
	}{
		{"a norm takes its scale", norm + mulRows,
			"#0 @rmsfloat32 (x = %x[0:512], w = %s[0:256], out = %z[0:512], eps = 1e-05, axis_size = 64, w_stride = 1) grid threadgroups [2, 1, 1] of [32, 1, 1]", ""},
		{"and one row that is multiplied flat, operands swapped", `
  #0 @rms (x = %x[0:512], w = %one[0:4], out = %t[0:512], eps = 1e-05, axis_size = 128, w_stride = 0) grid threads [32, 1, 1] of [32, 1, 1]
  #1 @mul (a = %s[0:512], b = %t[0:512], c = %z[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
`, "#0 @rmsfloat32 (x = %x[0:512], w = %s[0:512], out = %z[0:512], eps = 1e-05, axis_size = 128, w_stride = 1) grid threadgroups [1, 1, 1] of [32, 1, 1]", ""},
		{"as many rows as a param says", `
  #0 @rms (x = %x[0:256*$n], w = %one[0:4], out = %t[0:256*$n], eps = 1e-05, axis_size = 64, w_stride = 0) grid threads [32*$n, 1, 1] of [32, 1, 1]
  #1 @mul_rows (a = %t[0:256*$n], b = %s[0:256], c = %y[0:256*$n], a_strides = [64, 1], b_strides = [0, 1]) grid threads [64, $n, 1] of [64, 1, 1]
`, "#0 @rmsfloat32 (x = %x[0:256*$n], w = %s[0:256], out = %y[0:256*$n], eps = 1e-05, axis_size = 64, w_stride = 1) grid threadgroups [$n, 1, 1] of [32, 1, 1]", ""},
		{"a scale for each element of two rows is none for each column", norm + `
  #1 @mul (a = %t[0:512], b = %s[0:512], c = %z[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
`, "", "do not fit together"},
		{"a weight of twos is a factor", strings.ReplaceAll(norm, "%one", "%two") + mulRows, "", ""},
		{"the sum of two values, its norm, both kept", `
  #0 @add (a = %x[0:512], b = %r[0:512], c = %y[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
  #1 @rms (x = %y[0:512], w = %s[0:512], out = %z[0:512], eps = 1e-05, axis_size = 128, w_stride = 1) grid threads [32, 1, 1] of [32, 1, 1]
`, "#0 @add_rmsfloat32 (a = %x[0:512], b = %r[0:512], w = %s[0:512], residual = %y[0:512], out = %z[0:512], eps = 1e-05, axis_size = 128, w_stride = 1) grid threadgroups [1, 1, 1] of [32, 1, 1]", ""},
		{"the sum kept although nobody needs it", `
  #0 @add (a = %x[0:512], b = %r[0:512], c = %t[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
  #1 @rms (x = %t[0:512], w = %s[0:512], out = %z[0:512], eps = 1e-05, axis_size = 128, w_stride = 1) grid threads [32, 1, 1] of [32, 1, 1]
`, "#0 @add_rmsfloat32 (a = %x[0:512], b = %r[0:512], w = %s[0:512], residual = %t[0:512], out = %z[0:512], eps = 1e-05, axis_size = 128, w_stride = 1) grid threadgroups [1, 1, 1] of [32, 1, 1]", ""},
		{"the square of a norm", norm + `
  #1 @mul (a = %t[0:512], b = %t[0:512], c = %z[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
`, "", ""},
		{"over its own input, a row further", strings.ReplaceAll(norm, "%x", "%cache") + strings.ReplaceAll(mulRows, "%z[0:512]", "%cache[256:768]"), "", "overlaps"},
		{"over its own input", strings.ReplaceAll(norm, "%x", "%cache") + strings.ReplaceAll(mulRows, "%z", "%cache"),
			"#0 @rmsfloat32 (x = %cache[0:512], w = %s[0:256], out = %cache[0:512], eps = 1e-05, axis_size = 64, w_stride = 1) grid threadgroups [2, 1, 1] of [32, 1, 1]", ""},
		{"a rotation into the cache", rope("0", "%x[0:512]", "%t[0:512]", "2") + `
  #1 copy %t[0:512] -> %cache[256*$n:256*$n + 512]
`, "#0 @rope_single_float32 (in = %x[0:512], out = %cache[256*$n:256*$n + 512], offset = $n, scale = 1, stride = 64, base = 13.287712) grid threads [32, 2, 1] of [32, 1, 1]", ""},
		{"queries and keys rotate at once", rope("0", "%x[0:512]", "%y[0:512]", "2") + rope("1", "%r[0:256]", "%z[0:256]", "1"),
			"#0 @rope_single_x2_float32 (q = %x[0:512], k = %r[0:256], q_out = %y[0:512], k_out = %z[0:256], offset = $n, scale = 1, " +
				"q_stride = 64, k_stride = 64, q_out_stride = 64, k_out_stride = 64, base = 13.287712, q_heads = 2, k_heads = 1) grid threads [32, 3, 1] of [32, 1, 1]", ""},
		{"by one angle", rope("0", "%x[0:512]", "%y[0:512]", "2") + strings.ReplaceAll(rope("1", "%r[0:256]", "%z[0:256]", "1"), "base = 13", "base = 14"), "", "do not fit together"},
	} {
		t.Run(k.name, func(t *testing.T) {
			g := parse(t, memories+k.body)
			m, err := isel.Builtin().Match(group(t, isel.Builtin(), g))
			if k.miss != "" {
				require.ErrorContains(t, err, k.miss)
			} else if k.want == "" {
				require.NoError(t, err)
			}
			if k.want == "" {
				require.Nil(t, m)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, m)
			require.Equal(t, k.want, format(m))
		})
	}
}

// The kernels of one family differ in the order of their sums. A group of one
// of them never becomes another's.
func TestEqualOpTreesAreNotEqualTerms(t *testing.T) {
	const source = `
// @kernel dot_a
// @arg 0 x device f32[k] read
// @arg 1 w device f32[n, k] read
// @arg 2 y device f32[n] write
// @arg 3 k constant i32
// @threads n, 1, 1
// @group _, _, _
// @term y[i] = round(f32, sum[a](j < k, w[i,j] * x[j]))
//
// @kernel plus
// @arg 0 a device f32[n] read
// @arg 1 b device f32[n] read
// @arg 2 c device f32[n] write
// @threads n, 1, 1
// @group _, _, _
// @term c[i] = round(f32, a[i] + b[i])
//
// @kernel dot_plus
// @arg 0 x device f32[k] read
// @arg 1 w device f32[n, k] read
// @arg 2 r device f32[n] read
// @arg 3 y device f32[n] write
// @arg 4 k constant i32
// @threads n, 1, 1
// @group _, _, _
// @inplace y r
// @term y[i] = round(f32, r[i] + TERM)
`
	const body = `
  memory %x input 512 f32[128]
  memory %w weight 8192 f32[16, 128] = random seed 1
  memory %r input 64 f32[16]
  memory %y output 64 f32[16]
  memory %t scratch 64 f32[16]
  kernel @dot builtin "dot_a" args(0 x: device f32 read, 1 w: device f32 read, 2 y: device f32 write, 3 k: constant i32)
  kernel @plus builtin "plus" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

  #0 @dot (x = %x[0:512], w = %w[0:8192], y = %t[0:64], k = 128) grid threads [16, 1, 1] of [16, 1, 1]
  #1 @plus (a = %t[0:64], b = %r[0:64], c = %y[0:64]) grid threads [16, 1, 1] of [16, 1, 1]
`
	for _, k := range []struct {
		term string
		ok   bool
	}{
		{"sum[a](j < k, w[i,j] * x[j])", true},
		{"round(f32, sum[a](j < k, x[j] * w[i,j]))", true},
		{"sum[b](j < k, w[i,j] * x[j])", false},
		{"sum[a](j < k - 1, w[i,j] * x[j])", false},
		{"sum[a](j < k, w[i,k - 1 - j] * x[j])", false},
		{"sum[a](j < k, w[i,j] * x[0])", false},
		{"sum[a](j < k, w[n - 1 - i,j] * x[j])", false},
		{"round(f16, sum[a](j < k, w[i,j] * x[j]))", false},
		{"sum[a](j < k, w[i,j] + x[j])", false},
		{"sum[a](j < k, w[i,j] * w[i,j])", false},
		{"-sum[a](j < k, w[i,j] * x[j])", false},
		{"max[a](j < k, w[i,j] * x[j])", false},
	} {
		lib := library(t, strings.Replace(source, "TERM", k.term, 1))
		m, _ := lib.Match(group(t, lib, parse(t, body)))
		if !k.ok {
			require.Nil(t, m, k.term)
			continue
		}
		require.NotNil(t, m, k.term)
		require.Equal(t, "#0 @dot_plus (x = %x[0:512], w = %w[0:8192], r = %r[0:64], y = %y[0:64], k = 128) grid threads [16, 1, 1] of [16, 1, 1]", format(m))
	}
}

// The place of an argmax is part of the term, and whether there is one.
func TestPlacesOfArgmax(t *testing.T) {
	const source = `
// @kernel plus
// @arg 0 a device f32[n] read
// @arg 1 b device f32[n] read
// @arg 2 c device f32[n] write
// @threads n, 1, 1
// @group _, _, _
// @term c[i] = round(f32, a[i] + b[i])
//
// @kernel best
// @arg 0 x device f32[n] read
// @arg 1 ids device u32[k] write
// @arg 2 n constant i32
// @threads k, 1, 1
// @group _, _, _
// @term ids[s] = u32(OLD)
//
// @kernel plus_best
// @arg 0 a device f32[n] read
// @arg 1 b device f32[n] read
// @arg 2 ids device u32[k] write
// @arg 3 n constant i32
// @threads k, 1, 1
// @group _, _, _
// @term ids[s] = u32(NEW)
`
	const body = `
  memory %x input 512 f32[128]
  memory %r input 512 f32[128]
  memory %y output 32 u32[8]
  memory %t scratch 512 f32[128]
  kernel @plus builtin "plus" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @best builtin "best" args(0 x: device f32 read, 1 ids: device u32 write, 2 n: constant i32)

  #0 @plus (a = %x[0:512], b = %r[0:512], c = %t[0:512]) grid threads [128, 1, 1] of [32, 1, 1]
  #1 @best (x = %t[0:512], ids = %y[0:32], n = 128) grid threads [8, 1, 1] of [8, 1, 1]
`
	for _, k := range []struct {
		old, new string
		ok       bool
	}{
		{"argmax(i < n, x[i], s)", "argmax(i < n, b[i] + a[i], s)", true},
		{"argmax(i < n, x[i], 7 - s)", "argmax(i < n, a[i] + b[i], 6 - s + 1)", true},
		{"argmax(i < n, x[i], s)", "argmax(i < n, a[i] + b[i], 7 - s)", false},
		{"argmax(i < n, x[i], s)", "argmax(i < n, a[i] + b[i], 0)", false},
		{"argmax(i < n, x[i], s)", "argmax(i < n, a[i] + b[i])", false},
		{"argmax(i < n, x[i])", "argmax(i < n, a[i] + b[i])", true},
		{"argmax(i < n, x[i])", "argmax(i < n, a[i] + b[i], 0)", false},
		{"argmax(i < n, x[i], s)", "argmax(i < n, a[i] - b[i], s)", false},
	} {
		lib := library(t, strings.NewReplacer("OLD", k.old, "NEW", k.new).Replace(source))
		m, _ := lib.Match(group(t, lib, parse(t, body)))
		if !k.ok {
			require.Nil(t, m, k.new)
			continue
		}
		require.NotNil(t, m, k.new)
		require.Equal(t, "plus_best", m.Kernel.Function)
	}
}

// A half that is made from its bits is a term of these bits, and needs no rounding to f16.
func TestHalvesOfIntegers(t *testing.T) {
	const source = `
// @kernel plus
// @arg 0 a device f32[n] read
// @arg 1 b device f32[n] read
// @arg 2 c device f32[n] write
// @threads n, 1, 1
// @group _, _, _
// @term c[i] = round(f32, a[i] + b[i])
//
// @kernel scale
// @arg 0 x device f32[n] read
// @arg 1 d device u16[n] read
// @arg 2 y device f32[n] write
// @threads n, 1, 1
// @group _, _, _
// @term y[i] = round(f32, OLD)
//
// @kernel plus_scale
// @arg 0 a device f32[n] read
// @arg 1 b device f32[n] read
// @arg 2 d device u16[n] read
// @arg 3 y device f32[n] write
// @threads n, 1, 1
// @group _, _, _
// @term y[i] = round(f32, NEW)
`
	const body = `
  memory %x input 512 f32[128]
  memory %r input 512 f32[128]
  memory %d input 256 u16[128]
  memory %y output 512 f32[128]
  memory %t scratch 512 f32[128]
  kernel @plus builtin "plus" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @scale builtin "scale" args(0 x: device f32 read, 1 d: device u16 read, 2 y: device f32 write)

  #0 @plus (a = %x[0:512], b = %r[0:512], c = %t[0:512]) grid threads [128, 1, 1] of [32, 1, 1]
  #1 @scale (x = %t[0:512], d = %d[0:256], y = %y[0:512]) grid threads [128, 1, 1] of [32, 1, 1]
`
	for _, k := range []struct {
		old, new string
		ok       bool
	}{
		{"x[i] * as_f16(d[i])", "as_f16(d[i]) * (b[i] + a[i])", true},
		{"x[i] * as_f16(d[i])", "(a[i] + b[i]) * round(f16, as_f16(d[i]))", true},
		{"x[i] * round(f16, as_f16(d[i]))", "(a[i] + b[i]) * as_f16(d[i])", true},
		{"x[i] * as_f16(d[i])", "(a[i] + b[i]) * round(bf16, as_f16(d[i]))", false},
		{"x[i] * as_f16(d[i])", "(a[i] + b[i]) * as_f16(d[i] + 1)", false},
		{"x[i] * as_f16(d[i])", "(a[i] + b[i]) * as_f16(d[i] / 2)", false},
		{"x[i] * as_f16(d[i])", "(a[i] + b[i]) * f32(d[i])", false},
		{"x[i] * f32(d[i])", "(a[i] + b[i]) * as_f16(d[i])", false},
		{"x[i] * as_f16(d[i])", "(a[i] + b[i]) * as_f32(d[i])", false},
		{"x[i] * as_f32(d[i])", "(a[i] + b[i]) * round(f32, as_f32(d[i]))", true},
		{"x[i] * as_f32(d[i])", "(a[i] + b[i]) * round(f16, as_f32(d[i]))", false},
		{"x[i] * f32(d[i])", "(a[i] + b[i]) * round(f16, f32(d[i]))", false},
		{"x[i] * as_f16(d[i]) * as_f16(d[i] + 256*d[127 - i])", "(a[i] + b[i]) * as_f16(d[i]) * as_f16(256*d[127 - i] + d[i])", true},
		{"x[i] * as_f16(d[i]) * as_f16(d[i] + 256*d[127 - i])", "(a[i] + b[i]) * as_f16(d[i]) * as_f16(d[i] + 256*d[126 - i])", false},
		{"x[i] * as_f16(d[i]) * as_f16(d[i] + 256*d[127 - i])", "(a[i] + b[i]) * as_f16(d[i]) * as_f16(d[127 - i] + 256*d[i])", false},
		{"x[i] * as_f16(d[i]) * as_f16(4096)", "(a[i] + b[i]) * as_f16(d[i]) * as_f16(4096)", true},
		{"x[i] * as_f16(d[i]) * as_f16(4096)", "(a[i] + b[i]) * as_f16(d[i]) * as_f16(4097)", false},
	} {
		lib := library(t, strings.NewReplacer("OLD", k.old, "NEW", k.new).Replace(source))
		m, _ := lib.Match(group(t, lib, parse(t, body)))
		if !k.ok {
			require.Nil(t, m, "%s: %s", k.old, k.new)
			continue
		}
		require.NotNil(t, m, "%s: %s", k.old, k.new)
		require.Equal(t, "plus_scale", m.Kernel.Function)
	}
}

// Products with GGML's blocks, whose scales are bits among bytes, compose like
// others: with an addition they are a kernel that does both.
func TestBlocksOfGGML(t *testing.T) {
	source, err := os.ReadFile("../../../msl/ggml.metal")
	require.NoError(t, err)
	for _, k := range []struct {
		format string
		row    int // bytes of 512 weights
	}{{"q4_0", 16 * 18}, {"q8_0", 16 * 34}, {"q6_K", 2 * 210}, {"q5_1", 16 * 24}, {"mxfp4", 16 * 17}, {"iq4_nl", 16 * 18}, {"q4_K", 2 * 144}} {
		name := "ggml_mul_mv_" + k.format + "_f32"
		// What the source says of all formats and of this one, and the declaration of all.
		_, rest, ok := strings.Cut(string(source), "// @text  formats()")
		require.True(t, ok)
		rest, _, ok = strings.Cut(rest, "\n\n")
		require.True(t, ok)
		format := ""
		for i, section := range strings.Split("// @text  formats()"+rest, "\n//\n") {
			if i < 3 || strings.HasPrefix(section, "// @lines six(n; s)") || strings.HasPrefix(section, "// @text  "+k.format+"_codes()") {
				format += section + "\n//\n"
			}
		}
		_, rest, ok = strings.Cut(string(source), "// @kernel  ggml_mul_mv_{F:")
		require.True(t, ok)
		_, rest, _ = strings.Cut(rest, "\n")
		text, _, _ := strings.Cut(rest, "template")
		const plus = `
// @kernel plus
// @arg 0 a device f32[n] read
// @arg 1 b device f32[n] read
// @arg 2 c device f32[n] write
// @threads n, 1, 1
// @group _, _, _
// @term c[i] = round(f32, a[i] + b[i])
//
`
		renamed := format // definitions have one name in a file
		for _, m := range regexp.MustCompile(`(?m)^// @(?:text|lines) +(\w+)\(`).FindAllStringSubmatch(format, -1) {
			to := "changed_" + strings.TrimPrefix(m[1], k.format+"_")
			renamed = regexp.MustCompile(`\b`+m[1]+`\(`).ReplaceAllString(renamed, to+"(")
		}
		added := strings.NewReplacer(
			"// @arg     y", "// @arg     r device f32[M, N] read\n// @arg     y",
			"round({T}, ", "round({T}, r[m,n] + ").Replace(renamed + "// @kernel  NAME_add{F:=changed}{T:=f32}\n" + text)
		added = strings.Replace(added, "NAME", name, 1)
		body := fmt.Sprintf(`
  memory %%w input %[2]d u8[24, %[3]d]
  memory %%x input 4096 f32[1024]
  memory %%r input 192 f32[48]
  memory %%y output 192 f32[48]
  memory %%t scratch 192 f32[48]
  kernel @product builtin "%[1]s" args(0 w: device u16 read, 1 x: device f32 read, 2 y: device f32 write, 3 K: constant i32, 4 N: constant i32)
  kernel @plus builtin "plus" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

  #0 @product (w = %%w[0:%[2]d], x = %%x[0:4096], y = %%t[0:192], K = 512, N = 24) grid threadgroups [3, 2, 1] of [32, 2, 1]
  #1 @plus (a = %%t[0:192], b = %%r[0:192], c = %%y[0:192]) grid threads [48, 1, 1] of [32, 1, 1]
`, name, 24*k.row, k.row)
		for change, formats := range map[string]string{ // what is not what the first kernel computes, and of which formats
			"": "",
			"256*w{s}[{n},{B},{at} + 1] -> 255*w{s}[{n},{B},{at} + 1]":                     "q4_0 q5_1 iq4_nl q4_K",
			"256*w{s}[{n},{B},{at} + 1] -> 256*w{s}[{n},{B},{at} + 2]":                     "q4_0 q5_1 iq4_nl q4_K",
			"x[{m},g*{G} + j] -> x[{m},1 + g*{G} + j]":                                     "q4_0 q8_0 q6_K iq4_nl",
			"{at}] % 256 + -> {at}] % 128 + ":                                              "q8_0 q6_K",
			"w{s}[{n},k/32,2 + -> w{s}[{n},k/32,3 + ":                                      "q8_0",
			"w{s}[{n},g/16,192 + -> w{s}[{n},g/16,191 + ":                                  "q6_K",
			"{changed_nibble({n}; 2; {s})} - 8 -> {changed_nibble({n}; 2; {s})} - 7":       "q4_0",
			"code{s}[{n},k] = low{s}[{n},k] + 16* -> code{s}[{n},k] = low{s}[{n},k] + 15*": "q6_K",
			"{changed_two({n}; 128; {s})} -> {changed_two({n}; 127; {s})}":                 "q6_K",
			"as_f32(8388608 -> as_f32(8388609":                                             "mxfp4",
			"< 5, -49, -35) -> < 5, -49, -36)":                                             "iq4_nl",
			"bias{s}[{n},g] * sum -> bias{s}[{n},g] + sum":                                 "q5_1 q4_K",
			"six{s}[{n},g/8,g%8] -> six{s}[{n},g/8,g%7]":                                   "q4_K",
			"4 + i] / 64)) -> 4 + i] / 32))":                                               "q4_K",
		} {
			ok := formats == ""
			if !ok && !slices.Contains(strings.Fields(formats), k.format) {
				continue
			}
			from, to, _ := strings.Cut(change, " -> ")
			changed := strings.Replace(added, from, to, 1)
			require.True(t, ok || changed != added, "%s: %s", k.format, change)
			lib := library(t, format+"// @kernel  "+name+"{F:="+k.format+"}{T:=f32}\n"+text+plus+changed)
			m, err := lib.Match(group(t, lib, parse(t, body)))
			if !ok {
				require.Nil(t, m, "%s: %s", name, change)
				continue
			}
			require.NotNil(t, m, "%s: %v", name, err)
			require.Equal(t, name+"_add", m.Kernel.Function)
		}
	}
}

// A kernel that takes its threadgroup from the dispatch adds in an order of its
// own for each: the fused one runs the recorded threadgroup.
func TestThreadgroupOfALoopedNormStays(t *testing.T) {
	for _, n := range []string{"64", "1024"} {
		g := parse(t, memories+`
  kernel @looped builtin "rms_loopedfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  #0 @looped (x = %x[0:512], w = %one[0:4], out = %t[0:512], eps = 1e-05, axis_size = 128, w_stride = 0) grid threads [`+n+`, 1, 1] of [`+n+`, 1, 1]
  #1 @mul (a = %s[0:512], b = %t[0:512], c = %z[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
`)
		m, err := isel.Builtin().Match(group(t, isel.Builtin(), g))
		require.NoError(t, err)
		require.NotNil(t, m)
		require.Contains(t, format(m), "rms_loopedfloat32")
		require.Equal(t, n, fmt.Sprint(m.Dispatch().Threadgroup[0]))
	}
}

// A match that is carried over to other views equals the match that is found for them directly.
func TestMatcherCarriesOver(t *testing.T) {
	at := func(off string) *isel.Group {
		g := parse(t, memories+strings.ReplaceAll(`
  #0 @rms (x = %x[OFF:OFF + 512], w = %one[0:4], out = %t[OFF:OFF + 512], eps = 1e-05, axis_size = 128, w_stride = 0) grid threads [32, 1, 1] of [32, 1, 1]
  #1 @mul (a = %s[0:512], b = %t[OFF:OFF + 512], c = %y[OFF:OFF + 512]) grid threads [128, 1, 1] of [64, 1, 1]
`, "OFF", off))
		return group(t, isel.Builtin(), g)
	}
	m := isel.NewMatcher(isel.Builtin())
	c, err := m.Find(at("0"))
	require.NoError(t, err)
	require.NotNil(t, c)
	for _, off := range []string{"0", "1024", "128*$n"} {
		gr := at(off)
		anew, err := isel.Builtin().Match(gr)
		require.NoError(t, err)
		d, _ := m.Again(c, gr.Graph, func(o isel.Operand) *ir.View { return &gr.Members[o.Member].Views[o.Arg] }, -1)
		require.NotNil(t, d)
		g := *gr.Graph
		g.Kernels = append(slices.Clip(g.Kernels), c.Like.Kernel)
		again := &isel.Match{Instance: &decl.Instance{Graph: &g, Dispatch: d}, Kernel: c.Like.Kernel}
		require.Equal(t, format(anew), format(again))
	}
}

// Bytes that are moved look like every kernel that moves elements as they are, of which none writes bytes. None is
// fitted, so none is named as nearly fitting.
func TestOtherTypesAreNotFitted(t *testing.T) {
	g := parse(t, memories+`
  #0 copy %x[0:512] -> %t[0:512]
  #1 copy %t[0:512] -> %y[0:512]
`)
	gr := group(t, isel.Builtin(), g)
	m, err := isel.Builtin().Match(gr)
	require.NoError(t, err)
	require.NotNil(t, m, "f32 are moved by one kernel")
	for i, n := range g.Nodes {
		gr.Members[i], err = isel.Copy(g, n.(*ir.Copy), ir.U8)
		require.NoError(t, err)
	}
	require.True(t, isel.NewMatcher(isel.Builtin()).Prefilter(gr).Match)
	m, err = isel.Builtin().Match(gr)
	require.NoError(t, err)
	require.Nil(t, m)
}

// Elementwise commands without a kernel of their own become one: over rows where
// an operand is one row, over all elements otherwise.
func TestGenerate(t *testing.T) {
	const silu = `
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)
`
	for _, k := range []struct{ body, want string }{
		{`
  #0 @mul (a = %x[0:512], b = %r[0:512], c = %t[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
  #1 @silu (in = %t[0:512], out = %z[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
`, "v0[i] = in0[i] * in1[i]; out0[i] = round(f32, v0[i] / (1.0 + exp(-v0[i])))"},
		{`
  #0 @mul_rows (a = %x[0:256*$n], b = %s[0:256], c = %t[0:256*$n], a_strides = [64, 1], b_strides = [0, 1]) grid threads [64, $n, 1] of [64, 1, 1]
  #1 @add (a = %t[0:256*$n], b = %t[0:256*$n], c = %y[0:256*$n]) grid threads [64*$n, 1, 1] of [64, 1, 1]
`, "v0[i, j] = in0[i, j] * in1[j]; out0[i, j] = round(f32, v0[i, j] + v0[i, j])"},
		{`
  #0 @mul_rows (a = %x[0:512], b = %two[0:4], c = %t[0:512], a_strides = [64, 1], b_strides = [0, 0]) grid threads [64, 2, 1] of [64, 1, 1]
  #1 @silu (in = %t[0:512], out = %z[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
`, "v0[i] = 2.0 * in0[i]; out0[i] = round(f32, v0[i] / (1.0 + exp(-v0[i])))"},
		{`
  #0 @mul_rows (a = %x[0:512], b = %s[0:256], c = %t[0:512], a_strides = [1, 64], b_strides = [0, 1]) grid threads [64, 2, 1] of [64, 1, 1]
  #1 @silu (in = %t[0:512], out = %z[0:512]) grid threads [128, 1, 1] of [64, 1, 1]
`, ""}, // transposed: generated kernels have no such index
	} {
		lib := isel.Builtin()
		m, err := lib.Generate(group(t, lib, parse(t, memories+silu+k.body)), false)
		if k.want == "" {
			require.Error(t, err)
			require.Nil(t, m)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, k.want, m.Kernel.Function)
	}
}
