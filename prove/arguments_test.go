package prove

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

func params(n ...uint32) *ir.Graph {
	g := &ir.Graph{Name: "g"}
	for i, hi := range n {
		g.Params = append(g.Params, ir.Param{Name: string(rune('a' + i)), Type: ir.U32, Max: float64(hi)})
	}
	return g
}

func term1(c, a int64) ir.Affine { return ir.Linear(c, ir.Term{Coeff: a}) }

// Values of the params decide a comparison that bounds do not decide, and only such a
// one.
func TestChecksValuations(t *testing.T) {
	g := params(3, 9)
	g.Constraints = []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 4}}
	count := func(g *ir.Graph, use ...ir.Affine) (n int, all bool) {
		all = valuations(g, use, func(p []uint32) bool {
			for _, c := range g.Constraints {
				require.LessOrEqual(t, c.LHS.Eval(p), c.Max)
			}
			n++
			return true
		})
		return n, all
	}
	n, all := count(g, term1(0, 1))
	require.True(t, all)
	require.Equal(t, 5+4+3+2, n, "with the params that constraints tie to those in use")
	n, all = count(g)
	require.True(t, all)
	require.Equal(t, 1, n)
	large := params(1<<20, 1<<20)
	large.Constraints = []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Coeff: 1}, ir.Term{Param: 1, Coeff: -1}), Max: 5}, {LHS: ir.Linear(0, ir.Term{Coeff: -1}), Max: -1000}}
	n, all = count(large, term1(0, 1))
	require.False(t, all)
	require.Greater(t, n, someValues/2)

	require.Equal(t, same, sameAffine(params(3), term1(1, 1), term1(1, 1)))
	require.Equal(t, same, sameAffine(params(0), term1(1, 5), ir.Const(1)), "a param of one value")
	require.Equal(t, differ, sameAffine(params(3), term1(1, 1), term1(5, 1)))
	require.Equal(t, differ, sameAffine(params(3), term1(0, 2), term1(1, 1)), "equal for one of 1")
	require.Equal(t, differ, sameAffine(params(1<<30), term1(0, 2), term1(1, 1)))
	ceil := func(c, k, div int64) ir.Extent { return ir.Extent{Num: term1(c, k), Div: div} }
	require.Equal(t, same, sameExtent(params(3), ceil(0, 2, 4), ceil(0, 1, 2)))
	require.Equal(t, same, sameExtent(params(3), ceil(0, 0, 4), ceil(0, 0, 2)))
	require.Equal(t, differ, sameExtent(params(3), ceil(3, 0, 2), ceil(1, 0, 2)))
	require.Equal(t, differ, sameExtent(params(3), ceil(0, 1, 1), ceil(0, 1, 2)))
	require.Equal(t, unsure, sameExtent(params(3_500_000), ceil(1, 1, 1_000_000), ceil(2, 1, 1_000_000)), "they differ at a million, which nobody tries")
	require.Equal(t, same, sameExtent(params(3_500_000), ceil(0, 1, 1000), ceil(0, 1, 1000)))
}

// What the host gives a kernel is compared byte by byte.
func TestChecksGiven(t *testing.T) {
	bytes := func(off int64, b ...byte) ir.Value { return ir.Value{Off: off, Type: ir.U8, Bytes: b} }
	expr := func(off int64, typ ir.DType, a ir.Affine) ir.Value { return ir.Value{Off: off, Type: typ, Expr: a} }
	list := func(v ...ir.Value) []ir.Value { return v }
	n := term1(0, 1)
	at := func(v []ir.Value, off, n int64) given { return given{v, ir.Const(off), ir.Const(n)} }
	for _, c := range []struct {
		name string
		x, y given
		want answer
	}{
		{"two values, as one", at(list(bytes(0, 1, 2), bytes(2, 3)), 0, 3), at(list(bytes(4, 1, 2, 3)), 4, 3), same},
		{"another byte", at(list(bytes(0, 1, 2), bytes(2, 3)), 0, 3), at(list(bytes(4, 1, 2, 4)), 4, 3), differ},
		{"another length", at(list(bytes(0, 1, 2)), 0, 2), at(list(bytes(0, 1, 2)), 0, 1), differ},
		{"a gap is zero", at(list(bytes(0, 1), bytes(3, 2)), 0, 4), at(list(bytes(0, 1, 0, 0, 2)), 0, 4), same},
		{"a gap is not one", at(list(bytes(0, 1), bytes(3, 2)), 0, 4), at(list(bytes(0, 1, 0, 1, 2)), 0, 4), differ},
		{"behind all values", at(list(bytes(0, 1)), 4, 8), at(list(bytes(0, 1)), 1, 8), same},
		{"an expression", at(list(expr(0, ir.U32, n)), 0, 4), at(list(bytes(0, 9), expr(4, ir.U32, n)), 4, 4), same},
		{"its lower half", at(list(expr(0, ir.U32, n)), 0, 2), at(list(expr(0, ir.I64, n)), 0, 2), same},
		{"another expression", at(list(expr(0, ir.U32, n)), 0, 4), at(list(expr(0, ir.U32, term1(1, 1))), 0, 4), differ},
		{"its upper half, which is zero for all values", at(list(expr(0, ir.U32, n)), 2, 2), at(list(bytes(0, 0, 0)), 0, 2), same},
		{"an expression that is constant", at(list(expr(0, ir.U32, ir.Const(7))), 0, 4), at(list(bytes(0, 7, 0, 0, 0)), 0, 4), same},
		{"an expression, and bytes that it may be", at(list(expr(0, ir.U32, n)), 0, 4), at(list(bytes(0, 3, 0, 0, 0)), 0, 4), differ},
		{"a view that a param moves", given{list(bytes(0, 1, 1, 1, 1)), n, ir.Const(1)}, at(list(bytes(0, 1)), 0, 1), same},
		{"one whose bytes differ for one value", given{list(bytes(0, 1, 1, 1, 2)), n, ir.Const(1)}, at(list(bytes(0, 1)), 0, 1), differ},
		{"moved alike", given{list(bytes(0, 1, 2, 3, 4)), n, ir.Const(1)}, given{list(bytes(5, 1, 2, 3, 4)), n.AddConst(5), ir.Const(1)}, same},
		{"moved alike, what no value reaches", given{list(bytes(0, 1, 2, 3, 4, 5)), n, ir.Const(1)}, given{list(bytes(5, 1, 2, 3, 4, 6)), n.AddConst(5), ir.Const(1)}, same},
		{"a length by a param", given{list(bytes(0, 1, 2, 3)), ir.Const(0), n}, given{list(bytes(0, 1, 2, 4)), ir.Const(0), n}, differ},
		{"a length by a param, the same", given{list(bytes(0, 1, 2, 3)), ir.Const(0), n}, given{list(bytes(1, 1, 2, 3)), ir.Const(1), n}, same},
		{"f32 params", at(list(expr(0, ir.F32, n)), 0, 4), at(list(expr(0, ir.F32, n)), 0, 4), same},
	} {
		g := params(3)
		require.Equal(t, c.want, newTwins(g, g).sameGiven(c.x, c.y), c.name)
		require.Equal(t, c.want, newTwins(g, g).sameGiven(c.y, c.x), c.name)
	}
	f := params(3)
	f.Params = append(f.Params, ir.Param{Name: "p", Type: ir.F32, Min: 0, Max: 1}, ir.Param{Name: "q", Type: ir.F32, Min: 0, Max: 1})
	p, q := ir.Linear(0, ir.Term{Param: 1, Coeff: 1}), ir.Linear(0, ir.Term{Param: 2, Coeff: 1})
	require.Equal(t, differ, newTwins(f, f).sameGiven(at(list(expr(0, ir.F32, p)), 0, 4), at(list(expr(0, ir.F32, q)), 0, 4)))
	// Beyond the bounds on its work a comparison cannot tell.
	long := at(list(bytes(0, 1)), 0, 4)
	large := params(1 << 30)
	require.Equal(t, unsure, newTwins(large, large).sameGiven(given{long.values, n, ir.Const(1 << 20)}, at(list(bytes(9, 1)), 0, 1<<20)))
	almost := newTwins(large, large)
	almost.work = maxGiven - 1
	require.Equal(t, unsure, almost.sameGiven(at(list(bytes(0, 1)), 0, 1), at(list(bytes(1, 2)), 1, 1)))
	tired := newTwins(large, large)
	tired.work = maxGiven
	require.Equal(t, unsure, tired.sameGiven(long, at(list(bytes(1, 1)), 1, 4)))
	require.Equal(t, unsure, tired.sameGiven(at(list(bytes(0, 1)), 0, 1), at(list(bytes(1, 1)), 1, 1)))
	require.Equal(t, unsure, newTwins(large, large).sameGiven(given{list(bytes(3_500_000, 9)), n, ir.Const(1)}, at(list(bytes(0, 0)), 0, 1)), "one of a thousand million")
}

// The prover shows everything to be apart that the passes show to be apart, and nothing
// that shares a byte.
func TestChecksApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	found, passes, covered := 0, 0, 0
	for range 8000 {
		g := params(3, 2)
		if rng.IntN(2) == 0 {
			g.Constraints = []ir.Constraint{{LHS: ir.Linear(0, ir.Term{Coeff: 1}, ir.Term{Param: 1, Coeff: 1}), Max: 3}}
		}
		g.Memories = []ir.Memory{{Name: "m", Size: 4096, Kind: ir.State, Alias: ir.NoMem}}
		region := func() ir.Region {
			affine := func(n int64) ir.Affine {
				a := ir.Const(rng.Int64N(n))
				if rng.IntN(2) == 0 {
					a = ir.Linear(a.Const, ir.Term{Param: ir.ParamID(rng.IntN(2)), Coeff: []int64{1, 4, 8, 12, 24, 48}[rng.IntN(6)]})
				}
				return a
			}
			r := ir.Region{Off: affine(60), Run: ir.Const(1 + rng.Int64N(8))}
			if rng.IntN(4) == 0 {
				r.Run = term1(rng.Int64N(3), 1+rng.Int64N(4))
			}
			for range rng.IntN(3) {
				count := ir.Const(rng.Int64N(4))
				if rng.IntN(2) == 0 {
					count = term1(rng.Int64N(2), 1)
				}
				r.Dims = append(r.Dims, ir.Dim{Count: count, Stride: []int64{4, 8, 12, 24, 48}[rng.IntN(5)]})
			}
			return r
		}
		x, y := region(), region()
		m := newModel(context.Background(), g, nil)
		a, b := m.rooted(&x), m.rooted(&y)
		of := func(r ir.Region, p []uint32) map[int64]bool {
			out := map[int64]bool{}
			r.Runs(p, func(lo, end int64) bool {
				for ; lo < end; lo++ {
					out[lo] = true
				}
				return true
			})
			return out
		}
		meet, meetAlways, outside := false, false, false
		var xs, ys []map[int64]bool
		valuations(g, []ir.Affine{term1(0, 1), ir.Linear(0, ir.Term{Param: 1, Coeff: 1})}, func(p []uint32) bool {
			xs, ys = append(xs, of(x, p)), append(ys, of(y, p))
			return true
		})
		for i := range xs {
			for j := range ys {
				for at := range ys[j] {
					meetAlways = meetAlways || xs[i][at]
					meet = meet || i == j && xs[i][at]
					outside = outside || i == j && !xs[i][at]
				}
			}
		}
		require.False(t, m.apart(&a, &b) && meet, "%s and %s", g.FormatRegion(x), g.FormatRegion(y))
		require.False(t, m.apartAlways(&a, &b) && meetAlways, "%s and %s of another replay", g.FormatRegion(x), g.FormatRegion(y))
		require.False(t, m.covers(&a, &b) && outside, "%s covers %s", g.FormatRegion(x), g.FormatRegion(y))
		if !m.outOfBounds(&a, &b) {
			require.True(t, meet || !m.meet(&a, &b, false), "%s meets %s", g.FormatRegion(x), g.FormatRegion(y))
			require.True(t, meetAlways || !m.meet(&a, &b, true), "%s meets %s of another replay", g.FormatRegion(x), g.FormatRegion(y))
			require.True(t, m.apart(&a, &b) || m.meet(&a, &b, false) || !meet, "few values: all are tried")
		}
		if bytestate.Disjoint(g, x, y) {
			require.True(t, m.apart(&a, &b), "the passes tell apart %s and %s", g.FormatRegion(x), g.FormatRegion(y))
			passes++
		}
		if bytestate.Covers(g, x, y) {
			require.True(t, m.covers(&a, &b) || len(ys) == 0 || m.void(&b), "to the passes %s covers %s", g.FormatRegion(x), g.FormatRegion(y))
			covered++
		}
		if m.apart(&a, &b) {
			found++
		}
	}
	require.Greater(t, found, 1000)
	require.Greater(t, passes, 1000)
	require.Greater(t, covered, 20)
}

// Contents are compared by their bytes; a digest that stands beside bytes is not
// believed.
func TestChecksContents(t *testing.T) {
	graph := func(b *ir.Blob) *ir.Graph {
		return &ir.Graph{Name: "g", Memories: []ir.Memory{{Name: "w", Kind: ir.Weight, Size: 4, Alias: ir.NoMem, Init: ir.Init{Kind: ir.InitBlob, Blob: b}}}}
	}
	good := ir.NewBlob([]byte{1, 2, 3, 4})
	lie := ir.MappedBlob([]byte{1, 2, 3, 5}, good.Digest)
	elsewhere := ir.ExternalBlob("w.bin", 0, 4, good.Digest)
	other := ir.NewBlob([]byte{1, 2, 3, 5})
	for _, c := range []struct {
		name string
		b, a *ir.Blob
		text string
	}{
		{"the same", good, good, ""},
		{"equal bytes", good, ir.NewBlob([]byte{1, 2, 3, 4}), ""},
		{"another digest beside equal bytes", good, ir.MappedBlob([]byte{1, 2, 3, 4}, other.Digest), ""},
		{"other bytes", good, other, "other bytes"},
		{"other bytes under the same digest", good, lie, "other bytes"},
		{"bytes that another file must have", good, elsewhere, ""},
		{"bytes that it does not have", lie, elsewhere, "sha256"},
		{"likewise", elsewhere, lie, "sha256"},
		{"a file of another digest", other, elsewhere, "sha256"},
		{"another length", good, ir.ExternalBlob("w.bin", 0, 5, good.Digest), "4 bytes before, 5 after"},
	} {
		r := &Result{}
		checkInterface(graph(c.b), graph(c.a), r)
		if c.text == "" {
			require.Equal(t, Proved, r.Verdict, "%s: %s", c.name, r)
			continue
		}
		require.Equal(t, Refused, r.Verdict, c.name)
		require.Contains(t, r.Findings[0].Text, c.text, c.name)
		x, y := &ir.Module{Graphs: []*ir.Graph{graph(good)}}, &ir.Module{Graphs: []*ir.Graph{graph(good)}}
		x.Data, y.Data = []ir.Data{{Name: "d", Blob: c.b}}, []ir.Data{{Name: "d", Blob: c.a}}
		require.Contains(t, CheckModules(x, y).Findings[0].Text, c.text, c.name)
	}
}

// Every field that the host sees is part of the interface.
func TestChecksInterface(t *testing.T) {
	read := func() *ir.Module {
		m, err := mlxt.Parse(context.Background(), "test", []byte(`mlxt 1
data "a" = blob base64"AAAA"
data "b" = blob base64"AAAB"
graph one {
  param $n u32 in [1, 8]
  memory %x input 64 f32[16]
  memory %w weight 64 f32[16] = random seed 1
  memory %st state 64 f32[16]
  memory %y output 64 f32[16]
  #0 copy %x -> %y
  barrier
}
graph two {
  memory %x input 64 f32[16]
  memory %y output 64 f32[16]
  #0 copy %x -> %y
  barrier
}
`))
		require.NoError(t, err)
		return m
	}
	both := func(a *ir.Module) (list []Finding) {
		b := read()
		list = CheckModules(b, a).Findings
		for _, g := range b.Graphs {
			if h := a.Graph(g.Name); h != nil {
				list = append(list, Check(context.Background(), g, h, Options{}).Findings...)
			}
		}
		return list
	}
	require.Empty(t, both(read()))
	for _, c := range []struct {
		text   string
		change func(m *ir.Module)
	}{
		{"input %x is f32[16] before, u32[16] after", func(m *ir.Module) { m.Graphs[0].Memories[0].DType = ir.U32 }},
		{"input %x is f32[16] before, f32[4, 4] after", func(m *ir.Module) { m.Graphs[0].Memories[0].Shape = []int64{4, 4} }},
		{"output %y is f32[16] before, of no element type after", func(m *ir.Module) { m.Graphs[0].Memories[3].DType, m.Graphs[0].Memories[3].Shape = ir.Invalid, nil }},
		{"output %y has shared storage before, private after", func(m *ir.Module) { m.Graphs[0].Memories[3].Storage = ir.Private }},
		{"state %st is aligned to the device's default before, 8 bytes after", func(m *ir.Module) { m.Graphs[0].Memories[2].Align = 8 }},
		{"weight %w has other initial contents", func(m *ir.Module) { m.Graphs[0].Memories[1].Init.Seed = 2 }},
		{"%x is input before, state after", func(m *ir.Module) { m.Graphs[0].Memories[0].Kind = ir.State }},
		{"state %st has 64 bytes before, 128 after", func(m *ir.Module) { m.Graphs[0].Memories[2].Size = 128 }},
		{"state %st is missing after", func(m *ir.Module) { m.Graphs[0].Memories[2].Name = "other" }},
		{"state %other is new after", func(m *ir.Module) { m.Graphs[0].Memories[2].Name = "other" }},
		{"param $n differs", func(m *ir.Module) { m.Graphs[0].Params[0].Max = 9 }},
		{"1 params before, 0 after", func(m *ir.Module) { m.Graphs[0].Params = nil }},
		{"graph 1 is one before, two after", func(m *ir.Module) { m.Graphs[0], m.Graphs[1] = m.Graphs[1], m.Graphs[0] }},
		{"2 graph(s) before, 1 after", func(m *ir.Module) { m.Graphs = m.Graphs[:1] }},
		{"graph two is missing after", func(m *ir.Module) { m.Graphs[1].Name = "three" }},
		{"graph three is new after", func(m *ir.Module) { m.Graphs[1].Name = "three" }},
		{"data a is missing after", func(m *ir.Module) { m.Data = m.Data[1:] }},
		{"data c is new after", func(m *ir.Module) { m.Data = append(m.Data, ir.Data{Name: "c", Blob: m.Data[0].Blob}) }},
		{"data b has other contents", func(m *ir.Module) { m.Data[1].Blob = m.Data[0].Blob }},
	} {
		m := read()
		c.change(m)
		found := false
		for _, f := range both(m) {
			require.Equal(t, Refused, f.Verdict)
			found = found || len(f.Text) >= len(c.text) && f.Text[:len(c.text)] == c.text
		}
		require.True(t, found, c.text)
	}
}

// Two commands of B have equal results only if nothing between them differs.
func TestChecksSameResults(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "test", []byte(`mlxt 1
graph g {
  memory %x input 256
  memory %t scratch 1024
  memory %y output 256
  kernel @one metallib "m.metallib" sha256 0101010101010101010101010101010101010101010101010101010101010101 "one" args(0 a: device u32 read, 1 o: device u32 readwrite, 2 u: device u32 read, 3 c: constant u32)
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  #0 @one (a = %x[0:64], o = %t[0:64], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes must %t[0:64]
  #1 @one (a = %x[0:64], o = %t[64:128], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes must %t[64:128]
  #2 @one (a = %x[0:64], o = %t[64:128], u = %x[128:192], c = 2) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes must %t[64:128]
  #3 @one (a = %x[64:128], o = %t[64:128], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[64:128] writes must %t[64:128]
  #4 @one (a = %x[0:64], o = %t[64:128], u = %x[192:256], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes must %t[64:128]
  #5 @one (a = %x[0:64], o = %t[64:128], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes must %t[64:96]
  #6 @one (a = %x[0:64], o = %t[64:128], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete writes must %t[64:128]
  #7 @add (a = %x[0:64], b = %x[0:64], c = %t[256:320]) grid threads [16, 1, 1] of [16, 1, 1]
  #8 @add (a = %x[0:64], b = %x[0:64], c = %t[320:384]) grid threads [16, 1, 1] of [16, 1, 1]
  #9 @one (a = %x[0:64], o = %t[0:64], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes may %t[0:64]
  #10 @one (a = %x[0:64], o = %t[0:64], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes may %t[0:64]
  #11 @one (a = %x[0:64], o = %t[0:64], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1]
  #12 @one (a = %x[0:64], o = %t[0:64], u = %x[128:192], c = 1) grid threads [1, 1, 1] of [1, 1, 1] effects complete reads %x[0:64] writes must %t[0:64]
}
`))
	require.NoError(t, err)
	g := m.Graphs[0]
	b := recordedModel(context.Background(), g, nil)
	p := newProof(context.Background(), b, trace(b), byProvenance(b, g), Options{})
	p.build(g.Clone())
	equal := func(i, j int) bool { return p.sameResults(newTwins(g, g), &b.ops[i], &b.ops[j]) }
	require.True(t, equal(0, 1))
	require.True(t, equal(7, 8))
	for name, pair := range map[string][2]int{
		"another argument": {0, 2}, "another value read": {0, 3}, "another binding that the effects leave out": {0, 4}, "fewer bytes": {0, 5}, "nothing read": {0, 6},
		"old bytes, of another time": {9, 10}, "may-writes": {9, 9}, "across the unknown": {0, 12}, "the unknown": {11, 11}, "another kernel": {0, 7},
	} {
		require.False(t, equal(pair[0], pair[1]), name)
	}
	in, d := *b.ops[7].inst, *b.ops[7].inst.Decl
	d.Nondeterministic = true
	in.Decl = &d
	b.ops[7].inst = &in
	require.False(t, equal(7, 8), "nondeterministic")

	// A proof that its context ends says so.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := Check(ctx, g, g.Clone(), Options{})
	require.Equal(t, CannotTell, r.Verdict)
	require.ErrorIs(t, r.Err, context.Canceled)

	// So does a proof that takes more than its budget, which is checked every 20 ms.
	long := benchgraphs.Decode(60_000)
	r = Check(context.Background(), long, long.Clone(), Options{Budget: Budget{Time: 1}})
	require.Equal(t, CannotTell, r.Verdict)
	require.True(t, r.OverBudget())

	// After too many questions about meetings, none is answered as certain.
	m2 := newModel(context.Background(), params(3), nil)
	m2.g.Memories = []ir.Memory{{Name: "m", Size: 64, Alias: ir.NoMem}}
	m2 = newModel(context.Background(), m2.g, nil)
	x := ir.Region{Off: term1(0, 4), Run: ir.Const(8)}
	a := m2.rooted(&x)
	require.True(t, m2.meet(&a, &a, false))
	m2.meetings = mostMeetings
	require.False(t, m2.meet(&a, &a, false))
}

// Only regions that depend on no param and have few runs are compared byte by byte.
func TestChecksConstant(t *testing.T) {
	g := params(3)
	g.Memories = []ir.Memory{{Name: "m", Size: 1 << 20, Kind: ir.State, Alias: ir.NoMem}}
	m := newModel(context.Background(), g, nil)
	at := func(off ir.Affine, dims ...ir.Dim) *reading {
		r := ir.Region{Off: off, Run: ir.Const(4), Dims: dims}
		a := m.rooted(&r)
		return &reading{m: m, at: &a}
	}
	runs := func(n int64) ir.Dim { return ir.Dim{Count: ir.Const(n), Stride: 8} }
	require.True(t, constant(at(ir.Const(8))))
	require.True(t, constant(at(ir.Const(8), runs(9))))
	require.False(t, constant(at(term1(0, 4))))
	require.False(t, constant(at(ir.Const(0), ir.Dim{Count: term1(0, 1), Stride: 8})))
	require.False(t, constant(at(ir.Const(0), runs(maxSegments+1))))
	r := at(ir.Const(8))
	m.writes = append(m.writes, write{access: *at(ir.Const(0), runs(9)).at}, write{access: *at(ir.Const(0), runs(maxSegments)).at})
	r.writes = []int32{0}
	require.True(t, constant(r))
	r.writes = []int32{0, 1}
	require.False(t, constant(r))
}

// The work that a hostile graph can cause is bounded.
func TestChecksAfford(t *testing.T) {
	g := params(3)
	g.Memories = []ir.Memory{{Name: "m", Size: 1 << 20, Kind: ir.State, Alias: ir.NoMem}}
	m := newModel(context.Background(), g, nil)
	column := func(off int64) access {
		r := ir.Region{Off: ir.Const(off), Run: ir.Const(4), Dims: []ir.Dim{{Count: ir.Const(2), Stride: 8}}}
		return m.rooted(&r)
	}
	n := &names{m: m}
	for i := range 10 {
		m.writes = append(m.writes, write{access: column(4 * int64(i%2)), must: true})
		n.classes = append(n.classes, int32(i))
	}
	whole := access{end: 16}
	b, a := &reading{m: m, at: &whole, writes: []int32{0, 1}}, &reading{m: m, at: &whole, writes: []int32{1, 0}}
	many := &reading{m: m, at: &whole, writes: n.classes}
	require.True(t, permuted(b, a, n, n))
	require.True(t, constant(many))
	m.spent = 1 << 40
	require.False(t, permuted(b, a, n, n))
	require.False(t, constant(many))
	require.True(t, constant(b))
}
