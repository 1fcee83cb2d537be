package decl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Limits of a generated kernel. Slots are Metal's.
const (
	MaxElementwiseText    = ir.MaxFunction // bytes
	MaxElementwiseResults = 4
	maxSlots              = 31
)

// elementwiseOps are the operations that a generated kernel may use: all on
// floats and conditions, element by element; erf is not among them, Metal lacks
// it.
var elementwiseOps = []term.Op{
	term.Real, term.Symbol, term.Load, term.Neg, term.Add, term.Sub, term.Mul, term.Div, term.Min, term.Max, term.Abs, term.Exp, term.Exp2, term.Log,
	term.Sqrt, term.Rsqrt, term.Sin, term.Cos, term.Tanh, term.Select, term.Eq, term.Ne, term.Lt, term.Le, term.Gt, term.Ge, term.And, term.Or,
	term.Not, term.Round,
}

// Elementwise returns the declaration of a generated kernel, which is nothing
// but its term:
//
//	out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])
//	out0[i, j] = round(f32, in0[i, j] * in1[j]); out1[i, j] = round(f32, in0[i, j] * s0)
//
// All results have one shape, [n] or [d0, d1], row-contiguous; each is f32, or
// f16 if its term is round(f16, …) or a load of an f16. An operand is indexed as
// the results are, or as a row [j], a column [i] or one element [0] of them; in2
// is f32, in2_f16 is f16; s0, s1, … are f32 constants. round(f16, …) may stand
// anywhere. The text must be canonical: as [term.Expr] writes it, names numbered
// in the order in which they appear.
// Slots are operands, results, constants, in this order; a result may be a
// full operand, for a thread loads before it stores.
func Elementwise(text string) (*Decl, error) {
	d := &Decl{Name: text, Library: ir.Generated, File: "generated kernel", Line: 1, Template: map[int]int64{}}
	fail := func(err error) (*Decl, error) {
		shown := text
		if len(shown) > 80 {
			shown = shown[:80] + "…"
		}
		return nil, fmt.Errorf("generated kernel %q: %w", shown, err)
	}
	if len(text) > MaxElementwiseText {
		return fail(fmt.Errorf("has %d bytes, at most %d are possible", len(text), MaxElementwiseText))
	}
	results := strings.Split(text, "; ")
	if len(results) > MaxElementwiseResults {
		return fail(fmt.Errorf("has %d results, at most %d are possible", len(results), MaxElementwiseResults))
	}
	head, flat := "[i, j]", strings.HasPrefix(text, "out0[i] = ")
	grid, shapes, vars := "d1, d0, 1", map[string]string{"i, j": "d0, d1", "j": "d1", "i": "d0", "0": "1"}, []string{"i", "j"}
	if flat {
		head, grid, shapes, vars = "[i]", "n, 1, 1", map[string]string{"i": "n", "0": "1"}, []string{"i"}
	}
	full := strings.Trim(head, "[]")
	bodies := make([]string, len(results))
	for k, r := range results {
		var ok bool
		if bodies[k], ok = strings.CutPrefix(r, fmt.Sprintf("out%d%s = ", k, head)); !ok {
			return fail(fmt.Errorf("result %d does not begin with %q", k, fmt.Sprintf("out%d%s = ", k, head)))
		}
	}
	operands, scalars, err := elementwiseNames(bodies)
	if err != nil {
		return fail(err)
	}
	if n := len(operands) + len(results) + scalars; n > maxSlots {
		return fail(fmt.Errorf("has %d arguments, Metal %d slots", n, maxSlots))
	}
	for i := range d.Group {
		d.Group[i].Bind = -1
	}
	b := builder{d}
	var args []string
	for k, index := range operands {
		shape, ok := shapes[index.index]
		if !ok {
			return fail(fmt.Errorf("in%d[%s]: no index of a result with %s", k, index.index, head))
		}
		args = append(args, fmt.Sprintf("%d %s device %s[%s] read", len(args), ElementwiseOperand(k, index.typ), index.typ, shape))
	}
	types := make([]ir.DType, len(results))
	for k, body := range bodies {
		types[k] = ir.F32
		if name, _, _ := strings.Cut(body, "["); strings.HasPrefix(body, "round(f16, ") || strings.HasPrefix(name, "in") && strings.HasSuffix(name, halfOperand) {
			types[k] = ir.F16
		}
		args = append(args, fmt.Sprintf("%d out%d device %s[%s] write", len(args), k, types[k], shapes[full]))
	}
	for k := range scalars {
		args = append(args, fmt.Sprintf("%d s%d constant f32", len(args), k))
	}
	each := func(f func(string) error, lines ...string) {
		for _, l := range lines {
			if err == nil {
				err = f(l)
			}
		}
	}
	each(b.arg, args...)
	each(func(g string) error { return b.gridBinds("threads", g) }, grid)
	each(b.shape, args...)
	each(func(g string) error { return b.gridChecks("threads", g) }, grid)
	for k := range results {
		for o, index := range operands {
			if index.index == full && index.typ == types[k] {
				each(b.inplace, fmt.Sprintf("out%d %s", k, ElementwiseOperand(o, index.typ)))
			}
		}
	}
	if err != nil {
		return fail(err)
	}
	for k, body := range bodies {
		e, err := term.Parse(body, b, vars...)
		if err != nil {
			return fail(err)
		}
		if err := elementwiseTerm(e); err != nil {
			return fail(err)
		}
		if s := e.String(); s != body {
			return fail(fmt.Errorf("is not canonical: %q is written %q", body, s))
		}
		a := len(operands) + k
		if err := b.store(d.Args[a], e); err != nil {
			return fail(err)
		}
		d.Results = append(d.Results, Result{a, vars, e})
	}
	return d, d.whole()
}

// halfOperand ends the name of an f16 operand.
const halfOperand = "_f16"

// ElementwiseOperand returns the name of operand k of a generated kernel.
func ElementwiseOperand(k int, t ir.DType) string {
	if t == ir.F16 {
		return fmt.Sprintf("in%d%s", k, halfOperand)
	}
	return fmt.Sprintf("in%d", k)
}

// elementwiseOperand is what the text says of an operand.
type elementwiseOperand struct {
	index string
	typ   ir.DType
}

// elementwiseNames returns the operands in0, in1_f16, … and the number of
// constants s0, s1, …
func elementwiseNames(bodies []string) (operands []elementwiseOperand, scalars int, err error) {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	for _, s := range bodies {
		for i := 0; i < len(s); {
			start := i
			if !letter(s[i]) {
				for i++; digit(s[start]) && i < len(s) && (digit(s[i]) || s[i] == '.' || letter(s[i])); i++ { // a number, to its exponent
				}
				continue
			}
			for i < len(s) && (letter(s[i]) || digit(s[i])) {
				i++
			}
			name, index, indexed := s[start:i], "", false
			if i < len(s) && s[i] == '[' {
				end := strings.IndexByte(s[i:], ']')
				if end < 0 {
					return nil, 0, fmt.Errorf("column %d of %q: [ without ]", i+1, s)
				}
				index, indexed = s[i+1:i+end], true
				i += end
			}
			k, number, typ := 0, false, ir.F32
			for _, prefix := range []string{"in", "s"} {
				if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && digit(rest[0]) {
					if half, ok := strings.CutSuffix(rest, halfOperand); ok && prefix == "in" {
						rest, typ = half, ir.F16
					}
					k, err = strconv.Atoi(rest)
					number = err == nil && strconv.Itoa(k) == rest
				}
			}
			switch {
			case !number && !indexed: // a function
			case number && indexed && name[0] == 'i' && k < len(operands):
				if operands[k].typ != typ {
					return nil, 0, fmt.Errorf("%s is also %s", name, ElementwiseOperand(k, operands[k].typ))
				}
				if operands[k].index != index {
					return nil, 0, fmt.Errorf("%s is indexed with [%s] and with [%s]", name, operands[k].index, index)
				}
			case number && indexed && name[0] == 'i' && k == len(operands):
				operands = append(operands, elementwiseOperand{index, typ})
			case number && !indexed && name[0] == 's' && k <= scalars:
				scalars = max(scalars, k+1)
			default:
				return nil, 0, fmt.Errorf("%s: operands are in0[…], in1[…], …, constants s0, s1, …, in the order in which they appear", name)
			}
		}
	}
	return operands, scalars, nil
}

// elementwiseTerm checks the operations of a result: a rounding to its type
// around anything, or a load alone.
func elementwiseTerm(e *term.Expr) error {
	body := e
	if e.Op == term.Round {
		body = e.Args[0]
	}
	var err error
	var check func(x *term.Expr)
	check = func(x *term.Expr) {
		switch {
		case err != nil:
		case !slices.Contains(elementwiseOps, x.Op) || x.Kind == term.Int:
			err = fmt.Errorf("%s: not an operation of elements (write 2.0 for the number 2)", x)
		case x.Op == term.Round && x.Type != ir.F16:
			err = fmt.Errorf("%s: a rounding within a term is to f16; round(f32, …) stands around a whole result only", x)
		case x.Op == term.Load: // its indices are integers
		default:
			for _, a := range x.Args {
				check(a)
			}
		}
	}
	check(body)
	return err
}
