package trace

import (
	"slices"
	"sort"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// A buffer may hold several values in turn within a step: engines use the memory of one that nobody needs any more again, and which
// buffer is free when may depend on how fast the GPU is. So what is followed is not buffers but their lives: accesses of a buffer belong to
// one life if bytes that one of them writes, another one reads. A life ends where a dispatch certainly writes the bytes anew, as the
// effects of its kernel say, and what was there is not read any more. That goes for parts of a buffer too, but for those which some step finds as
// one before it has left them (kept.go): a row that is written into a cache is no life of its own.

// life is a part of what a step does with a buffer. It becomes a memory, or several (windows.go).
type life struct {
	buffer  *buffer // a root
	finds   bool    // it may read what the buffer held before the step
	found   []span[bool]
	touched bool    // some kernel may touch it: else it is bound and nothing more
	nth     int     // of its buffer in the step, from 0
	window  *window // the bytes that are the memory; nil: all of the buffer
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

// mark is overlay where neighbours that are the same are one.
func mark[T comparable](spans []span[T], x span[T]) []span[T] {
	if x.lo >= x.hi {
		return spans
	}
	for i := reach(spans, x.lo-1); i < len(spans) && spans[i].lo <= x.hi; i++ {
		if s := spans[i]; s.of == x.of {
			x.lo, x.hi = min(x.lo, s.lo), max(x.hi, s.hi)
		}
	}
	return overlay(spans, x)
}

// overlaps reports whether spans of two lists have bytes in common.
func overlaps(a, b []span[bool]) bool {
	for _, x := range a {
		for _, y := range b {
			if x.lo < y.hi && y.lo < x.hi {
				return true
			}
		}
	}
	return false
}

// access is what a command does with the buffer of a binding.
type access struct {
	reads  []span[bool]
	writes []span[bool] // of: it certainly writes all bytes
	whole  bool         // its declaration says that it may touch all that is behind the offset: indices in memory say what
}

// within takes away what lies behind an end.
func (a *access) within(end int64) {
	for _, list := range [][]span[bool]{a.reads, a.writes} {
		for i := range list {
			list[i].hi = min(list[i].hi, end)
		}
	}
}

// manySpans is of how many parts of a buffer that are read at once the inner ones become one.
const manySpans = 64

// maxRuns bounds how many runs of a strided region are looked at one by one: of more than that it counts as touched, and not as certainly
// written, from the first byte to the last.
const maxRuns = 256

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
	if c.kind != dispatch {
		for n := range c.binds {
			lo, _ := c.binds[n].rest()
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
		lo, hi := x.rest()
		out[n].reads = []span[bool]{{lo, hi, false}}
		if writesSlot(table, x.slot) {
			out[n].writes = []span[bool]{{lo, hi, false}}
		}
	}
	return out, nil
}

// rest returns what a binding can reach of its buffer's root.
func (x *binding) rest() (lo, hi int64) {
	_, at := x.buffer.root()
	return at + x.offset, at + x.buffer.size
}

// anything returns accesses of all that a command can reach.
func (k *kernels) anything(c *command) []access {
	out := make([]access, len(c.binds))
	for n := range c.binds {
		if x := &c.binds[n]; x.buffer != nil {
			lo, hi := x.rest()
			out[n].reads, out[n].writes = []span[bool]{{lo, hi, false}}, []span[bool]{{lo, hi, false}}
		}
	}
	return out
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
	in, err := msl.Bind(g, d)
	if err != nil {
		return false
	}
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		n, ok := of[in.Views[i].Mem]
		if !ok || a.Kind != ir.DeviceArg || a.Mode == decl.Unused {
			continue
		}
		r, err := in.Region(i)
		if err != nil {
			return false
		}
		spans, sure := []span[bool]{}, a.Mode == decl.Write
		if r.HasRuns(maxRuns) {
			r.Runs(nil, func(lo, hi int64) bool {
				spans = append(spans, span[bool]{lo, hi, sure})
				return true
			})
		} else {
			lo, hi := r.Hull()
			spans = append(spans, span[bool]{lo.Const, hi.Const, false})
		}
		if out[n].whole = a.Whole; a.Mode == decl.Read {
			out[n].reads = append(out[n].reads, spans...)
		} else {
			out[n].writes = append(out[n].writes, spans...)
		}
	}
	return true
}

// lives divides what a step does with its buffers into lives, and gives each binding the number of its one. left is whose bytes the buffers
// hold when the step ends.
func (k *kernels) lives(s *step, at int) (lives []life, left map[*buffer][]span[int], inPlace map[[2]int]bool, err error) {
	// Nodes are the accesses of bindings, and what a buffer holds at first; those of one life are joined.
	k.at = at
	var up []int
	var touched, sure []bool // by node: some kernel may touch it; it certainly writes one run of bytes
	root := func(n int) int {
		for up[n] != n {
			up[n] = up[up[n]]
			n = up[n]
		}
		return n
	}
	node := func() int {
		up, touched, sure = append(up, len(up)), append(touched, false), append(sure, false)
		return len(up) - 1
	}
	type held struct {
		begin int          // the node of what it holds at first
		found []span[bool] // of that: what is read
		spans []span[int]
	}
	buffers := map[*buffer]*held{}
	nodes := make([][]int, len(s.commands))
	var pairs [][2]int // of nodes: what a dispatch reads, and what it writes there
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
			x := &c.binds[n]
			if x.buffer == nil {
				continue
			}
			b, begin := x.buffer.root()
			begin += x.offset
			h := buffers[b]
			if h == nil {
				h = &held{begin: node()}
				b.used = at
				h.spans = []span[int]{{0, b.size, h.begin}}
				buffers[b] = h
			}
			own := node()
			nodes[i][n] = own
			touched[own] = len(all[n].reads)+len(all[n].writes) > 0
			x.limit = 0
			if o := h.spans[reach(h.spans, begin)]; all[n].whole && sure[o.of] {
				if k.options.Values {
					_, end := x.rest()
					x.limit = min(o.hi, end) - begin
					all[n].within(o.hi)
				}
				k.far(c.code.function)
			}
			meets := func(x span[bool], finds []span[bool]) {
				first := reach(h.spans, x.lo)
				end := first
				for ; end < len(h.spans) && h.spans[end].lo < x.hi && budget >= 0; end++ {
					budget--
					o := h.spans[end]
					if o.of == h.begin {
						for _, f := range within(finds, max(o.lo, x.lo), min(o.hi, x.hi)) {
							budget -= 1 + (len(h.found)-reach(h.found, f.lo))/16
							h.found = mark(h.found, span[bool]{f.lo, f.hi, true})
						}
					}
					up[root(own)] = root(o.of)
				}
				if end-first > manySpans { // they are one life now: who comes next does not have to look at them one by one
					together := node()
					up[together] = root(own)
					h.spans = overlay(h.spans, span[int]{h.spans[first+1].lo, h.spans[end-2].hi, together})
				}
			}
			for _, x := range all[n].reads {
				meets(x, []span[bool]{x})
			}
			for _, x := range all[n].writes {
				switch {
				case !x.of || len(all[n].reads) > 0: // it keeps bytes
					meets(x, []span[bool]{x})
				case k.keeps(b, x):
					meets(x, k.keptOf(b, x))
				}
			}
		}
		for n := range c.binds {
			if c.binds[n].buffer == nil {
				continue
			}
			b, _ := c.binds[n].buffer.root()
			for m := range c.binds {
				y := &c.binds[m]
				if m == n || y.buffer == nil {
					continue
				}
				if o, _ := y.buffer.root(); o != b {
					continue
				}
				switch {
				case !touched[nodes[i][n]] && y.offset == c.binds[n].offset && y.buffer == c.binds[n].buffer:
					up[root(nodes[i][n])] = root(nodes[i][m]) // what is bound and not used is in no way
				case overlaps(all[n].writes, all[m].reads) || overlaps(all[n].writes, all[m].writes):
					pairs = append(pairs, [2]int{nodes[i][m], nodes[i][n]})
				}
			}
			for _, x := range all[n].writes {
				h := buffers[b]
				budget -= 1 + (len(h.spans)-reach(h.spans, x.lo))/16 // those behind it are moved
				h.spans = overlay(h.spans, span[int]{x.lo, min(x.hi, b.size), nodes[i][n]})
				sure[nodes[i][n]] = x.of && len(all[n].writes) == 1
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
					l.finds, l.found = true, h.found
				}
				lives = append(lives, l)
			}
			lives[j].touched = lives[j].touched || touched[nodes[i][n]]
			c.binds[n].part = j
		}
	}
	k.written(s)
	writes := make([]bool, len(lives))
	for i := range s.commands {
		for n := range nodes[i] {
			if x := &s.commands[i].binds[n]; x.buffer != nil && k.mayWrite(&s.commands[i], n) {
				writes[x.part] = true
			}
		}
	}
	inPlace = map[[2]int]bool{}
	for _, p := range pairs {
		if from, to := number[root(p[0])], number[root(p[1])]; from != to {
			inPlace[[2]int{from, to}] = true
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
			o := r.lives[j]
			o.touched = o.touched || l.touched
			if l.finds { // there is one of a buffer that does
				o.finds, o.found = true, l.found
			}
			*l = o
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

// written notes which buffers the step that is looked at may write.
func (k *kernels) written(s *step) {
	for i := range s.commands {
		for n := range s.commands[i].binds {
			if b := s.commands[i].binds[n].buffer; b != nil && k.mayWrite(&s.commands[i], n) {
				b, _ = b.root()
				k.wrote[b] = k.at
			}
		}
	}
}
