package trace

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// A life may use several parts of its buffer that have nothing to do with each other, or a small part of a large buffer: what an
// engine takes as its inputs from one buffer, say. A window is a part that becomes a memory of its own. No kernel goes from one window of
// a life into another, whatever the values of the params.

// window is bytes of a buffer that are one memory.
type window struct {
	base   int64 // where the memory begins: at or before lo, so that what is aligned in the buffer is aligned in the memory
	lo, hi int64 // what is used
}

// windowAlign divides the place of a memory in its buffer. Metal aligns buffers by no more where a kernel could rely on it.
const windowAlign = 256

// cut returns what pieces of a buffer have of a window, with offsets in its memory.
func (w *window) cut(pieces []piece) []piece {
	out := cut(pieces, w.lo, w.hi-w.lo)
	for i := range out {
		out[i].offset -= w.base
	}
	return out
}

// base returns where the memory of a life begins in its buffer.
func (l *life) base() int64 {
	if l.window == nil {
		return 0
	}
	return l.window.base
}

// end returns where the memory of a life ends in its buffer.
func (l *life) end() int64 {
	if l.window == nil {
		return l.buffer.size
	}
	return l.window.hi
}

// use is the bytes of a buffer that one binding may touch, and where it begins.
type use struct {
	lo, hi int64
	first  *int // the number of its window among those of its life
	writes bool
}

// window divides the lives of a group into windows, as the group's graph uses them, which was built without. It reports whether there is any
// that is not all of its buffer.
func (b *builder) window(ctx context.Context) bool {
	g, u := b.g, b.Unfinished()
	lives := b.run.lives
	uses := make([][]use, len(lives))
	nth := make([][]int, len(b.run.commands)) // by binding: its window
	of := map[*buffer]int{}                   // how many lives a buffer has
	for j := range lives {
		of[lives[j].buffer]++
	}
	var polls interrupt.Every
	for i := range b.run.commands {
		polls.Poll(ctx, 256)
		c := &b.run.commands[i]
		nth[i] = make([]int, len(c.binds))
		if len(c.binds) == 0 {
			continue
		}
		ends := b.ends(u, i)
		for n := range c.binds {
			x := &c.binds[n]
			if x.buffer == nil {
				continue
			}
			j := x.part
			v, ok := b.viewOf(u, i, n)
			lo, _, fits := u.Range(v.Off)
			if !ok || !fits || lo < 0 { // no command needs it, or its words are numbers
				uses[j] = append(uses[j], use{0, g.size(j), &nth[i][n], b.k.mayWrite(c, n)})
				continue
			}
			hi := g.size(j)
			if ends != nil && ends[n] >= 0 {
				hi = min(ends[n], hi)
			}
			uses[j] = append(uses[j], use{lo, max(hi, lo+1), &nth[i][n], b.k.mayWrite(c, n)})
		}
	}
	windows := make([][]window, len(lives)) // nil: the whole buffer
	written := make([][]bool, len(lives))
	some := false
	for j := range lives {
		l, size := &lives[j], g.size(j)
		whole := g.again[j] || l.buffer.role != "" || slices.ContainsFunc(g.given, func(v given) bool { return v.role == j }) ||
			slices.ContainsFunc(g.runs, func(r *run) bool { return r.entries[j].run != nil || r.entries[j].lost })
		if whole {
			continue
		}
		list := slices.Clone(uses[j])
		slices.SortFunc(list, func(x, y use) int { return cmp.Compare(x.lo, y.lo) })
		for _, x := range list {
			k := len(windows[j]) - 1
			if k < 0 || x.lo >= windows[j][k].hi {
				windows[j], written[j] = append(windows[j], window{x.lo &^ (windowAlign - 1), x.lo, x.hi}), append(written[j], false)
				k++
			}
			windows[j][k].hi = max(windows[j][k].hi, x.hi)
			written[j][k] = written[j][k] || x.writes
			*x.first = k
		}
		switch n := len(windows[j]); {
		case n == 0:
		case n == 1 && windows[j][0].base == 0 && (windows[j][0].hi == size || of[l.buffer] == 1):
			windows[j] = nil // a buffer that is used for one thing
		case !slices.Contains(written[j], true) && l.touched && !g.rewritten(j):
			windows[j] = nil // weights
		default:
			some = true
		}
	}
	if !some {
		return false
	}
	// The numbers of lives are anew those of their first appearances.
	first := make([]int, len(lives))
	count := 0
	for j := range lives {
		first[j] = count
		count += max(1, len(windows[j]))
	}
	for i := range g.given {
		g.given[i].role = first[g.given[i].role]
	}
	again := map[int]bool{}
	for j := range g.again {
		again[first[j]] = true
	}
	g.again = again
	for _, r := range g.runs {
		next := make([]life, 0, count)
		buffers := make([]*buffer, 0, count)
		for j, l := range r.lives {
			for k := range max(1, len(windows[j])) {
				part := l
				if windows[j] != nil {
					part.window = &windows[j][k]
					part.found = within(l.found, part.window.lo, part.window.hi)
					part.finds = len(part.found) > 0
				}
				next, buffers = append(next, part), append(buffers, l.buffer)
			}
		}
		order(next)
		r.lives, r.buffers = next, buffers
		for i := range r.commands {
			for n := range r.commands[i].binds {
				if x := &r.commands[i].binds[n]; x.buffer != nil {
					k := 0
					if windows[x.part] != nil {
						k = nth[i][n]
					}
					x.part = first[x.part] + k
				}
			}
		}
		for b, spans := range r.left {
			var out []span[int]
			for _, x := range spans {
				if windows[x.of] == nil {
					x.of = first[x.of]
					out = append(out, x)
					continue
				}
				list := windows[x.of]
				k, _ := slices.BinarySearchFunc(list, x.lo, func(w window, at int64) int { return cmp.Compare(w.hi, at+1) })
				for ; k < len(list) && list[k].lo < x.hi; k++ {
					if written[x.of][k] {
						out = append(out, span[int]{max(x.lo, list[k].lo), min(x.hi, list[k].hi), first[x.of] + k})
					}
				}
			}
			r.left[b] = out
		}
	}
	return true
}

// within returns what spans have of the bytes from lo to hi.
func within[T any](spans []span[T], lo, hi int64) (out []span[T]) {
	for _, x := range spans[reach(spans, lo):] {
		if x.lo >= hi {
			break
		}
		out = append(out, span[T]{max(x.lo, lo), min(x.hi, hi), x.of})
	}
	return out
}

// viewOf returns what the graph binds in place of binding n of command i; false: nothing.
func (b *builder) viewOf(g *ir.Graph, i, n int) (v ir.View, ok bool) {
	c := &b.run.commands[i]
	switch x := g.Nodes[b.node[i]].(type) {
	case *ir.Dispatch:
		bound := x.Binding(uint8(c.binds[n].slot))
		if bound == nil || bound.Kind != ir.BindView || bound.View.Mem == b.argsMem {
			return v, false
		}
		return bound.View, true
	case *ir.Copy:
		if n == 0 {
			return x.Src, true
		}
		return x.Dst, true
	case *ir.Fill:
		return x.Dst, true
	}
	return v, false
}

// ends returns, by binding of command i, the end of what is touched there of the life's buffer, whatever the params; -1: nothing is. A nil
// result says that it is not known.
func (b *builder) ends(g *ir.Graph, i int) []int64 {
	c := &b.run.commands[i]
	out := make([]int64, len(c.binds))
	for n := range out {
		out[n] = -1
		if c.kind != dispatch {
			v, _ := b.viewOf(g, i, n)
			_, hi, ok := g.Range(v.End())
			if !ok {
				return nil
			}
			out[n] = hi
		}
	}
	if c.kind != dispatch {
		return out
	}
	d := g.Nodes[b.node[i]].(*ir.Dispatch)
	if d.Effects != nil || !msl.Declared(&g.Kernels[d.Kernel]) {
		return nil
	}
	if _, err := msl.Describe(g, d); err != nil {
		return nil
	}
	in, err := msl.Bind(g, d)
	if err != nil {
		return nil
	}
	for k := range in.Decl.Args {
		a := &in.Decl.Args[k]
		n := slices.IndexFunc(c.binds, func(x binding) bool { return x.slot == int(a.Slot) })
		if n < 0 || a.Kind == ir.ThreadgroupArg || in.Views[k].Mem == ir.NoMem {
			continue
		}
		end := in.Views[k].End()
		if a.Kind == ir.DeviceArg && a.Mode == decl.Unused {
			end = in.Views[k].Off
		} else if a.Kind == ir.DeviceArg {
			r, err := in.Region(k)
			if err != nil {
				return nil
			}
			_, end = r.Hull()
		}
		_, hi, ok := g.Range(end)
		if !ok || hi > math.MaxInt64/2 {
			return nil
		}
		out[n] = hi
	}
	return out
}

// rewritten reports whether the host writes what a life of a group uses behind the group's first run.
func (g *group) rewritten(j int) bool {
	first := g.runs[0]
	for _, r := range g.runs {
		for _, h := range r.buffers[j].host {
			if h.holds || h.before <= first.at {
				continue
			}
			if l := &r.lives[j]; meets(l.found, h.offset, h.offset+h.n) {
				return true
			}
		}
	}
	return false
}
