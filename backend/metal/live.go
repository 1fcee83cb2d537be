//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/ir"
)

// encoder is a command buffer of a recording. What it is given becomes operations at once, with the
// places that memories have then, and messages when its turn has come.
type encoder struct {
	x       *executor
	scope   *backend.Scope
	plan    *plan.Recorder
	code    code
	seen    int             // operations whose memories are numbered
	number  map[at]int32    // of places
	places  []at            // by number
	roots   []backend.Place // by memory, as operations were made with them
	params  []uint32
	guard   *guard
	timed   []ir.Command // by plan.Timed
	samples *samples
	// indirect says of each guard what it guards.
	indirect []string
}

// Open implements [hostqueue.Executor].
func (x *executor) Open(r backend.Recording) (hostqueue.Encoder, error) {
	return &encoder{x: x, scope: r.Scope, plan: plan.NewRecorder(r.Scope.Graph, x.planning(x.live(), r.Profile || x.options.Profile)), number: map[at]int32{}, code: code{how: x.live()}}, nil
}

// Encode implements [hostqueue.Encoder].
func (c *encoder) Encode(n ir.Node) error {
	g := c.scope.Graph
	if cmd, ok := n.(ir.Command); ok {
		var err error
		if d, ok := n.(*ir.Dispatch); ok {
			err = arguments(g, d)
		}
		cmd.EachView(func(v *ir.View) {
			root, _ := g.Root(v.Mem)
			if err == nil {
				err = c.locate(root)
			}
		})
		if err != nil {
			return fmt.Errorf("metal: %s: %w", g.Describe(n), err)
		}
	}
	if err := c.plan.Add(n); err != nil {
		return fmt.Errorf("metal: %s: %w", g.Describe(n), err)
	}
	if cmd, ok := n.(ir.Command); ok && len(c.plan.Timed) > len(c.timed) {
		c.timed = append(c.timed, cmd)
	}
	for len(c.indirect) < len(c.plan.Guards) {
		c.indirect = append(c.indirect, g.Describe(n))
	}
	c.settle()
	if err := c.pipelines(); err != nil {
		return fmt.Errorf("metal: %s: %w", g.Describe(n), err)
	}
	if d, ok := n.(*ir.Dispatch); ok {
		if i := c.plan.Pipeline(); i >= 0 {
			if err := c.code.pipes[i].takes(c.x.Device, d); err != nil {
				return fmt.Errorf("metal: %s: %w", g.Describe(n), err)
			}
		}
	}
	return nil
}

// locate notes where a memory lies.
func (c *encoder) locate(root ir.MemID) error {
	g := c.scope.Graph
	m := &g.Memories[root]
	if int(root) >= len(c.scope.Places) || c.scope.Places[root].Buffer == nil {
		return fmt.Errorf("memory %%%s has no place", ir.QuoteName(m.Name))
	}
	p := c.scope.Places[root]
	if _, err := c.x.own(p, m.Size); err != nil {
		return fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
	}
	if align := max(m.DType.Size(), 1); p.Offset%align != 0 {
		return fmt.Errorf("memory %%%s begins at byte %d of a buffer, which is no multiple of %d", ir.QuoteName(m.Name), p.Offset, align)
	}
	for int(root) >= len(c.roots) {
		c.roots = append(c.roots, backend.Place{})
	}
	if c.roots[root] != p {
		c.x.label(p, m)
		c.roots[root] = p
		c.plan.Moved(root)
	}
	return nil
}

// numbered is the number of a place.
func (c *encoder) numbered(p backend.Place) int32 {
	k := at{p.Buffer.(*buffer).id, p.Offset}
	n, ok := c.number[k]
	if !ok {
		n = int32(len(c.places))
		c.number[k], c.places = n, append(c.places, k)
	}
	return n
}

// settle numbers the places of operations that are new: memories may move later.
func (c *encoder) settle() {
	p := c.plan.Plan
	for ; c.seen < len(p.Ops); c.seen++ {
		o := &p.Ops[c.seen]
		if (o.Kind == plan.SetBuffer || o.Kind == plan.SetOffset) && o.Index != plan.Guarded {
			o.Index = c.numbered(c.roots[o.Index])
		}
	}
}

// pipelines makes those that the plan has and that are not made.
func (c *encoder) pipelines() error {
	for i := len(c.code.pipes); i < len(c.plan.Pipelines); i++ {
		p, err := c.x.pipelines.find(context.Background(), c.scope.Graph, &c.plan.Pipelines[i], false)
		if err != nil {
			return err
		}
		c.code.pipes = append(c.code.pipes, p)
	}
	return nil
}

// Copy implements [hostqueue.Encoder].
func (c *encoder) Copy(dst, src backend.Place, n int64) error {
	_, err := c.x.own(dst, n)
	if err == nil {
		_, err = c.x.own(src, n)
	}
	if err != nil {
		return err
	}
	c.plan.Transfer(c.numbered(backend.At(dst.Buffer)), c.numbered(backend.At(src.Buffer)), dst.Offset, src.Offset, n)
	c.seen = len(c.plan.Ops)
	return c.pipelines()
}

// Commit implements [hostqueue.Encoder].
func (c *encoder) Commit(label string, _ ir.CommitOrder) error {
	c.params = slices.Clone(c.scope.Params)
	c.code.plan = c.plan.Finish(label)
	c.code.settle()
	var err error
	c.guard, err = c.x.newGuard(c.code.plan)
	if len(c.timed) > 0 {
		c.samples = c.x.newSamples(len(c.timed), c.code.how)
	}
	return err
}

// Run implements [hostqueue.Encoder].
func (c *encoder) Run(ctx context.Context, r *backend.Result) error {
	if len(c.code.plan.Buffers) == 0 {
		return nil
	}
	turn := c.x.turns.take()
	defer c.x.turns.end(turn)
	defer func() { c.x.counts.sampled(&r.Times) }()
	if err := c.x.turns.wait(ctx, turn); err != nil {
		return err
	}
	s := sending{
		code: &c.code, queue: c.x.id, places: c.places, params: c.params, guard: c.guard.at(), device: c.x.Device,
		samples: c.samples, fence: c.x.fence, fenced: c.x.fenced,
	}
	var done committed
	c.samples.begin(c.x.Device)
	before := time.Now()
	err := c.x.commit(ctx, &s, &done)
	r.Times.Encode = time.Since(before)
	c.x.turns.end(turn)
	if failed := c.x.wait(&done, c.code.plan, r); err == nil {
		err = failed
	}
	if err == nil {
		c.samples.end(c.x.Device, &r.Times, len(c.timed), func(i int) ir.Command { return c.timed[i] })
		err = c.guard.check(func(i int) string { return c.indirect[i] })
	}
	return err
}

// Close implements [hostqueue.Encoder].
func (c *encoder) Close() {
	_ = c.code.close()
	c.guard.close()
	c.samples.close()
}
