package infer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Compare observes the kernels that want chooses in the graphs, and compares what they touch with what is declared:
// by a declaration or, for a kernel without one, by the complete effects of its dispatches. Errors are as those of
// [Observer.Propose].
func (x *Observer) Compare(ctx context.Context, graphs []*ir.Graph, want func(k *ir.Kernel) bool) (*Report, error) {
	cs, r := x.gather(graphs, want)
	for i, c := range cs {
		if x.o.Progress != nil {
			x.o.Progress(float64(i) / float64(len(cs)))
		}
		out, err := x.compare(ctx, c)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			r.leave(c, err.Error())
			continue
		}
		r.Comparisons = append(r.Comparisons, *out)
	}
	return r, nil
}

// declared is what effects list of a view, in bytes from its beginning.
type declared struct{ reads, writes, must spans }

// compare compares one class with its declaration.
func (x *Observer) compare(ctx context.Context, c *class) (*Comparison, error) {
	if !msl.Declared(&c.kernel) {
		return x.against(ctx, c, "the effects of its dispatches", nil)
	}
	by := "the declaration of its kernel"
	if ds, err := msl.DeclarationsOf(&c.kernel); err == nil && ds[0].File != "" {
		by = fmt.Sprintf("%s:%d", ds[0].File, ds[0].Line)
	}
	return x.against(ctx, c, by, msl.Describe)
}

// against compares a class with the effects that describe returns for its dispatches or, if describe is nil, with
// those that the dispatches list.
func (x *Observer) against(ctx context.Context, c *class, by string, describe func(*ir.Graph, *ir.Dispatch) (*ir.Effects, error)) (*Comparison, error) {
	s := x.study(c)
	out := &Comparison{Kernel: c.kernel.Function, Declared: by}
	whose := func(o *observation) ([]declared, error) { return c.listed(o.shape), nil }
	if describe != nil {
		s.declared = true
		whose = func(o *observation) ([]declared, error) {
			g, node, mems, err := c.graph(o.shape, false, true, nil)
			if err != nil {
				return nil, err
			}
			e, err := describe(g, node)
			if err != nil {
				return nil, err
			}
			list := make([]declared, len(mems))
			for v, m := range mems {
				list[v].reads, list[v].writes, list[v].must = declaredOf(e, m)
			}
			return list, nil
		}
		s.only = func(sh *shape) bool {
			g, node, _, err := c.graph(sh, false, true, nil)
			if err == nil {
				_, err = describe(g, node)
			}
			return err == nil
		}
	}
	for _, v := range c.views {
		out.Fits = append(out.Fits, Fit{Slot: c.slots[v].Slot, Argument: c.slots[v].Name, Exact: true})
	}
	if err := s.real(ctx); err != nil {
		return nil, err
	}
	if describe != nil {
		_, mild, _ := c.conditions(s.realShapes())
		// Mostly shapes that satisfy conditions of the graph's shapes, since a declaration may require these.
		for _, part := range []struct {
			n  int
			ks []condition
		}{{x.o.Shapes / 3, nil}, {x.o.Shapes, onePerSymbol(mild)}} {
			made, err := s.make(ctx, part.n, part.ks, part.ks == nil)
			if err != nil {
				return nil, err
			}
			for _, o := range made {
				s.accept(o)
			}
		}
	}
	worst := make([]int64, len(c.views))
	for _, o := range s.seen {
		list, err := whose(o)
		if err != nil {
			s.note("%s is not what the declaration describes: %v", c.say(o.shape), err)
			continue
		}
		for v := range o.views {
			out.hold(c, v, o, &list[v], &worst[v])
		}
	}
	if len(s.seen) == 0 {
		return nil, errors.New("none of its dispatches could be observed: " + strings.Join(s.notes, "; "))
	}
	out.Counts, out.Notes = s.counts, s.notes
	return out, nil
}

// maxBroken is the maximum number of contradictions that are reported for one kernel.
const maxBroken = 16

// hold compares what one shape touches of a view with what is declared.
func (c *Comparison) hold(k *class, v int, o *observation, d *declared, worst *int64) {
	t, f := &o.views[v], &c.Fits[v]
	all := d.reads.union(d.writes)
	tell := func(kind string, bytes spans, finding softmetal.FindingKind) {
		if len(bytes) == 0 {
			return
		}
		f.Exact = false
		h := bytes.hull()
		b := Broken{Kind: kind, Argument: f.Argument, Lo: h.lo, Hi: h.hi, Bytes: bytes.bytes(), Shape: k.say(o.shape)}
		for i := range o.findings {
			if x := &o.findings[i]; x.Kind == finding && x.Slot == int(f.Slot) {
				b.Detail = x.String()
				break
			}
		}
		if len(c.Broken) < maxBroken {
			c.Broken = append(c.Broken, b)
		}
	}
	tell("undeclared read", t.reads.minus(all), softmetal.UndeclaredRead)
	tell("undeclared write", t.writes.minus(d.writes), softmetal.UndeclaredWrite)
	tell("not written", d.must.minus(t.must), 0)
	touched, listed := t.all().intersect(all).bytes(), all.bytes()
	f.Touched, f.Declared = f.Touched+touched, f.Declared+listed
	if listed > touched {
		f.Exact = false
		if f.Why = "declared, and not touched"; listed-touched > *worst {
			*worst, f.Loosest = listed-touched, k.say(o.shape)
		}
	}
}

// listed returns, for each view of a real shape, the bytes that the complete effects of its dispatch list.
func (c *class) listed(s *shape) []declared {
	out := make([]declared, len(c.views))
	g, d := s.form.graph, s.form.node
	for v := range out {
		at := d.Binding(c.slots[c.views[v]].Slot).View
		root, off := g.Root(at.Mem)
		base := off + at.Off.Eval(s.params)
		end := at.Len.Eval(s.params)
		each := func(r *ir.Region) (out []span) {
			m, more := g.Root(r.Mem)
			if m != root {
				return nil
			}
			r.Runs(s.params, func(lo, hi int64) bool {
				out = append(out, span{max(0, lo+more-base), min(end, hi+more-base)})
				return true
			})
			return out
		}
		var reads, writes, must []span
		for i := range d.Effects.Reads {
			reads = append(reads, each(&d.Effects.Reads[i])...)
		}
		for i := range d.Effects.Writes {
			w := each(&d.Effects.Writes[i].Region)
			writes = append(writes, w...)
			if d.Effects.Writes[i].Must {
				must = append(must, w...)
			}
		}
		out[v] = declared{normal(reads), normal(writes), normal(must)}
	}
	return out
}
