package declarations

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// mutant is a declaration with one mistake put into it.
type mutant struct {
	kind string // "shape", "operation", …
	what string // the change, in the words of reports and of @equivalent lines
	d    *decl.Decl
}

func (m mutant) String() string { return m.kind + ": " + m.what }

// mutants returns every corruption of d that is known here.
func mutants(d *decl.Decl) []mutant {
	m := &mutator{d: d}
	m.modes()
	m.shapes()
	m.slots()
	m.grids()
	m.requires()
	m.inplace()
	m.terms()
	return m.out
}

type mutator struct {
	d   *decl.Decl
	out []mutant
}

// add adds a mutant: a copy of the declaration that change has corrupted.
func (m *mutator) add(kind, what string, change func(d *decl.Decl)) {
	d := *m.d
	d.Constants = slices.Clone(d.Constants)
	d.Args = slices.Clone(d.Args)
	for i := range d.Args {
		d.Args[i].Shape = slices.Clone(d.Args[i].Shape)
		d.Args[i].Strides = slices.Clone(d.Args[i].Strides)
	}
	for _, g := range []**decl.Grid{&d.Groups, &d.Threads} {
		if *g != nil {
			copy := **g
			*g = &copy
		}
	}
	d.Lets = slices.Clone(d.Lets)
	d.Requires = slices.Clone(d.Requires)
	d.Inplace = slices.Clone(d.Inplace)
	d.Wheres = slices.Clone(d.Wheres)
	d.Results = slices.Clone(d.Results)
	change(&d)
	m.out = append(m.out, mutant{kind, what, &d})
}

// The expressions that mutations build.
func number(n int64) *term.Expr { return &term.Expr{Op: term.Number, Num: n} }
func infix(op term.Op, a, b *term.Expr) *term.Expr {
	return &term.Expr{Op: op, Kind: a.Kind, Args: []*term.Expr{a, b}}
}
func plus(e *term.Expr, n int64) *term.Expr {
	if n < 0 {
		return infix(term.Sub, e, number(-n))
	}
	return infix(term.Add, e, number(n))
}

// modes drops reads, and turns must-writes into may-writes and the other way round.
func (m *mutator) modes() {
	for i, a := range m.d.Args {
		if a.Kind != ir.DeviceArg {
			continue
		}
		switch a.Mode {
		case decl.Read:
			m.add("read", "drop "+a.Name, func(d *decl.Decl) { d.Args[i].Mode = decl.Unused })
		case decl.Write:
			m.add("mode", a.Name+" write -> update", func(d *decl.Decl) { d.Args[i].Mode = decl.Update })
		case decl.Update:
			m.add("mode", a.Name+" update -> write", func(d *decl.Decl) { d.Args[i].Mode = decl.Write })
		}
	}
	for i, c := range m.d.Constants {
		m.add("function constant", fmt.Sprintf("%s: index %d -> %d", c.Name, c.Index, c.Index+100), func(d *decl.Decl) { d.Constants[i].Index += 100 })
	}
}

// shapes makes a dimension one shorter (one of a written argument also longer), changes a
// stride or a constant, and exchanges two dimensions.
func (m *mutator) shapes() {
	for i, a := range m.d.Args {
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused {
			continue
		}
		for j, e := range a.Shape {
			at := fmt.Sprintf("%s[%d] ", a.Name, j)
			m.add("shape", at+e.String()+" -> one less", func(d *decl.Decl) { d.Args[i].Shape[j] = plus(e, -1) })
			if a.Mode != decl.Read {
				m.add("shape", at+e.String()+" -> one more", func(d *decl.Decl) { d.Args[i].Shape[j] = plus(e, 1) })
			}
			m.constants("shape", at, e, func(d *decl.Decl, e *term.Expr) { d.Args[i].Shape[j] = e })
			if j > 0 && a.Shape[j-1].String() != e.String() {
				m.add("shape", at+"exchanged with the one before", func(d *decl.Decl) {
					s := d.Args[i].Shape
					s[j], s[j-1] = s[j-1], s[j]
				})
			}
		}
		for j, e := range a.Strides {
			m.add("stride", fmt.Sprintf("%s[%d] %s -> one more", a.Name, j, e), func(d *decl.Decl) { d.Args[i].Strides[j] = plus(e, 1) })
			if j > 0 && a.Strides[j-1].String() != e.String() {
				m.add("stride", fmt.Sprintf("%s[%d] %s exchanged with the one before", a.Name, j, e), func(d *decl.Decl) {
					s := d.Args[i].Strides
					s[j], s[j-1] = s[j-1], s[j]
				})
			}
		}
		if a.Strides == nil && len(a.Shape) > 1 && a.Elem.Size() > 0 {
			m.add("stride", a.Name+" rows one element further apart", func(d *decl.Decl) {
				x := &d.Args[i]
				for j := range x.Shape {
					x.Strides = append(x.Strides, dispatches.StrideOf(&m.d.Args[i], j))
				}
				last := len(x.Shape) - 2
				for j := last; j >= 0; j-- {
					x.Strides[j] = infix(term.Add, x.Strides[j], infix(term.Div, x.Strides[j], dispatches.StrideOf(&m.d.Args[i], last)))
				}
			})
		}
	}
	for i, l := range m.d.Lets {
		m.constants("let", m.d.Symbols[l.Symbol].Name+" ", l.Value, func(d *decl.Decl, e *term.Expr) { d.Lets[i].Value = e })
	}
}

// slots exchanges two arguments of one kind.
func (m *mutator) slots() {
	alike := func(a, b *decl.Arg) bool {
		return a.Kind == b.Kind && a.Type == b.Type && a.Count == b.Count && a.Mode == b.Mode && a.Mode != decl.Unused
	}
	for i := range m.d.Args {
		for j := range i {
			if a, b := &m.d.Args[j], &m.d.Args[i]; alike(a, b) {
				m.add("slot", a.Name+" exchanged with "+b.Name, func(d *decl.Decl) {
					d.Args[i].Slot, d.Args[j].Slot = d.Args[j].Slot, d.Args[i].Slot
					d.Args[i], d.Args[j] = d.Args[j], d.Args[i]
					// Results and loads name arguments by their index, which changes too.
					swap := func(k int) int {
						switch k {
						case i:
							return j
						case j:
							return i
						}
						return k
					}
					for k := range d.Results {
						d.Results[k].Arg = swap(d.Results[k].Arg)
						d.Results[k].Body = relocate(d.Results[k].Body, swap)
					}
					for k := range d.Wheres {
						d.Wheres[k].Body = relocate(d.Wheres[k].Body, swap)
					}
					for k, p := range d.Inplace {
						d.Inplace[k] = [2]int{swap(p[0]), swap(p[1])}
					}
				})
			}
		}
	}
}

func relocate(e *term.Expr, swap func(int) int) *term.Expr {
	out := *e
	if e.Op == term.Load {
		out.Index = swap(e.Index)
	}
	out.Args = nil
	for _, a := range e.Args {
		out.Args = append(out.Args, relocate(a, swap))
	}
	return &out
}

// grids exchanges dimensions, changes sizes and constants, and rounds down what is
// rounded up.
func (m *mutator) grids() {
	lines := []struct {
		kind string
		of   func(d *decl.Decl) *decl.Grid
	}{
		{"groups", func(d *decl.Decl) *decl.Grid { return d.Groups }},
		{"threads", func(d *decl.Decl) *decl.Grid { return d.Threads }},
		{"group", func(d *decl.Decl) *decl.Grid { return &d.Group }},
	}
	text := func(g *decl.Grid, i int) string {
		switch {
		case g[i].Check != nil:
			return g[i].Check.String()
		case g[i].Bind >= 0:
			return m.d.Symbols[g[i].Bind].Name
		}
		return "_"
	}
	for _, l := range lines {
		g := l.of(m.d)
		if g == nil {
			continue
		}
		for i := range g {
			if i > 0 && text(g, i) != text(g, i-1) {
				m.add(l.kind, fmt.Sprintf("[%d] %s exchanged with %s", i, text(g, i), text(g, i-1)), func(d *decl.Decl) {
					g := l.of(d)
					g[i], g[i-1] = g[i-1], g[i]
				})
			}
			e := g[i].Check
			if e == nil {
				continue
			}
			at := fmt.Sprintf("[%d] ", i)
			set := func(d *decl.Decl, e *term.Expr) { l.of(d)[i].Check = e }
			m.add(l.kind, at+e.String()+" -> one more", func(d *decl.Decl) { set(d, plus(e, 1)) })
			m.add(l.kind, at+e.String()+" -> twice as many", func(d *decl.Decl) { set(d, infix(term.Mul, e, number(2))) })
			if e.Op == term.CeilDiv {
				m.add(l.kind, at+e.String()+" -> rounded down", func(d *decl.Decl) { set(d, infix(term.Div, e.Args[0], e.Args[1])) })
			}
			if e.Op != term.Number {
				m.constants(l.kind, at, e, set)
			}
		}
	}
}

// requires drops each part of each condition, and changes its constants and comparisons.
func (m *mutator) requires() {
	for i, r := range m.d.Requires {
		set := func(d *decl.Decl, e *term.Expr) { d.Requires[i] = e }
		m.rewrite("require", "", r, set, func(e *term.Expr) []*term.Expr {
			switch e.Op {
			case term.And:
				return []*term.Expr{e.Args[0], e.Args[1]}
			case term.Number:
				return []*term.Expr{number(e.Num + 1)}
			case term.Eq:
				return []*term.Expr{compare(term.Ne, e)}
			case term.Le:
				return []*term.Expr{compare(term.Lt, e)}
			case term.Ge:
				return []*term.Expr{compare(term.Gt, e)}
			case term.Lt:
				return []*term.Expr{compare(term.Le, e)}
			case term.Gt:
				return []*term.Expr{compare(term.Ge, e)}
			}
			return nil
		})
		m.add("require", "drop "+r.String(), func(d *decl.Decl) { d.Requires = slices.Delete(d.Requires, i, i+1) })
	}
}

func compare(op term.Op, e *term.Expr) *term.Expr {
	return &term.Expr{Op: op, Kind: term.Bool, Args: e.Args}
}

// inplace removes each permission to run in place, and adds those that there are not.
func (m *mutator) inplace() {
	for i, p := range m.d.Inplace {
		m.add("inplace", fmt.Sprintf("forbid %s %s", m.d.Args[p[0]].Name, m.d.Args[p[1]].Name), func(d *decl.Decl) { d.Inplace = slices.Delete(d.Inplace, i, i+1) })
	}
	for i, w := range m.d.Args {
		for j, r := range m.d.Args {
			if w.Kind == ir.DeviceArg && w.Mode == decl.Write && r.Kind == ir.DeviceArg && r.Mode == decl.Read &&
				w.Elem.Bits() == r.Elem.Bits() && len(w.Shape) == len(r.Shape) && !slices.Contains(m.d.Inplace, [2]int{i, j}) {
				// It is the only permission, so that random dispatches use it.
				m.add("inplace", fmt.Sprintf("allow %s %s", w.Name, r.Name), func(d *decl.Decl) { d.Inplace = [][2]int{{i, j}} })
			}
		}
	}
}

// terms changes operations, constants, indices, bounds and roundings of terms.
func (m *mutator) terms() {
	for i, w := range m.d.Wheres {
		m.body(w.Name+": ", w.Body, func(d *decl.Decl, e *term.Expr) { d.Wheres[i].Body = e })
	}
	for i, r := range m.d.Results {
		m.body(m.d.Args[r.Arg].Name+": ", r.Body, func(d *decl.Decl, e *term.Expr) { d.Results[i].Body = e })
	}
}

func (m *mutator) body(at string, e *term.Expr, set func(*decl.Decl, *term.Expr)) {
	m.rewrite("operation", at, e, set, func(e *term.Expr) []*term.Expr {
		op, ok := e.Op.Other()
		switch {
		case e.Op == term.Select:
			return []*term.Expr{with(e, term.Select, e.Args[0], e.Args[2], e.Args[1])}
		case e.Op == term.Abs, e.Op == term.Neg && e.Kind == term.Int:
			return []*term.Expr{e.Args[0]}
		case !ok:
			return nil
		}
		return []*term.Expr{with(e, op, e.Args...)}
	})
	m.constants("constant", at, e, set)
	m.rewrite("index", at, e, set, func(e *term.Expr) (out []*term.Expr) {
		if e.Op != term.Load && e.Op != term.Call {
			return nil
		}
		for j := 1; j < len(e.Args); j++ {
			args := slices.Clone(e.Args)
			args[j], args[j-1] = args[j-1], args[j]
			out = append(out, with(e, e.Op, args...))
		}
		return out
	})
	m.rewrite("bound", at, e, set, func(e *term.Expr) []*term.Expr {
		if e.Op != term.Sum && e.Op != term.MaxOver && e.Op != term.ArgMax {
			return nil
		}
		var out []*term.Expr
		change := func(i int, n int64) {
			args := slices.Clone(e.Args)
			args[i] = plus(args[i], n)
			out = append(out, with(e, e.Op, args...))
		}
		change(0, -1)
		change(0, 1)
		if len(e.Args) == 3 { // an argmax with a place
			change(2, 1)
			out = append(out, with(e, e.Op, e.Args[:2]...))
		}
		return out
	})
	m.rewrite("round", at, e, set, func(x *term.Expr) []*term.Expr {
		if x.Op != term.Round {
			return nil
		}
		return []*term.Expr{x.Args[0]}
	})
}

func with(e *term.Expr, op term.Op, args ...*term.Expr) *term.Expr {
	out := *e
	out.Op, out.Args = op, args
	return &out
}

// constants changes each number of e.
func (m *mutator) constants(kind, at string, e *term.Expr, set func(*decl.Decl, *term.Expr)) {
	m.rewrite(kind, at, e, set, func(e *term.Expr) []*term.Expr {
		switch e.Op {
		case term.Number:
			return []*term.Expr{number(e.Num + 1)}
		case term.Real:
			v := 2*e.Val + 1
			if math.IsInf(v, 0) {
				v = 1
			}
			return []*term.Expr{{Op: term.Real, Kind: term.Float, Val: v}}
		}
		return nil
	})
}

// rewrite adds a mutant for each way in which change alters one node of e.
func (m *mutator) rewrite(kind, at string, e *term.Expr, set func(*decl.Decl, *term.Expr), change func(*term.Expr) []*term.Expr) {
	var walk func(e *term.Expr, up func(*term.Expr) *term.Expr)
	walk = func(e *term.Expr, up func(*term.Expr) *term.Expr) {
		for _, x := range change(e) {
			m.add(kind, fmt.Sprintf("%s%s -> %s", at, e, x), func(d *decl.Decl) { set(d, up(x)) })
		}
		for i, a := range e.Args {
			walk(a, func(x *term.Expr) *term.Expr {
				args := slices.Clone(e.Args)
				args[i] = x
				return up(with(e, e.Op, args...))
			})
		}
	}
	walk(e, func(x *term.Expr) *term.Expr { return x })
}
