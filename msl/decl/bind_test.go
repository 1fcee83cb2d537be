package decl_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// fixture is a graph with one memory of 64 KiB, the u32 params n in [0, 8], pos in
// [0, 100] with n + pos ≤ 100, and the f32 param eps.
type fixture struct {
	b           *ir.Builder
	n, pos, eps ir.ParamID
	mem         ir.MemID
}

func newFixture() *fixture {
	f := &fixture{b: ir.NewBuilder("g")}
	f.n, f.pos, f.eps = f.b.Param("n", 0, 8), f.b.Param("pos", 0, 100), f.b.ParamF32("eps", 0, 1)
	f.b.Require(f.affine(0, f.n, 1, f.pos, 1), 100)
	f.mem = f.b.Memory(ir.Memory{Name: "m", Kind: ir.State, Size: 1 << 16})
	return f
}

// affine is c + Σ coefficient·param.
func (f *fixture) affine(c int64, terms ...any) ir.Affine {
	a := ir.Const(c)
	for i := 0; i < len(terms); i += 2 {
		a = a.Add(ir.Linear(0, ir.Term{Param: terms[i].(ir.ParamID), Coeff: int64(terms[i+1].(int))}))
	}
	return a
}

func (f *fixture) view(slot uint8, off, n int64) ir.Binding {
	return ir.BufferArg(slot, ir.ViewOf(f.mem, off, n))
}

func value(slot uint8, v ...any) ir.Binding { return ir.BytesArg(slot, ir.ValueBytes(v...)) }

// dispatch makes a dispatch of d with a constant grid.
func (f *fixture) dispatch(d *decl.Decl, kind ir.GridKind, grid [3]int64, group [3]uint32, bindings ...ir.Binding) *ir.Dispatch {
	n := ir.Dispatch{Kernel: f.b.Kernel(d.Kernel(d.Name)), GridKind: kind, Threadgroup: group, Bindings: bindings}
	for i, g := range grid {
		n.Grid[i] = ir.Ext(g)
	}
	return f.b.Dispatch(n)
}

func (f *fixture) bind(d *decl.Decl, n *ir.Dispatch) (*decl.Instance, error) {
	return d.Bind(f.b.Unfinished(), n)
}

var one = [3]uint32{1, 1, 1}

// rows is a kernel of threadgroups: y[r, i] of row r, length n.
func rows(t testing.TB) *decl.Decl {
	return parse(t, "kernel rows", "arg 0 x device f32[rows, n] read", "arg 1 y device f32[rows, n] write", "arg 2 n constant u32", "arg 3 eps constant f32",
		"groups rows, 1, 1", "group 32*ceil(n/128), 1, 1", "require n >= 1 && n <= 1024", "inplace y x", "term y[r, i] = round(f32, x[r, i] + eps)")
}

// flat is a kernel of threads.
func flat(t testing.TB) *decl.Decl {
	return parse(t, "kernel flat", "arg 0 x device f32[m, n] read", "arg 1 y device f32[m, n] write", "threads n, m, 1", "group _, 1, 1", "term y[r, i] = x[r, i]")
}

// TestGridUnits: either sort of kernel takes either sort of grid, and the same
// shapes come out.
func TestGridUnits(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  ir.GridKind
		grid  [3]int64
		group [3]uint32
		want  string // shape of y, or the error
	}{
		{"rows in groups", ir.Threadgroups, [3]int64{5, 1, 1}, [3]uint32{64, 1, 1}, "[5 200]"},
		{"rows in threads", ir.Threads, [3]int64{320, 1, 1}, [3]uint32{64, 1, 1}, "[5 200]"},
		{"rows, wrong group", ir.Threadgroups, [3]int64{5, 1, 1}, [3]uint32{32, 1, 1}, "#0 rows: @group dimension 0: 32 * ceil(n / 128) = ceil((64) / 1), the dispatch has ceil((32) / 1): " + decl.ErrMismatch.Error()},
		{"rows, wrong y", ir.Threadgroups, [3]int64{5, 2, 1}, [3]uint32{64, 1, 1}, "#0 rows: @groups dimension 1: 1 = ceil((1) / 1), the dispatch has ceil((2) / 1): " + decl.ErrMismatch.Error()},
		{"rows, partial threadgroup", ir.Threads, [3]int64{319, 1, 1}, [3]uint32{64, 1, 1}, "#0 rows: the grid's ceil((319) / 1) threads in dimension 0 leave a threadgroup of 64 partly empty"},
		{"flat in threads", ir.Threads, [3]int64{200, 5, 1}, [3]uint32{64, 1, 1}, "[5 200]"},
		{"flat in groups", ir.Threadgroups, [3]int64{4, 5, 1}, [3]uint32{50, 1, 1}, "[5 200]"},
		{"flat, wrong group", ir.Threads, [3]int64{200, 5, 1}, [3]uint32{64, 5, 1}, "#0 flat: @group dimension 1: 1 = ceil((1) / 1), the dispatch has ceil((5) / 1): " + decl.ErrMismatch.Error()},
		{"flat, wrong z", ir.Threads, [3]int64{200, 5, 2}, [3]uint32{64, 1, 1}, "#0 flat: @threads dimension 2: 1 = ceil((1) / 1), the dispatch has ceil((2) / 1): " + decl.ErrMismatch.Error()},
		{"flat, empty", ir.Threads, [3]int64{0, 5, 1}, [3]uint32{64, 1, 1}, "[5 0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture()
			d, args := flat(t), []ir.Binding{f.view(0, 0, 4000), f.view(1, 8192, 4000)}
			if c.name[:4] == "rows" {
				d, args = rows(t), append(args, value(2, uint32(200)), value(3, float32(1)))
			}
			in, err := f.bind(d, f.dispatch(d, c.kind, c.grid, c.group, args...))
			if err != nil {
				assert.EqualError(t, err, c.want)
				return
			}
			assert.Equal(t, c.want, fmt.Sprint(in.Concrete(nil)[1]))
		})
	}
}

// TestParamGrids: what depends on params stays symbolic, in both units.
func TestParamGrids(t *testing.T) {
	f := newFixture()
	d := flat(t)
	n := f.dispatch(d, ir.Threads, [3]int64{16, 0, 1}, [3]uint32{16, 1, 1}, f.view(0, 0, 512), f.view(1, 512, 512))
	n.Grid[1] = ir.Extent{Num: f.affine(0, f.n, 1), Div: 1}
	in, err := f.bind(d, n)
	require.NoError(t, err)
	assert.Equal(t, [][]int64{{3, 16}, {3, 16}}, in.Concrete([]uint32{3, 0, 0}))
	e, err := in.Effects()
	require.NoError(t, err)
	assert.Equal(t, "%m[512:64*$n + 512]", f.b.Unfinished().FormatRegion(e.Writes[0].Region))

	// The same in threadgroups of 8 × 1 threads.
	n.GridKind, n.Grid[0], n.Threadgroup[0] = ir.Threadgroups, ir.Ext(2), 8
	again, err := f.bind(d, n)
	require.NoError(t, err)
	assert.Equal(t, in.Shapes, again.Shapes)

	// Threads of ⌈n/2⌉ threadgroups are not affine in n, unless they are bound by nobody.
	n.Grid[1] = ir.Extent{Num: f.affine(0, f.n, 1), Div: 2}
	_, err = f.bind(d, n)
	assert.EqualError(t, err, "#0 flat: the grid's threads in dimension 1 are not affine")
}

// TestEmptyGridsWriteNothing: what a kernel certainly writes must be empty where a
// param makes its grid so, or the dispatch is not described.
func TestEmptyGridsWriteNothing(t *testing.T) {
	f := newFixture()
	d := flat(t)
	n := f.dispatch(d, ir.Threads, [3]int64{16, 0, 1}, [3]uint32{16, 1, 1}, f.view(0, 0, 512), f.view(1, 512, 512))
	n.Grid[1] = ir.Extent{Num: f.affine(0, f.n, 1), Div: 1}
	_, err := f.bind(d, n)
	require.NoError(t, err)

	one := parse(t, "kernel one", "arg 0 x device f32[m, n] read", "arg 1 y device f32[n] write", "threads n, m, 1", "group _, 1, 1", "term y[i] = x[0, i]")
	n = f.dispatch(one, ir.Threads, [3]int64{16, 0, 1}, [3]uint32{16, 1, 1}, f.view(0, 0, 512), f.view(1, 512, 512))
	n.Grid[1] = ir.Extent{Num: f.affine(0, f.n, 1), Div: 1}
	_, err = f.bind(one, n)
	require.EqualError(t, err, "#1 one: dimension 1 of the grid, $n, may be 0, and y would be written all the same")
	n.Grid[1] = ir.Extent{Num: f.affine(1, f.n, 1), Div: 1}
	_, err = f.bind(one, n)
	require.NoError(t, err)
}

// TestCeilGrids: a grid of ⌈n/tile⌉ threadgroups equals the declared one in any
// of the forms that it can have.
func TestCeilGrids(t *testing.T) {
	d := parse(t, "kernel tiles", "arg 0 y device f32[m, k] write", "arg 1 m constant i32", "arg 2 k constant i32",
		"groups ceil(k/32), ceil(m/32), 1", "group 32, 2, 1", "term y[r, i] = round(f32, r)")
	bind := func(m ir.Affine, kind ir.GridKind, gx, gy ir.Extent) error {
		f := newFixture()
		n := f.dispatch(d, kind, [3]int64{0, 0, 1}, [3]uint32{32, 2, 1}, f.view(0, 0, 1<<16), ir.ScalarArg(1, ir.I32, m), value(2, int32(70)))
		n.Grid[0], n.Grid[1] = gx, gy
		_, err := f.bind(d, n)
		return err
	}
	f := newFixture()
	m := f.affine(0, f.n, 4) // 4n
	three := ir.Ext(3)
	assert.NoError(t, bind(m, ir.Threadgroups, three, ir.Extent{Num: m, Div: 32}))
	assert.NoError(t, bind(m, ir.Threadgroups, ir.Extent{Num: ir.Const(70), Div: 32}, ir.Extent{Num: f.affine(0, f.n, 1), Div: 8}), "4n/32 = n/8")
	assert.NoError(t, bind(f.affine(0, f.n, 64), ir.Threadgroups, three, ir.Extent{Num: f.affine(0, f.n, 2), Div: 1}), "64n/32 = 2n")
	assert.NoError(t, bind(f.affine(0, f.n, 64), ir.Threads, ir.Ext(96), ir.Extent{Num: f.affine(0, f.n, 4), Div: 1}), "2n threadgroups of 2 threads")
	assert.ErrorIs(t, bind(m, ir.Threadgroups, three, ir.Extent{Num: m, Div: 64}), decl.ErrMismatch)
	assert.ErrorIs(t, bind(m, ir.Threadgroups, three, ir.Extent{Num: m.AddConst(1), Div: 32}), decl.ErrMismatch)
	assert.ErrorIs(t, bind(m, ir.Threadgroups, ir.Ext(2), ir.Extent{Num: m, Div: 32}), decl.ErrMismatch)
	assert.ErrorContains(t, bind(m, ir.Threads, ir.Ext(96), ir.Extent{Num: f.affine(0, f.n, 2), Div: 32}), "leave a threadgroup of 2 partly empty")
	assert.ErrorContains(t, bind(m, ir.Threads, ir.Ext(70), ir.Extent{Num: m, Div: 1}), "leave a threadgroup of 32 partly empty")
}

// TestAffineShapes: what is affine in the params is computed exactly, what is
// not is refused with the expression that is at fault.
func TestAffineShapes(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{"n", "$n"}, {"2*n + 3", "2*$n + 3"}, {"n*4/2", "2*$n"}, {"(8*n + 16)/8", "$n + 2"}, {"n - n", "0"}, {"3 - n + 2*n", "$n + 3"},
		{"ceil(6*n/3)", "2*$n"}, {"ceil(12/5) + n", "$n + 3"}, {"(n*32) % 32 + n", "$n"}, {"max(3, 5)*n", "5*$n"}, {"-(-n)", "$n"}, {"n + pos", "$n + $pos"},
		{"ceil(n/2)", "#0 k: shape of y: ceil(n / 2) is not affine in the params"},
		{"n/2", "#0 k: shape of y: n / 2 is not affine in the params"},
		{"n*n", "#0 k: shape of y: n * n is not affine in the params"},
		{"n % 2", "#0 k: shape of y: n % 2 is not affine in the params"},
		{"min(n, 3)", "#0 k: shape of y: min(n, 3) is not affine in the params"},
		{"ceil(n/2) * 2", "#0 k: shape of y: ceil(n / 2) * 2 is not affine in the params"},
		{"n / 0", "#0 k: shape of y: n / 0 is not affine in the params"},
		{"3 / 0", "#0 k: shape of y: division by zero"},
		{"n - 1", "#0 k: shape of y: dimension 0, n - 1 = $n - 1, can be -1"},
		{"3 - 4", "#0 k: shape of y: dimension 0, 3 - 4 = -1, can be -1"},
		{"100 - n - pos", "-$n - $pos + 100"}, // by the constraint
		{"99 - n - pos", "#0 k: shape of y: dimension 0, 99 - n - pos = -$n - $pos + 99, can be -1"},
		{"1073741824 * 1073741824", "#0 k: shape of y: 1073741824 * 1073741824 reaches 2^52"},
		{"n * 1073741824 * 1073741824", "#0 k: shape of y: n * 1073741824 * 1073741824 reaches 2^52"},
		{"big + n", "#0 k: shape of y: big reaches 2^52"},
		{"ceil(ceil(n / 1073741824) / 1073741824)", "#0 k: shape of y: ceil(ceil(n / 1073741824) / 1073741824): its divisor reaches 2^52"},
	} {
		f := newFixture()
		d := parse(t, "kernel k", "arg 0 y device f32["+c.expr+"] write", "arg 1 n constant i32", "arg 2 pos constant u32", "arg 3 big constant i64", "groups 1, 1, 1", "term y[i] = round(f32, i)")
		in, err := f.bind(d, f.dispatch(d, ir.Threadgroups, [3]int64{1, 1, 1}, one, f.view(0, 0, 1<<16),
			ir.ScalarArg(1, ir.I32, f.affine(0, f.n, 1)), ir.ScalarArg(2, ir.U32, f.affine(0, f.pos, 1)), value(3, int64(math.MaxInt64))))
		if err != nil {
			assert.EqualError(t, err, c.want)
			continue
		}
		assert.Equal(t, c.want, f.b.Unfinished().FormatAffine(in.Shapes[0][0]), c.expr)
	}
}

// TestBindErrors: what keeps a declaration from describing a dispatch.
func TestBindErrors(t *testing.T) {
	good := func(f *fixture) []ir.Binding {
		return []ir.Binding{f.view(0, 0, 4000), f.view(1, 8192, 4000), value(2, uint32(200)), value(3, float32(1))}
	}
	for name, c := range map[string]struct {
		change   func(f *fixture, n *ir.Dispatch)
		want     string
		mismatch bool
	}{
		"require": {func(f *fixture, n *ir.Dispatch) { n.Bindings[2] = value(2, uint32(1025)) },
			"#0 rows: @require n >= 1 && n <= 1024 does not hold: " + decl.ErrMismatch.Error(), true},
		"not bound": {func(f *fixture, n *ir.Dispatch) { n.Bindings = n.Bindings[1:] },
			"#0 rows: argument 0 (x) is not bound", false},
		"written inline": {func(f *fixture, n *ir.Dispatch) { n.Bindings[1] = value(1, uint32(1)) },
			"#0 rows: argument 1 (y) is written but bound inline", false},
		"constant in a buffer": {func(f *fixture, n *ir.Dispatch) { n.Bindings[2] = f.view(2, 0, 4) },
			"#0 rows: argument 2 (n) is bound to a buffer: its value is not known before the replay", false},
		"constant too short": {func(f *fixture, n *ir.Dispatch) { n.Bindings[2].Bytes = []byte{1, 2} },
			"#0 rows: argument 2 (n) has 2 bytes, needs 4", false},
		"scalar of another type": {func(f *fixture, n *ir.Dispatch) { n.Bindings[2] = ir.ScalarArg(2, ir.I32, f.affine(0, f.n, 1)) },
			"#0 rows: argument 2 (n) is u32, bound as i32", false},
		"float expression": {func(f *fixture, n *ir.Dispatch) { n.Bindings[3] = ir.ScalarArg(3, ir.F32, f.affine(0, f.eps, 2)) },
			"#0 rows: argument 3 (eps): an f32 expression is one f32 param", false},
		"constant float expression": {func(f *fixture, n *ir.Dispatch) { n.Bindings[3] = ir.ScalarArg(3, ir.F32, ir.Const(2)) },
			"#0 rows: argument 3 (eps): an f32 expression is one f32 param", false},
		"misaligned": {func(f *fixture, n *ir.Dispatch) { n.Bindings[0] = f.view(0, 2, 4000) },
			"#0 rows: argument 0 (x): %m[2:4002] begins at no multiple of the 4 bytes of a f32", false},
		"misaligned for a param": {func(f *fixture, n *ir.Dispatch) {
			n.Bindings[0].View.Off = f.affine(0, f.pos, 2)
		}, "#0 rows: argument 0 (x): %m[2*$pos:2*$pos + 4000] begins at no multiple of the 4 bytes of a f32", false},
		"misaligned alias": {func(f *fixture, n *ir.Dispatch) {
			n.Bindings[0].View.Mem = f.b.Alias("a", f.mem, 6, 4096)
		}, "#0 rows: argument 0 (x): %a[0:4000] begins at no multiple of the 4 bytes of a f32", false},
		"group for some values only": {func(f *fixture, n *ir.Dispatch) { n.Bindings[2] = ir.ScalarArg(2, ir.U32, f.affine(1, f.pos, 1)) },
			"#0 rows: @group: 32 * ceil(n / 128) is not affine in the params", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, d := newFixture(), rows(t)
			n := f.dispatch(d, ir.Threadgroups, [3]int64{5, 1, 1}, [3]uint32{64, 1, 1}, good(f)...)
			_, err := f.bind(d, n)
			require.NoError(t, err)
			c.change(f, n)
			_, err = f.bind(d, n)
			assert.EqualError(t, err, c.want)
			assert.Equal(t, c.mismatch, errors.Is(err, decl.ErrMismatch))
		})
	}
}

// TestConstants: function constants and constant arguments of every type.
func TestConstants(t *testing.T) {
	d := parse(t, "kernel k", "constant 1 a bool", "constant 2 b i32", "constant 3 c f32", "constant 4 e f16", "arg 0 y device u8[n] write",
		"arg 1 n constant u8", "arg 2 m constant i8", "arg 3 s constant i64[2]", "arg 4 h constant bf16", "arg 5 f constant f32", "arg 6 w constant u16", "arg 7 v constant i16", "arg 8 u constant u64",
		"groups 1, 1, 1", "term y[i] = u8(i)")
	f := newFixture()
	n := f.dispatch(d, ir.Threadgroups, [3]int64{1, 1, 1}, one, f.view(0, 0, 256), value(1, uint8(200)), value(2, int8(-3)), value(3, int64(1), int64(-2)),
		value(4, uint16(0x3fc0)), ir.ScalarArg(5, ir.F32, f.affine(0, f.eps, 1)), value(6, uint16(65535)), value(7, int16(-1)), value(8, uint64(1<<40)))
	k := f.b.KernelAt(0)
	k.Constants = []ir.FunctionConstant{{Index: 1, Type: ir.Bool, Bits: 1}, {Index: 2, Type: ir.I32, Bits: 0xfffffffe}, {Index: 3, Type: ir.F32, Bits: uint64(math.Float32bits(2.5))}, {Index: 4, Type: ir.F16, Bits: 0x3c00}}
	in, err := f.bind(d, n)
	require.NoError(t, err)
	got := map[string]any{}
	for i, s := range d.Symbols {
		switch v := in.Symbols[i]; {
		case v.Param >= 0:
			got[s.Name] = "param " + f.b.Unfinished().Params[v.Param].Name
		case s.Kind.String() == "float":
			got[s.Name] = v.F
		default:
			got[s.Name] = v.Num.Const
		}
	}
	assert.Equal(t, map[string]any{"a": int64(1), "b": int64(-2), "c": float32(2.5), "e": float32(1), "n": int64(200), "m": int64(-3), "s[0]": int64(1), "s[1]": int64(-2),
		"h": float32(1.5), "f": "param eps", "w": int64(65535), "v": int64(-1), "u": int64(1 << 40)}, got)

	n.Bindings[8] = value(8, uint64(math.MaxUint64))
	_, err = f.bind(d, n)
	assert.EqualError(t, err, "#0 k: argument 8 (u): a u64 of 0xffffffffffffffff is no integer within 63 bits")
	k.Constants[1].Type = ir.U32
	_, err = f.bind(d, n)
	assert.EqualError(t, err, "#0 k: function constant 2 (b) is i32, the kernel has u32")
	k.Constants = k.Constants[:1]
	_, err = f.bind(d, n)
	assert.EqualError(t, err, "#0 k: function constant 2 (b) has no value")
}

// TestRequire decides conditions for every value of the params.
func TestRequire(t *testing.T) {
	for _, c := range []struct {
		cond  string
		holds bool
		err   string
	}{
		{"n <= 8", true, ""}, {"n < 8", false, ""}, {"n >= 0", true, ""}, {"n > 0", false, ""}, {"n == 3", false, ""}, {"n != 9", true, ""}, {"n != 3", false, ""},
		{"n == n", true, ""}, {"n + pos <= 100", true, ""}, {"n + pos < 100", false, ""}, {"!(n > 8)", true, ""}, {"!(n == 3)", false, ""}, {"!(n < 8)", false, ""},
		{"n < 5 || n >= 5", false, ""}, // one side or the other holds for each value, but neither holds for all: refused
		{"n < 0 || pos <= 100", true, ""}, {"n <= 8 && pos <= 100", true, ""}, {"n <= 8 && pos <= 99", false, ""},
		{"pow2(c)", true, ""}, {"pow2(c + 1)", false, ""}, {"pow2(n)", false, ""}, {"c % 8 == 0", true, ""}, {"(8*n) % 8 == 0", true, ""},
		{"!(n < 3 && n > 5)", false, "!(n < 3 && n > 5): only comparisons are negated"},
		{"!pow2(c)", false, "!pow2(c): only comparisons are negated"},
		{"n % 3 == 0", false, "n % 3 is not affine in the params"},
		{"eps < 1.0", false, "eps is no integer"},
		{"c / 0 == 1", false, "division by zero"},
	} {
		f := newFixture()
		d := parse(t, "kernel k", "arg 0 y device f32[1] write", "arg 1 n constant i32", "arg 2 pos constant i32", "arg 3 c constant u32", "arg 4 eps constant f32", "groups 1, 1, 1", "require "+c.cond, "term y[i] = round(f32, i)")
		in, err := f.bind(d, f.dispatch(d, ir.Threadgroups, [3]int64{1, 1, 1}, one, f.view(0, 0, 4), ir.ScalarArg(1, ir.I32, f.affine(0, f.n, 1)),
			ir.ScalarArg(2, ir.I32, f.affine(0, f.pos, 1)), value(3, uint32(16)), value(4, float32(0.5))))
		switch {
		case c.err != "":
			assert.ErrorContains(t, err, c.err)
			assert.False(t, errors.Is(err, decl.ErrMismatch))
		case c.holds:
			if assert.NoError(t, err, c.cond) {
				assert.Equal(t, "#0 k", in.String())
			}
		default:
			assert.ErrorIs(t, err, decl.ErrMismatch, c.cond)
		}
	}
}

// TestThreadgroupMemory: a threadgroup argument needs the memory of its shape.
func TestThreadgroupMemory(t *testing.T) {
	d := parse(t, "kernel k", "arg 0 y device f32[n] write", "arg 1 n constant i32", "arg 0 t threadgroup f32[n, 2]", "groups 1, 1, 1", "term y[i] = round(f32, i)")
	f := newFixture()
	n := f.dispatch(d, ir.Threadgroups, [3]int64{1, 1, 1}, one, f.view(0, 0, 4096), value(1, int32(30)))
	_, err := f.bind(d, n)
	assert.EqualError(t, err, "#0 k: threadgroup argument 0 (t) has 0 bytes, needs 240")
	n.ThreadgroupMemory = []ir.ThreadgroupMemory{{Slot: 0, Bytes: 240}}
	in, err := f.bind(d, n)
	require.NoError(t, err)
	e, err := in.Effects()
	require.NoError(t, err)
	assert.Len(t, e.Writes, 1)
	n.Bindings[1] = ir.ScalarArg(1, ir.I32, f.affine(0, f.n, 1))
	_, err = f.bind(d, n)
	assert.EqualError(t, err, "#0 k: threadgroup argument 0 (t): its size depends on params or is absurd")
}

// The elements of an array that lies in argument memory are what its values say, affine in params too; what is no whole element
// there, or lies elsewhere, is not known.
func TestArrayInArgumentMemory(t *testing.T) {
	d := parse(t, "kernel k", "arg 0 y device f32[a[1], a[0]] write", "arg 1 a constant u32[2]", "groups 1, 1, 1", "term y[i, j] = round(f32, i)")
	for _, c := range []struct {
		values []ir.Value
		off, n int64
		want   string
	}{
		{[]ir.Value{{Off: 32, Bytes: ir.ValueBytes(uint32(8))}, {Off: 36, Type: ir.U32}}, 32, 8, "8 2*$n + 1"},
		{[]ir.Value{{Off: 32, Bytes: ir.ValueBytes(uint32(8), uint32(5))}}, 32, 8, "8 5"},
		{[]ir.Value{{Off: 32, Bytes: ir.ValueBytes(uint32(5))}, {Off: 36, Type: ir.U32}}, 32, 16, "5 2*$n + 1"},
		{[]ir.Value{{Off: 32, Bytes: ir.ValueBytes(uint32(8))}, {Off: 36, Type: ir.U64}}, 32, 8, "#0 k: argument 1 (a): element 1 is no u32 in argument memory"},
		{[]ir.Value{{Off: 32, Bytes: ir.ValueBytes(uint32(8))}, {Off: 36, Type: ir.I32}}, 32, 8, "#0 k: argument 1 (a): element 1 is no u32 in argument memory"},
		{[]ir.Value{{Off: 32, Bytes: ir.ValueBytes(uint32(8))}, {Off: 38, Type: ir.U32}}, 32, 8, "#0 k: argument 1 (a): element 1 is no u32 in argument memory"},
		{[]ir.Value{{Off: 32, Bytes: ir.ValueBytes(uint32(8))}, {Off: 36, Type: ir.U32}}, 32, 6, "#0 k: argument 1 (a) is bound to a buffer: its value is not known before the replay"},
	} {
		f := newFixture()
		for i := range c.values {
			if c.values[i].Bytes == nil {
				c.values[i].Expr = f.affine(1, f.n, 2)
			}
		}
		args := f.b.Memory(ir.Memory{Name: "args", Kind: ir.Argument, Size: 64, Init: ir.Init{Kind: ir.InitValues, Values: c.values}})
		in, err := f.bind(d, f.dispatch(d, ir.Threadgroups, [3]int64{1, 1, 1}, one, f.view(0, 0, 1<<16), ir.BufferArg(1, ir.ViewOf(args, c.off, c.n))))
		if err != nil {
			assert.EqualError(t, err, c.want)
			continue
		}
		g := f.b.Unfinished()
		assert.Equal(t, c.want, g.FormatAffine(in.Shapes[0][1])+" "+g.FormatAffine(in.Shapes[0][0]))
	}
}
