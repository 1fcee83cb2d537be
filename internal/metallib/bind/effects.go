package bind

import (
	"context"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// effects compares declared effects with what the arguments allow.
func (c *checker) effects(at place) {
	e := at.d.Effects
	if e == nil {
		return
	}
	for i := range e.Writes {
		if r := &e.Writes[i].Region; !r.Run.IsConst() || r.Run.Const != 0 {
			c.write(at, r)
		}
	}
	if !e.Complete {
		return
	}
	for i := range at.d.Bindings {
		b := &at.d.Bindings[i]
		if b.Kind != ir.BindView || b.Slot >= maxSlots {
			continue
		}
		s := &at.k.buffers[b.Slot]
		if !s.used() || s.exists != present || c.g.Memories[b.View.Mem].Kind.ReadOnly() {
			continue
		}
		if at.slot = int(b.Slot); s.written() {
			if !c.touched(len(e.Writes), func(i int) *ir.Region { return &e.Writes[i].Region }, &b.View) {
				at.doubt("the compiled kernel may write %s, and the effects, which claim to be complete, list no write of it", c.g.FormatView(b.View))
			}
		} else if !c.touched(len(e.Reads), func(i int) *ir.Region { return &e.Reads[i] }, &b.View) {
			at.doubt("the compiled kernel reads %s, and the effects, which claim to be complete, list no read of it", c.g.FormatView(b.View))
		}
	}
}

// touched reports whether one of n regions may overlap a view.
func (c *checker) touched(n int, region func(i int) *ir.Region, v *ir.View) bool {
	for i := range n {
		if c.meets(region(i), v) {
			return true
		}
	}
	return false
}

// write checks that a declared write goes through an argument that the compiled kernel may write.
func (c *checker) write(at place, r *ir.Region) {
	root, _ := c.root(r.Mem)
	through, same := -1, false
	for i := range at.d.Bindings {
		b := &at.d.Bindings[i]
		if b.Kind != ir.BindView || b.Slot >= maxSlots || at.k.buffers[b.Slot].arg == nil {
			continue
		}
		in, _ := c.root(b.View.Mem)
		if in != root {
			continue
		}
		meets := c.meets(r, &b.View)
		switch s := &at.k.buffers[b.Slot]; {
		case s.written() && meets:
			return
		case s.written():
			same = true // a write of the memory beyond the view
		case meets:
			through = i
		}
	}
	if through < 0 {
		if !same {
			at.fault("declares a write of %s, which no argument binds", c.g.FormatRegion(*r))
		}
		return
	}
	b := &at.d.Bindings[through]
	s := &at.k.buffers[b.Slot]
	at.slot = int(b.Slot)
	switch {
	case s.exists == absent:
		at.fault("declares a write of %s, and the compiled kernel does not have this argument, because %s is false", c.g.FormatRegion(*r), s.arg.If)
	case s.arg.Unused:
		at.fault("declares a write of %s, and the compiled kernel does not use this argument", c.g.FormatRegion(*r))
	default:
		at.fault("declares a write of %s, and the compiled kernel only reads this argument", c.g.FormatRegion(*r))
	}
}

// meets reports whether a region may overlap a view; false if they are certainly disjoint.
func (c *checker) meets(r *ir.Region, v *ir.View) bool {
	a, x := c.root(r.Mem)
	b, y := c.root(v.Mem)
	if a != b {
		return false
	}
	lo, end := r.Hull()
	// They are disjoint if the region ends before the view begins, or begins behind its end.
	return !c.bounds.DifferenceAtMost(end, v.Off, y-x) && !c.bounds.DifferenceAtMost(v.End(), lo, x-y)
}

// Effects bounds what a dispatch may touch, by the arguments of its compiled kernel.
func Effects(g *ir.Graph, d *ir.Dispatch, compiled *air.Kernel) *ir.Effects {
	return newChecker(g, nil).bound(newKernel(&g.Kernels[d.Kernel], compiled), d)
}

func (c *checker) bound(k *kernel, d *ir.Dispatch) *ir.Effects {
	g := c.g
	e := &ir.Effects{Complete: true}
	read, written := map[ir.MemID]bool{}, map[ir.MemID]bool{} // memories that are listed as a whole
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Kind != ir.BindView || b.Slot >= maxSlots {
			continue
		}
		s := &k.buffers[b.Slot]
		if !s.used() {
			continue
		}
		region := ir.Region{Mem: b.View.Mem, Off: b.View.Off, Run: ir.Const(s.arg.Size)}
		root, _ := c.root(b.View.Mem)
		whole := s.arg.Size == 0
		if whole {
			region = ir.ViewOf(root, 0, g.Memories[root].Size).Contiguous()
		}
		// Whatever access the metadata names, the kernel may read.
		if !whole || !read[root] {
			e.Reads = append(e.Reads, region)
			read[root] = read[root] || whole
		}
		if s.written() && (!whole || !written[root]) && !g.Memories[root].Kind.ReadOnly() {
			e.Writes = append(e.Writes, ir.Write{Region: region})
			written[root] = written[root] || whole
		}
	}
	if v := d.Counts(); v != nil {
		e.Reads = append(e.Reads, v.Contiguous())
	}
	return e
}

// Bound sets the effects of those dispatches of compiled kernels whose effects are unknown to the bound of [Effects],
// and returns their number. [Check] must have found no fault in the graph.
func Bound(ctx context.Context, g *ir.Graph, find Find) (n int, err error) {
	defer interrupt.Catch(&err)
	kernels := make([]*kernel, len(g.Kernels))
	for i := range g.Kernels {
		interrupt.Poll(ctx)
		if lib := find(&g.Kernels[i]); lib != nil {
			compiled, err := lib.Describe(g.Kernels[i].Function)
			if err != nil {
				return 0, err
			}
			kernels[i] = newKernel(&g.Kernels[i], compiled)
		}
	}
	c := newChecker(g, nil)
	var polls interrupt.Every
	for _, node := range g.Nodes {
		polls.Poll(ctx, 64)
		if d, ok := node.(*ir.Dispatch); ok && kernels[d.Kernel] != nil && !d.Effects.Known() {
			d.Effects = c.bound(kernels[d.Kernel], d)
			n++
		}
	}
	return n, nil
}
