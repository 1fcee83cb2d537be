package infer

import (
	"fmt"
	"slices"
	"strings"
)

// atom is a symbol, or a symbol divided by a constant.
type atom struct {
	sym int
	div int64 // 0: the symbol itself
	up  bool  // the quotient is rounded up, otherwise down
}

func (a atom) eval(vals []int64) int64 {
	v := vals[a.sym]
	switch {
	case a.div == 0:
		return v
	case a.up:
		return -floorDiv(-v, a.div)
	}
	return floorDiv(v, a.div)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func (a atom) format(names []string) string {
	switch {
	case a.div == 0:
		return names[a.sym]
	case a.up:
		return fmt.Sprintf("ceil(%s/%d)", names[a.sym], a.div)
	}
	return fmt.Sprintf("(%s/%d)", names[a.sym], a.div)
}

// mono is a monomial: a product of atoms times num/den, rounded down.
type mono struct {
	num, den int64
	atoms    []atom
}

func (m mono) product(vals []int64) int64 {
	p := int64(1)
	for _, a := range m.atoms {
		p = sat(p, a.eval(vals))
	}
	return p
}

func (m mono) eval(vals []int64) int64 { return floorDiv(sat(m.num, m.product(vals)), max(1, m.den)) }

// sat returns a·b, or 2⁵² if the product does not lie between −2⁵² and 2⁵².
func sat(a, b int64) int64 {
	const limit = 1 << 52
	if a == 0 || b == 0 {
		return 0
	}
	if p := a * b; p/b == a && p < limit && p > -limit {
		return p
	}
	return limit
}

func (m mono) format(names []string) string {
	var f []string
	if n := max(m.num, -m.num); n != 1 || len(m.atoms) == 0 {
		f = append(f, fmt.Sprint(n))
	}
	for _, a := range m.atoms {
		f = append(f, a.format(names))
	}
	s := strings.Join(f, "*")
	if m.den > 1 {
		s += fmt.Sprintf("/%d", m.den)
	}
	return s
}

// expr is a sum of monomials and a constant or, if least is not nil, the minimum of that sum and least.
type expr struct {
	sum   []mono
	plus  int64
	least *expr
}

func constant(n int64) expr { return expr{plus: n} }

func (e expr) eval(vals []int64) int64 {
	v := e.plus
	for _, m := range e.sum {
		v += m.eval(vals)
	}
	if e.least != nil {
		v = min(v, e.least.eval(vals))
	}
	return v
}

// format returns e in the syntax of declarations.
func (e expr) format(names []string) string {
	var b strings.Builder
	sum := slices.Clone(e.sum)
	slices.SortStableFunc(sum, func(a, b mono) int { // positive terms first
		return sign(b.num) - sign(a.num)
	})
	for i, m := range sum {
		switch {
		case i > 0 && m.num < 0:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		case m.num < 0:
			b.WriteString("-")
		}
		b.WriteString(m.format(names))
	}
	switch {
	case len(sum) == 0:
		fmt.Fprint(&b, e.plus)
	case e.plus > 0:
		fmt.Fprintf(&b, " + %d", e.plus)
	case e.plus < 0:
		fmt.Fprintf(&b, " - %d", -e.plus)
	}
	if e.least != nil {
		return fmt.Sprintf("min(%s, %s)", b.String(), e.least.format(names))
	}
	return b.String()
}

func sign(n int64) int {
	if n < 0 {
		return -1
	}
	return 1
}

// isConst reports whether e contains no symbol.
func (e expr) isConst() bool { return len(e.sum) == 0 && e.least == nil }

// uses reports whether e contains a symbol whose bit is set in skip.
func (e expr) uses(skip uint64) bool {
	for _, m := range e.sum {
		for _, a := range m.atoms {
			if a.sym < 64 && skip>>a.sym&1 != 0 {
				return true
			}
		}
	}
	return e.least != nil && e.least.uses(skip)
}
