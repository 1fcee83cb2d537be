package isel

import (
	"math"
	"strconv"
	"sync"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// value is a float or a condition in normal form. Values are interned, so that equal values of one
// space are the same pointer.
type value struct {
	id   int
	op   term.Op
	args []*value
	ints []form    // ToF32, AsF16, AsF32; the bound of a reduction, and the place of an argmax; comparisons of integers
	bits uint32    // Real: the f32
	par  ir.Affine // Symbol: the value of an f32 param
	typ  ir.DType  // Round: the type; Load: the element's type
	// Load: the element at bit addr of the slot.
	slot int
	addr form
	// reductions
	class string
	index int     // the level of the variable that it binds
	tree  *opTree // see Library.opTree
	known bool    // tree is
	// For the canonical order of operands, see order.go.
	hash  uint64
	depth int
}

// space interns the forms and values of one matching attempt.
type space struct {
	g        *ir.Graph
	atoms    map[string]*atom
	params   map[ir.ParamID]*atom
	values   map[string]*value
	next     int
	overflow bool
	fold     folding
	slots    []slot
	buf      []byte // for keys
	room     bump.Allocator[value]
	memos    []map[string]scalar // of composers; as many as there are composers so far are in use
	used     int
}

// folding says how much of a term is simplified with values that are known before the replay.
type folding uint8

const (
	foldNone folding = iota
	foldOnes         // drop factors that are elements of all-ones weights
	foldAll          // also fold elements of constant weights, conversions of constants, and factors of one
)

func newSpace(g *ir.Graph, slots []slot, fold folding) *space {
	s, ok := spaces.Get().(*space)
	if !ok {
		s = &space{atoms: map[string]*atom{}, params: map[ir.ParamID]*atom{}, values: map[string]*value{}}
	}
	s.g, s.slots, s.fold = g, slots, fold
	return s
}

// spaces holds released spaces. Most spaces are small, so that allocating their tables would cost as much as using
// them.
var spaces sync.Pool

// maxKept bounds the number of values of a space that is reused.
const maxKept = 1 << 8

// release makes s available for reuse. Values interned in it stay valid, but equal values made later are different
// pointers.
func (s *space) release() {
	if len(s.values) > maxKept {
		return
	}
	clear(s.atoms)
	clear(s.params)
	clear(s.values)
	for _, m := range s.memos[:s.used] {
		clear(m)
	}
	*s = space{atoms: s.atoms, params: s.params, values: s.values, buf: s.buf, memos: s.memos}
	spaces.Put(s)
}

// memo returns an empty table for a composer.
func (s *space) memo() map[string]scalar {
	if s.used == len(s.memos) {
		s.memos = append(s.memos, map[string]scalar{})
	}
	s.used++
	return s.memos[s.used-1]
}

// make interns v. Operands of commutative operations are sorted (docs/terms.md, "When two terms are equal").
func (s *space) make(v value) *value {
	for i, a := range v.args {
		switch {
		case a.isStored():
			v.args[i] = a.args[0]
		case a.op == term.Real && v.op != term.Round:
			v.args[i] = s.real(term.Stored(ir.F32, math.Float32frombits(a.bits))) // the canonical NaN
		}
	}
	switch {
	case v.op == term.Round:
		switch a := v.args[0]; {
		case a.op == term.Load && (v.typ == ir.F32 || v.typ == a.typ):
			// Not if v is a copy, whose NaN keeps its bits. See isStored.
		case a.op == term.Real && s.fold == foldAll:
			return s.real(term.Stored(v.typ, math.Float32frombits(a.bits)))
		case v.typ == ir.F32 || a.fits(v.typ):
			return a
		}
	case commutes(v.op):
		if before(v.args[1], v.args[0]) {
			v.args = []*value{v.args[1], v.args[0]}
		}
		if v.op == term.Mul && s.fold != foldNone {
			for i, a := range v.args {
				if s.one(a) {
					return v.args[1-i] // 1·x is x to the bit, except for NaNs, which all count as one within a term
				}
			}
		}
	case v.op == term.ToF32:
		if s.fold == foldAll && v.ints[0].isConst() {
			return s.real(float32(v.ints[0].c))
		}
	case v.op.FromBits():
		if s.fold == foldAll && v.ints[0].isConst() {
			return s.real(float32(v.op.OfBits(v.ints[0].c)))
		}
	}
	b := strconv.AppendInt(s.buf[:0], int64(v.op), 10)
	app := func(x int64) { b = append(strconv.AppendInt(b, x, 10), ' ') }
	b = append(b, ' ')
	app(int64(v.typ))
	app(int64(v.bits))
	app(int64(v.slot))
	app(int64(v.index))
	b = append(append(b, v.class...), ' ')
	b = v.addr.key(b)
	for _, f := range v.ints {
		b = f.key(append(b, ' ', 'i'))
	}
	for _, a := range v.args {
		b = strconv.AppendInt(append(b, ' ', 'v'), int64(a.id), 10)
	}
	if v.op == term.Symbol {
		b = s.affine(v.par).key(append(b, ' ', 'p'))
	}
	s.buf = b
	if x, ok := s.values[string(b)]; ok {
		return x
	}
	x := s.room.One() // not &v, which would allocate even if v is known
	*x = v
	x.id = s.next
	s.next++
	s.setHash(x)
	s.values[string(b)] = x
	return x
}

// isStored reports whether v is an element that a store in its own type or in f32 changes at most in the bits of a
// NaN. No operation sees those bits; a copy does.
func (v *value) isStored() bool {
	return v.op == term.Round && v.args[0].op == term.Load && (v.typ == ir.F32 || v.typ == v.args[0].typ)
}

// fits reports whether rounding v to t is known to change nothing.
func (v *value) fits(t ir.DType) bool {
	return (v.op == term.Round || v.op == term.Load) && v.typ == t || v.op == term.AsF16 && t == ir.F16
}

// one reports whether v is known to be 1 at the current level of folding.
func (s *space) one(v *value) bool {
	if v.op == term.Real {
		return s.fold == foldAll && v.bits == math.Float32bits(1)
	}
	if v.op != term.Load {
		return false
	}
	x, ok := s.slots[v.slot].constant(v.typ)
	return ok && x == 1
}

func (s *space) real(f float32) *value {
	return s.make(value{op: term.Real, bits: math.Float32bits(f)})
}

// load returns an element of type t at bit addr of a slot, as a value or, for an integer type, as a form.
func (s *space) load(at int, addr form, t ir.DType) scalar {
	sl := s.slots[at]
	if t.Float() {
		if x, ok := sl.constant(t); ok && s.fold == foldAll {
			return scalar{v: s.real(x)}
		}
		return scalar{v: s.make(value{op: term.Load, typ: t, slot: at, addr: addr})}
	}
	b := strconv.AppendInt([]byte("l"), int64(at), 10)
	b = strconv.AppendInt(append(b, '.'), int64(t), 10)
	return scalar{isInt: true, f: of(s.lookup(addr.key(append(b, '@')), func() *atom {
		lo, hi := rangeOf(t)
		return &atom{kind: loadAtom, typ: t, slot: at, num: addr, lo: lo, hi: hi, moving: addr.moving(), open: addr.open()}
	}))}
}

// rangeOf returns the min and max of an integer type; two equal numbers if the range does not fit 64 bits with
// room to spare.
func rangeOf(t ir.DType) (lo, hi int64) {
	switch bits := t.Bits(); {
	case t == ir.Bool:
		return 0, 1
	case bits > 32:
		return 0, 0
	case t.Signed():
		return -1 << (bits - 1), 1<<(bits-1) - 1
	default:
		return 0, 1<<bits - 1
	}
}

// scalar is the result of an expression: a float, a condition or an integer.
type scalar struct {
	isInt bool
	f     form
	v     *value
}

// float returns x as a float, converting an integer as an operation with a float does.
func (s *space) float(x scalar) *value {
	if !x.isInt {
		return x.v
	}
	return s.make(value{op: term.ToF32, ints: []form{x.f}})
}
