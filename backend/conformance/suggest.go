package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// suggest returns a witness that distinguishes a declaration from a corruption of it, as a line
// for the source, to be added if it is true of the kernel. If it finds none it returns an
// @equivalent line.
func suggest(x instance, m mutant) string {
	r := rand.New(rand.NewPCG(seedOf(m.String()), 11))
	right := msl.Declarations(x.function)
	wrong := slices.Clone(right)
	wrong[x.index] = m.d
	for range 400 {
		from, extra := x.d, []*term.Expr(nil)
		switch r.IntN(3) { // look on purpose for a dispatch that only one of the two describes
		case 0:
			from = m.d
		case 1:
			from, extra = m.d, onlyWithout(x.d, m.d)
		default:
			extra = onlyWithout(m.d, x.d)
		}
		a, err := solve(from, r, extra)
		if err != nil {
			continue
		}
		if r.IntN(4) == 0 {
			a.nearBound(x.d.Requires)
		}
		w := a.witness(x.function)
		for _, w.Inplace = range [][2]string{{}, a.somePair()} {
			w.OK = w.describes(right) == nil
			if w.OK != (w.describes(wrong) == nil) {
				return "// @witness " + line(w.Witness)
			}
		}
	}
	return fmt.Sprintf("// @equivalent %v ; %v ; why no dispatch tells the two apart", x, m)
}

// onlyWithout returns the negation of a condition of d that other does not have in the same
// form, nil if it has all of them.
func onlyWithout(d, other *decl.Decl) []*term.Expr {
	for _, c := range d.Requires {
		if !slices.ContainsFunc(other.Requires, func(o *term.Expr) bool { return o.String() == c.String() }) {
			return []*term.Expr{negation(c)}
		}
	}
	return nil
}

func negation(e *term.Expr) *term.Expr {
	switch {
	case e.Op.Comparison():
		return compare(e.Op.Negated(), e)
	case e.Op == term.And:
		return with(e, term.Or, negation(e.Args[0]), negation(e.Args[1]))
	case e.Op == term.Or:
		return with(e, term.And, negation(e.Args[0]), negation(e.Args[1]))
	}
	return &term.Expr{Op: term.Not, Kind: term.Bool, Args: []*term.Expr{e}}
}

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
func (a *assignment) witness(function string) witness {
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
	return witness{w}
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

// line formats a witness as a source has it.
func line(w *decl.Witness) string {
	var values []string
	for name, list := range w.Values {
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
		if i, ok := w.Indices[name]; ok {
			name = fmt.Sprintf("%s@%d", name, i)
		}
		values = append(values, name+"="+text)
	}
	slices.Sort(values)
	if w.Inplace[0] != "" {
		values = append(values, "inplace="+w.Inplace[0]+","+w.Inplace[1])
	}
	unit, verdict := "groups", "refused"
	if w.Kind == ir.Threads {
		unit = "threads"
	}
	if w.OK {
		verdict = "ok"
	}
	return fmt.Sprintf("%s ; %s ; %s %d %d %d / %d %d %d ; %s", w.Function, strings.Join(values, " "), unit,
		w.Grid[0], w.Grid[1], w.Grid[2], w.Group[0], w.Group[1], w.Group[2], verdict)
}
