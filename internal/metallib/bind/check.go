package bind

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Library is a compiled library whose kernels can be described.
type Library interface {
	// Describe describes one of its kernels.
	Describe(function string) (*air.Kernel, error)
}

// Find returns the library of a graph's kernel, or nil if it is not at hand.
type Find func(*ir.Kernel) Library

// Check compares the kernels of a graph, and what its dispatches bind, with the libraries
// that find returns.
func Check(ctx context.Context, g *ir.Graph, find Find) (r *Report, err error) {
	defer interrupt.Catch(&err)
	r = &Report{}
	c := newChecker(g, r)
	kernels := c.kernels(ctx, find)
	var polls interrupt.Every
	for _, n := range g.Nodes {
		polls.Poll(ctx, 64)
		d, ok := n.(*ir.Dispatch)
		if !ok || kernels[d.Kernel] == nil {
			continue
		}
		r.Dispatches++
		c.dispatch(d, kernels[d.Kernel])
	}
	return r, nil
}

// checker is the state of the checks of one graph.
type checker struct {
	g      *ir.Graph
	report *Report
	bounds *ir.Bounds
	roots  []rooted
}

// rooted is the root memory of an alias, and the offset in it.
type rooted struct {
	mem ir.MemID
	off int64
}

func newChecker(g *ir.Graph, r *Report) *checker {
	c := &checker{g: g, report: r, bounds: ir.NewBounds(g, ir.BoundsWork), roots: make([]rooted, len(g.Memories))}
	for i := range g.Memories {
		c.roots[i] = rooted{ir.MemID(i), 0}
		if m := &g.Memories[i]; m.Alias != ir.NoMem { // a memory precedes its aliases
			in := c.roots[m.Alias]
			c.roots[i] = rooted{in.mem, in.off + m.AliasOff}
		}
	}
	return c
}

func (c *checker) root(m ir.MemID) (ir.MemID, int64) { return c.roots[m].mem, c.roots[m].off }

// kernels looks up and checks the kernels of the graph. A kernel is nil if no library describes it.
func (c *checker) kernels(ctx context.Context, find Find) []*kernel {
	out := make([]*kernel, len(c.g.Kernels))
	for i := range c.g.Kernels {
		interrupt.Poll(ctx)
		k := &c.g.Kernels[i]
		lib := find(k)
		if lib == nil {
			continue
		}
		note := func(list *[]Finding) func(slot int, name, format string, args ...any) {
			return func(slot int, name, format string, args ...any) {
				c.report.add(list, Finding{Graph: c.g.Name, Kernel: k.Name, Slot: slot, Argument: name, What: fmt.Sprintf(format, args...)})
			}
		}
		fault := note(&c.report.Faults)
		compiled, err := lib.Describe(k.Function)
		if err != nil {
			fault(-1, "", "%v", err)
			continue
		}
		out[i] = newKernel(k, compiled)
		out[i].check(fault, note(&c.report.Doubts))
	}
	return out
}

// place is what a finding is about: a dispatch and, unless slot is -1, an argument.
type place struct {
	c    *checker
	d    *ir.Dispatch
	k    *kernel
	slot int
}

func (p place) finding(format string, args []any) Finding {
	f := Finding{Graph: p.c.g.Name, Command: p.c.g.Describe(p.d), Kernel: p.k.Name, Slot: p.slot, What: fmt.Sprintf(format, args...)}
	if p.slot >= 0 {
		if a := p.k.buffers[p.slot].arg; a != nil {
			f.Argument = a.Name
		}
	}
	return f
}

func (p place) fault(format string, args ...any) {
	p.c.report.add(&p.c.report.Faults, p.finding(format, args))
}

func (p place) doubt(format string, args ...any) {
	p.c.report.add(&p.c.report.Doubts, p.finding(format, args))
}

func (c *checker) dispatch(d *ir.Dispatch, k *kernel) {
	bound := uint32(0)
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Slot >= maxSlots {
			continue
		}
		bound |= 1 << b.Slot
		if s := &k.buffers[b.Slot]; s.used() {
			c.binding(place{c, d, k, int(b.Slot)}, b, s)
		}
	}
	for missing := k.required &^ bound; missing != 0; missing &= missing - 1 {
		n := bits.TrailingZeros32(missing)
		a := k.buffers[n].arg
		why := ""
		if a.If != "" {
			why = fmt.Sprintf(", because %s is true", a.If)
		}
		place{c, d, k, n}.fault("binds nothing, the compiled kernel takes %s %s here%s", a.Space, a.Type, why)
	}
	at := place{c, d, k, -1}
	threads := int64(d.Threadgroup[0]) * int64(d.Threadgroup[1]) * int64(d.Threadgroup[2])
	if most := int64(k.compiled.MaxThreadgroup); most > 0 && threads > most {
		at.fault("a threadgroup has %d threads, the kernel was compiled for %d at most", threads, most)
	}
	c.threadgroupMemory(at)
	c.effects(at)
}

// binding checks what is bound to an argument that the kernel uses.
func (c *checker) binding(at place, b *ir.Binding, s *slot) {
	a := s.arg
	switch b.Kind {
	case ir.BindBytes, ir.BindScalar:
		n := int64(len(b.Bytes))
		if b.Kind == ir.BindScalar {
			n = b.Type.Size()
		}
		switch {
		case s.written():
			at.fault("binds %d bytes inline, which nothing can write, and the compiled kernel writes them", n)
		case n < a.Size:
			at.fault("binds %d bytes inline, the compiled kernel reads %d (%s)", n, a.Size, a.Type)
		case a.Size == 0 && n < a.TypeSize:
			at.doubt("binds %d bytes inline, one %s has %d", n, a.Type, a.TypeSize)
		}
		return
	}
	v := b.View
	least, most, ok := c.bounds.Range(v.Len)
	switch {
	case !ok:
	case most < a.Size:
		at.fault("binds %s, %d bytes, the compiled kernel reads %d (%s)", c.g.FormatView(v), most, a.Size, a.Type)
	case least < a.Size:
		at.fault("binds %s, as few as %d bytes for some params, the compiled kernel reads %d (%s)", c.g.FormatView(v), least, a.Size, a.Type)
	case a.Size == 0 && most > 0 && most < a.TypeSize:
		at.doubt("binds %s, %d bytes, one %s has %d", c.g.FormatView(v), most, a.Type, a.TypeSize)
	}
	if root, off := c.root(v.Mem); a.TypeAlign > 1 {
		// This is certain only if no value of the params can compensate for the constant part.
		multiples := true
		for _, t := range v.Off.Terms() {
			multiples = multiples && t.Coeff%a.TypeAlign == 0
		}
		if multiples && (off+v.Off.Const)%a.TypeAlign != 0 {
			at.fault("binds %s, which begins at byte %d of %%%s: %s begins at multiples of %d", c.g.FormatView(v), off+v.Off.Const, ir.QuoteName(c.g.Memories[root].Name), a.Type, a.TypeAlign)
		}
	}
}

// commonThreadgroupMemory is how many bytes of threadgroup memory every device has.
const commonThreadgroupMemory = 32 << 10

func (c *checker) threadgroupMemory(at place) {
	sized := uint32(0)
	total := at.k.fixed
	for _, t := range at.d.ThreadgroupMemory {
		if t.Slot >= maxSlots {
			continue
		}
		sized |= 1 << t.Slot
		total += int64(t.Bytes)
	}
	for missing := at.k.requiredGroups &^ sized; missing != 0; missing &= missing - 1 {
		n := bits.TrailingZeros32(missing)
		a := at.k.groups[n].arg
		at.fault("threadgroup argument %d (%s, %s) has no length", n, a.Name, a.Type)
	}
	if total > commonThreadgroupMemory {
		at.doubt("%d bytes of threadgroup memory, %d of them the kernel's own: many devices have %d", total, at.k.fixed, commonThreadgroupMemory)
	}
}
