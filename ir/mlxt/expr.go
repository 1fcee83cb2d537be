package mlxt

import (
	"math"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// affine parses a sum of integers, params and multiples of params.
func (p *parser) affine() ir.Affine {
	constant := int64(0)
	p.terms = p.terms[:0]
	for first := true; p.err == nil; first = false {
		at := p.tok
		negative := p.accept("-")
		if !negative && !first && !p.accept("+") {
			break
		}
		if p.tok.kind == tokParam {
			p.term(at, negative, 1)
			continue
		}
		n := p.uint("an integer or a param like $pos", math.MaxUint64)
		if p.accept("*") {
			p.term(at, negative, n)
			continue
		}
		v := p.signed(at, negative, n)
		sum, ok := add(constant, v)
		if !ok {
			p.fail(at, "sum leaves 64 bits", "")
		}
		constant = sum
	}
	if len(p.terms) == 0 {
		return ir.Const(constant)
	}
	if !p.mergeTerms() {
		p.fail(p.tok, "sum of the coefficients of a param leaves 64 bits", "")
	}
	return ir.Linear(constant, p.terms...)
}

func (p *parser) term(at token, negative bool, n uint64) {
	id, _ := lookup(p, tokParam, "param", "$", p.params)
	if p.tok.is("*") {
		p.want("the end of a product", "the factor stands before its param: 4*$pos")
	}
	p.terms = append(p.terms, ir.Term{Param: id, Coeff: p.signed(at, negative, n)})
}

// mergeTerms adds the coefficients of repeated params. Unlike [ir.Linear], it reports overflow.
func (p *parser) mergeTerms() bool {
	slices.SortStableFunc(p.terms, func(a, b ir.Term) int { return int(a.Param) - int(b.Param) })
	out := p.terms[:0]
	for _, t := range p.terms {
		if n := len(out); n > 0 && out[n-1].Param == t.Param {
			sum, ok := add(out[n-1].Coeff, t.Coeff)
			if !ok {
				return false
			}
			out[n-1].Coeff = sum
			continue
		}
		out = append(out, t)
	}
	p.terms = out
	return true
}

func add(a, b int64) (int64, bool) {
	s := a + b
	return s, (s > a) == (b > 0)
}

// view parses %name[off:end], or %name for the whole memory.
func (p *parser) view() ir.View {
	mem := p.memoryID()
	if p.err == nil && !p.tok.is("[") {
		return ir.ViewOf(mem, 0, p.g.Memories[mem].Size)
	}
	off, n := p.span()
	p.expect("]")
	return ir.View{Mem: mem, Off: off, Len: n}
}

// span parses [off:end without the closing bracket. The length wraps around if the difference
// overflows 64 bits; then offset and end cannot both lie in a memory.
func (p *parser) span() (off, n ir.Affine) {
	p.expect("[")
	off = p.affine()
	p.expect(":")
	end := p.affine()
	switch {
	case off.IsConst():
		return off, end.AddConst(-off.Const)
	case slices.Equal(off.Terms(), end.Terms()):
		return off, ir.Const(end.Const - off.Const)
	}
	return off, end.Sub(off)
}

// region parses %name[off:end; count x stride; …].
func (p *parser) region() ir.Region {
	mem := p.memoryID()
	if p.err == nil && !p.tok.is("[") {
		return ir.ViewOf(mem, 0, p.g.Memories[mem].Size).Contiguous()
	}
	r := ir.Region{Mem: mem}
	r.Off, r.Run = p.span()
	p.dims = p.dims[:0]
	for p.accept(";") {
		d := ir.Dim{Count: p.affine()}
		p.expect("x")
		d.Stride = p.size("a stride in bytes")
		p.dims = append(p.dims, d)
	}
	p.expect("]")
	if len(p.dims) > 0 {
		r.Dims = slices.Clone(p.dims)
	}
	return r
}

// extent parses an expression or ceildiv(expression, divisor).
func (p *parser) extent() ir.Extent {
	if !p.accept("ceildiv") {
		return ir.Extent{Num: p.affine(), Div: 1}
	}
	p.expect("(")
	e := ir.Extent{Num: p.affine()}
	p.expect(",")
	e.Div = p.size("a divisor")
	p.expect(")")
	return e
}
