package record

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Option changes one operation.
type Option struct {
	label string
	into  Tensor
	given bool // into was set
	spare Tensor
	lent  bool // spare was set
	last  bool // into is an operand that is given up
}

// Label names the operation's dispatch in messages, statistics and captured graphs. It
// has no other effect.
func Label(s string) Option { return Option{label: s} }

// Into makes the operation write its result to t instead of new scratch memory. t must
// have the result's shape and type, and be row-contiguous.
func Into(t Tensor) Option { return Option{into: t, given: true} }

// Spare gives an operation t as memory for its intermediate values, instead of new scratch memory; the contents of t
// are lost. t must have the type and shape of the intermediate value and be row-contiguous. Operations without
// intermediate values ignore it.
func Spare(t Tensor) Option { return Option{spare: t, lent: true} }

// Donate says that nothing needs an operand of an operation of [MLX] any more: the result lies in the operand's memory where
// MLX takes the memory of what nobody else holds, and the contents are lost. Where MLX does not, it has no effect; so it is
// where another operand lies in the same memory. What reads the operand within the operation is ordered before.
func Donate(operand Tensor) Option { return Option{spare: operand, last: true} }

// donated marks the operands that options give up.
func (r *Session) donated(op string, options []Option, in []operand) {
	for i := range options {
		t := &options[i].spare
		if !options[i].last || r.err != nil {
			continue
		}
		at, others := -1, 0 // operands in the memory of t
		for j := range in {
			x := &in[j].t
			switch {
			case x.Mem != t.Mem || x.serial != t.serial || x.owner != t.owner:
			case at < 0 && x.DType == t.DType && x.Off.Equal(t.Off) && equalShapes(x.Shape, t.Shape) && slices.Equal(x.Strides, t.Strides):
				at = j
			default:
				others++
			}
		}
		if at < 0 {
			r.fail("%s: Donate has %s%s, which is no operand", op, t.DType, r.format(t.Shape))
			return
		}
		in[at].spare = others == 0
	}
}

// scratchOf returns where an operation keeps an intermediate value: the tensor of [Spare], or scratch memory.
func (r *Session) scratchOf(op string, options []Option, t ir.DType, shape []ir.Affine) Tensor {
	for _, o := range options {
		if !o.lent {
			continue
		}
		if o.spare.bad != nil {
			r.fail("%s: Spare: %s", op, *o.spare.bad)
		} else if !o.spare.rowsOf(t) || !equalShapes(o.spare.Shape, shape) {
			r.fail("%s keeps %s%s in between, Spare has %s%s with strides %v", op, t, r.format(shape), o.spare.DType, r.format(o.spare.Shape), o.spare.Strides)
		}
		return o.spare
	}
	return r.Scratch(t, shape...)
}

func label(options []Option) string {
	for i := range options {
		if options[i].label != "" {
			return options[i].label
		}
	}
	return ""
}

// result returns where an operation writes: the tensor of [Into], or scratch.
func (r *Session) result(op string, options []Option, t ir.DType, shape []ir.Affine) Tensor {
	for i := range options {
		if !options[i].given {
			continue
		}
		if slices.ContainsFunc(options[i+1:], func(o Option) bool { return o.given }) {
			r.fail("%s: there are more options Into than results", op)
		}
		out := options[i].into
		if out.bad != nil {
			r.fail("%s: Into: %s", op, *out.bad)
		}
		same := out.DType == t && len(out.Shape) == len(shape)
		for i := 0; same && i < len(shape); i++ {
			same = out.Shape[i].Equal(shape[i])
		}
		if same && !out.contiguous() {
			r.fail("%s: Into %s%s with strides %v: results are row-contiguous", op, t, r.format(shape), out.Strides)
		}
		if !same {
			r.fail("%s gives %s%s, Into has %s%s", op, t, r.format(shape), out.DType, r.format(out.Shape))
		}
		return out
	}
	return r.Scratch(t, shape...)
}
