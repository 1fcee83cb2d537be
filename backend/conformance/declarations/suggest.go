package declarations

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// suggest returns a witness that distinguishes a declaration from a corruption of it, as a line
// for the source, to be added if it is true of the kernel. If it finds none it returns an
// @equivalent line.
func suggest(x instance, m mutant) string {
	r := rand.New(rand.NewPCG(dispatches.SeedOf(m.String()), 11))
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
		w, pair, err := dispatches.RandomWitness(x.function, from, extra, x.d.Requires, r)
		if err != nil {
			continue
		}
		for _, w.Inplace = range [][2]string{{}, pair} {
			w.OK = dispatches.Describes(w, right) == nil
			if w.OK != (dispatches.Describes(w, wrong) == nil) {
				return "// @witness " + line(w)
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
