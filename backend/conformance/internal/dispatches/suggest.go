package dispatches

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// RandomWitness draws a dispatch of a function, for which the conditions of d and the extra ones hold, but that one of
// four has a value next to a number of the conditions near. pair are a written and a read argument of it that may be
// one view, both empty if there are none.
func RandomWitness(function string, d *decl.Decl, extra, near []*term.Expr, r *rand.Rand) (w *decl.Witness, pair [2]string, err error) {
	a, err := solve(d, r, extra, false)
	if err != nil {
		return nil, pair, err
	}
	if r.IntN(4) == 0 {
		a.nearBound(near)
	}
	return a.witness(function), a.somePair(), nil
}

// Describes returns nil if one of the declarations, all of one function, describes the witness, else why the last one
// does not.
func Describes(w *decl.Witness, ds []*decl.Decl) error { return witness{w}.describes(ds) }

// nearBound gives a symbol of the conditions a value next to one of their numbers, where
// different bounds differ.
func (a *assignment) nearBound(conds []*term.Expr) {
	var symbols []int
	var numbers []int64
	for _, c := range conds {
		c.Walk(func(e *term.Expr) {
			if a.settable(e) {
				symbols = append(symbols, e.Index)
			}
			if e.Op == term.Number {
				numbers = append(numbers, e.Num)
			}
		})
	}
	if len(symbols) > 0 && len(numbers) > 0 {
		step := numbers[a.r.IntN(len(numbers))] // often what the symbol is a multiple of
		a.vals[symbols[a.r.IntN(len(symbols))]] = numbers[a.r.IntN(len(numbers))] + []int64{-1, 0, 1, step}[a.r.IntN(4)]
	}
}

// witness returns the dispatch of an assignment as a witness.
func (a *assignment) witness(function string) *decl.Witness {
	w := &decl.Witness{Function: function, Values: map[string][]int64{}, Indices: map[string]uint16{}, Kind: ir.Threadgroups}
	for _, c := range a.d.Constants {
		w.Values[c.Name], w.Indices[c.Name] = []int64{a.vals[c.Symbol]}, c.Index
	}
	for _, x := range a.d.Args {
		if x.Kind == ir.ConstantArg && x.Mode != decl.Unused && !a.floats[x.Symbol] {
			w.Values[x.Name] = slices.Clone(a.vals[x.Symbol:][:x.Count])
		}
	}
	value := func(g *decl.Grid, i int) int64 {
		if g[i].Bind >= 0 {
			return a.vals[g[i].Bind]
		}
		if g[i].Check != nil {
			if v, err := a.eval(g[i].Check); err == nil {
				return v
			}
		}
		return 1
	}
	grid := a.d.Groups
	if a.d.Threads != nil {
		grid, w.Kind = a.d.Threads, ir.Threads
	}
	for i := range 3 {
		w.Grid[i], w.Group[i] = value(grid, i), uint32(value(&a.d.Group, i))
	}
	return w
}

// somePair returns the names of a written and a read argument, or of none.
func (a *assignment) somePair() [2]string {
	of := func(modes ...decl.Mode) string {
		var names []string
		for _, x := range a.d.Args {
			if x.Kind == ir.DeviceArg && slices.Contains(modes, x.Mode) {
				names = append(names, x.Name)
			}
		}
		if len(names) == 0 {
			return ""
		}
		return names[a.r.IntN(len(names))]
	}
	out, in := of(decl.Write, decl.Update), of(decl.Read)
	if out == "" || in == "" {
		return [2]string{}
	}
	return [2]string{out, in}
}
