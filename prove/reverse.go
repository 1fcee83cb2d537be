package prove

import (
	"context"

	"github.com/mlxc/mlxc/ir"
)

// Equal values are equal in both directions. Where a graph after has several commands
// for one of before, the proof of values is made the other way round: the graph before
// computes what that after does, each run in its written order. That every execution
// which the graph after allows is that of its written order, and all that is about its
// commands by themselves, is shown of it as ever.

// reversed is attempt with the graphs exchanged for the values; nil where these are
// not proved so.
func reversed(ctx context.Context, b *model, recorded *readings, after *ir.Graph, o Options) *Result {
	o.Allow = nil // what may be lost in one direction may not be gained in the other
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

// values reports whether the graph after computes, in its written order, what that
// before does, and claims the same of kernels that nobody declares.
func (p *proof) values(after *ir.Graph) bool {
	p.build(after)
	p.findDead()
	if p.checkCoverage(); p.Verdict == Proved {
		p.checkValues()
		p.checkClaims()
	}
	return p.Verdict == Proved
}

// inverse returns the matching of a proof, read the other way round.
func (p *proof) inverse() *matching {
	by := make([]int32, len(p.b.ops))
	for i := range by {
		by[i] = -1
	}
	for i := range p.a.ops {
		for _, j := range p.sets.of(int32(i)) {
			if by[j] < 0 || !p.dead[i] { // any: of unknown effects, there is one only
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
