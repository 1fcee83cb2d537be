package replay

import (
	"context"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// NewBurstFrame is NewFrame for a frame whose submissions may have up to n replays ([Frame.SubmitBurst]).
func (g *Graph) NewBurstFrame(ctx context.Context, n int) (*Frame, error) {
	if err := g.instance.errClosed(); err != nil {
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(g.graph.Name), err)
	}
	if n < 1 {
		return nil, fmt.Errorf("graph %s: a frame for bursts of %d replays", ir.QuoteName(g.graph.Name), n)
	}
	f, err := g.newFrame(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(g.graph.Name), err)
	}
	return f, nil
}

// SubmitBurst submits a burst of n replays: one submission whose result is that of n single replays between which the
// host adds to each param its advance ([ir.Param]) and copies each carried output to its destination.
//
// ended, if not nil, is called when replay i, counted from 0, has ended. A goroutine of the device calls it,
// so it must not block. Afterwards an input that is carried to holds the last carried contents. The params of the
// frame are unchanged.
func (f *Frame) SubmitBurst(ctx context.Context, n int, ended func(i int)) (*Run, error) {
	if n < 1 || n > f.burst {
		return nil, fmt.Errorf("graph %s: a burst of %d replays, the frame serves 1 to %d (NewBurstFrame makes one for more)", ir.QuoteName(f.g.graph.Name), n, f.burst)
	}
	if err := f.CheckBurst(n); err != nil {
		return nil, fmt.Errorf("graph %s: %w", ir.QuoteName(f.g.graph.Name), err)
	}
	r, err := f.submit(ctx, backend.Submission{Replays: n, Ended: ended})
	if err == nil {
		f.replays = n
	}
	return r, err
}

// RunBurst submits a burst of n replays and waits for their end; ctx aborts them.
func (f *Frame) RunBurst(ctx context.Context, n int) (Timing, error) {
	r, err := f.SubmitBurst(ctx, n, nil)
	if err != nil {
		return Timing{}, err
	}
	return r.Wait(context.Background())
}

// CheckBurst is Check for a burst of n replays: params keep their bounds, and the
// constraints hold, in each of them. Both change by equal steps from replay to replay, so it is
// enough to look at the first and the last.
func (f *Frame) CheckBurst(n int) error {
	if err := f.Check(); err != nil || n < 2 {
		return err
	}
	g, steps := f.g.graph, int64(n-1)
	if n > math.MaxInt32 {
		return fmt.Errorf("a burst of %d replays is too long", n)
	}
	for i, q := range g.Params {
		if q.Advance == 0 {
			continue
		}
		if last := int64(f.params[i]) + steps*q.Advance; last < int64(q.Min) || last > int64(q.Max) {
			return fmt.Errorf("param $%s is %d at first and %d in replay %d, outside its bound %s", ir.QuoteName(q.Name), f.params[i], last, n, bound(q))
		}
	}
	for _, c := range g.Constraints {
		v := c.LHS.Eval(f.params)
		for _, t := range c.LHS.Terms() {
			v += t.Coeff * steps * g.Params[t.Param].Advance
		}
		if v > c.Max {
			return fmt.Errorf("params break %s <= %d in replay %d: it is %d", g.FormatAffine(c.LHS), c.Max, n, v)
		}
	}
	return nil
}

// OutputOf returns a copy of an output as replay i of the last submission, counted from 0, left it. If the output is
// kept of every replay, i may be any of them, otherwise only the last.
func (f *Frame) OutputOf(name string, i int) ([]byte, error) {
	root, off, size, err := f.find(name, ir.Output)
	if err != nil {
		return nil, err
	}
	if i < 0 || i >= f.replays {
		return nil, fmt.Errorf("output %%%s of replay %d: the last submission was of %d", ir.QuoteName(name), i, f.replays)
	}
	m := &f.g.graph.Memories[root]
	if !m.Every && i < f.replays-1 {
		return nil, fmt.Errorf("output %%%s of replay %d of %d: it is not kept of every replay (the graph says so: every)", ir.QuoteName(name), i, f.replays)
	}
	if f.last != nil {
		if x := f.last.finish(); i >= x.Replays {
			return nil, fmt.Errorf("output %%%s of replay %d: %d replays ended: %w", ir.QuoteName(name), i, x.Replays, x.Err)
		}
	}
	place := f.frame.Place(root).Add(off)
	if m.Every {
		place = place.Add(int64(i) * m.Size)
	}
	out := make([]byte, size)
	return out, f.g.instance.get(place, out)
}
