package routes

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// elementwiseForm is how operands of an elementwise operation lie.
type elementwiseForm struct {
	name    string // general has none
	general bool
}

// Operation is an elementwise operation of one or two operands, as kernels name it.
type Operation struct {
	Operands int
	Kernel   string
	Boolean  bool // the result is
	// In is the type to which integers are converted first, or any type where Always is set.
	In     ir.DType
	Always bool
}

// Operations are the elementwise operations by MLX's names.
var Operations = map[string]Operation{
	"abs": {Operands: 1, Kernel: "Abs"}, "ceil": {Operands: 1, Kernel: "Ceil"}, "cos": {Operands: 1, Kernel: "Cos", In: ir.F32},
	"erf": {Operands: 1, Kernel: "Erf", In: ir.F32},
	"exp": {Operands: 1, Kernel: "Exp", In: ir.F32}, "expm1": {Operands: 1, Kernel: "Expm1", In: ir.F32}, "floor": {Operands: 1, Kernel: "Floor"},
	"log": {Operands: 1, Kernel: "Log", In: ir.F32}, "log1p": {Operands: 1, Kernel: "Log1p", In: ir.F32}, "negative": {Operands: 1, Kernel: "Negative"},
	"rsqrt": {Operands: 1, Kernel: "Rsqrt", In: ir.F32}, "sigmoid": {Operands: 1, Kernel: "Sigmoid", In: ir.F32}, "sign": {Operands: 1, Kernel: "Sign"},
	"sin": {Operands: 1, Kernel: "Sin", In: ir.F32}, "sqrt": {Operands: 1, Kernel: "Sqrt", In: ir.F32}, "square": {Operands: 1, Kernel: "Square"},
	"tanh": {Operands: 1, Kernel: "Tanh", In: ir.F32}, "logical_not": {Operands: 1, Kernel: "LogicalNot", Boolean: true, In: ir.Bool, Always: true},

	"add": {Operands: 2, Kernel: "Add"}, "divide": {Operands: 2, Kernel: "Divide", In: ir.F32}, "logaddexp": {Operands: 2, Kernel: "LogAddExp", In: ir.F32},
	"maximum": {Operands: 2, Kernel: "Maximum"}, "minimum": {Operands: 2, Kernel: "Minimum"}, "multiply": {Operands: 2, Kernel: "Multiply"},
	"power": {Operands: 2, Kernel: "Power"}, "remainder": {Operands: 2, Kernel: "Remainder"}, "subtract": {Operands: 2, Kernel: "Subtract"},
	"equal": {Operands: 2, Kernel: "Equal", Boolean: true}, "greater_equal": {Operands: 2, Kernel: "GreaterEqual", Boolean: true},
	"less": {Operands: 2, Kernel: "Less", Boolean: true}, "not_equal": {Operands: 2, Kernel: "NotEqual", Boolean: true},
	"logical_and": {Operands: 2, Kernel: "LogicalAnd", Boolean: true, In: ir.Bool, Always: true},
	"bitwise_and": {Operands: 2, Kernel: "BitwiseAnd"}, "bitwise_or": {Operands: 2, Kernel: "BitwiseOr"}, "bitwise_xor": {Operands: 2, Kernel: "BitwiseXor"},
	"left_shift": {Operands: 2, Kernel: "LeftShift"}, "right_shift": {Operands: 2, Kernel: "RightShift"},
}

// Elementwise sends an operation by MLX's name, on one or two operands of one type. Operands that are converted
// are so in the order in which MLX does it, the last one first.
func (e *Encoder) Elementwise(name string, operands ...Array) Array {
	o, ok := Operations[name]
	if !ok || len(operands) != o.Operands {
		e.fail("no elementwise operation of %d operands is called %s", len(operands), name)
		return Array{}
	}
	for i := len(operands) - 1; i >= 0; i-- {
		if o.In != ir.Invalid && (o.Always || !operands[i].Type.Float()) {
			operands[i] = e.AsType(operands[i], o.In)
		}
	}
	t := operands[0].Type
	if o.Boolean {
		t = ir.Bool
	}
	if len(operands) == 1 {
		return e.Unary(o.Kernel, operands[0], t)
	}
	return e.Binary(o.Kernel, operands[0], operands[1], t)
}

// AsType sends a conversion, whose result is spare. Of the type that a has already nothing is sent.
func (e *Encoder) AsType(a Array, t ir.DType) Array {
	if a.Type == t {
		return a
	}
	e.begin()
	var out Array
	if a.contiguous() {
		out = e.vectorCopy(a, t)
	} else {
		out = e.temporary(t, a.Shape...)
		e.copy(copyGeneral, a, out, a.Shape, a.Strides, out.Strides)
	}
	out.Spare = true
	return out
}

// Contiguous returns a, or a copy if a is not row-contiguous, or its buffer is much longer.
func (e *Encoder) Contiguous(a Array) Array {
	e.begin()
	if e.at(a.Buffer.Bytes) > e.at(a.Elements())*a.Type.Size()+spareBytes {
		return e.contiguousCopy(a)
	}
	return e.rowContiguous(a)
}

// Full sends an array of a shape, of one value.
func (e *Encoder) Full(value Array, shape []Size) Array {
	e.begin()
	out := e.temporary(value.Type, shape...)
	e.copy(copyScalar, value, out, nil, nil, nil)
	return out
}

// Unary sends an operation of one operand, by its name in MLX's kernels, with a result of type t.
func (e *Encoder) Unary(op string, x Array, t ir.DType) Array {
	e.begin()
	if x.contiguous() {
		out := x
		if !e.takes(x, t, x.Elements()) {
			out = e.like(x, t)
		}
		out.Type, out.Spare = t, false
		n := x.stored()
		large := e.at(n) > math.MaxUint32
		name, each := e.several("v", "_"+op+plain(x.Type)+plain(t), large, e.eachThread(x.Type, n))
		e.next.Kernel = name
		e.input(0, x)
		e.output(1, out)
		e.linear(2, n, each, large, out)
		return out
	}
	out := e.temporary(t, x.Shape...)
	shape, strides := e.collapseOne(x.Shape, x.Strides)
	each, name := int64(1), "gn1"
	if e.at(x.stored()) > math.MaxInt32 || e.at(out.Elements()) > math.MaxInt32 {
		each, name = 4, "gn4large"
	}
	e.kernel("%s_%s%s%s", name, op, plain(x.Type), plain(t))
	e.input(0, x)
	e.output(1, out)
	e.i32(2, shape...)
	e.i64(3, strides...)
	e.count(4, len(shape))
	if each > 1 {
		last := len(shape) - 1
		shape = with(shape[:last], ir.Const(ceil(e.fixed(shape[last]), each)))
	}
	e.general(shape, 1)
	return out
}

// linearSuffix is the part of a name for memory whose places need 64 bits, or of which a thread takes several elements.
func linearSuffix(large bool, each int64) string {
	switch {
	case large:
		return "2"
	case each > 1:
		return "n"
	}
	return ""
}

// binaryForm returns how two operands lie: s for one element, v for memory as it lies; else they are general.
func (e *Encoder) binaryForm(a, b Array) elementwiseForm {
	one := func(x Array) bool { return isOne(x.stored()) }
	switch {
	case one(a) && one(b):
		return elementwiseForm{name: "ss"}
	case one(a) && b.contiguous():
		return elementwiseForm{name: "sv"}
	case one(b) && a.contiguous():
		return elementwiseForm{name: "vs"}
	case a.rowContiguous() && b.rowContiguous() || a.columnContiguous() && b.columnContiguous():
		return elementwiseForm{name: "vv"}
	}
	return elementwiseForm{general: true}
}

// Binary sends an operation of two operands of one type, broadcast, with a result of type t.
func (e *Encoder) Binary(op string, a, b Array, t ir.DType) Array {
	e.begin()
	shape := broadcastShapes(a.Shape, b.Shape)
	a, b = a.broadcast(shape), b.broadcast(shape)
	form := e.binaryForm(a, b)
	form.general = form.general || !e.has(form.name+"_"+op+plain(a.Type))
	out := e.binaryResult(form, a, b, t)
	if form.general {
		e.generalElements(op, plain(a.Type), []Array{a, b}, out)
		return out
	}
	n := out.stored()
	large := e.at(n) > math.MaxUint32
	name, each := form.name+"_"+op+plain(a.Type), int64(1)
	if form.name != "ss" {
		name, each = e.several(form.name, "_"+op+plain(a.Type), large, e.eachThread(a.Type, n))
	}
	e.next.Kernel = name
	e.input(0, a)
	e.input(1, b)
	e.output(2, out)
	e.linear(3, n, each, large, out)
	return out
}

// binaryResult returns where the result goes: into an operand that is spare and lies as it does, or into new
// memory.
func (e *Encoder) binaryResult(form elementwiseForm, a, b Array, t ir.DType) Array {
	spare := func(x Array) bool { return e.takes(x, t, a.Elements()) }
	into := func(x Array) Array {
		x.Type, x.Spare = t, false
		return x
	}
	if form.general {
		whole := func(x Array) bool { return spare(x) && x.rowContiguous() && x.stored().Equal(x.Elements()) }
		switch {
		case whole(a):
			return into(a)
		case whole(b):
			return into(b)
		}
		return e.temporary(t, a.Shape...)
	}
	switch {
	case form.name == "ss":
	case form.name != "sv" && spare(a):
		return into(a)
	case form.name != "vs" && spare(b):
		return into(b)
	}
	if form.name == "sv" {
		return e.like(b, t)
	}
	return e.like(a, t)
}

// generalElements sends an elementwise kernel over operands of any layout.
func (e *Encoder) generalElements(op, types string, in []Array, out Array) {
	large := e.at(out.Elements()) > math.MaxInt32
	var layouts [][]Size
	for _, a := range in {
		large = large || e.at(a.stored()) > math.MaxInt32
		layouts = append(layouts, a.Strides)
	}
	shape, strides := e.collapse(out.Shape, append(layouts, out.Strides)...)
	each, tail := int64(2), "_"+op+types
	if large {
		each, tail = 4, "large"+tail
	}
	kernel := func(rank int) string { return fmt.Sprintf("g%d%s", rank, tail) }
	shape, strides = e.widened(kernel, shape, strides)
	e.next.Kernel = kernel(len(shape))
	if len(shape) > 3 {
		e.kernel("gn%d%s", each, tail)
	}
	for i, a := range in {
		e.input(i, a)
	}
	e.output(len(in), out)
	slot := len(in) + 1
	if len(shape) > 3 {
		e.i32(slot, shape...)
		slot++
	}
	for i := range in {
		e.i64(slot, strides[i]...)
		slot++
	}
	if len(shape) > 3 && len(in) == 3 && e.Version == Commit846d1762 {
		e.i64(slot, ir.Const(int64(len(shape))))
	} else if len(shape) > 3 {
		e.count(slot, len(shape))
	}
	e.general(shape, each)
}

// Select sends a where condition holds and b elsewhere, all broadcast.
func (e *Encoder) Select(condition, a, b Array) Array {
	e.begin()
	shape := broadcastShapes(broadcastShapes(condition.Shape, a.Shape), b.Shape)
	condition, a, b = condition.broadcast(shape), a.broadcast(shape), b.broadcast(shape)
	one := func(x Array) bool { return isOne(x.stored()) }
	all := func(f func(Array) bool) bool { return f(condition) && f(a) && f(b) }
	form, out := elementwiseForm{}, Array{}
	switch {
	case all(one):
		form.name, out = "v", e.like(a, a.Type)
	case all(Array.rowContiguous) || all(Array.columnContiguous):
		form.name, out = "v", e.like(a, a.Type)
	case one(a) && condition.rowContiguous() && b.rowContiguous():
		form.name, out = "sv", e.temporary(a.Type, shape...)
	case one(b) && condition.rowContiguous() && a.rowContiguous():
		form.name, out = "vs", e.temporary(a.Type, shape...)
	default:
		form.general, out = true, e.temporary(a.Type, shape...)
	}
	if !form.general && !e.has(form.name+"_Select"+plain(a.Type)) {
		form.general, out = true, e.temporary(a.Type, shape...)
	}
	for _, x := range []Array{condition, a, b} {
		if x.rowContiguous() && e.takes(x, a.Type, out.Elements()) {
			out.Buffer, out.Offset = x.Buffer, x.Offset
			break
		}
	}
	if form.general {
		e.generalElements("Select", plain(a.Type), []Array{condition, a, b}, out)
		return out
	}
	n := out.stored()
	large := e.at(n) > math.MaxInt32
	name, each := e.several(form.name, "_Select"+plain(a.Type), large, e.eachThread(a.Type, n))
	e.next.Kernel = name
	e.input(0, condition)
	e.input(1, a)
	e.input(2, b)
	e.output(3, out)
	e.linear(4, n, each, large, out)
	return out
}
