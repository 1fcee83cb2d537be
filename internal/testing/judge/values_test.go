package judge_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
	"github.com/mlxc/mlxc/msl/term"
)

// This test attacks the meaning of values. Its graphs have no difficulties of order,
// but odd terms and odd data.

// shaped says which dimensions of the result's shape [d0, d1] a value has.
type shaped uint8

const (
	full shaped = iota
	row
	column
	single
)

// value is an operand of commands.
type value struct {
	view ir.View
	typ  ir.DType
	is   shaped
}

// chef makes one graph of values.
type chef struct {
	r       *rand.Rand
	g       *ir.Graph
	d0, d1  int64
	values  []value
	kernels map[string]ir.KernelID
}

// oddGraph makes graph number n: three to nine commands, with barriers between all of
// them.
func oddGraph(n uint64) *ir.Graph {
	r := rand.New(rand.NewPCG(n, 2026))
	c := &chef{r: r, g: &ir.Graph{Name: "g"}, kernels: map[string]ir.KernelID{}}
	c.d0, c.d1 = int64(1+r.IntN(3)), []int64{1, 2, 4, 8, 16, 17, 34, 64}[r.IntN(8)]
	for _, in := range []struct {
		typ ir.DType
		is  shaped
	}{{ir.F32, full}, {ir.F32, full}, {ir.F16, full}, {ir.F16, full}, {ir.BF16, full}, {ir.F32, row}, {ir.F16, row}, {ir.BF16, row}, {ir.F32, column}, {ir.F32, single}, {ir.F16, single}} {
		c.memory(ir.Input, in.typ, in.is, ir.Init{})
	}
	for _, w := range []uint32{0x3f800000, 0x80000000, 0x7fc12345, 0x3c003c00} {
		c.memory(ir.Weight, ir.F32, full, ir.FillU32(w))
	}
	c.memory(ir.Weight, ir.F32, row, ir.FillU32(0x3f800000))
	for want := 3 + r.IntN(7); len(c.g.Nodes) < 2*want; {
		c.command(len(c.g.Nodes) >= 2*want-2)
	}
	return c.g
}

func (c *chef) elements(is shaped) int64 { return []int64{c.d0 * c.d1, c.d1, c.d0, 1}[is] }

// memory adds a root memory that holds one value.
func (c *chef) memory(kind ir.MemKind, t ir.DType, is shaped, init ir.Init) value {
	n := c.elements(is)
	m := ir.Memory{Name: fmt.Sprintf("m%d", len(c.g.Memories)), Kind: kind, Size: n * t.Size(), DType: t, Shape: []int64{n}, Init: init, Alias: ir.NoMem}
	c.g.Memories = append(c.g.Memories, m)
	v := value{ir.ViewOf(ir.MemID(len(c.g.Memories)-1), 0, m.Size), t, is}
	if kind == ir.Input || kind == ir.Weight {
		c.values = append(c.values, v)
	}
	return v
}

// result returns where a command writes. The last command of a graph writes to an
// output.
func (c *chef) result(t ir.DType, last bool) value {
	kind := ir.Scratch
	if last || c.r.IntN(10) == 0 {
		kind = ir.Output
	}
	return c.memory(kind, t, full, ir.Init{})
}

// pick draws a value of type t and one of the shapes, later values more often.
// Sometimes f16 elements are taken from bytes that were written as f32.
func (c *chef) pick(t ir.DType, shapes ...shaped) value {
	if t == ir.F16 && shapes[0] == full && c.r.IntN(12) == 0 {
		v := c.pick(ir.F32, full)
		v.view.Len, v.typ = ir.Const(v.view.Len.Const/2), ir.F16
		return v
	}
	var fit []value
	for _, v := range c.values {
		if v.typ == t && slices.Contains(shapes, v.is) {
			fit = append(fit, v)
		}
	}
	n := len(fit)
	return fit[n-1-min(c.r.IntN(n), c.r.IntN(n), c.r.IntN(n))]
}

func (c *chef) builtin(name string, constants ...ir.FunctionConstant) ir.KernelID {
	id, ok := c.kernels[name]
	if !ok {
		k := msl.Declarations(name)[0].Kernel(name)
		k.Constants = constants
		id = c.add(k)
		c.kernels[name] = id
	}
	return id
}

func (c *chef) add(k ir.Kernel) ir.KernelID {
	k.Name = fmt.Sprintf("k%d", len(c.g.Kernels))
	c.g.Kernels = append(c.g.Kernels, k)
	return ir.KernelID(len(c.g.Kernels) - 1)
}

func (c *chef) dispatch(kind ir.GridKind, k ir.KernelID, grid, group [3]int64, bs ...ir.Binding) {
	d := &ir.Dispatch{ID: ir.ID(len(c.g.Nodes) / 2), Kernel: k, GridKind: kind, Bindings: bs}
	for i := range grid {
		d.Grid[i], d.Threadgroup[i] = ir.Ext(grid[i]), uint32(group[i])
	}
	c.g.Nodes = append(c.g.Nodes, d, &ir.Barrier{})
}

// inputs binds the values, of which the last one is the result, from slot 0 on.
func inputs(vs ...value) (bs []ir.Binding) {
	for i, v := range vs {
		bs = append(bs, ir.BufferArg(uint8(i), v.view))
	}
	return bs
}

func bytesArg(slot uint8, v any) ir.Binding { return ir.BytesArg(slot, ir.ValueBytes(v)) }

func (c *chef) command(last bool) {
	n := c.d0 * c.d1
	flat := [3]int64{n, 1, 1}
	var out value
	done := func() { c.values = append(c.values, out) }
	switch k := c.r.IntN(20); k {
	default:
		c.generated(last)
		return
	case 0, 1, 2, 3:
		x := c.pick(ir.F32, full)
		out = c.result(ir.F32, last)
		c.dispatch(ir.Threads, c.builtin([]string{"v_Silufloat32float32", "v_Sigmoidfloat32float32", "v_Gelufloat32float32", "v_copyfloat32float32"}[k]), flat, flat, inputs(x, out)...)
	case 4:
		x := c.pick(ir.F32, full)
		out = c.result(ir.F32, last)
		c.dispatch(ir.Threads, c.builtin("v_Softcapfloat32float32"), flat, flat, append(inputs(x, out), bytesArg(3, float32(c.r.IntN(40)-5)))...)
	case 5, 6:
		t := []ir.DType{ir.F32, ir.F16}[c.r.IntN(2)]
		a, b := c.pick(t, full), c.pick(t, full)
		out = c.result(t, last)
		c.dispatch(ir.Threads, c.builtin([]string{"vv_Add", "vv_Multiply"}[k-5]+map[ir.DType]string{ir.F32: "float32", ir.F16: "float16"}[t]), flat, flat, inputs(a, b, out)...)
	case 7, 8: // broadcast
		a, b := c.pick(ir.F32, full, row, column, single), c.pick(ir.F32, full, row, column, single)
		out = c.result(ir.F32, last)
		strides := func(v value) []int64 {
			return [][]int64{{c.d1, 1}, {0, 1}, {1, 0}, {0, 0}}[v.is]
		}
		c.dispatch(ir.Threads, c.builtin([]string{"g2_Addfloat32", "g2_Multiplyfloat32"}[k-7]), [3]int64{c.d1, c.d0, 1}, [3]int64{c.d1, 1, 1},
			append(inputs(a, b, out), bytesArg(3, strides(a)), bytesArg(4, strides(b)))...)
	case 9, 10:
		t := []ir.DType{ir.F32, ir.F16}[k-9]
		x, w := c.pick(t, full), c.pick(t, row, single)
		out = c.result(t, last)
		stride := uint32(1)
		if w.is == single {
			stride = 0
		}
		lanes := (c.d1 + 127) / 128 * 32
		c.dispatch(ir.Threadgroups, c.builtin([]string{"rmsfloat32", "rmsfloat16"}[k-9]), [3]int64{c.d0, 1, 1}, [3]int64{lanes, 1, 1},
			append(inputs(x, w, out), bytesArg(3, float32(1e-5)), bytesArg(4, uint32(c.d1)), bytesArg(5, stride))...)
	case 11, 12:
		i := c.r.IntN(3)
		t := []ir.DType{ir.F32, ir.F16, ir.BF16}[i]
		x, w, b := c.pick(t, full), c.pick(t, row), c.pick(t, row)
		out = c.result(t, last)
		c.dispatch(ir.Threadgroups, c.builtin([]string{"layer_normfloat32", "layer_normfloat16", "layer_normbfloat16"}[i]), [3]int64{c.d0, 1, 1}, [3]int64{(c.d1 + 255) / 256 * 32, 1, 1},
			append(inputs(x, w, b, out), bytesArg(4, float32(1e-5)), bytesArg(5, uint32(c.d1)), bytesArg(6, uint32(1)), bytesArg(7, uint32(1)))...)
	case 13:
		x := c.pick(ir.F32, full)
		out = c.result(ir.F32, last)
		c.dispatch(ir.Threadgroups, c.builtin("block_softmax_float32"), [3]int64{c.d0, 1, 1}, [3]int64{(c.d1 + 127) / 128 * 32, 1, 1}, append(inputs(x, out), bytesArg(2, int32(c.d1)))...)
	case 14:
		if c.d1%2 != 0 {
			return
		}
		x := c.pick(ir.F32, full)
		out = c.result(ir.F32, last)
		id := c.builtin("rope_single_float32", ir.FunctionConstant{Index: 1, Name: "forward", Type: ir.Bool, Bits: 1}, ir.FunctionConstant{Index: 2, Name: "traditional", Type: ir.Bool, Bits: 1})
		c.dispatch(ir.Threads, id, [3]int64{c.d1 / 2, c.d0, 1}, [3]int64{c.d1 / 2, 1, 1},
			append(inputs(x, out), bytesArg(2, int32(c.r.IntN(9))), bytesArg(3, float32(1)), bytesArg(4, c.d1), bytesArg(10, float32(13)))...)
	case 15:
		x := c.pick(ir.F16, full)
		out = c.result(ir.F16, last)
		c.dispatch(ir.Threads, c.builtin("v_copyfloat16float16"), flat, flat, inputs(x, out)...)
	}
	done()
}

// generated adds a dispatch of a generated kernel of one or two random terms.
func (c *chef) generated(last bool) {
	flat := c.r.IntN(2) == 0
	names, scalars := map[string]value{}, map[string]float32{}
	leaf := func(t ir.DType, shapes ...shaped) *term.Expr {
		if flat {
			shapes = slices.DeleteFunc(shapes, func(s shaped) bool { return s == row || s == column })
		}
		v := c.pick(t, shapes...)
		e := &term.Expr{Op: term.Load, Kind: term.Float, Type: t, Name: fmt.Sprint("v", v.view.Mem, t)}
		names[e.Name] = v
		index := [][]string{{"i", "j"}, {"j"}, {"i"}, nil}[v.is]
		if flat && v.is == full {
			index = []string{"i"}
		}
		for _, i := range index {
			e.Args = append(e.Args, &term.Expr{Op: term.Var, Kind: term.Int, Name: i})
		}
		if index == nil {
			e.Args = []*term.Expr{{Op: term.Number, Kind: term.Int}}
		}
		return e
	}
	load := func() *term.Expr {
		return leaf([]ir.DType{ir.F32, ir.F32, ir.F16}[c.r.IntN(3)], full, full, full, row, column, single)
	}
	op := func(o term.Op, args ...*term.Expr) *term.Expr {
		e := &term.Expr{Op: o, Kind: term.Float, Args: args}
		if o.Condition() {
			e.Kind = term.Bool
		}
		return e
	}
	unary, comparisons := term.FloatOperations(1), term.Comparisons()
	var expr func(depth int) *term.Expr
	expr = func(depth int) *term.Expr {
		n := c.r.IntN(27)
		if depth == 0 {
			n %= 8
		}
		switch {
		case n < 5:
			return load()
		case n < 7:
			e := &term.Expr{Op: term.Real, Kind: term.Float, Val: []float64{0, 1, 1, 2, 0.5, math.Inf(1), 88.75}[c.r.IntN(7)]}
			if c.r.IntN(4) == 0 {
				return op(term.Neg, e)
			}
			return e
		case n == 7:
			name := fmt.Sprint("c", c.r.IntN(2))
			scalars[name] = odd(c.r)
			return &term.Expr{Op: term.Symbol, Kind: term.Float, Name: name}
		case n < 18:
			o := []term.Op{term.Add, term.Add, term.Mul, term.Mul, term.Sub, term.Div, term.Min, term.Max, term.Min, term.Max}[n-8]
			return op(o, expr(depth-1), expr(depth-1))
		case n < 22:
			return op(unary[c.r.IntN(len(unary))], expr(depth-1))
		case n < 24:
			cond := op(comparisons[c.r.IntN(len(comparisons))], expr(depth-1), expr(depth-1))
			return op(term.Select, cond, expr(depth-1), expr(depth-1))
		case n == 24: // silu and sigmoid, written out
			x := expr(depth - 1)
			top := x
			if c.r.IntN(2) == 0 {
				top = &term.Expr{Op: term.Real, Kind: term.Float, Val: 1}
			}
			return op(term.Div, top, op(term.Add, &term.Expr{Op: term.Real, Kind: term.Float, Val: 1}, op(term.Exp, op(term.Neg, x))))
		}
		e := op(term.Round, expr(depth-1))
		e.Type = ir.F16
		return e
	}
	var bodies []*term.Expr
	var types []ir.DType
	for range 1 + c.r.IntN(5)/4 {
		t := []ir.DType{ir.F32, ir.F32, ir.F16}[c.r.IntN(3)]
		e := &term.Expr{Op: term.Round, Kind: term.Float, Type: t, Args: []*term.Expr{expr(c.r.IntN(4))}}
		if c.r.IntN(10) == 0 {
			e = leaf(t, full, row, single)
		}
		bodies, types = append(bodies, e), append(types, t)
	}
	text, used, err := elementwise.Text(flat, bodies...)
	if err != nil {
		return // for example, one operand under two indices
	}
	d, err := decl.Elementwise(text)
	if err != nil {
		panic(err)
	}
	var vs []value
	for _, name := range used.Operands {
		vs = append(vs, names[name])
	}
	var outs []value
	for _, t := range types {
		outs = append(outs, c.result(t, last))
	}
	bs := inputs(append(vs, outs...)...)
	for _, name := range used.Constants {
		bs = append(bs, bytesArg(uint8(len(bs)), scalars[name]))
	}
	grid := [3]int64{c.d0 * c.d1, 1, 1}
	if !flat {
		grid = [3]int64{c.d1, c.d0, 1}
	}
	c.dispatch(ir.Threads, c.add(d.Kernel("k")), grid, [3]int64{grid[0], 1, 1}, bs...)
	c.values = append(c.values, outs...)
}

// odd returns a number that breaks careless arithmetic, or an ordinary one.
func odd(r *rand.Rand) float32 {
	if r.IntN(2) == 0 {
		return float32(r.NormFloat64() * []float64{1, 1, 30, 1e20, 1e-30}[r.IntN(5)])
	}
	b := []uint32{0, 0, 1, 0x7fffff, 0x800000, 0x3f800000, 0x40000000, 0x42b17218, 0x42b40000, 0x477fe000, 0x477ff000, 0x7f7fffff, 0x7f800000, 0x7f800000,
		0x7f800001, 0x7fc00000, 0x7fc12345, 0x7fffffff, 0x387fc000, 0x33000000}[r.IntN(20)]
	return math.Float32frombits(b | r.Uint32()&(1<<31))
}

// oddBytes fills an input with odd numbers.
func oddBytes(dst []byte, t ir.DType, r *rand.Rand) {
	for i := 0; i < len(dst); i += int(t.Size()) {
		switch t {
		case ir.F32:
			copy(dst[i:], ir.ValueBytes(odd(r)))
		case ir.BF16:
			copy(dst[i:], ir.ValueBytes(odd(r))[2:])
		default:
			h := uint16(r.Uint32())
			if r.IntN(2) == 0 {
				h = []uint16{0, 1, 0x3ff, 0x400, 0x3c00, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff}[r.IntN(10)] | h&0x8000
			}
			copy(dst[i:], []byte{byte(h), byte(h >> 8)})
		}
	}
}
