package dispatches

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// assignment has a value for every symbol of a declaration, from which a random
// dispatch of its kernel is built.
type assignment struct {
	d    *decl.Decl
	r    *rand.Rand
	vals []int64
	f32s []float32

	free    []bool // the value may be chosen: it is neither a template parameter nor a @let
	sizes   []bool // the symbol appears in a shape
	strides []bool // the symbol is a stride
	floats  []bool
	flags   []bool  // of type bool
	bits    []bool  // the bits of an f32
	limit   []int64 // values must be below it
	divided []bool  // a condition asks for a multiple of something
	regular bool    // sizes that a condition asks for a multiple of are like those of models
}

// maxBytes is the max size of the elements of an argument of a random dispatch; maxSpread that
// of the range from its first to its last element, which strides may spread.
const (
	maxBytes  = 1 << 18
	maxSpread = 2 * maxBytes
)

// solve draws values for which the declaration's conditions and the extra ones
// hold. It returns an error if it finds none.
func solve(d *decl.Decl, r *rand.Rand, extra []*term.Expr, regular bool) (*assignment, error) {
	var err error
	tries, regularTries := 60, 0 // of some kernels regular sizes are too large together
	if regular {
		regularTries = 30
	}
	for try := range tries + regularTries {
		a := newAssignment(d, r)
		a.regular = try < regularTries
		a.draw()
		if err = a.repair(append(slices.Clone(extra), d.Requires...)); err != nil {
			continue
		}
		if err = a.threadgroup(); err != nil {
			continue
		}
		if err = a.bounded(); err == nil {
			return a, nil
		}
	}
	return nil, fmt.Errorf("%w of %s (%s:%d) fulfils its conditions: %w", ErrNoDispatch, d.Name, d.File, d.Line, err)
}

func newAssignment(d *decl.Decl, r *rand.Rand) *assignment {
	n := len(d.Symbols)
	a := &assignment{d: d, r: r, vals: make([]int64, n), f32s: make([]float32, n), free: make([]bool, n), sizes: make([]bool, n),
		strides: make([]bool, n), floats: make([]bool, n), flags: make([]bool, n), bits: make([]bool, n), limit: make([]int64, n),
		divided: make([]bool, n)}
	for i, s := range d.Symbols {
		a.free[i], a.floats[i] = true, s.Kind == term.Float
		a.limit[i] = 1 << 31
	}
	for s, v := range d.Template {
		a.free[s], a.vals[s] = false, v
	}
	for _, l := range d.Lets {
		a.free[l.Symbol] = false
	}
	for _, c := range d.Constants {
		a.flags[c.Symbol] = c.Type == ir.Bool
	}
	floats := func(e *term.Expr) {
		e.Walk(func(e *term.Expr) {
			if e.Op == term.AsF32 && e.Args[0].Op == term.Symbol {
				a.bits[e.Args[0].Index] = true
			}
		})
	}
	for _, w := range d.Wheres {
		floats(w.Body)
	}
	for _, c := range d.Requires {
		c.Walk(func(e *term.Expr) {
			if e.Op == term.Mod && e.Args[0].Op == term.Symbol {
				a.divided[e.Args[0].Index] = true
			}
		})
	}
	for _, r := range d.Results {
		floats(r.Body)
	}
	for _, x := range d.Args {
		for _, e := range x.Shape {
			e.Walk(func(e *term.Expr) {
				if e.Op == term.Symbol {
					a.sizes[e.Index] = true
				}
			})
		}
		for _, e := range x.Strides {
			if e.Op == term.Symbol {
				a.strides[e.Index] = true
			}
		}
	}
	// The symbols of a @let that appears in a shape are sizes too.
	for i := len(d.Lets) - 1; i >= 0; i-- {
		if l := d.Lets[i]; a.sizes[l.Symbol] {
			l.Value.Walk(func(e *term.Expr) {
				if e.Op == term.Symbol {
					a.sizes[e.Index] = true
				}
			})
		}
	}
	return a
}

// draw gives every free symbol a random value that is usual for its use.
func (a *assignment) draw() {
	long := -1 // the index of a size that is long, while all others are short; −1 if none is
	if a.r.IntN(6) == 0 {
		long = a.r.IntN(len(a.vals) + 1)
	}
	for i := range a.vals {
		switch {
		case !a.free[i]:
		case a.floats[i]:
			a.f32s[i] = a.float()
		case a.bits[i]:
			a.vals[i] = int64(math.Float32bits(a.float()))
		case a.flags[i]:
			a.vals[i] = int64(a.r.IntN(2))
		case a.regular && a.sizes[i] && a.divided[i]:
			a.vals[i] = 256 * []int64{1, 1, 1, 1, 2, 2, 3, 4, 8}[a.r.IntN(9)]
		case a.regular && a.sizes[i] && a.r.IntN(2) == 0:
			a.vals[i] = int64(16 + a.r.IntN(64))
			if a.r.IntN(2) == 0 { // as rows of weights that no condition makes whole
				a.vals[i] = int64(64 * (1 + a.r.IntN(6)))
			}
		case i == long && a.sizes[i]:
			a.vals[i] = int64(1 + a.r.IntN(6000))
		case a.sizes[i] || a.bound(i):
			a.vals[i] = a.size(long >= 0)
		case a.regular && a.r.IntN(3) == 0: // as a window that some of what there is lies in
			a.vals[i] = int64(1 + a.r.IntN(200))
		default: // something else, such as a position
			a.vals[i] = []int64{0, 1, int64(a.r.IntN(10)), int64(a.r.IntN(5000))}[a.r.IntN(4)]
		}
	}
}

// float draws a typical value of eps, of a scale or of the logarithm of rope's base.
func (a *assignment) float() float32 {
	return []float32{1e-5, 1e-3, 0.0884, 0.125, 0.5, 1, 2, 13.287712, a.r.Float32(), 8 * a.r.Float32()}[a.r.IntN(10)]
}

// bound reports whether the grid binds the symbol.
func (a *assignment) bound(s int) bool {
	for _, g := range []*decl.Grid{&a.d.Group, a.d.Groups, a.d.Threads} {
		if g != nil {
			for _, x := range g {
				if x.Bind == s {
					return true
				}
			}
		}
	}
	return false
}

// threadgroup returns an error if no device runs threadgroups whose threads along some axes are symbols.
func (a *assignment) threadgroup() error {
	threads := int64(1)
	for _, x := range a.d.Group {
		switch {
		case x.Bind >= 0:
			threads *= a.vals[x.Bind]
		case x.Check != nil:
			n, err := a.eval(x.Check)
			if err != nil {
				return err
			}
			threads *= n
		}
	}
	if threads < 1 || threads > 1024 {
		return fmt.Errorf("a threadgroup of %d threads", threads)
	}
	return nil
}

func (a *assignment) size(short bool) int64 {
	switch n := a.r.IntN(20); {
	case n == 0:
		return 0
	case n < 4:
		return 1
	case n < 14 || short:
		return int64(2 + a.r.IntN(7))
	case n < 18:
		return int64(9 + a.r.IntN(32))
	}
	return int64(41 + a.r.IntN(160))
}

// eval computes an integer expression or condition under the assignment.
func (a *assignment) eval(e *term.Expr) (int64, error) {
	in := term.Interp{Symbols: make([]term.Value, len(a.vals))}
	for i := range a.vals {
		in.Symbols[i] = term.Value{I: a.vals[i], F: float64(a.f32s[i])}
	}
	v, err := in.Eval(e, nil)
	return v.I, err
}

func (a *assignment) lets() error {
	for _, l := range a.d.Lets {
		v, err := a.eval(l.Value)
		if err != nil {
			return err
		}
		a.vals[l.Symbol] = v
	}
	return nil
}

// repair changes values until all conditions hold: it takes one that does not and
// changes a symbol in it.
func (a *assignment) repair(conds []*term.Expr) error {
	a.drawStrides()
	for round := range 80 {
		if err := a.lets(); err != nil {
			return err
		}
		broken := a.broken(conds)
		if broken == nil {
			return nil
		}
		if round%10 == 9 {
			a.drawStrides()
		}
		a.mend(broken)
	}
	return fmt.Errorf("%s does not hold", a.broken(conds))
}

func (a *assignment) broken(conds []*term.Expr) *term.Expr {
	for _, c := range conds {
		if v, err := a.eval(c); err != nil || v == 0 {
			return c
		}
	}
	return nil
}

// mend changes one symbol of a condition that does not hold so that it may hold.
func (a *assignment) mend(c *term.Expr) {
	switch c.Op {
	case term.And:
		if b := a.broken(c.Args); b != nil {
			a.mend(b)
		}
		return
	case term.Or:
		a.mend(c.Args[a.r.IntN(2)])
		return
	case term.Pow2:
		if s := c.Args[0]; a.settable(s) {
			a.vals[s.Index] = 1 << a.r.IntN(7)
		}
		return
	}
	if !c.Op.Comparison() {
		a.shake(c)
		return
	}
	x, y := c.Args[0], c.Args[1]
	op := c.Op
	if !a.settable(x) || a.settable(y) && a.r.IntN(2) == 0 {
		x, y = y, x
		op = op.Mirrored()
	}
	v, err := a.eval(y)
	switch {
	case err != nil || !a.settable(x):
		if m := c.Args[0]; c.Op == term.Eq && m.Op == term.Mod && a.settable(m.Args[0]) {
			if k, err := a.eval(m.Args[1]); err == nil && k > 0 { // s % k == 0
				a.vals[m.Args[0].Index] = k * int64(a.r.IntN(4)+min(1, a.r.IntN(4)))
				return
			}
		}
		a.shake(c)
	case op == term.Eq:
		a.vals[x.Index] = v
	case op == term.Ne:
		a.vals[x.Index] = v + 1
	case op == term.Lt:
		a.vals[x.Index] = v - 1 - int64(a.r.IntN(3))
	case op == term.Le:
		a.vals[x.Index] = v - int64(a.r.IntN(3))
	case op == term.Gt:
		a.vals[x.Index] = v + 1 + int64(a.r.IntN(4))
	case op == term.Ge:
		a.vals[x.Index] = v + int64(a.r.IntN(4))
	}
}

// settable reports whether e is a single symbol whose value may be chosen.
func (a *assignment) settable(e *term.Expr) bool {
	return e.Op == term.Symbol && a.free[e.Index] && !a.floats[e.Index]
}

// shake gives one symbol of a condition another random value.
func (a *assignment) shake(c *term.Expr) {
	var of []int
	c.Walk(func(e *term.Expr) {
		if a.settable(e) {
			of = append(of, e.Index)
		}
	})
	if len(of) > 0 {
		s := of[a.r.IntN(len(of))]
		a.vals[s] = a.size(false)
		if a.flags[s] {
			a.vals[s] = int64(a.r.IntN(2))
		}
	}
}

// drawStrides gives every argument whose strides can be chosen one of the layouts
// that views have: dimensions nested in some order, with gaps between, repeated
// (stride 0), or anything.
func (a *assignment) drawStrides() {
	for i := range a.d.Args {
		x := &a.d.Args[i]
		if x.Strides == nil {
			continue
		}
		order := a.r.Perm(len(x.Shape))
		if a.r.IntN(2) == 0 {
			for j := range order {
				order[j] = len(order) - 1 - j // row-contiguous but for gaps
			}
		}
		step := int64(1)
		if a.r.IntN(8) == 0 {
			step = int64(1 + a.r.IntN(3))
		}
		anything := a.r.IntN(10) == 0
		for _, j := range order {
			n, err := a.eval(x.Shape[j])
			if err != nil || n < 1 {
				n = 1
			}
			if s := x.Strides[j]; a.settable(s) {
				a.vals[s.Index] = step
				switch {
				case anything:
					a.vals[s.Index] = int64(a.r.IntN(20))
				case x.Mode == decl.Read && a.r.IntN(7) == 0:
					a.vals[s.Index] = 0
					continue
				}
			}
			now, err := a.eval(x.Strides[j])
			if err != nil {
				continue
			}
			step = max(step, now*n)
			if a.r.IntN(3) == 0 {
				step += int64(a.r.IntN(4))
			}
		}
	}
}

// bounded returns an error if the values make a dispatch that is too large or invalid.
func (a *assignment) bounded() error {
	for i, v := range a.vals {
		if !a.floats[i] && (v < 0 || v >= a.limit[i]) {
			return fmt.Errorf("%s is %d", a.d.Symbols[i].Name, v)
		}
	}
	for i := range a.d.Args {
		x := &a.d.Args[i]
		n, last := int64(1), int64(0)
		for j, e := range x.Shape {
			v, err := a.eval(e)
			if err != nil {
				return err
			}
			s := int64(1)
			if x.Strides != nil {
				if s, err = a.eval(x.Strides[j]); err != nil {
					return err
				}
			}
			n, last = n*v, last+(v-1)*s
			bits := int64(x.Elem.Bits())
			if v < 0 || v > 8*maxBytes || n*bits > 8*maxBytes || last*bits > 8*maxSpread {
				return fmt.Errorf("%s has too many elements", x.Name)
			}
		}
	}
	return nil
}
