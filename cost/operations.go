package cost

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Repeated is work that several threadgroups of a dispatch do each for themselves, because threadgroups can share
// only memory that was written before the dispatch: for example a norm that is fused into the product of its results.
type Repeated struct {
	Operations float64
	Bytes      float64 // of arguments, read from caches
}

// operations counts the operations of a kernel's terms over all elements of the results. once counts each value of a
// @where term once per choice of its indices; again is what threadgroups repeat of that.
//
// If an element of the results needs m of the c choices of the term's indices, each choice is needed by a
// share m/c of the elements, and so by at least that share of the threadgroups.
func (e *Estimator) operations(in *decl.Instance) (once float64, again Repeated) {
	c := counter{e: e, in: in, calls: make([]calls, len(in.Decl.Wheres))}
	groups := 0.0 // computed when it is first needed
	for _, r := range in.Decl.Results {
		elements := 1.0
		for _, n := range in.Shapes[r.Arg] {
			elements *= e.value(n)
			c.vars, c.free = append(c.vars, e.value(n)), append(c.free, 1)
		}
		once += elements * c.operations(r.Body, elements)
		c.vars, c.free = c.vars[:0], c.free[:0]
	}
	var read []float64                       // by argument, the elements that a threadgroup reads for its repeated work
	for i := len(c.calls) - 1; i >= 0; i-- { // a @where term uses only those before it
		x := &c.calls[i]
		choices, need := 1.0, 1.0
		for k, n := range x.vars {
			choices *= n
			need *= x.free[k]
		}
		n := min(x.times, choices)
		c.vars, c.free = append(c.vars[:0], x.vars...), append(c.free[:0], x.free...)
		body := in.Decl.Wheres[i].Body
		operations := c.operations(body, n)
		once += n * operations
		if n == 0 {
			continue
		}
		if groups == 0 {
			if groups = e.groups(in.Dispatch); e.Filling != nil && e.Filling.MatchString(in.Decl.Name) {
				groups = min(groups, float64(e.Cores))
			}
		}
		if shared := min(need/n, 1) * groups; shared > 1 {
			again.Operations += (shared - 1) * n * operations
			if read == nil {
				read = make([]float64, len(in.Decl.Args))
			}
			c.loads(body, n, read)
			for arg, elements := range read {
				again.Bytes += (shared - 1) * elements * float64(in.Decl.Args[arg].Elem.Bits()) / 8
			}
			clear(read)
		}
	}
	return once, again
}

// loads sets read, for each argument, to at least the number of elements that n evaluations of e load. Loads of
// one argument in several places of e are taken to be of the same elements.
func (c *counter) loads(e *term.Expr, n float64, read []float64) {
	switch e.Op {
	case term.Load:
		read[e.Index] = max(read[e.Index], n)
	case term.Sum, term.MaxOver, term.ArgMax:
		_, count := c.span(e.Args[0])
		c.vars = append(c.vars, max(count, 0))
		for _, a := range e.Args[1:] {
			c.loads(a, n*max(count, 0), read)
		}
		c.vars = c.vars[:len(c.vars)-1]
		return
	}
	for _, a := range e.Args {
		c.loads(a, n, read)
	}
}

// counter counts the operations of one element of a result.
type counter struct {
	e     *Estimator
	in    *decl.Instance
	vars  []float64 // by index variable: its number of values
	free  []float64 // by index variable: how many values one element of a result needs
	calls []calls   // by @where term
}

// calls are the uses of a @where term: how many there are, and the max number of values of each of its
// indices, for all elements of the results (vars) and for one of them (free).
type calls struct {
	times      float64
	vars, free []float64
}

// operations counts the operations of one evaluation of e, which is evaluated `times` times. Addresses cost nothing.
func (c *counter) operations(e *term.Expr, times float64) float64 {
	n := 0.0
	switch e.Op {
	case term.Number, term.Real, term.Symbol, term.Var, term.Load:
		return 0
	case term.Call:
		x := &c.calls[e.Index]
		x.times += times
		if x.vars == nil {
			x.vars, x.free = make([]float64, len(e.Args)), make([]float64, len(e.Args))
		}
		for i, a := range e.Args {
			lo, hi := c.span(a)
			x.vars[i] = max(x.vars[i], hi-lo+1)
			all := c.vars
			c.vars = c.free
			lo, hi = c.span(a)
			c.vars = all
			x.free[i] = min(max(x.free[i], hi-lo+1), x.vars[i])
		}
		return 0
	case term.Sum, term.MaxOver, term.ArgMax:
		_, count := c.span(e.Args[0])
		count = max(count, 0)
		c.vars, c.free = append(c.vars, count), append(c.free, count)
		n = 1
		for _, a := range e.Args[1:] {
			n += c.operations(a, times*count)
		}
		c.vars, c.free = c.vars[:len(c.vars)-1], c.free[:len(c.free)-1]
		return n * count
	}
	if e.Kind == term.Float && !(e.Op == term.Round && e.Type == ir.F32) { // arithmetic is f32: such a rounding does nothing
		n = 1
	}
	for _, a := range e.Args {
		n += c.operations(a, times)
	}
	return n
}

// span returns bounds of an integer expression over params and index variables.
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
	case term.Load: // the value in memory is not known
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
		case term.Div, term.CeilDiv: // both operands are positive
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
