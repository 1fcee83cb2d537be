package isel

import (
	"cmp"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// Operands of commutative operations are put into a canonical order that depends only on what they are: constants
// first, then operations, deepest first, then loads in the order in which the group binds their memory; ties are
// decided by hash. The order in which values were interned must not matter, so that the text of a generated
// kernel does not depend on how its term was derived.

// hash returns a hash of the form that does not depend on the order in which its atoms were interned.
func (f form) hash() uint64 {
	h := uint64(0)
	for _, m := range f.t {
		h += mix.Word(mix.Word(1, uint64(m.k)), m.a.hash)
	}
	return mix.Word(h, uint64(f.c))
}

func (a *atom) setHash() {
	h := mix.Word(mix.Word(2, uint64(a.kind)), uint64(a.param))
	h = mix.Word(mix.Word(h, uint64(a.level)), a.num.hash())
	h = mix.Word(mix.Word(h, uint64(a.den)), uint64(a.op))
	h = mix.Word(mix.Word(mix.Word(h, uint64(a.typ)), uint64(a.slot)), uint64(a.which))
	for _, f := range a.args {
		h = mix.Word(h, f.hash())
	}
	if a.value != nil {
		h = mix.Word(h, a.value.hash)
	}
	a.hash = h
}

// setHash computes the hash and depth of a value from those of its operands.
func (s *space) setHash(v *value) {
	h := mix.Word(mix.Word(mix.Word(3, uint64(v.op)), uint64(v.typ)), uint64(v.bits))
	h = mix.Word(mix.Word(mix.Word(h, uint64(v.slot)), uint64(v.index)), v.addr.hash())
	for i := range len(v.class) {
		h = mix.Word(h, uint64(v.class[i]))
	}
	for _, f := range v.ints {
		h = mix.Word(h, f.hash())
	}
	if v.op == term.Symbol {
		h = mix.Word(h, s.affine(v.par).hash())
	}
	v.depth = 0
	for _, a := range v.args { // they are in canonical order already
		h = mix.Word(h, a.hash)
		v.depth = max(v.depth, min(a.depth, math.MaxInt32-1)+1)
	}
	v.hash = h
}

// rank is the first sort key of a value among operands of a commutative operation.
func (v *value) rank() int {
	switch v.op {
	case term.Real, term.Symbol:
		return 0
	case term.Load:
		return 2
	}
	return 1
}

// before reports whether a sorts before b in the canonical order. Both are values of one space, so equal values are
// the same pointer; values with equal hashes are compared by content.
func before(a, b *value) bool {
	if a == b {
		return false
	}
	c := cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.depth, a.depth), cmp.Compare(a.slot, b.slot), cmp.Compare(a.hash, b.hash))
	if c == 0 {
		c = collided{}.compare(a, b)
	}
	return c < 0
}

// collided compares values with equal hashes part by part, each pair once.
type collided map[[2]*value]int

func (m collided) compare(a, b *value) int {
	if a == b {
		return 0
	}
	pair := [2]*value{a, b}
	if c, ok := m[pair]; ok {
		return c
	}
	c := cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.typ, b.typ), cmp.Compare(a.bits, b.bits), cmp.Compare(a.slot, b.slot), cmp.Compare(a.index, b.index),
		cmp.Compare(a.class, b.class), m.form(a.addr, b.addr), slices.CompareFunc(a.ints, b.ints, m.form), params(a.par, b.par))
	if c == 0 {
		c = slices.CompareFunc(a.args, b.args, m.compare)
	}
	m[pair] = c
	return c
}

func params(a, b ir.Affine) int {
	return cmp.Or(cmp.Compare(a.Const, b.Const), slices.CompareFunc(a.Terms(), b.Terms(), func(x, y ir.Term) int {
		return cmp.Or(cmp.Compare(x.Param, y.Param), cmp.Compare(x.Coeff, y.Coeff))
	}))
}

func (m collided) form(f, g form) int {
	byHash := func(f form) []mono {
		t := slices.Clone(f.t)
		slices.SortFunc(t, func(x, y mono) int { return cmp.Or(cmp.Compare(x.a.hash, y.a.hash), m.atom(x.a, y.a)) })
		return t
	}
	return cmp.Or(cmp.Compare(f.c, g.c), slices.CompareFunc(byHash(f), byHash(g), func(x, y mono) int {
		return cmp.Or(cmp.Compare(x.k, y.k), m.atom(x.a, y.a))
	}))
}

func (m collided) atom(a, b *atom) int {
	if a == b {
		return 0
	}
	c := cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.param, b.param), cmp.Compare(a.level, b.level), cmp.Compare(a.den, b.den), cmp.Compare(a.op, b.op),
		cmp.Compare(a.typ, b.typ), cmp.Compare(a.slot, b.slot), cmp.Compare(a.which, b.which), m.form(a.num, b.num), slices.CompareFunc(a.args, b.args, m.form))
	if c == 0 && a.value != nil && b.value != nil {
		c = m.compare(a.value, b.value)
	}
	return c
}
