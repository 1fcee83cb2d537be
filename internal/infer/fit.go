package infer

import (
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/mix"
)

// table holds the products that expressions are made from, with their values for a list of shapes. Products with the
// same values cannot be distinguished by these shapes, so only the first of them is kept, which is the simplest.
type table struct {
	rows    [][]int64 // values of the symbols, by shape
	more    []int64   // divisors besides the usual ones
	skip    uint64    // a bit for each symbol that no expression may contain
	singles []atom    // symbols whose values differ between shapes
	plain   []column  // symbols and products of two of them
	wide    []column  // products of three, and those with quotients; see needWide
	built   bool      // whether wide is built
	seen    map[uint64][]*column
	parts   map[string]*table // tables of some of the rows
	known   map[string]answer
}

type answer struct {
	e  expr
	ok bool
}

// column is a product with its value for each shape.
type column struct {
	m    mono
	vals []int64
}

// divisors are what symbols are divided by: the sizes of tiles, vectors and simdgroups.
var divisors = []int64{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// newTable returns the table for shapes. more are divisors besides the usual ones. skip has a bit for each symbol
// that a condition expresses by others.
func newTable(rows [][]int64, more []int64, skip uint64) *table {
	t := &table{rows: rows, more: more, skip: skip, seen: map[uint64][]*column{}, parts: map[string]*table{}, known: map[string]answer{}}
	if len(rows) == 0 {
		t.built = true
		return t
	}
	for s := range rows[0] {
		if (s > 63 || skip>>s&1 == 0) && t.add(&t.plain, atom{sym: s}) {
			t.singles = append(t.singles, atom{sym: s})
		}
	}
	for i, a := range t.singles {
		for _, b := range t.singles[i:] {
			t.add(&t.plain, a, b)
		}
	}
	return t
}

// add adds a product, unless its values are all equal or are those of a product that is there.
func (t *table) add(to *[]column, atoms ...atom) bool {
	c := column{m: mono{num: 1, den: 1, atoms: slices.Clone(atoms)}, vals: make([]int64, len(t.rows))}
	h, fixed := uint64(0), true
	for i, r := range t.rows {
		c.vals[i] = c.m.product(r)
		fixed = fixed && c.vals[i] == c.vals[0]
		h = mix.Word(h, uint64(c.vals[i]))
	}
	if fixed || slices.ContainsFunc(t.seen[h], func(o *column) bool { return slices.Equal(o.vals, c.vals) }) {
		return false
	}
	*to = append(*to, c)
	t.seen[h] = append(t.seen[h], &c)
	return true
}

// needWide returns the products of wide, which it makes when it is first called: few expressions contain them.
func (t *table) needWide() []column {
	if t.built {
		return t.wide
	}
	t.built = true
	var quotients []atom
	for _, s := range t.singles {
		for _, d := range append(slices.Clone(divisors), t.more...) {
			for _, up := range []bool{true, false} {
				if q := (atom{s.sym, d, up}); d > 1 && t.add(&t.wide, q) {
					quotients = append(quotients, q)
				}
			}
		}
	}
	for _, q := range quotients {
		for _, a := range t.singles {
			t.add(&t.wide, q, a)
		}
	}
	if len(t.singles) <= 12 {
		for i, a := range t.singles {
			for j, b := range t.singles[i:] {
				for _, c := range t.singles[i+j:] {
					t.add(&t.wide, a, b, c)
				}
			}
		}
	}
	return t.wide
}

// fit returns the simplest expression that it finds with the values y. With least, the expression may be the minimum
// of two.
func (t *table) fit(y []int64, least bool) (expr, bool) {
	key := make([]byte, 1, 1+8*len(y))
	if least {
		key[0] = 1
	}
	for _, v := range y {
		key = binary.LittleEndian.AppendUint64(key, uint64(v))
	}
	a, ok := t.known[string(key)]
	if !ok {
		a.e, a.ok = t.look(y, least)
		t.known[string(key)] = a
	}
	return a.e, a.ok
}

func (t *table) look(y []int64, least bool) (expr, bool) {
	if len(y) == 0 {
		return constant(0), true
	}
	if !slices.ContainsFunc(y, func(v int64) bool { return v != y[0] }) {
		return constant(y[0]), true
	}
	each := func(try func(c *column) (expr, bool), lists ...[]column) (expr, bool) {
		for _, cs := range lists {
			for i := range cs {
				if e, ok := try(&cs[i]); ok {
					return e, true
				}
			}
		}
		return expr{}, false
	}
	times := func(c *column) (expr, bool) {
		m, ok := multiple(c, y)
		return expr{sum: []mono{m}}, ok
	}
	straight := func(c *column) (expr, bool) { return line(c, y) }
	if e, ok := each(times, t.plain); ok {
		return e, true
	}
	if e, ok := each(straight, t.plain); ok {
		return e, true
	}
	wide := t.needWide()
	if e, ok := each(times, wide); ok {
		return e, true
	}
	if e, ok := each(straight, wide); ok {
		return e, true
	}
	if e, ok := t.plane(y); ok {
		return e, true
	}
	if e, ok := t.rowsOf(y); ok {
		return e, true
	}
	if least {
		return t.leastOf(y)
	}
	return expr{}, false
}

// maxCoefficient bounds the numbers in expressions, and maxDenominator the divisors of products. There are divisors
// because a packed code is a fraction of an element.
const (
	maxCoefficient = 1 << 24
	maxDenominator = 64
)

// multiple returns a constant multiple of a column that equals y.
func multiple(c *column, y []int64) (mono, bool) {
	v := c.vals
	at := 0
	for at < len(v) && v[at] == 0 {
		if y[at] != 0 {
			return mono{}, false
		}
		at++
	}
	if at == len(v) || y[at] == 0 || at+1 < len(v) && sat(v[at], y[at+1]) != sat(y[at], v[at+1]) {
		return mono{}, false // most columns end here
	}
	num, den := y[at], v[at]
	if g := gcd(num, den); g > 1 {
		num, den = num/g, den/g
	}
	if den < 0 {
		num, den = -num, -den
	}
	if den > maxDenominator || num > maxCoefficient || num < -maxCoefficient {
		return mono{}, false
	}
	for i, x := range v {
		if sat(num, x) != sat(y[i], den) {
			return mono{}, false
		}
	}
	m := c.m
	m.num, m.den = num, den
	return m, true
}

func gcd(a, b int64) int64 {
	a, b = max(a, -a), max(b, -b)
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// line returns a multiple of a column plus a constant that equals y.
func line(c *column, y []int64) (expr, bool) {
	for i := 1; i < len(y); i++ {
		dv, dy := c.vals[i]-c.vals[0], y[i]-y[0]
		if dv == 0 {
			if dy != 0 {
				return expr{}, false
			}
			continue
		}
		if dy == 0 || dy%dv != 0 {
			return expr{}, false
		}
		k := dy / dv
		plus := y[0] - sat(k, c.vals[0])
		if max(k, -k) > maxCoefficient || max(plus, -plus) > maxCoefficient {
			return expr{}, false
		}
		for j, v := range c.vals {
			if sat(k, v)+plus != y[j] {
				return expr{}, false
			}
		}
		m := c.m
		m.num = k
		return expr{sum: []mono{m}, plus: plus}, true
	}
	return expr{}, false
}

// plane returns a sum of multiples of two products and a constant. It needs enough shapes to rule out a coincidence.
func (t *table) plane(y []int64) (expr, bool) {
	if len(y) < 6 {
		return expr{}, false
	}
	cs := t.plain
	if len(cs) > 60 {
		cs = cs[:60]
	}
	for i := range cs {
		for j := i + 1; j < len(cs); j++ {
			if e, ok := planeOf(&cs[i], &cs[j], y); ok {
				return e, true
			}
		}
	}
	return expr{}, false
}

func planeOf(a, b *column, y []int64) (expr, bool) {
	// Two differences determine the two coefficients.
	for p := 1; p < len(y); p++ {
		a1, b1, y1 := a.vals[p]-a.vals[0], b.vals[p]-b.vals[0], y[p]-y[0]
		if a1 == 0 && b1 == 0 {
			if y1 != 0 {
				return expr{}, false
			}
			continue
		}
		for q := p + 1; q < len(y); q++ {
			a2, b2, y2 := a.vals[q]-a.vals[0], b.vals[q]-b.vals[0], y[q]-y[0]
			det := float64(a1)*float64(b2) - float64(a2)*float64(b1)
			if det == 0 {
				continue
			}
			x := (float64(y1)*float64(b2) - float64(y2)*float64(b1)) / det
			z := (float64(a1)*float64(y2) - float64(a2)*float64(y1)) / det
			if max(x, -x, z, -z) > maxCoefficient || x != float64(int64(x)) || z != float64(int64(z)) || x == 0 || z == 0 {
				return expr{}, false
			}
			k, l := int64(x), int64(z)
			plus := y[0] - sat(k, a.vals[0]) - sat(l, b.vals[0])
			if max(plus, -plus) > maxCoefficient {
				return expr{}, false
			}
			for i := range y {
				if sat(k, a.vals[i])+sat(l, b.vals[i])+plus != y[i] {
					return expr{}, false
				}
			}
			m, n := a.m, b.m
			m.num, n.num = k, l
			return expr{sum: []mono{m, n}, plus: plus}, true
		}
		return expr{}, false
	}
	return expr{}, false
}

// rowsOf returns (rows − 1) · stride + length, the extent of rows at equal distances.
func (t *table) rowsOf(y []int64) (expr, bool) {
	if len(y) < 6 {
		return expr{}, false
	}
	rest := make([]int64, len(y))
	fixed := func() bool { return !slices.ContainsFunc(rest, func(v int64) bool { return v != rest[0] }) }
	for i := range t.plain {
		c := &t.plain[i]
		if len(c.m.atoms) != 2 {
			continue
		}
		for k := range 2 {
			stride := c.m.atoms[k]
			for r, v := range y {
				rest[r] = v - c.vals[r] + stride.eval(t.rows[r])
			}
			minus := mono{num: -1, den: 1, atoms: []atom{stride}}
			if fixed() {
				return expr{sum: []mono{c.m, minus}, plus: rest[0]}, true
			}
			for j := range t.plain {
				if len(t.plain[j].m.atoms) > 1 {
					continue // lengths are single symbols
				}
				if m, ok := multiple(&t.plain[j], rest); ok {
					return expr{sum: []mono{c.m, minus, m}}, true
				}
			}
		}
	}
	return expr{}, false
}

// leastOf returns the minimum of multiples of two products.
func (t *table) leastOf(y []int64) (expr, bool) {
	type bound struct {
		m     mono
		exact []bool
	}
	var bounds []bound
	cs := t.plain
	if len(cs) > 120 {
		cs = cs[:120]
	}
	for i := range cs {
		c := &cs[i]
		k := int64(1)
		for r, v := range c.vals {
			if v > 0 && y[r] > 0 {
				k = max(k, -floorDiv(-y[r], v))
			}
		}
		b := bound{m: c.m, exact: make([]bool, len(y))}
		b.m.num = k
		any, holds := false, k <= 4096
		for r, v := range c.vals {
			x := sat(k, v)
			holds = holds && x >= y[r]
			b.exact[r] = x == y[r]
			any = any || b.exact[r]
		}
		if any && holds {
			bounds = append(bounds, b)
		}
	}
	for i := range bounds {
	next:
		for j := i + 1; j < len(bounds); j++ {
			for r := range y {
				if !bounds[i].exact[r] && !bounds[j].exact[r] {
					continue next
				}
			}
			return expr{sum: []mono{bounds[i].m}, least: &expr{sum: []mono{bounds[j].m}}}, true
		}
	}
	return expr{}, false
}
