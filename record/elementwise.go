package record

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
)

// Elementwise runs a kernel that is given as a formula, its term. There is no source: the
// backend generates the code (docs/kernels.md, "Generated kernels").
//
//	r.Elementwise("out0[i] = round(f32, in0[i] - s0 * in1[i])", []record.Tensor{w, g}, []record.Scalar{rate})
//	r.Elementwise("out0[i, j] = round(f32, in0[i, j] * in1[j] + in2[i])", []record.Tensor{x, row, column}, nil)
//
// inputs are in0, in1, … and scalars are s0, s1, … If the result is out0[i], i goes over
// all elements, whatever the shape, and an operand in0[0] is one element for all. If the
// result is out0[i, j], i is the row and j the element of the innermost dimension; then an
// operand in1[j] is one row for all rows, in2[i] has one element for each row, and in3[0]
// is one element for all. in1_f16 is an operand of type f16, in1_bf16 one of bf16; the others are f32. Numbers
// are written with a point (2.0), and round(f32, …), round(f16, …) or round(bf16, …) encloses the whole formula, whose
// result has that type. Arithmetic is f32; where a step is to be rounded to 16 bits, the formula says so. A value
// that is used more than once may get a name:
// "v0[i] = in0[i] + in1[i]; out0[i] = round(f32, v0[i] * v0[i])".
//
// The result has the shape of the first operand that is indexed as the result is; if there
// is none, Into must say the shape. The result may replace such an operand: Into(w). All
// operands are row-contiguous. A term with several results goes to
// [Session.ElementwiseAll].
func (r *Session) Elementwise(term string, inputs []Tensor, scalars []Scalar, o ...Option) Tensor {
	return r.elementwise("elementwise", term, 1, inputs, scalars, o)[0]
}

// ElementwiseAll is [Session.Elementwise] for a term with up to four results of the same
// shape: "out0[i] = …; out1[i] = …". Options Into are matched with the results in their
// order.
func (r *Session) ElementwiseAll(term string, inputs []Tensor, scalars []Scalar, o ...Option) []Tensor {
	return r.elementwise("elementwise", term, 0, inputs, scalars, o)
}

// Sub computes a − b elementwise, with the shapes of [Session.Mul].
func (r *Session) Sub(a, b Tensor, o ...Option) Tensor {
	if a.DType != ir.F32 {
		return r.binary("elementwise_sub", "Subtract", a, b, o)
	}
	text := "out0[i] = round(f32, in0[i] - in1[i])"
	if !a.Elements().Equal(b.Elements()) {
		text = "out0[i, j] = round(f32, in0[i, j] - in1[j])"
	}
	return r.elementwise("elementwise_sub", text, 1, []Tensor{a, b}, nil, o)[0]
}

// Scale multiplies every element of x, which is f32, f16 or bf16, by a number. As in MLX, the number is rounded to x's
// type first.
func (r *Session) Scale(x Tensor, by Scalar, o ...Option) Tensor {
	factor := "s0"
	if x.DType != ir.F32 {
		factor = "round(T, s0)"
	}
	return r.ofOne("scale", "x * "+factor, x, []Scalar{by}, o)
}

// Relu computes max(x, 0) in f32, f16 or bf16. As in MLX, it gives NaN for NaN.
func (r *Session) Relu(x Tensor, o ...Option) Tensor {
	return r.ofOne("relu", "select(x <= 0.0, 0.0, x)", x, nil, o)
}

// ofOne runs a formula of one operand x, whose type T the result has.
func (r *Session) ofOne(op, formula string, x Tensor, scalars []Scalar, o []Option) Tensor {
	if !r.floats(op, x) {
		return r.broken(x.DType, x.Rank())
	}
	operand := strings.NewReplacer("x", decl.ElementwiseOperand(0, x.DType)+"[i]", "T", x.DType.String())
	text := operand.Replace("out0[i] = round(T, " + formula + ")")
	return r.elementwise(op, text, 1, []Tensor{x}, scalars, o)[0]
}

// elementwise records a generated kernel. The term must have `want` results; 0 allows any
// number.
func (r *Session) elementwise(op, text string, want int, inputs []Tensor, scalars []Scalar, o []Option) []Tensor {
	out := make([]Tensor, decl.MaxElementwiseResults)
	for i := range out { // results that the caller can go on with after a mistake
		if len(inputs) > 0 {
			out[i] = inputs[0]
		}
	}
	d, err := r.generated(text)
	if err != nil {
		r.fail("%s: %w. A term looks like out0[i] = round(f32, in0[i] * in1[i] + s0); see docs/kernels.md, Generated kernels", op, err)
		return out
	}
	var count [3]int // by elementwiseRole
	for i := range d.Args {
		count[roleOf(&d.Args[i])]++
	}
	switch {
	case count[operandArg] != len(inputs):
		r.fail("%s: %s: the term has %d operands in0, in1, …, the call %d", op, text, count[operandArg], len(inputs))
	case count[constantArg] != len(scalars):
		r.fail("%s: %s: the term has %d constants s0, s1, …, the call %d", op, text, count[constantArg], len(scalars))
	case want != 0 && count[resultArg] != want:
		r.fail("%s: %s: the term has %d results: use ElementwiseAll", op, text, count[resultArg])
	}
	into := 0
	for i := range o {
		if o[i].given {
			into++
		}
	}
	if into > count[resultArg] {
		r.fail("%s: %s: %d options Into for %d results", op, text, into, count[resultArg])
	}
	if r.err != nil {
		return out
	}

	options := splitInto(o, count[resultArg])
	flat := len(d.Results[0].Vars) == 1
	shape, ok := r.elementwiseShape(d, flat, inputs, options[0])
	if !ok {
		r.fail("%s: %s: no operand is indexed as the result is, so its shape is not known: give it with Into", op, text)
		return out
	}
	whole := Tensor{Shape: shape}
	d0, d1 := whole.Elements(), ir.Const(1)
	if !flat {
		d0, d1 = r.rows(whole), ir.Const(r.last(op, whole))
	}
	c := call{op: op, function: text, kind: ir.Threads}
	for i := range d.Args {
		a := &d.Args[i]
		switch roleOf(a) {
		case operandArg:
			t := inputs[i]
			n, what := d0, "rows"
			switch elementwise.IndexOf(a.Shape, flat) {
			case elementwise.Full:
				n, what = whole.Elements(), "elements"
			case elementwise.Row:
				n, what = d1, "elements of a row"
			case elementwise.One:
				n, what = ir.Const(1), "element"
			}
			if t.DType != a.Elem || !t.contiguous() || !t.Elements().Equal(n) {
				r.fail("%s: %s: %s is %s%s: want contiguous %s, %s %s of the result %s", op, text, a.Name, t.DType, r.format(t.Shape), a.Elem,
					r.g.FormatAffine(n), what, r.format(shape))
				return out
			}
			c.args = append(c.args, buf(a.Slot, t))
		case resultArg:
			k := i - len(inputs)
			out[k] = r.result(op, options[k], a.Elem, shape)
			if !out[k].contiguous() {
				r.fail("%s: %s: result %d is strided: want contiguous memory", op, text, k)
			}
			c.args = append(c.args, buf(a.Slot, out[k]))
		case constantArg:
			c.args = append(c.args, scalars[i-len(inputs)-count[resultArg]].bind(a.Slot))
		}
	}
	c.grid, c.group = threads1(d0)
	if !flat {
		c.grid, c.group = [3]ir.Extent{{Num: d1, Div: 1}, {Num: d0, Div: 1}, ir.Ext(1)}, [3]uint32{uint32(min(d1.Const, 256)), 1, 1}
	}
	r.dispatch(c, o, c.args...)
	return out[:count[resultArg]]
}

// generated returns the declaration of the kernel that is generated from a term, and adds
// the kernel under that term.
func (r *Session) generated(text string) (*decl.Decl, error) {
	ds, err := msl.DeclarationsOf(&ir.Kernel{Library: ir.Library{Kind: ir.Generated}, Function: text})
	if err != nil {
		return nil, err
	}
	if _, ok := r.plain[text]; !ok {
		r.plain[text] = r.Kernel(ds[0].Kernel(fmt.Sprintf("elementwise%d", len(r.g.Kernels))))
	}
	return ds[0], nil
}

// elementwiseShape returns the shape of the results: that of the first operand that is
// indexed as they are, or that of the option Into. ok is false if there is neither.
func (r *Session) elementwiseShape(d *decl.Decl, flat bool, inputs []Tensor, first []Option) (shape []ir.Affine, ok bool) {
	for i, t := range inputs {
		if elementwise.IndexOf(d.Args[i].Shape, flat) == elementwise.Full {
			return t.Shape, t.Rank() > 0
		}
	}
	for _, o := range first {
		if o.given {
			return o.into.Shape, o.into.Rank() > 0
		}
	}
	return nil, false
}

// elementwiseRole is what an argument of a generated kernel is.
type elementwiseRole uint8

const (
	operandArg elementwiseRole = iota
	resultArg
	constantArg
)

func roleOf(a *decl.Arg) elementwiseRole {
	switch {
	case a.Kind == ir.ConstantArg:
		return constantArg
	case a.Mode == decl.Write:
		return resultArg
	}
	return operandArg
}
