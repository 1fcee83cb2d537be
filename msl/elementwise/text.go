package elementwise

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Names are the operands and constants of a text, each in the order of their slots.
type Names struct{ Operands, Constants []string }

// Text writes results, whose loads and symbols may have any names, as the canonical text of a
// generated kernel. It returns the names that became in0, in1, … and s0, s1, …. Loads are indexed
// by i and j ([i, j], [j], [i]) or by 0. All loads of one name have the same index and the same
// Type: f16, bf16, or any other for f32. Text drops round(f32, …) inside a term, which is exact. It adds
// round(f32, …) around a result unless that is round(f16, …) or round(bf16, …), or a single load, which is a
// copy.
//
// Results are graphs: an operation that is one node with several users is written once, as a shared
// term v0, v1, …. The time is linear in the nodes. An error says why no generated kernel computes
// the results.
func Text(flat bool, results ...*term.Expr) (string, Names, error) {
	text, names, err := Write(flat, results...)
	if err == nil {
		_, err = decl.Elementwise(text)
	}
	return text, names, err
}

// Write is [Text], but does not check that the text is a declaration. It is for callers who parse
// the text themselves and get the errors there.
func Write(flat bool, results ...*term.Expr) (string, Names, error) {
	w := &textWriter{uses: map[*term.Expr]int{}, shared: map[*term.Expr]*term.Expr{}, operands: map[string]int{}, constants: map[string]int{}}
	w.index = []*term.Expr{{Op: term.Var, Kind: term.Int, Name: "i"}}
	if !flat {
		w.index = append(w.index, &term.Expr{Op: term.Var, Kind: term.Int, Name: "j"})
	}
	for _, r := range results {
		w.count(r)
	}
	for _, r := range results {
		if err := w.define(plain(r)); err != nil {
			return w.b.String(), w.names, err
		}
	}
	for k, r := range results {
		e := w.use(r)
		narrow := (r.Op == term.Round || r.Op == term.Load) && (r.Type == ir.F16 || r.Type == ir.BF16)
		switch {
		case narrow && e.Op == term.Call:
			// The call has the type already. One more rounding makes the text say so, and changes nothing.
			e = &term.Expr{Op: term.Round, Kind: term.Float, Type: r.Type, Args: []*term.Expr{e}}
		case !narrow && r.Op != term.Load:
			e = &term.Expr{Op: term.Round, Kind: term.Float, Type: ir.F32, Args: []*term.Expr{e}}
		}
		if err := w.statement("out", k, e); err != nil {
			return w.b.String(), w.names, err
		}
	}
	return w.b.String(), w.names, nil
}

// TooLong is the error for terms whose text would be longer than [decl.MaxElementwiseText].
var TooLong = fmt.Errorf("the text of their term has more than %d bytes", decl.MaxElementwiseText)

// textWriter writes one text.
type textWriter struct {
	b                   strings.Builder
	index               []*term.Expr
	uses                map[*term.Expr]int        // by node: how many users it has
	shared              map[*term.Expr]*term.Expr // by node that has a name: the call that stands for it
	names               Names
	operands, constants map[string]int
}

// plain returns e without roundings to f32 around it, which change nothing because every value is
// an f32.
func plain(e *term.Expr) *term.Expr {
	for e.Op == term.Round && e.Type == ir.F32 {
		e = e.Args[0]
	}
	return e
}

// named reports whether e gets a name if it has two users. Operations do, except for negative
// numbers and elements that are stored unchanged.
func named(e *term.Expr) bool {
	switch e.Op {
	case term.Load, term.Symbol, term.Real, term.Number, term.Var:
		return false
	case term.Neg:
		return e.Args[0].Op != term.Real
	case term.Round:
		return e.Args[0].Op != term.Load || e.Args[0].Type != e.Type
	}
	return true
}

// count counts the uses of each node below e, once however often it occurs.
func (w *textWriter) count(e *term.Expr) {
	e = plain(e)
	if w.uses[e]++; w.uses[e] > 1 || e.Op == term.Load {
		return
	}
	for _, a := range e.Args {
		w.count(a)
	}
}

// define writes the shared terms within e that were not written yet. A term comes before the terms
// that use it. e is [plain].
func (w *textWriter) define(e *term.Expr) error {
	if e.Op == term.Load || w.shared[e] != nil || w.uses[e] < 0 {
		return nil
	}
	several := w.uses[e] > 1 && named(e)
	if !several {
		w.uses[e] = -1 // it was visited
	}
	for _, a := range e.Args {
		if err := w.define(plain(a)); err != nil {
			return err
		}
	}
	if !several {
		return nil
	}
	k := len(w.shared)
	if err := w.statement("v", k, w.rename(e)); err != nil {
		return err
	}
	w.shared[e] = &term.Expr{Op: term.Call, Kind: e.Kind, Name: fmt.Sprintf("v%d", k), Args: w.index, Index: k}
	return nil
}

// use returns what the text has for e: its name if it has one, or else e.
func (w *textWriter) use(e *term.Expr) *term.Expr {
	e = plain(e)
	if call := w.shared[e]; call != nil {
		return call
	}
	return w.rename(e)
}

// rename returns e with the names of the text. Names are numbered in the order in which they
// appear.
func (w *textWriter) rename(e *term.Expr) *term.Expr {
	number := func(seen map[string]int, list *[]string, name string) int {
		k, ok := seen[name]
		if !ok {
			k = len(*list)
			seen[name] = k
			*list = append(*list, name)
		}
		return k
	}
	out := *e
	switch {
	case e.Op == term.Load:
		out.Name = decl.ElementwiseOperand(number(w.operands, &w.names.Operands, e.Name), e.Type)
		return &out
	case e.Op == term.Symbol && e.Kind == term.Float:
		out.Name = fmt.Sprintf("s%d", number(w.constants, &w.names.Constants, e.Name))
		return &out
	}
	out.Args = make([]*term.Expr, len(e.Args))
	for i, a := range e.Args { // in the order of the text, because names are numbered as they appear
		out.Args[i] = w.use(a)
	}
	return &out
}

// statement writes the line that defines name k as e.
func (w *textWriter) statement(name string, k int, e *term.Expr) error {
	if w.b.Len() > 0 {
		w.b.WriteString("; ")
	}
	index := "[i]"
	if len(w.index) == 2 {
		index = "[i, j]"
	}
	fmt.Fprintf(&w.b, "%s%d%s = %s", name, k, index, e)
	if w.b.Len() > decl.MaxElementwiseText {
		return TooLong
	}
	return nil
}
