package decl

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Allows reports whether dispatches of a kernel with these function constants may fulfil the conditions of d. Conditions
// that depend on more than constants and template parameters may hold.
func (d *Decl) Allows(constants []ir.FunctionConstant) (bool, error) {
	known := make([]bool, len(d.Symbols))
	values := make([]term.Value, len(d.Symbols))
	for s, n := range d.Template {
		known[s], values[s] = true, term.Value{I: n, F: float64(n)}
	}
	for _, c := range d.Constants {
		for _, x := range constants {
			if x.Index == c.Index {
				known[c.Symbol], values[c.Symbol] = true, term.Value{I: int64(x.Bits), F: float64(x.Bits)}
			}
		}
	}
	for _, r := range d.Requires {
		if ok, err := mayHold(r, known, values); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// mayHold reports whether a condition may hold when only some symbols are known. It takes a conjunction apart, and assumes
// that a part with an unknown symbol holds.
func mayHold(e *term.Expr, known []bool, values []term.Value) (bool, error) {
	if e.Op == term.And {
		ok, err := mayHold(e.Args[0], known, values)
		if err != nil || !ok {
			return ok, err
		}
		return mayHold(e.Args[1], known, values)
	}
	all := true
	e.Walk(func(x *term.Expr) { all = all && (x.Op != term.Symbol || known[x.Index]) && x.Op != term.Load })
	if !all {
		return true, nil
	}
	in := term.Interp{Symbols: values}
	v, err := in.Eval(e, nil)
	return v.I != 0, err
}

// For returns the first of a function's declarations that allows the function constants, or, if none does, the first. It
// says which arguments a kernel with these constants has: arguments may be there for some constants alone.
func For(ds []*Decl, constants []ir.FunctionConstant) *Decl {
	for _, d := range ds {
		if ok, err := d.Allows(constants); err == nil && ok {
			return d
		}
	}
	return ds[0]
}
