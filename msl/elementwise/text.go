package elementwise

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Names are the operands and constants of a text, in the order of their slots:
// operands first, then, behind the results, constants.
type Names struct{ Operands, Constants []string }

// Text writes results, whose loads and symbols may have any names, as the
// canonical text of a generated kernel, and returns the names that became in0,
// in1, … and s0, s1, …. Loads are indexed by i and j ([i, j], [j], [i]) or by 0;
// a load of one name has one index and one Type: f16, or any other for f32.
// round(f32, …) inside a term is dropped, which is exact; around a result it is
// added, unless the result is f16, round(f16, …), or a copy, a load alone. An
// error says why no generated kernel computes the results.
func Text(flat bool, results ...*term.Expr) (string, Names, error) {
	var names Names
	operands, constants := map[string]int{}, map[string]int{}
	number := func(seen map[string]int, list *[]string, name string) int {
		k, ok := seen[name]
		if !ok {
			k = len(*list)
			seen[name] = k
			*list = append(*list, name)
		}
		return k
	}
	var rename func(e *term.Expr) *term.Expr
	rename = func(e *term.Expr) *term.Expr {
		out := *e
		switch {
		case e.Op == term.Round && e.Type == ir.F32:
			return rename(e.Args[0])
		case e.Op == term.Load:
			out.Name = decl.ElementwiseOperand(number(operands, &names.Operands, e.Name), e.Type)
			return &out
		case e.Op == term.Symbol && e.Kind == term.Float:
			out.Name = fmt.Sprintf("s%d", number(constants, &names.Constants, e.Name))
			return &out
		}
		out.Args = make([]*term.Expr, len(e.Args))
		for i, a := range e.Args { // as they are written: names are numbered as they appear
			out.Args[i] = rename(a)
		}
		return &out
	}
	text, index := "", "[i, j]"
	if flat {
		index = "[i]"
	}
	for k, r := range results {
		if k > 0 {
			text += "; "
		}
		e := rename(r)
		half := r.Op == term.Round && r.Type == ir.F16 || r.Op == term.Load && r.Type == ir.F16
		if !half && r.Op != term.Load {
			e = &term.Expr{Op: term.Round, Kind: term.Float, Type: ir.F32, Args: []*term.Expr{e}}
		}
		if text += fmt.Sprintf("out%d%s = %s", k, index, e); len(text) > decl.MaxElementwiseText {
			break // refused below; a term that is shared inside may be endless when written
		}
	}
	_, err := decl.Elementwise(text)
	return text, names, err
}
