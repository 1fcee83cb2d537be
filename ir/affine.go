package ir

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/collections/mix"
)

// Term is Coeff · (value of Param).
type Term struct {
	Param ParamID
	Coeff int64
}

// Affine is Const + Σ Coeff·param over u32 params. It is computed in 64 bits, never wrapped at 32.
// The zero value is the constant 0. Values are immutable; copies share their terms.
type Affine struct {
	Const int64
	// lin holds at least one term, sorted by param, none with the coefficient 0. A constant has nil
	// here, so that the common case costs 16 bytes.
	lin *[]Term
}

// Const returns the constant c.
func Const(c int64) Affine { return Affine{Const: c} }

// Linear returns c + Σ terms. Terms may repeat a param and come in any order.
func Linear(c int64, terms ...Term) Affine {
	ts := slices.Clone(terms)
	slices.SortFunc(ts, func(a, b Term) int { return int(a.Param) - int(b.Param) })
	out := ts[:0]
	for _, t := range ts {
		if n := len(out); n > 0 && out[n-1].Param == t.Param {
			out[n-1].Coeff += t.Coeff
		} else {
			out = append(out, t)
		}
	}
	out = slices.DeleteFunc(out, func(t Term) bool { return t.Coeff == 0 })
	if len(out) == 0 {
		return Affine{Const: c}
	}
	return Affine{Const: c, lin: &out}
}

// Terms returns the terms in the order of their params; the caller must not
// change them.
func (a Affine) Terms() []Term {
	if a.lin == nil {
		return nil
	}
	return *a.lin
}

// IsConst reports whether a depends on no param.
func (a Affine) IsConst() bool { return a.lin == nil }

// Coeff returns the coefficient of p in a.
func (a Affine) Coeff(p ParamID) int64 {
	for _, t := range a.Terms() {
		if t.Param == p {
			return t.Coeff
		}
	}
	return 0
}

// Equal reports whether a and b are the same expression.
func (a Affine) Equal(b Affine) bool {
	return a.Const == b.Const && (a.lin == b.lin || slices.Equal(a.Terms(), b.Terms()))
}

// Add returns a + b.
func (a Affine) Add(b Affine) Affine {
	if b.lin == nil {
		return Affine{a.Const + b.Const, a.lin}
	}
	if a.lin == nil {
		return Affine{a.Const + b.Const, b.lin}
	}
	return Linear(a.Const+b.Const, slices.Concat(a.Terms(), b.Terms())...)
}

// AddConst returns a + c.
func (a Affine) AddConst(c int64) Affine { return Affine{a.Const + c, a.lin} }

// Scale returns k·a.
func (a Affine) Scale(k int64) Affine {
	if a.lin == nil || k == 0 {
		return Const(a.Const * k)
	}
	ts := slices.Clone(*a.lin)
	for i := range ts {
		ts[i].Coeff *= k
	}
	return Affine{a.Const * k, &ts}
}

// Sub returns a − b.
func (a Affine) Sub(b Affine) Affine { return a.Add(b.Scale(-1)) }

// Hash mixes a into h; equal expressions give equal hashes.
func (a Affine) Hash(h uint64) uint64 {
	if a.lin == nil {
		return mix.Word(h, uint64(a.Const))
	}
	// The number of terms is hashed too. Otherwise (512·p) and 512, a row of a cache, would hash
	// like 0 and (512·p + 512), all rows up to it.
	h = mix.Word(h^uint64(len(*a.lin))<<48, uint64(a.Const))
	for _, t := range *a.lin {
		h = mix.Word(h^uint64(t.Param)<<1, uint64(t.Coeff))
	}
	return h
}

// Distance returns a − b if that depends on no param. It allocates nothing.
func (a Affine) Distance(b Affine) (int64, bool) {
	if a.lin != b.lin && !slices.Equal(a.Terms(), b.Terms()) {
		return 0, false
	}
	d, ok := addOK(a.Const, -b.Const)
	return d, ok && b.Const > math.MinInt64
}

// Eval returns the value of a for the values of all params of the graph. It is
// exact for every expression that [Check] accepted.
func (a Affine) Eval(params []uint32) int64 {
	v := a.Const
	for _, t := range a.Terms() {
		v += t.Coeff * int64(params[t.Param])
	}
	return v
}

// Format writes a with the params' names, as `256*$pos + 64`.
func (a Affine) Format(name func(ParamID) string) string {
	if a.lin == nil {
		return itoa(a.Const)
	}
	var b strings.Builder
	for i, t := range *a.lin {
		c := t.Coeff
		switch {
		case i == 0 && c < 0:
			b.WriteString("-")
		case i > 0 && c < 0:
			b.WriteString(" - ")
		case i > 0:
			b.WriteString(" + ")
		}
		if c != 1 && c != -1 {
			b.WriteString(strings.TrimPrefix(itoa(c), "-") + "*")
		}
		b.WriteString("$" + name(t.Param))
	}
	switch {
	case a.Const > 0:
		b.WriteString(" + " + itoa(a.Const))
	case a.Const < 0:
		b.WriteString(" - " + strings.TrimPrefix(itoa(a.Const), "-"))
	}
	return b.String()
}

// Extent is ⌈Num/Div⌉, one dimension of a grid. The number of threadgroups is rarely affine in a
// length, but it usually is the length divided by the size of a tile, rounded up.
type Extent struct {
	Num Affine
	Div int64 // ≥ 1
}

// Ext returns the constant extent n.
func Ext(n int64) Extent { return Extent{Const(n), 1} }

// Eval returns the extent's value.
func (e Extent) Eval(params []uint32) int64 { return ceilDiv(e.Num.Eval(params), e.Div) }

// IsConst reports whether e depends on no param.
func (e Extent) IsConst() bool { return e.Num.IsConst() }

// Equal reports whether e and f are the same expression.
func (e Extent) Equal(f Extent) bool { return e.Div == f.Div && e.Num.Equal(f.Num) }

func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// mulOK and addOK return false if the result overflows.
func mulOK(a, b int64) (int64, bool) {
	if int64(int32(a)) == a && int64(int32(b)) == b {
		return a * b, true
	}
	neg := (a < 0) != (b < 0)
	hi, lo := bits.Mul64(abs64(a), abs64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return 0, false
	}
	if neg {
		return -int64(lo), true
	}
	return int64(lo), true
}

func addOK(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

func abs64(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}
