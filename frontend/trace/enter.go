package trace

import (
	"maps"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// placed is what the host writes into a buffer.
type placed struct {
	b     *buffer
	p     piece
	holds bool
}

// hostWrites returns what the host has written before each step, and behind the last one.
func (w *world) hostWrites() [][]placed {
	out := make([][]placed, len(w.steps)+1)
	for _, id := range slices.Sorted(maps.Keys(w.buffers)) {
		b := w.buffers[id]
		for _, h := range b.host {
			at := min(h.before, len(w.steps))
			out[at] = append(out[at], placed{b, h.piece, h.holds})
		}
	}
	return out
}

// enter follows what buffers hold from step to step, and notes it where runs begin. Copies and fills of steps without dispatches are
// carried out: programs load their weights by them.
func (w *world) enter(k *kernels, groups []*group) error {
	memory, left := map[*buffer]*held{}, maxParts
	of := func(b *buffer) *held {
		if memory[b] == nil {
			memory[b] = &held{}
		}
		return memory[b]
	}
	read := func(b *buffer) ([]piece, error) {
		pieces, err := of(b).read(&left)
		if err != nil {
			return nil, w.log.fault(0, "buffer %s %v", w.nameOf(b), err)
		}
		return pieces, nil
	}
	writes := w.hostWrites()
	runs := map[*step]*run{}
	for _, g := range groups {
		g.again = map[int]bool{}
		for _, r := range g.runs {
			r.of = g
			runs[r.step] = r
		}
	}
	last := map[*buffer][]span[entry]{} // who wrote it last, where that was not the host
	versions := map[*buffer]int{}       // of what the host has written
	hosts := 0
	by := func(b *buffer, x span[entry]) {
		if left -= 1 + (len(last[b])-reach(last[b], x.lo))/16; left >= 0 { // those behind it are moved
			last[b] = overlay(last[b], x)
		}
	}
	hosted := func(b *buffer, p piece) {
		hosts++
		versions[b] = hosts
		if meets(last[b], p.offset, p.offset+p.n) {
			by(b, span[entry]{p.offset, p.offset + p.n, entry{}})
			left -= len(last[b])
			last[b] = slices.DeleteFunc(last[b], func(x span[entry]) bool { return x.of.run == nil && !x.of.lost })
		}
	}
	lost := func(b *buffer) { by(b, span[entry]{0, b.size, entry{lost: true}}) }
	// found returns who wrote bytes of a buffer, and marks these as ones that are found again.
	found := func(b *buffer, parts ...span[bool]) (e entry) {
		rest := int64(0) // not written by runs
		for _, part := range parts {
			rest += part.hi - part.lo
			for _, x := range last[b][reach(last[b], part.lo):] {
				if left--; x.lo >= part.hi {
					break
				}
				rest -= min(x.hi, part.hi) - max(x.lo, part.lo)
				o := x.of
				if o.run != nil {
					o.run.of.again[o.role] = true
				}
				switch {
				case o.lost:
					e.lost = true
				case e.run == nil:
					e.run, e.role = o.run, o.role
				case o.run != e.run || o.role != e.role:
					other := leaver{o.run, o.role}
					if e.several = true; o.run.index > e.run.index {
						other = leaver{e.run, e.role}
						e.run, e.role = o.run, o.role
					}
					if len(e.others) < maxOthers {
						e.others = append(e.others, other)
					}
				}
			}
		}
		switch {
		case e.run == nil:
			e.version = versions[b]
		case rest > 0 && versions[b] > e.run.hosts:
			e.touched = true // since that run
		}
		return e
	}
	var polls interrupt.Every
	for i, s := range w.steps {
		if left < 0 {
			return w.log.fault(s.offset, "buffers are written in too many parts")
		}
		holds := map[*buffer]*piece{} // before this step
		for n := range writes[i] {
			x := &writes[i][n]
			if x.holds {
				if x.p.offset == 0 && x.p.n == x.b.size {
					holds[x.b] = &x.p
				}
				continue
			}
			hosted(x.b, x.p)
			of(x.b).write(x.p)
		}
		dispatches := s.dispatches() > 0
		graph := w.graph(s)
		run := runs[s]
		if run != nil {
			run.entries = make([]entry, len(run.buffers))
			for j, l := range run.lives {
				e := &run.entries[j]
				if !l.finds {
					e.none = true
					continue
				}
				*e = found(l.buffer, l.found...)
				if l.window == nil {
					e.holds = holds[l.buffer]
				}
				if e.run == nil {
					pieces, err := read(l.buffer)
					if err != nil {
						return err
					}
					if e.pieces = slices.Clone(pieces); l.window != nil {
						e.pieces = l.window.cut(pieces)
						left -= len(e.pieces)
					}
				}
			}
			run.hosts = hosts
			for b, spans := range run.left {
				for _, x := range spans {
					by(b, span[entry]{x.lo, x.hi, entry{run: run, role: x.of}})
				}
			}
			continue
		}
		for j := range s.commands {
			polls.Poll(k.ctx, 1024)
			c := &s.commands[j]
			var known *ir.Kernel
			if c.kind == dispatch {
				kernel, ok, err := k.of(c.code)
				if err != nil {
					return err
				}
				if ok {
					known = &kernel
				}
			}
			for n := range c.binds {
				b := &c.binds[n]
				if b.buffer == nil {
					continue
				}
				root, at := b.buffer.root()
				switch {
				case !(c.kind == filling || c.kind == copying && n == 1 || c.kind == dispatch && writesSlot(known, b.slot)):
				case graph || dispatches:
					lost(root) // by dispatches of no graph: nobody knows what it holds
				default:
					if c.kind == filling {
						of(root).write(piece{at + b.offset, c.bytes, nil, c.value})
						hosted(root, piece{offset: at + b.offset, n: c.bytes})
						break
					}
					from, start := c.binds[0].buffer.root()
					if e := found(from, span[bool]{start + c.binds[0].offset, start + c.binds[0].offset + c.bytes, true}); e.run != nil || e.lost {
						lost(root)
						break
					}
					pieces, err := read(from)
					if err != nil {
						return err
					}
					for _, p := range cut(pieces, start+c.binds[0].offset, c.bytes) {
						left--
						p.offset += at + b.offset - start - c.binds[0].offset
						of(root).write(p)
					}
					hosted(root, piece{offset: at + b.offset, n: c.bytes})
				}
			}
		}
	}
	return nil
}

// meets reports whether some span has bytes from lo to hi.
func meets[T any](spans []span[T], lo, hi int64) bool {
	i := reach(spans, lo)
	return i < len(spans) && spans[i].lo < hi
}

// writesSlot reports whether a kernel may write what is bound to a slot.
func writesSlot(k *ir.Kernel, slot int) bool {
	if k == nil {
		return true
	}
	a, ok := k.Arg(uint8(slot))
	return ok && a.Kind == ir.DeviceArg && a.Access != ir.ReadArg
}
