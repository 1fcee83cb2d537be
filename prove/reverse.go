package prove

import (
	"context"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Equal values are equal in both directions. If A has several commands for one of B,
// the values are proved with the graphs exchanged: B computes what A does, each run in
// its written order. Everything else is proved of A as usual: that all executions that
// A allows give the values of its written order, and the checks of its commands by
// themselves.

// reversed is attempt with the graphs exchanged in the proof of values. It returns nil
// if the values are not proved so.
func reversed(ctx context.Context, b *model, recorded *readings, after *ir.Graph, o Options) *Result {
	o.Allow = nil // a rounding that may be lost in one direction must not be gained in the other
	a := recordedModel(ctx, after, nil)
	current := trace(a)
	hint := byProvenance(a, b.g)
	q := newProof(ctx, a, current, hint, o)
	if !q.values(b.g) {
		q = newProof(ctx, a, current, bySearch(ctx, a, current, b.g, hint, o), o)
		q.merge = true
		if !q.values(b.g) {
			return nil
		}
	}
	p := newProof(ctx, b, recorded, q.inverse(), o)
	p.build(after)
	p.Commands, p.Reads, p.Assumptions = len(p.a.ops), q.Reads, q.Assumptions
	p.Fused, p.Dropped = q.Fused, q.Dropped
	if o := p.untold(a, current); o != nil {
		p.add(Refused, Coverage, nil, []ir.ID{o.id}, "%s implements no command of before, and its kernel has no declaration: what it touches only after says", p.a.g.Describe(o.node))
		return p.Result
	}
	p.findDead()
	for i := range p.a.ops {
		if len(p.sets.of(int32(i))) == 1 && p.same[i] && !p.checkCommand(int32(i)) {
			return nil
		}
	}
	p.checkOrder()
	p.checkAliasing()
	p.checkClaims()
	return p.Result
}

// untold returns the first command of A that no command of B has as its image although its kernel
// has no declaration. By the effects that A stores, nobody sees its results; but these effects are
// not believed, so it may touch anything. It returns nil if there is none. a is the model of A in
// which its stored effects are believed.
func (p *proof) untold(a *model, current *readings) *op {
	q := &proof{a: a, current: current, Result: &Result{}}
	q.findDead()
	for i := range p.a.ops {
		o := &p.a.ops[i]
		if d, ok := o.node.(*ir.Dispatch); ok && !o.known && q.dead[i] && len(p.sets.of(int32(i))) == 0 && !msl.Declared(&p.a.g.Kernels[d.Kernel]) {
			return o
		}
	}
	return nil
}

// values reports whether A computes, in its written order, what B does, and stores the
// same effects for kernels without declaration.
func (p *proof) values(after *ir.Graph) bool {
	p.build(after)
	p.findDead()
	if p.checkCoverage(); p.Verdict == Proved {
		p.checkValues()
		p.checkClaims()
	}
	return p.Verdict == Proved
}

// inverse returns the matching of the proof with the roles of the graphs exchanged.
func (p *proof) inverse() *matching {
	by := make([]int32, len(p.b.ops))
	for i := range by {
		by[i] = -1
	}
	for i := range p.a.ops {
		for _, j := range p.sets.of(int32(i)) {
			if by[j] < 0 || !p.dead[i] { // any live command will do; a pillar has exactly one
				by[j] = int32(i)
			}
		}
	}
	out := &matching{}
	for _, i := range by {
		from := len(out.list)
		if i >= 0 {
			out.list = append(out.list, i)
		}
		out.end(from)
	}
	return out
}
