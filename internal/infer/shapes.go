package infer

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// condition is a requirement of a declaration on the symbols, without which what was observed has no simple form. All
// shapes of the graph satisfy it.
type condition struct {
	kind conditionKind
	sym  int
	by   int64 // the divisor, or the value
	is   expr  // of tied: what sym equals
}

type conditionKind uint8

const (
	aligned conditionKind = iota // sym is a multiple of by
	tied                         // sym, a size of the grid, equals an expression in the other symbols
	pinned                       // sym equals by
)

func (k condition) holds(vals []int64) bool {
	switch v := vals[k.sym]; k.kind {
	case aligned:
		return v%k.by == 0
	case tied:
		return v == k.is.eval(vals)
	default:
		return v == k.by
	}
}

func all(ks []condition, vals []int64) bool {
	for _, k := range ks {
		if !k.holds(vals) {
			return false
		}
	}
	return true
}

// line returns the condition as a line of a declaration. A tie stands in the line of the grid instead.
func (k condition) line(names []string) string {
	if k.kind == aligned {
		return fmt.Sprintf("%s %% %d == 0", names[k.sym], k.by)
	}
	return fmt.Sprintf("%s == %d", names[k.sym], k.by)
}

// seen is the range of the values of a symbol.
type seen struct{ lo, hi int64 }

func (s *seen) add(v int64, first bool) {
	if first {
		s.lo, s.hi = v, v
		return
	}
	s.lo, s.hi = min(s.lo, v), max(s.hi, v)
}

// conditions returns those that may be tried, since all shapes of the graph satisfy them. Ties of the grid come
// first, as they are what engines mean: of two conditions that serve, the first is taken.
func (c *class) conditions(real []*shape) (weak, mild, hard []condition) {
	if len(real) == 0 {
		return nil, nil, nil
	}
	for s := c.grid; s < len(c.names); s++ {
		mild = append(mild, c.ties(s, real)...)
	}
	weak = onePerSymbol(mild)
	for s := range c.names {
		g, one := int64(0), true
		for _, r := range real {
			g = gcd(g, r.vals[s])
			one = one && r.vals[s] == real[0].vals[s]
		}
		for by := int64(1024); by >= 2 && s < c.grid; by /= 2 {
			if g != 0 && g%by == 0 {
				mild = append(mild, condition{kind: aligned, sym: s, by: by})
				if by > 4 {
					weak = append(weak, condition{kind: aligned, sym: s, by: 4})
				} else {
					weak = append(weak, mild[len(mild)-1])
				}
				break
			}
		}
		if one && s >= c.grid {
			weak = append(weak, condition{kind: pinned, sym: s, by: real[0].vals[s]})
		}
		if one {
			hard = append(hard, condition{kind: pinned, sym: s, by: real[0].vals[s]})
		}
	}
	return weak, mild, hard
}

// maxTies is the maximum number of ties of one size of the grid.
const maxTies = 6

// ties returns conditions that express a size of the grid by arguments in all shapes of the graph. There are none if
// all its values are at most 2, since many expressions would give these.
func (c *class) ties(s int, real []*shape) (out []condition) {
	y := make([]int64, len(real))
	rows := make([][]int64, len(real))
	big := false
	for i, r := range real {
		y[i], rows[i] = r.vals[s], r.vals
		big = big || y[i] > 2
	}
	if !big {
		return nil
	}
	try := func(atoms ...atom) {
		if len(out) >= maxTies {
			return
		}
		k := int64(0)
		m := mono{num: 1, den: 1, atoms: atoms}
		for i, r := range rows {
			v := m.product(r)
			if v == 0 || y[i]%v != 0 || k != 0 && y[i]/v != k {
				return
			}
			k = y[i] / v
		}
		if k < 1 || k > 1024 || k&(k-1) != 0 {
			return
		}
		m.num = k
		out = append(out, condition{kind: tied, sym: s, is: expr{sum: []mono{m}}})
	}
	for a := range c.grid {
		try(atom{sym: a})
	}
	for a := range c.grid {
		for _, d := range append(slices.Clone(c.divided), divisors...) {
			try(atom{a, d, true})
		}
	}
	for a := range c.grid {
		for b := a; b < c.grid; b++ {
			try(atom{sym: a}, atom{sym: b})
			for _, d := range divisors[:5] {
				try(atom{a, d, true}, atom{sym: b})
				try(atom{a, 0, false}, atom{b, d, true})
			}
		}
	}
	return out
}

// Limits of made-up shapes, which are small because many of them run.
const (
	madeThreads = 1 << 15
	fewThreads  = 1 << 14 // of most shapes of structs
	allThreads  = 1 << 19 // of those that are made at once
	madeBytes   = 1 << 16 // of a view that is longer in the graph
	madeValue   = 1 << 12
)

// manyWords is how many integers there may be among the arguments before they count as many.
const manyWords = 8

// many reports whether a proposal is searched for as for a struct, of whose words each is changed alone first, and then only some at once: if
// nearly all are others, hardly any shape stays within its views.
func (s *study) many() bool { return s.c.grid > manyWords && !s.declared }

// high reports whether a symbol may be the high half of a word of 64 bits in a struct: that another value than 0 leads anywhere is not to be
// expected.
func (c *class) high(sym int) bool {
	for i := range c.slots {
		if x := &c.slots[i]; x.kind == integers && x.symbol <= sym && sym < x.symbol+x.count {
			return x.count >= manyWords && x.Type.Size() == 4 && (sym-x.symbol)%2 == 1
		}
	}
	return false
}

// vary makes up a shape that satisfies the conditions, from one of the graph. With one ≥ 0 only that symbol is drawn
// anew.
func (s *study) vary(base *shape, ks []condition, one int) *shape {
	c, r := s.c, s.r
	sh := &shape{vals: slices.Clone(base.vals), form: base.form}
	if s.many() && (one >= 0 || r.IntN(8) > 0) { // few words change, so that it would be as large as the graph's
		for c.threads(sh) > fewThreads {
			most := c.grid
			for i := c.grid; i < len(sh.vals); i++ {
				if sh.vals[i] > sh.vals[most] {
					most = i
				}
			}
			if sh.vals[most] == 1 {
				break
			}
			sh.vals[most] /= 2
		}
	}
	draw := func(i int) {
		if !s.fixed[i] && (base.vals[i] != 0 || s.declared || !c.high(i)) {
			sh.vals[i] = pick(r, base.vals[i], i >= c.grid)
		}
	}
	switch {
	case one >= 0:
		draw(one)
	case s.many(): // words that are 0 are high halves most often
		few := 1 + r.IntN(6)
		for i := range sh.vals {
			if r.IntN(len(sh.vals)) < few && (base.vals[i] != 0 || r.IntN(4) == 0) {
				draw(i)
			}
		}
	default:
		for i := range sh.vals {
			if r.IntN(4) > 0 || i >= c.grid && !(s.flat && base.vals[i] == 1) {
				draw(i)
			}
		}
	}
	for _, k := range ks {
		switch k.kind {
		case pinned:
			sh.vals[k.sym] = k.by
		case aligned:
			sh.vals[k.sym] = max(1, (sh.vals[k.sym]+k.by/2)/k.by) * k.by
		}
	}
	for _, k := range ks {
		if k.kind == tied {
			sh.vals[k.sym] = k.is.eval(sh.vals)
		}
	}
	c.room(sh, base)
	return sh
}

// room sets the lengths of the views of a made-up shape.
func (c *class) room(s, base *shape) {
	for _, n := range base.lens {
		// Room for larger strides and more rows than the graph's.
		s.lens = append(s.lens, max(min(n, 16*madeBytes), min(4*n, madeBytes), 4096)&^15)
	}
}

// pick returns a value near one of the graph, mostly a smaller one, so that accesses stay within views and grids stay
// small.
func pick(r *rand.Rand, v int64, grid bool) int64 {
	top := min(max(v, 4), madeValue)
	if grid {
		top = min(max(v, 6), 64)
	}
	small := []int64{1, 2, 3, 4, 5, 7}
	switch n := r.IntN(16); {
	case n == 0:
		return v
	case n < 5:
		return small[r.IntN(len(small))]
	case n < 8 && top > 64: // multiples of the powers of two that divide v
		by := int64(1)
		for v > 0 && v%(2*by) == 0 && 4*by <= top {
			by *= 2
		}
		return by * (1 + r.Int64N(max(1, top/by)))
	case n < 12 && top > 16: // of all magnitudes equally
		return 1 + r.Int64N(int64(1)<<(4+r.IntN(bits.Len64(uint64(top))-4)))
	}
	return 1 + r.Int64N(top)
}

// cheap reports whether a made-up shape has few enough threads.
func (c *class) cheap(s *shape) bool { return c.threads(s) <= madeThreads }
