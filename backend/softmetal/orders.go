//go:build unix

package softmetal

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// SetOrder chooses the order in which later replays run their commands: 0 is that of the list; any other number seeds
// a random order that the graph allows, which also interleaves the threadgroups of dispatches that are not ordered.
// Equal seeds give equal orders.
func (d *Device) SetOrder(seed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.order = seed
}

// freedom has the dependencies between the nodes of a graph within a replay, by their indices in the list. Barriers
// and commits are nodes that do nothing.
type freedom struct {
	next  [][]int32 // the nodes that wait for each node
	waits []int32   // for how many nodes each node waits
}

// newFreedom returns the dependencies in a graph. They are few for each node.
func newFreedom(g *ir.Graph) *freedom {
	f := &freedom{next: make([][]int32, len(g.Nodes)), waits: make([]int32, len(g.Nodes))}
	after := func(earlier, later int32) {
		f.next[earlier] = append(f.next[earlier], later)
		f.waits[later]++
	}
	switch g.Ordering {
	case ir.ByEdges:
		w := g.Waits()
		for i := range g.Nodes {
			same, _ := w.Of(i)
			for _, k := range same {
				after(k, int32(i))
			}
		}
		return f
	case ir.Serial:
		for i := 1; i < len(g.Nodes); i++ {
			after(int32(i-1), int32(i))
		}
		return f
	}
	// A barrier waits for the commands since the last mark, which is a barrier or a commit, and all that follow wait
	// for it. An ordered commit waits for everything before it that no ordered commit has waited for; after an
	// unordered one the next command buffer may begin at once.
	mark := int32(-1)    // the node that all following ones wait for; −1: none
	ordered := int32(-1) // the last ordered commit
	var open []int32     // commands since mark
	var loose []int32    // commands of earlier command buffers for which no ordered commit waits yet
	for i, n := range g.Nodes {
		at := int32(i)
		if mark >= 0 {
			after(mark, at)
		}
		switch n := n.(type) {
		case *ir.Barrier:
			for _, k := range open {
				after(k, at)
			}
			mark, open = at, open[:0]
		case *ir.Commit:
			if n.Order == ir.OrderNone {
				loose = append(append(loose, open...), at)
				mark, open = ordered, open[:0]
				continue
			}
			for _, k := range append(loose, open...) {
				after(k, at)
			}
			mark, ordered, open, loose = at, at, open[:0], loose[:0]
		default:
			open = append(open, at)
		}
	}
	return f
}

// maxMixed is MAX_MIXED of host/executor.h.
const maxMixed = 16

// shuffled runs the commands of a replay in a random order that the graph allows.
func (x *queueExecutor) shuffled(ctx context.Context, e *executable, with *bindings, r *backend.Result, seed uint64) error {
	if e.freedom == nil {
		e.freedom = newFreedom(e.graph)
		e.stepAt = make([]*step, len(e.graph.Nodes))
		k := 0
		for i, n := range e.graph.Nodes {
			if k < len(e.steps) && ir.Node(e.steps[k].node) == n {
				e.stepAt[i] = &e.steps[k]
				k++
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	waits := append([]int32(nil), e.freedom.waits...)
	var ready []int32
	for i, n := range waits {
		if n == 0 {
			ready = append(ready, int32(i))
		}
	}
	finish := func(i int32) {
		for _, k := range e.freedom.next[i] {
			if waits[k]--; waits[k] == 0 {
				ready = append(ready, k)
			}
		}
	}
	left := len(waits)
	for left > 0 {
		if len(ready) == 0 {
			return fmt.Errorf("softmetal: graph %s: commands wait for each other", e.graph.Name)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rng.Shuffle(len(ready), func(i, k int) { ready[i], ready[k] = ready[k], ready[i] })
		// Run some of the ready commands together.
		n := 1 + rng.IntN(min(len(ready), maxMixed))
		now := append([]int32(nil), ready[len(ready)-n:]...)
		ready = ready[:len(ready)-n]
		if err := x.together(ctx, e, now, with, r, rng.Uint64()); err != nil {
			return err
		}
		for _, i := range now {
			finish(i)
		}
		left -= n
	}
	return nil
}

// together runs commands that are not ordered among each other: the dispatches interleaved, then the others.
func (x *queueExecutor) together(ctx context.Context, e *executable, now []int32, with *bindings, r *backend.Result, seed uint64) error {
	b := &e.batch
	b.reset()
	mixed := &batch{}
	mixed.reset()
	var others []*step
	for _, i := range now {
		s := e.stepAt[i]
		if s == nil {
			continue
		}
		if _, ok := s.node.(*ir.Dispatch); !ok {
			others = append(others, s)
			continue
		}
		if err := mixed.encode(s, with); err != nil {
			return fmt.Errorf("softmetal: %w", err)
		}
	}
	if mixed.count > 0 {
		b.command(nil, commandMixed)
		b.u64(seed)
		b.u32(uint32(mixed.count))
		b.data = append(b.data, mixed.data[8:]...)
	}
	for _, s := range others {
		if err := b.encode(s, with); err != nil {
			return fmt.Errorf("softmetal: %w", err)
		}
	}
	return x.send(ctx, b, false, r)
}
