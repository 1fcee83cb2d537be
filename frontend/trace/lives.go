package trace

import (
	"slices"
	"sort"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// A buffer may hold several values in turn within a step: engines use the memory of one that nobody needs any more again, and which
// buffer is free when may depend on how fast the GPU is. So what is followed is not buffers but their lives: accesses of a buffer belong to
// one life if bytes that one of them writes, another one reads. A life ends where a dispatch certainly writes the buffer from its begin on,
// as the effects of its kernel say, and what was there is not read any more.

// life is a part of what a step does with a buffer. It becomes a memory.
type life struct {
	buffer *buffer // a root
	finds  bool    // it may read what the buffer held before the step
	lo, hi int64   // of which bytes
	nth    int     // of its buffer in the step, from 0
}

// order numbers the lives of each buffer.
func order(lives []life) {
	count := map[*buffer]int{}
	for j := range lives {
		l := &lives[j]
		l.nth = count[l.buffer]
		count[l.buffer]++
	}
}

// span says whose bytes a buffer holds.
type span[T any] struct {
	lo, hi int64
	of     T
}

// reach returns the first of spans, which are ordered and do not overlap, that ends behind a place.
func reach[T any](spans []span[T], at int64) int {
	i, _ := slices.BinarySearchFunc(spans, at, func(s span[T], at int64) int {
		if s.hi <= at {
			return -1
		}
		return 1
	})
	return i
}

// overlay puts a span over others, which are ordered and do not overlap.
func overlay[T any](spans []span[T], x span[T]) []span[T] {
	if x.lo >= x.hi {
		return spans
	}
	first := reach(spans, x.lo)
	end := first
	var with []span[T]
	for ; end < len(spans) && spans[end].lo < x.hi; end++ {
		if s := spans[end]; s.lo < x.lo {
			with = append(with, span[T]{s.lo, x.lo, s.of})
		}
	}
	with = append(with, x)
	if end > first && spans[end-1].hi > x.hi {
		with = append(with, span[T]{x.hi, spans[end-1].hi, spans[end-1].of})
	}
	return slices.Replace(spans, first, end, with...)
}

// access is what a command does with the buffer of a binding.
type access struct {
	reads  []span[bool]
	writes []span[bool] // of: it certainly writes all bytes
}

// used takes away what a dispatch has bound at slots that its kernel does not have: bindings of dispatches before it stay.
func (k *kernels) used(c *command) error {
	if c.kind != dispatch {
		return nil
	}
	kernel, known, err := k.of(c.code)
	if err != nil || !known {
		return err
	}
	c.binds = slices.DeleteFunc(c.binds, func(x binding) bool {
		_, listed := kernel.Arg(uint8(x.slot))
		return !listed
	})
	return nil
}

// accesses returns what a command does with the buffer of each of its bindings, in bytes of these buffers. What is not known is all behind
// the offset.
func (k *kernels) accesses(c *command) ([]access, error) {
	out := make([]access, len(c.binds))
	rest := func(x *binding) (lo, hi int64) {
		_, at := x.buffer.root()
		return at + x.offset, at + x.buffer.size
	}
	if c.kind != dispatch {
		for n := range c.binds {
			lo, _ := rest(&c.binds[n])
			if s := []span[bool]{{lo, lo + c.bytes, true}}; c.kind == copying && n == 0 {
				out[n].reads = s
			} else {
				out[n].writes = s
			}
		}
		return out, nil
	}
	kernel, known, err := k.of(c.code)
	if err != nil {
		return nil, err
	}
	if known && len(c.hints) == 0 && msl.Declared(&kernel) && k.declaredAccesses(c, kernel, out) {
		return out, nil
	}
	table := &kernel
	if !known {
		table = nil
	}
	for n := range c.binds {
		x := &c.binds[n]
		if x.buffer == nil {
			continue
		}
		lo, hi := rest(x)
		out[n].reads = []span[bool]{{lo, hi, false}}
		if writesSlot(table, x.slot) {
			out[n].writes = []span[bool]{{lo, hi, false}}
		}
	}
	return out, nil
}

// declaredAccesses fills in what the declaration of a kernel says of a dispatch; false: it does not describe it.
func (k *kernels) declaredAccesses(c *command, kernel ir.Kernel, out []access) bool {
	kernel.Args = slices.DeleteFunc(slices.Clone(kernel.Args), func(a ir.Arg) bool {
		if a.Kind == ir.ThreadgroupArg {
			return !slices.ContainsFunc(c.memory, func(m memory) bool { return m.slot == int(a.Slot) })
		}
		return !slices.ContainsFunc(c.binds, func(x binding) bool { return x.slot == int(a.Slot) })
	})
	g := &ir.Graph{Name: "one", Kernels: []ir.Kernel{kernel}}
	d := &ir.Dispatch{GridKind: ir.Threadgroups}
	if c.threads {
		d.GridKind = ir.Threads
	}
	for i := range 3 {
		d.Grid[i], d.Threadgroup[i] = ir.Ext(c.grid[i]), uint32(c.group[i])
	}
	of := map[ir.MemID]int{} // a memory for each binding, so that what is touched shows by it
	for n := range c.binds {
		x := &c.binds[n]
		a, listed := kernel.Arg(uint8(x.slot))
		if !listed {
			continue
		}
		data := x.data
		if x.buffer == nil {
			if a.Kind == ir.ConstantArg && a.Count > 0 {
				data = data[:min(int64(len(data)), int64(a.Count)*a.Type.Size())]
			}
			d.Bindings = append(d.Bindings, ir.BytesArg(uint8(x.slot), data))
			continue
		}
		root, at := x.buffer.root()
		if data := k.holding(root); a.Kind == ir.ConstantArg && at+x.offset == 0 && data != nil {
			if a.Count > 0 {
				data = data[:min(int64(len(data)), int64(a.Count)*a.Type.Size())]
			}
			d.Bindings = append(d.Bindings, ir.BytesArg(uint8(x.slot), data))
			out[n].reads = []span[bool]{{0, root.size, false}}
			continue
		}
		id := ir.MemID(len(g.Memories))
		g.Memories = append(g.Memories, ir.Memory{Name: string(rune('a' + n)), Kind: ir.State, Alias: ir.NoMem, Size: at + x.buffer.size})
		of[id] = n
		d.Bindings = append(d.Bindings, ir.BufferArg(uint8(x.slot), ir.ViewOf(id, at+x.offset, x.buffer.size-x.offset)))
	}
	for _, m := range c.memory {
		if slices.ContainsFunc(kernel.Args, func(a ir.Arg) bool { return a.Kind == ir.ThreadgroupArg && int(a.Slot) == m.slot }) {
			d.ThreadgroupMemory = append(d.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: uint8(m.slot), Bytes: uint32(m.bytes)})
		}
	}
	g.Nodes = []ir.Node{d}
	e, err := msl.Describe(g, d)
	if err != nil || !e.Complete {
		return false
	}
	hull := func(r *ir.Region) (lo, hi int64) {
		a, b := r.Hull()
		return a.Const, b.Const
	}
	for i := range e.Reads {
		lo, hi := hull(&e.Reads[i])
		out[of[e.Reads[i].Mem]].reads = append(out[of[e.Reads[i].Mem]].reads, span[bool]{lo, hi, false})
	}
	for i := range e.Writes {
		w := &e.Writes[i]
		lo, hi := hull(&w.Region)
		out[of[w.Mem]].writes = append(out[of[w.Mem]].writes, span[bool]{lo, hi, w.Must && len(w.Dims) == 0})
	}
	return true
}

// lives divides what a step does with its buffers into lives, and gives each binding the number of its one. left is whose bytes the buffers
// hold when the step ends.
func (k *kernels) lives(s *step, at int) (lives []life, left map[*buffer][]span[int], inPlace map[[2]int]bool, err error) {
	// Nodes are the accesses of bindings, and what a buffer holds at first; those of one life are joined.
	k.at = at
	var up []int
	root := func(n int) int {
		for up[n] != n {
			up[n] = up[up[n]]
			n = up[n]
		}
		return n
	}
	node := func() int {
		up = append(up, len(up))
		return len(up) - 1
	}
	type held struct {
		begin  int // the node of what it holds at first
		lo, hi int64
		spans  []span[int]
	}
	buffers := map[*buffer]*held{}
	nodes := make([][]int, len(s.commands))
	budget := maxParts
	for i := range s.commands {
		c := &s.commands[i]
		if len(c.binds) == 0 {
			continue
		}
		if err := k.used(c); err != nil {
			return nil, nil, nil, err
		}
		all, err := k.accesses(c)
		if err != nil {
			return nil, nil, nil, err
		}
		nodes[i] = make([]int, len(c.binds))
		// All of its reads come before all of its writes.
		for n := range c.binds {
			if c.binds[n].buffer == nil {
				continue
			}
			b, _ := c.binds[n].buffer.root()
			h := buffers[b]
			if h == nil {
				h = &held{begin: node()}
				b.used = at
				h.spans = []span[int]{{0, b.size, h.begin}}
				buffers[b] = h
			}
			own := node()
			nodes[i][n] = own
			meets := func(x span[bool]) {
				for _, o := range h.spans[reach(h.spans, x.lo):] {
					if budget--; budget < 0 || o.lo >= x.hi {
						return
					}
					if o.of == h.begin {
						lo, hi := max(o.lo, x.lo), min(o.hi, x.hi)
						if h.lo == h.hi {
							h.lo, h.hi = lo, hi
						}
						h.lo, h.hi = min(h.lo, lo), max(h.hi, hi)
					}
					up[root(own)] = root(o.of)
				}
			}
			for _, x := range all[n].reads {
				meets(x)
			}
			for _, x := range all[n].writes {
				if !x.of || x.lo > 0 || len(all[n].reads) > 0 { // it keeps bytes
					meets(x)
				}
			}
		}
		for n := range c.binds {
			if c.binds[n].buffer == nil {
				continue
			}
			b, _ := c.binds[n].buffer.root()
			for _, x := range all[n].writes {
				h := buffers[b]
				budget -= 1 + (len(h.spans)-reach(h.spans, x.lo))/16 // those behind it are moved
				h.spans = overlay(h.spans, span[int]{x.lo, min(x.hi, b.size), nodes[i][n]})
			}
		}
		if budget < 0 {
			return nil, nil, nil, k.log.fault(c.offset, "a step has too many accesses of parts of buffers")
		}
	}
	number := map[int]int{}
	for i := range s.commands {
		c := &s.commands[i]
		for n := range c.binds {
			if c.binds[n].buffer == nil {
				continue
			}
			b, _ := c.binds[n].buffer.root()
			id := root(nodes[i][n])
			j, ok := number[id]
			if !ok {
				j = len(lives)
				number[id] = j
				l := life{buffer: b}
				if h := buffers[b]; root(h.begin) == id {
					l.finds, l.lo, l.hi = true, h.lo, h.hi
				}
				lives = append(lives, l)
			}
			c.binds[n].part = j
		}
	}
	for i := range s.commands {
		for n := range nodes[i] {
			if b := s.commands[i].binds[n].buffer; b != nil && k.mayWrite(&s.commands[i], n) {
				b, _ = b.root()
				k.wrote[b] = at
			}
		}
	}
	writes := make([]bool, len(lives))
	inPlace = map[[2]int]bool{}
	for i := range s.commands {
		for n := range nodes[i] {
			if x := &s.commands[i].binds[n]; x.buffer != nil && k.mayWrite(&s.commands[i], n) {
				writes[x.part] = true
				b, _ := x.buffer.root()
				for m := range nodes[i] {
					if y := &s.commands[i].binds[m]; y.buffer != nil && y.part != x.part && lives[y.part].buffer == b {
						inPlace[[2]int{y.part, x.part}] = true
					}
				}
			}
		}
	}
	left = map[*buffer][]span[int]{}
	for b, h := range buffers {
		for _, x := range h.spans {
			if j, ok := number[root(x.of)]; ok && writes[j] { // of what it held at first too, if the life goes on
				if n := len(left[b]); n > 0 && left[b][n-1].of == j && left[b][n-1].hi == x.lo {
					left[b][n-1].hi = x.hi
				} else {
					left[b] = append(left[b], span[int]{x.lo, x.hi, j})
				}
			}
		}
	}
	order(lives)
	return lives, left, inPlace, nil
}

// join makes lives one that go over into each other in place in all runs of a group: what a program computes in place stays there.
func (g *group) join() {
	first := g.runs[0]
	up := make([]int, len(first.lives))
	for j := range up {
		up[j] = j
	}
	root := func(j int) int {
		for up[j] != j {
			up[j] = up[up[j]]
			j = up[j]
		}
		return j
	}
	for pair := range first.inPlace {
		if slices.ContainsFunc(g.runs, func(r *run) bool { return !r.inPlace[pair] }) {
			continue
		}
		a, b := root(pair[0]), root(pair[1])
		up[max(a, b)] = min(a, b)
	}
	to := make([]int, len(up)) // the numbers of the first appearances, in order
	count := 0
	for j := range up {
		if up[j] == j {
			to[j] = count
			count++
		} else {
			to[j] = to[root(j)]
		}
	}
	if count == len(up) {
		return
	}
	for _, r := range g.runs {
		lives, buffers := make([]life, count), make([]*buffer, count)
		for j := len(up) - 1; j >= 0; j-- { // the first one of a life last
			l := &lives[to[j]]
			if o := r.lives[j]; l.buffer == nil || !l.finds {
				*l = o
			} else if o.finds {
				l.lo, l.hi = min(l.lo, o.lo), max(l.hi, o.hi)
			}
			buffers[to[j]] = r.buffers[j]
		}
		order(lives)
		r.lives, r.buffers = lives, buffers
		for i := range r.commands {
			for n := range r.commands[i].binds {
				if x := &r.commands[i].binds[n]; x.buffer != nil {
					x.part = to[x.part]
				}
			}
		}
		for _, spans := range r.left {
			for i := range spans {
				spans[i].of = to[spans[i].of]
			}
		}
	}
}

// holding returns what a small buffer holds when the step begins that is looked at, nil if it is not known.
func (k *kernels) holding(b *buffer) []byte {
	n := sort.Search(len(b.host), func(i int) bool { return b.host[i].before > k.at })
	if n == 0 {
		return nil
	}
	h := &b.host[n-1]
	if wrote, ok := k.wrote[b]; ok && wrote >= h.before || h.offset != 0 || h.n != b.size || h.n > maxGiven || h.data == nil {
		return nil
	}
	return h.data
}

// mayWrite reports whether a command may write what one of its bindings has.
func (k *kernels) mayWrite(c *command, n int) bool {
	if c.kind != dispatch {
		return c.kind == filling || n == 1
	}
	kernel, known, err := k.of(c.code)
	if err != nil || !known {
		return true
	}
	return writesSlot(&kernel, c.binds[n].slot)
}
