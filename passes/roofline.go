package passes

import (
	"github.com/mlxc/mlxc/internal/analysis/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// timer models how long a command takes on the GPU, in seconds, at most over
// the values of the params.
type timer interface {
	seconds(n ir.Command) float64
}

// roofline is a timer (Williams, Waterman, Patterson 2009): a command takes the
// greater of its bytes over the bandwidth and its operations over the
// arithmetic rate, and a launch. Package cost compares schedules, at params in
// the middle of their bounds, of work that moves bytes; a bound is about the
// greatest params, and prompts of many rows compute.
type roofline struct {
	g        *ir.Graph
	model    cost.Model
	rate     float64 // operations of terms a second
	declared *msl.Cache
	times    map[*decl.Form]float64
}

// operationsPerCore is what a core does in a second: 128 lanes at 1.28 GHz (M1;
// later ones are clocked higher), two operations each by a fused multiply-add, of
// which half is reached.
const operationsPerCore = 128 * 1.28e9

func newRoofline(g *ir.Graph, m cost.Model) *roofline {
	return &roofline{g: g, model: m, rate: float64(m.Cores) * operationsPerCore, declared: msl.NewCache(g), times: map[*decl.Form]float64{}}
}

func (t *roofline) seconds(n ir.Command) float64 {
	d, ok := n.(*ir.Dispatch)
	if !ok {
		return t.of(t.bytes(n.Touches()), 0)
	}
	form := t.declared.Form(d)
	if form == nil {
		e := d.Effects
		if !e.Known() {
			e = bound(d)
		}
		return t.of(t.bytes(e), 0)
	}
	if s, ok := t.times[form]; ok {
		return s
	}
	bytes, ops := 0.0, 0.0
	if in, err := t.declared.Bind(d); err == nil {
		ops = t.operations(in)
		if e, err := in.Effects(); err == nil {
			bytes = t.bytes(e)
		}
	}
	s := t.of(bytes, ops)
	t.times[form] = s
	return s
}

// of is the time of a command that moves bytes and does operations.
func (t *roofline) of(bytes, ops float64) float64 {
	return max(bytes/t.model.Bandwidth, ops/t.rate) + float64(t.model.Launch)
}

// bound are the views that a dispatch binds: what it may touch, if it stays within
// them.
func bound(d *ir.Dispatch) *ir.Effects {
	e := &ir.Effects{}
	for i := range d.Bindings {
		if b := &d.Bindings[i]; b.Kind == ir.BindView {
			e.Reads = append(e.Reads, b.View.Contiguous())
		}
	}
	return e
}

// bytes is the number of bytes of all regions, those that lie in several runs or
// regions counted as often.
func (t *roofline) bytes(e *ir.Effects) float64 {
	n := 0.0
	for i := range e.Reads {
		n += t.size(&e.Reads[i])
	}
	for i := range e.Writes {
		n += t.size(&e.Writes[i].Region)
	}
	return n
}

func (t *roofline) size(r *ir.Region) float64 {
	n := t.most(r.Run)
	for _, d := range r.Dims {
		n *= t.most(d.Count)
	}
	return n
}

// most is the greatest value of a.
func (t *roofline) most(a ir.Affine) float64 {
	_, hi, ok := t.g.Range(a)
	if !ok {
		return 0
	}
	return float64(max(hi, 0))
}

// operations counts the operations of all elements that the kernel's terms say.
func (t *roofline) operations(in *decl.Instance) float64 {
	ops := 0.0
	for _, r := range in.Decl.Results {
		c := counter{t, in, nil}
		elements := 1.0
		for _, n := range in.Shapes[r.Arg] {
			elements *= t.most(n)
			c.vars = append(c.vars, t.most(n))
		}
		ops += elements * c.operations(r.Body)
	}
	return ops
}

// counter counts the operations of one element of a result.
type counter struct {
	t    *roofline
	in   *decl.Instance
	vars []float64 // how many values each index variable has
}

// operations leaves out addresses, and what an abbreviation stands for: kernels
// compute it once for many elements.
func (c *counter) operations(e *term.Expr) float64 {
	n := 0.0
	switch e.Op {
	case term.Number, term.Real, term.Symbol, term.Var, term.Load, term.Call:
		return 0
	case term.Sum, term.MaxOver, term.ArgMax:
		_, count := c.span(e.Args[0])
		c.vars = append(c.vars, count)
		n = 1
		for _, a := range e.Args[1:] {
			n += c.operations(a)
		}
		c.vars = c.vars[:len(c.vars)-1]
		return n * max(count, 0)
	}
	if e.Kind == term.Float {
		n = 1
	}
	for _, a := range e.Args {
		n += c.operations(a)
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
		lo, hi, _ := c.t.g.Range(v.Num)
		return float64(lo) / float64(v.Div), float64(hi) / float64(v.Div)
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
