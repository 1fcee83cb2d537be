package dispatches

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Equal terms mean equal bits. The prover relies on this where it lets one kernel stand
// for another, and the class of a reduction promises it (docs/terms.md). So two kernels of
// the library that have the same arguments and the same term must agree to the bit
// wherever both can be used.

// Twins returns the pairs of declarations with equal terms.
func Twins() [][2]*decl.Decl {
	var out [][2]*decl.Decl
	byTerm := map[string][]*decl.Decl{}
	for _, f := range msl.Functions() {
		for _, d := range msl.Declarations(f) {
			key := meaning(d)
			for _, other := range byTerm[key] {
				out = append(out, [2]*decl.Decl{other, d})
			}
			byTerm[key] = append(byTerm[key], d)
		}
	}
	return out
}

// meaning returns what d computes as text: its arguments, its term, and the template
// values that occur in them.
func meaning(d *decl.Decl) string {
	s := ""
	write := func(e *term.Expr) {
		s += e.String() + "\n"
		e.Walk(func(e *term.Expr) {
			if v, ok := d.Template[e.Index]; ok && e.Op == term.Symbol {
				s += fmt.Sprintln(e.Name, "=", v)
			}
		})
	}
	for _, a := range d.Args {
		s += fmt.Sprintln(a.Slot, a.Name, a.Kind, a.Type, a.Elem, a.Mode, a.Strides != nil)
		for _, e := range append(slices.Clone(a.Shape), a.Strides...) {
			write(e)
		}
	}
	for _, w := range d.Wheres {
		s += fmt.Sprintln(w.Name, w.Vars)
		write(w.Body)
	}
	for _, r := range d.Results {
		s += fmt.Sprintln(r.Arg, r.Vars)
		write(r.Body)
	}
	return s
}

// SameBits runs random dispatches of kernel a that kernel b can run too, on both, and
// returns how many there were.
func SameBits(dev backend.Device, a, b *decl.Decl, cases int) (int, error) {
	n := 0
	for i := range cases {
		seed := SeedOf(fmt.Sprint(a.Name, a.Line, b.Name, b.Line, i))
		r := rand.New(rand.NewPCG(seed, 5))
		x, err := solve(a, r, nil, false)
		if err != nil {
			return n, err
		}
		y := x.translate(b)
		if y == nil {
			continue
		}
		if err := compareBits(dev, seed, x, y); err != nil {
			return n, fmt.Errorf("%s and %s, case %d: %w", a.Name, b.Name, i, err)
		}
		n++
	}
	return n, nil
}

// translate returns an assignment for declaration d whose symbols have the values of
// the symbols of the same name in a. It returns nil if the conditions of d do not hold for
// them.
func (a *assignment) translate(d *decl.Decl) *assignment {
	out := newAssignment(d, a.r)
	out.draw()
	for i, s := range d.Symbols {
		if j := slices.Index(a.d.Symbols, s); j >= 0 && out.free[i] {
			out.vals[i], out.f32s[i] = a.vals[j], a.f32s[j]
		}
	}
	conds := slices.Clone(d.Requires)
	for range 20 { // choose values for the symbols that only d has, such as the threads of a threadgroup
		if out.lets() != nil {
			return nil
		}
		c := out.broken(conds)
		if c == nil {
			break
		}
		out.mend(c)
	}
	for i, s := range d.Symbols {
		if j := slices.Index(a.d.Symbols, s); j >= 0 && out.free[i] && (out.vals[i] != a.vals[j]) {
			return nil
		}
	}
	if out.broken(conds) != nil || out.bounded() != nil {
		return nil
	}
	return out
}

func compareBits(dev backend.Device, seed uint64, assignments ...*assignment) error {
	var first []uint64
	for k, a := range assignments {
		b := &builder{a: a, r: a.r, pair: [2]int{-1, -1}}
		x, err := b.build(0)
		if err != nil {
			return err
		}
		got, err := results(dev, x, seed)
		if err != nil {
			return fmt.Errorf("%w\n\t%v", err, x)
		}
		if k == 0 {
			first = got
			continue
		}
		if len(got) != len(first) {
			return fmt.Errorf("%d and %d results", len(first), len(got))
		}
		for i := range got {
			if got[i] != first[i] {
				return fmt.Errorf("result %d has the bits %#x and %#x, though the terms are equal\n\t%v", i, first[i], got[i], x)
			}
		}
	}
	return nil
}

// results runs a dispatch on data that depends only on the seed and the names of
// arguments, and returns the bits of all results, in order.
func results(dev backend.Device, x *dispatch, seed uint64) ([]uint64, error) {
	params := x.params[0]
	c := &checker{x: x, g: x.graph}
	c.at(params)
	before := make([][]byte, len(x.graph.Memories))
	for m := range before {
		before[m] = make([]byte, x.graph.Memories[m].Size)
	}
	for i, a := range x.in.Decl.Args {
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused {
			continue
		}
		raw := x.node.Binding(a.Slot).Bytes
		if !x.inline[i] {
			v := x.in.Views[i]
			raw = before[v.Mem][v.Off.Eval(params):v.End().Eval(params)]
		}
		fillElements(raw, a.Elem, rand.New(rand.NewPCG(seed, SeedOf(a.Name))), noOdd, 1)
	}
	after, err := backend.Once(context.Background(), dev, x.graph, before, params...) // inline bytes are part of the graph, so they are filled before
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, r := range x.in.Decl.Results {
		total := int64(1)
		for _, n := range c.shapes[r.Arg] {
			total *= n
		}
		for k := range total {
			_, bits, err := c.load(after, r.Arg, unravel(k, c.shapes[r.Arg]))
			if err != nil {
				return nil, err
			}
			out = append(out, bits)
		}
	}
	return out, nil
}
