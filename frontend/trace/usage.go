package trace

import (
	"maps"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// usage is what is known of buffers over the whole log.
type usage struct {
	first     map[*buffer]int     // the first step whose dispatches or copies use it
	contents  map[*buffer][]piece // what it held then
	rewritten map[*buffer]bool    // the host has written it after that
	written   map[*buffer]bool    // steps with dispatches write it
	lost      map[*buffer]bool    // dispatches wrote it before its first use in a graph: nobody knows what it held
}

// usage follows what buffers hold from step to step. Copies and fills of steps without dispatches are carried out: programs
// load their weights by them.
func (w *world) usage(k *kernels, groups []*group) (*usage, error) {
	u := &usage{map[*buffer]int{}, map[*buffer][]piece{}, map[*buffer]bool{}, map[*buffer]bool{}, map[*buffer]bool{}}
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
	type write struct {
		b     *buffer
		p     piece
		holds bool
	}
	writes := make([][]write, len(w.steps)+1)
	for _, id := range slices.Sorted(maps.Keys(w.buffers)) {
		b := w.buffers[id]
		for _, h := range b.host {
			at := min(h.before, len(w.steps))
			writes[at] = append(writes[at], write{b, h.piece, h.holds})
		}
	}
	runs := map[*step]*run{}
	for _, g := range groups {
		for _, r := range g.runs {
			r.of = g
			runs[r.step] = r
		}
	}
	last := map[*buffer]entry{} // who wrote it last
	hosts := 0                  // counts what is not written by runs
	hosted := func(b *buffer, p piece) {
		hosts++
		if e := last[b]; e.run != nil && p.n < b.size {
			e.touched = true
			last[b] = e
			return
		}
		last[b] = entry{version: hosts}
	}
	var polls interrupt.Every
	for i, s := range w.steps {
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
			if _, used := u.first[x.b]; used {
				u.rewritten[x.b] = true
			}
			of(x.b).write(x.p)
		}
		dispatches := s.dispatches() > 0
		graph := w.graph(s)
		run := runs[s]
		if run != nil {
			run.entries = make([]entry, len(run.buffers))
			for j, b := range run.buffers {
				run.entries[j] = last[b]
				run.entries[j].holds = holds[b]
				if last[b].run == nil {
					pieces, err := read(b)
					if err != nil {
						return nil, err
					}
					run.entries[j].pieces = slices.Clone(pieces)
				}
			}
		}
		for j := range s.commands {
			polls.Poll(k.ctx, 1024)
			c := &s.commands[j]
			var known *ir.Kernel
			if c.kind == dispatch {
				kernel, ok, err := k.of(c.code)
				if err != nil {
					return nil, err
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
				if _, used := u.first[root]; !used && graph {
					pieces, err := read(root)
					if err != nil {
						return nil, err
					}
					u.first[root], u.contents[root] = i, slices.Clone(pieces)
				}
				writes := c.kind == filling || c.kind == copying && n == 1 || c.kind == dispatch && writesSlot(known, b.slot)
				switch {
				case !writes:
				case run != nil:
					last[root] = entry{run: run, role: run.number[root]}
				case graph || dispatches:
					last[root] = entry{lost: true}
				}
				switch {
				case c.kind == dispatch && !writesSlot(known, b.slot):
				case c.kind == dispatch && graph:
					u.written[root] = true
				case dispatches && !graph:
					if _, used := u.first[root]; !used && (c.kind != copying || n == 1) {
						u.lost[root] = true
					}
				case c.kind == filling || c.kind == copying && n == 1:
					if graph {
						u.written[root] = true
						break
					}
					if c.kind == filling {
						of(root).write(piece{at + b.offset, c.bytes, nil, c.value})
						hosted(root, piece{n: c.bytes})
						break
					}
					from, start := c.binds[0].buffer.root()
					pieces, err := read(from)
					if err != nil {
						return nil, err
					}
					for _, p := range cut(pieces, start+c.binds[0].offset, c.bytes) {
						left--
						p.offset += at + b.offset - start - c.binds[0].offset
						of(root).write(p)
					}
					hosted(root, piece{n: c.bytes})
				}
			}
		}
	}
	return u, nil
}

// writesSlot reports whether a kernel may write what is bound to a slot.
func writesSlot(k *ir.Kernel, slot int) bool {
	if k == nil {
		return true
	}
	a, ok := k.Arg(uint8(slot))
	return ok && a.Kind == ir.DeviceArg && a.Access != ir.ReadArg
}
