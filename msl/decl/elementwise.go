package decl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Limits of a generated kernel. The number of slots is Metal's.
const (
	MaxElementwiseText    = ir.MaxFunction // bytes
	MaxElementwiseResults = 4
	maxSlots              = 31
)

// Elementwise returns the declaration of a generated kernel, which is nothing
// but its term:
//
//	out0[i] = round(f32, in0[i] / (1.0 + exp(-in0[i])) * in1[i])
//	out0[i, j] = round(f32, in0[i, j] * in1[j]); out1[i, j] = round(f32, in0[i, j] * s0)
//
// All results have one shape, [n] or [d0, d1], row-contiguous. A result is f16 if its term is
// round(f16, …) or a load of an f16, bf16 likewise, and f32 otherwise. An operand is indexed like the results, or
// it is a row [j], a column [i] or one element [0]. in2 is f32, in2_f16 is f16, in2_bf16 is bf16; s0, s1, … are f32
// constants. round(f16, …) and round(bf16, …) may stand anywhere. The text must be canonical: as [term.Expr] writes
// it, with names numbered in the order in which they appear. Operands have the first slots, then
// come results, then constants. A result may have the memory of an operand that is indexed like the
// results, because each thread loads all operands before it stores.
//
// A term that is used more than once stands before the results, under a name of its own, and is
// computed once:
//
//	v0[i] = in0[i] + in1[i]; out0[i] = round(f32, v0[i] * v0[i])
//
// v0, v1, … are operations on floats or conditions, indexed like the results, in the order in which
// they are defined. Each is used at least twice, by later ones or by results. They are the
// declaration's [Decl.Wheres].
func Elementwise(text string) (*Decl, error) {
	d := &Decl{Name: text, Library: ir.Generated, File: "generated kernel", Line: 1, Template: map[int]int64{}}
	fail := func(err error) (*Decl, error) {
		return nil, fmt.Errorf("generated kernel %q: %w", ir.Shorten(text), err)
	}
	if len(text) > MaxElementwiseText {
		return fail(fmt.Errorf("has %d bytes, at most %d are possible", len(text), MaxElementwiseText))
	}
	statements := strings.Split(text, "; ")
	shared := slices.IndexFunc(statements, func(s string) bool { return !strings.HasPrefix(s, "v") })
	if shared < 0 {
		return fail(errors.New("has no result out0"))
	}
	results := statements[shared:]
	if len(results) > MaxElementwiseResults {
		return fail(fmt.Errorf("has %d results, at most %d are possible", len(results), MaxElementwiseResults))
	}
	head, flat := "[i, j]", strings.HasPrefix(results[0], "out0[i] = ")
	grid, shapes, vars := "d1, d0, 1", map[string]string{"i, j": "d0, d1", "j": "d1", "i": "d0", "0": "1"}, []string{"i", "j"}
	if flat {
		head, grid, shapes, vars = "[i]", "n, 1, 1", map[string]string{"i": "n", "0": "1"}, []string{"i"}
	}
	full := strings.Trim(head, "[]")
	all := make([]string, len(statements))
	for k, r := range statements {
		what, prefix, n := "shared term", "v", k
		if k >= shared {
			what, prefix, n = "result", "out", k-shared
		}
		want := fmt.Sprintf("%s%d%s = ", prefix, n, head)
		var ok bool
		if all[k], ok = strings.CutPrefix(r, want); !ok {
			return fail(fmt.Errorf("%s %d does not begin with %q", what, n, want))
		}
	}
	bodies := all[shared:]
	operands, scalars, err := elementwiseNames(all, shared, full)
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
		name, _, _ := strings.Cut(body, "[")
		for t, end := range narrowOperands {
			if strings.HasPrefix(body, fmt.Sprintf("round(%s, ", t)) || strings.HasPrefix(name, "in") && strings.HasSuffix(name, end) {
				types[k] = t
			}
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
	uses := make([]int, shared)
	parse := func(body string) (*term.Expr, error) {
		e, err := term.Parse(body, b, vars...)
		if err != nil {
			return nil, err
		}
		if s := e.String(); s != body {
			return nil, fmt.Errorf("is not canonical: %q is written %q", ir.Shorten(body), ir.Shorten(s))
		}
		return e, nil
	}
	for k, body := range all[:shared] {
		e, err := parse(body)
		if err == nil {
			err = elementwiseTerm(e, uses)
		}
		if err == nil && (e.Op == term.Load || e.Op == term.Call || e.Op == term.Symbol || e.Op == term.Real) {
			err = fmt.Errorf("v%d is %s: a name of its own is for an operation", k, e)
		}
		if err != nil {
			return fail(err)
		}
		d.Wheres = append(d.Wheres, Where{fmt.Sprintf("v%d", k), vars, e})
	}
	for k, body := range bodies {
		e, err := parse(body)
		if err != nil {
			return fail(err)
		}
		if err := elementwiseResult(e, uses); err != nil {
			return fail(err)
		}
		a := len(operands) + k
		if err := b.store(d.Args[a], e); err != nil {
			return fail(err)
		}
		d.Results = append(d.Results, Result{a, vars, e})
	}
	for k, n := range uses {
		if n < 2 {
			return fail(fmt.Errorf("v%d is used %d times: a name of its own is for what is used twice or more", k, n))
		}
	}
	return d, d.whole()
}

// narrowOperands is the end of the name of each operand of a 16-bit type.
var narrowOperands = map[ir.DType]string{ir.F16: "_f16", ir.BF16: "_bf16"}

// ElementwiseOperand returns the name of operand k of a generated kernel.
func ElementwiseOperand(k int, t ir.DType) string { return fmt.Sprintf("in%d%s", k, narrowOperands[t]) }

// elementwiseOperand is what the text says of an operand.
type elementwiseOperand struct {
	index string
	typ   ir.DType
}

// elementwiseNames returns the operands in0, in1_f16, … and the number of
// constants s0, s1, … The first bodies define v0, v1, …, which later ones may use
// with the index full.
func elementwiseNames(bodies []string, shared int, full string) (operands []elementwiseOperand, scalars int, err error) {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	for at, s := range bodies {
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
			for _, prefix := range []string{"in", "s", "v"} {
				if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && digit(rest[0]) {
					for t, end := range narrowOperands {
						if number, ok := strings.CutSuffix(rest, end); ok && prefix == "in" {
							rest, typ = number, t
						}
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
			case number && indexed && name[0] == 'v':
				if k >= min(at, shared) || index != full {
					return nil, 0, fmt.Errorf("%s[%s]: no shared term v0[%s], v1[%s], … that stands before it", name, index, full, full)
				}
			default:
				return nil, 0, fmt.Errorf("%s: operands are in0[…], in1[…], …, constants s0, s1, …, in the order in which they appear", name)
			}
		}
	}
	return operands, scalars, nil
}

// elementwiseResult checks the operations of a result, which is either a rounding to
// its type or a load alone.
func elementwiseResult(e *term.Expr, uses []int) error {
	if e.Op == term.Round {
		e = e.Args[0]
	}
	return elementwiseTerm(e, uses)
}

// elementwiseTerm checks the operations of a term, and counts the uses of shared
// ones.
func elementwiseTerm(e *term.Expr, uses []int) error {
	switch {
	case e.Op == term.Call:
		uses[e.Index]++
		return nil
	case !e.Op.Elementwise() || e.Kind == term.Int:
		return fmt.Errorf("%s: not an operation of elements (write 2.0 for the number 2)", ir.Shorten(e.String()))
	case e.Op == term.Round && narrowOperands[e.Type] == "":
		return fmt.Errorf("%s: a rounding within a term is to f16 or bf16; round(f32, …) stands around a whole result only", ir.Shorten(e.String()))
	case e.Op == term.Load: // its indices are integers
		return nil
	}
	for _, a := range e.Args {
		if err := elementwiseTerm(a, uses); err != nil {
			return err
		}
	}
	return nil
}
