package cost

import (
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Operations counts the operations of all elements that the kernel's terms say. What an
// abbreviation stands for counts once for each choice of its indices, as kernels compute
// it.
func (e *Estimator) Operations(in *decl.Instance) float64 {
	c := counter{e: e, in: in, calls: make([]calls, len(in.Decl.Wheres))}
	total := 0.0
	for _, r := range in.Decl.Results {
		elements := 1.0
		for _, n := range in.Shapes[r.Arg] {
			elements *= e.value(n)
			c.vars = append(c.vars, e.value(n))
		}
		total += elements * c.operations(r.Body, elements)
		c.vars = c.vars[:0]
	}
	for i := len(c.calls) - 1; i >= 0; i-- { // an abbreviation uses only those before it
		x := &c.calls[i]
		choices := 1.0
		for _, n := range x.vars {
			choices *= n
		}
		n := min(x.times, choices)
		c.vars = append(c.vars[:0], x.vars...)
		total += n * c.operations(in.Decl.Wheres[i].Body, n)
	}
	return total
}

// counter counts the operations of one element of a result.
type counter struct {
	e     *Estimator
	in    *decl.Instance
	vars  []float64 // how many values each index variable has
	calls []calls   // of each abbreviation
}

// calls are the uses of an abbreviation: how many, and how many values each of its
// indices has at most.
type calls struct {
	times float64
	vars  []float64
}

// operations are those of e for one choice of the index variables, of which there are so
// many. Addresses cost nothing.
func (c *counter) operations(e *term.Expr, times float64) float64 {
	n := 0.0
	switch e.Op {
	case term.Number, term.Real, term.Symbol, term.Var, term.Load:
		return 0
	case term.Call:
		x := &c.calls[e.Index]
		x.times += times
		if x.vars == nil {
			x.vars = make([]float64, len(e.Args))
		}
		for i, a := range e.Args {
			lo, hi := c.span(a)
			x.vars[i] = max(x.vars[i], hi-lo+1)
		}
		return 0
	case term.Sum, term.MaxOver, term.ArgMax:
		_, count := c.span(e.Args[0])
		count = max(count, 0)
		c.vars = append(c.vars, count)
		n = 1
		for _, a := range e.Args[1:] {
			n += c.operations(a, times*count)
		}
		c.vars = c.vars[:len(c.vars)-1]
		return n * count
	}
	if e.Kind == term.Float {
		n = 1
	}
	for _, a := range e.Args {
		n += c.operations(a, times)
	}
	return n
}

// span bounds an integer expression over params and index variables.
func (c *counter) span(e *term.Expr) (lo, hi float64) {
	switch e.Op {
	case term.Number:
		return float64(e.Num), float64(e.Num)
	case term.Symbol:
		v := c.in.Symbols[e.Index]
		if c.e.params != nil {
			x := float64(v.Num.Eval(c.e.params)) / float64(v.Div)
			return x, x
		}
		lo, hi, _ := c.e.g.Range(v.Num)
		return float64(lo) / float64(v.Div), float64(hi) / float64(v.Div)
	case term.Load: // whatever the memory holds
		return 0, 1 << 32
	case term.Var:
		if e.Index < len(c.vars) {
			return 0, max(c.vars[e.Index]-1, 0)
		}
	case term.Add, term.Sub, term.Mul, term.Div, term.CeilDiv, term.Mod, term.Min, term.Max:
		a, b := e.Args[0], e.Args[1]
		alo, ahi := c.span(a)
		blo, bhi := c.span(b)
		switch e.Op {
		case term.Add:
			return alo + blo, ahi + bhi
		case term.Sub:
			return alo - bhi, ahi - blo
		case term.Mul:
			return min(alo*blo, alo*bhi, ahi*blo, ahi*bhi), max(alo*blo, alo*bhi, ahi*blo, ahi*bhi)
		case term.Div, term.CeilDiv: // of counts, by positive ones
			return alo / max(bhi, 1), ahi / max(blo, 1)
		case term.Mod:
			return 0, bhi
		case term.Min:
			return min(alo, blo), min(ahi, bhi)
		}
		return max(alo, blo), max(ahi, bhi)
	}
	return 0, 1
}
