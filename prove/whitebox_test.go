package prove

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// gives returns the reason with which make gives up.
func gives(make func()) (why string) {
	defer func() {
		if u, ok := recover().(undecided); ok {
			why = u.why
		}
	}()
	make()
	return ""
}

// Numbers and terms that only a hostile graph contains end the comparison, not the
// program.
func TestChecksLimits(t *testing.T) {
	g := &ir.Graph{Params: []ir.Param{{Name: "n", Type: ir.U32, Min: 0, Max: 7}}}
	tb := newTable(g)
	n := tb.affine(ir.Linear(0, ir.Term{Coeff: 1}))
	require.Contains(t, gives(func() { tb.linear(wide, nil) }), "an index reaches")
	require.Contains(t, gives(func() { tb.add(tb.integer(wide/2), 1, tb.integer(wide/2)) }), "an index reaches")
	require.Contains(t, gives(func() { tb.scale(tb.scale(n, 1<<40), 1<<40) }), "an index reaches")
	require.Contains(t, gives(func() { tb.div(n, 0) }), "a division by 0")
	require.Contains(t, gives(func() { tb.div(n, -3) }), "a division by -3")
	require.Empty(t, gives(func() {
		for i := range maxTerms - len(tb.nodes) {
			tb.intern(node{form: floatLoad, num: int64(i)})
		}
	}))
	require.Contains(t, gives(func() { tb.intern(node{form: floatLoad, num: maxTerms}) }), "parts")

	// Sums beyond all bounds are unbounded.
	far := newTable(g)
	x := far.intern(node{form: intOp, num: 1, lo: wide / 2, hi: wide/2 + 1})
	y := far.intern(node{form: intOp, num: 2, lo: wide/2 - 1, hi: wide / 2})
	lo, hi := far.bounds(node{num: wide / 2, lin: []linTerm{{x, 1}, {y, 1}}})
	require.Equal(t, [2]int64{-wide, wide}, [2]int64{lo, hi})
}

// decode inverts the strides of an argument, where they can be inverted.
func TestChecksDecode(t *testing.T) {
	g := &ir.Graph{}
	s := &side{t: newTable(g), m: &model{g: g}}
	decode := func(shape []int64, strides []int64, off func() termID) (env []termID, why string) {
		in := &decl.Instance{Decl: &decl.Decl{Args: []decl.Arg{{Name: "c", Elem: ir.F32}}}, Strides: [][]int64{strides}, Shapes: make([][]ir.Affine, 1)}
		for _, n := range shape {
			in.Shapes[0] = append(in.Shapes[0], ir.Const(n))
		}
		why = gives(func() { env = s.decode(&op{inst: in}, 0, off()) })
		return env, why
	}
	i := s.t.index(0, s.t.integer(4))
	j := s.t.index(1, s.t.integer(8))
	at := func(k, l int64) func() termID {
		return func() termID { return s.t.add(s.t.scale(i, 32*k), 32*l, j) }
	}
	env, why := decode([]int64{4, 8}, []int64{16, 2}, at(16, 2))
	require.Empty(t, why)
	require.Equal(t, []termID{i, j}, env)
	_, why = decode([]int64{4, 8}, []int64{16, 2}, at(16, 1))
	require.Contains(t, why, "between its elements")
	_, why = decode([]int64{4, 8}, []int64{7, 1}, at(7, 1))
	require.Contains(t, why, "interleave")
	_, why = decode([]int64{4, 8}, []int64{8, 1}, func() termID { return s.t.add(at(8, 1)(), 1, s.t.integer(16)) })
	require.Contains(t, why, "between its elements")
}

// A view may be moved only to where it keeps the alignment that it had.
func TestChecksAligned(t *testing.T) {
	n := func(c, k int64) ir.Affine { return ir.Linear(c, ir.Term{Coeff: k}) }
	for _, c := range []struct {
		from, to ir.Affine
		want     bool
	}{
		{ir.Const(64), ir.Const(128), true},
		{ir.Const(64), ir.Const(68), false},
		{ir.Const(4), ir.Const(68), true},
		{ir.Const(64), n(64, 16), false},
		{n(0, 16), ir.Const(16), true},
		{n(0, 64), n(0, 32), true},
		{n(32, 4), n(4, 8), true},
		{n(32, 4), n(2, 8), false},
	} {
		require.Equal(t, c.want, aligned(c.from, c.to, 32), "%v to %v", c.from, c.to)
	}
}

const fusing = `mlxt 1

graph g {
  memory %x input 256
  memory %s weight 256 f32[64] = random seed 1
  memory %y output 256
  memory %t scratch 256
  kernel @mul builtin "vv_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @copy builtin "v_copyfloat32float32" args(0 src: device f32 read, 1 dst: device f32 write)

`

// Declarations that the library does not have.
func TestChecksDeclarations(t *testing.T) {
	parse := func(body string) *ir.Graph {
		m, err := mlxt.Parse(context.Background(), "test", []byte(fusing+body+"}\n"))
		require.NoError(t, err)
		require.NoError(t, m.Graphs[0].Check())
		return m.Graphs[0]
	}
	const grid = " grid threads [64, 1, 1] of [64, 1, 1]"
	before := parse("  #0 @mul (a = %x[0:256], b = %s[0:256], c = %t[0:256])" + grid + "\n  barrier\n  #1 @copy (src = %t[0:256], dst = %y[0:256])" + grid + "\n")
	after := parse("  #1 @mul (a = %x[0:256], b = %s[0:256], c = %y[0:256])" + grid + " from #0, #1\n")
	change := func(o *op, with func(d *decl.Decl)) {
		in, d := *o.inst, *o.inst.Decl
		d.Args, d.Results = slices.Clone(d.Args), slices.Clone(d.Results)
		with(&d)
		in.Decl = &d
		o.inst = &in
	}
	for _, c := range []struct {
		name   string
		change func(p *proof)
		want   Verdict
		text   string
	}{
		{"as they are", func(p *proof) {}, Proved, ""},
		{"nondeterministic", func(p *proof) { change(&p.a.ops[0], func(d *decl.Decl) { d.Nondeterministic = true }) }, CannotTell, "its kernel is nondeterministic"},
		{"nondeterministic before", func(p *proof) { change(&p.b.ops[1], func(d *decl.Decl) { d.Nondeterministic = true }) }, CannotTell, "#1 is nondeterministic"},
		{"no terms", func(p *proof) {
			for _, o := range []*op{&p.a.ops[0], &p.b.ops[0], &p.b.ops[1]} {
				change(o, func(d *decl.Decl) { d.Results = nil })
			}
		}, CannotTell, "has no term"},
	} {
		b := recordedModel(context.Background(), before, nil)
		p := newProof(context.Background(), b, trace(b), byProvenance(b, after), Options{})
		p.build(after)
		c.change(p)
		p.check()
		if c.want == Proved {
			require.Equal(t, c.want, p.Verdict, "%s: %s", c.name, p.Result)
		} else {
			require.NotEmpty(t, p.Findings, c.name)
			require.Equal(t, c.want, p.Findings[0].Verdict, "%s: %s", c.name, p.Result)
			require.Contains(t, p.Findings[0].Text, c.text, c.name)
		}
	}
}

// A load of an argument that has no bytes, within a sum of no elements, does not count
// as a value that the dispatch reads.
func TestChecksEmptyLoad(t *testing.T) {
	d := &decl.Decl{Args: []decl.Arg{{Name: "x", Kind: ir.DeviceArg, Mode: decl.Read, Elem: ir.F32}, {Slot: 1, Name: "w", Kind: ir.DeviceArg, Mode: decl.Read, Elem: ir.F32}}}
	g := &ir.Graph{Memories: []ir.Memory{{Name: "x", Size: 64, Alias: ir.NoMem}}}
	in := &decl.Instance{Decl: d, Graph: g, Dispatch: &ir.Dispatch{}, Views: []ir.View{ir.ViewOf(0, 0, 0), ir.ViewOf(0, 0, 64)}, Shapes: [][]ir.Affine{{ir.Const(0)}, {ir.Const(16)}}, Strides: [][]int64{{1}, {1}}}
	s := &side{t: newTable(g), m: &model{g: g, ops: []op{{inst: in, id: 7, known: true}}}, leaf: func(int32, int) int { return 0 },
		read: func(int32, int) reading { return reading{m: &model{g: g}, at: &access{}, initial: true} }}
	e := &evaluation{s: s, in: in}
	load := func(arg int) string {
		return gives(func() {
			e.load(&term.Expr{Op: term.Load, Index: arg, Args: []*term.Expr{{Op: term.Number, Kind: term.Int}}})
		})
	}
	require.Empty(t, load(1))
	require.Contains(t, load(0), "x of #7 is not read")
}

// A half made from its bits needs no rounding to f16, and it is not a converted
// integer.
func TestHalvesOfIntegers(t *testing.T) {
	number := func(n int64) *term.Expr { return &term.Expr{Op: term.Number, Num: n} }
	i := &term.Expr{Op: term.Var, Index: 0}
	of := func(op term.Op, x *term.Expr) *term.Expr {
		return &term.Expr{Op: op, Kind: term.Float, Args: []*term.Expr{x}}
	}
	round := func(typ ir.DType, x *term.Expr) *term.Expr {
		return &term.Expr{Op: term.Round, Kind: term.Float, Type: typ, Args: []*term.Expr{x}}
	}
	tb := newTable(&ir.Graph{})
	e := &evaluation{s: &side{t: tb}, env: []termID{tb.index(0, tb.integer(70000))}, level: 1}
	half := e.eval(of(term.AsF16, i))
	require.Equal(t, half, e.eval(of(term.AsF16, i)))
	require.Equal(t, half, e.eval(round(ir.F16, of(term.AsF16, i))))
	require.Equal(t, half, e.eval(round(ir.F32, of(term.AsF16, i))))
	require.NotEqual(t, half, e.eval(round(ir.BF16, of(term.AsF16, i))))
	require.NotEqual(t, half, e.eval(of(term.ToF32, i)))
	require.NotEqual(t, half, e.eval(round(ir.F16, of(term.ToF32, i))))
	require.NotEqual(t, half, e.eval(of(term.AsF16, &term.Expr{Op: term.Add, Args: []*term.Expr{i, number(1)}})))
	require.Equal(t, tb.real(-2.5), e.eval(of(term.AsF16, number(0xc100))))
	require.Equal(t, tb.real(-2.5), e.eval(of(term.AsF16, number(0x7c100))), "the low 16 bits")
	require.NotEqual(t, tb.real(0), e.eval(of(term.AsF16, number(0x8000))), "minus zero")

	single := e.eval(of(term.AsF32, i))
	require.NotEqual(t, half, single)
	require.Equal(t, single, e.eval(round(ir.F32, of(term.AsF32, i))))
	require.NotEqual(t, single, e.eval(round(ir.F16, of(term.AsF32, i))))
	require.Equal(t, tb.real(-2.5), e.eval(of(term.AsF32, number(0xc0200000))))

	// The rewrite `round` is for floats: integers must be equal.
	x, y := &tb.nodes[half], &tb.nodes[e.eval(of(term.AsF16, number(3)))]
	require.False(t, sameOperation(x, x))
	require.False(t, sameOperation(x, y))
}

// The argmax that is evaluated at one place differs from the argmax at another place,
// and from the argmax without a place.
func TestChecksPlaces(t *testing.T) {
	number := func(n int64) *term.Expr { return &term.Expr{Op: term.Number, Num: n} }
	row := &term.Expr{Op: term.Var, Index: 0}
	argmax := func(place ...*term.Expr) *term.Expr {
		value := &term.Expr{Op: term.ToF32, Kind: term.Float, Args: []*term.Expr{{Op: term.Var, Index: 1}}}
		return &term.Expr{Op: term.ArgMax, Index: 1, Args: append([]*term.Expr{number(8), value}, place...)}
	}
	tb := newTable(&ir.Graph{})
	e := &evaluation{s: &side{t: tb}, env: []termID{tb.index(0, tb.integer(4))}, level: 1}
	one := &term.Expr{Op: term.Add, Args: []*term.Expr{row, number(1)}}
	seen := map[termID]string{}
	for _, x := range []*term.Expr{argmax(), argmax(number(0)), argmax(number(1)), argmax(row), argmax(one)} {
		id := e.eval(x)
		require.NotContains(t, seen, id, tb.format(id))
		seen[id] = tb.format(id)
		require.Equal(t, id, e.eval(x))
	}
	also := &term.Expr{Op: term.Sub, Args: []*term.Expr{row, number(-1)}}
	require.Equal(t, e.eval(argmax(one)), e.eval(argmax(also)), "places in normal form")
}

// TestChecksExtentsUnderBounds compares extents that only the params' bounds make equal.
func TestChecksExtentsUnderBounds(t *testing.T) {
	g := ir.NewBounds(&ir.Graph{Params: []ir.Param{{Name: "n", Min: 3, Max: 3}}}, ir.BoundsWork)
	n := ir.Linear(0, ir.Term{Param: 0, Coeff: 1})
	of := func(run, count ir.Affine, stride int64) *ir.Region {
		return &ir.Region{Run: run, Dims: []ir.Dim{{Count: count, Stride: stride}}}
	}
	require.True(t, extentsAgree(g, of(n, n, 8), of(ir.Const(3), ir.Const(3), 8)))
	require.False(t, extentsAgree(g, of(n, n, 8), of(ir.Const(2), ir.Const(3), 8)), "run")
	require.False(t, extentsAgree(g, of(n, n, 8), of(ir.Const(3), ir.Const(2), 8)), "count")
	require.False(t, extentsAgree(g, of(n, n, 8), of(ir.Const(3), ir.Const(3), 16)), "stride")
	require.False(t, extentsAgree(g, of(n, n, 8), &ir.Region{Run: n}), "dimensions")
}
