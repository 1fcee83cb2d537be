package trace

import (
	"maps"
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

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
		if e := last[b]; (e.run != nil || e.lost) && p.n < b.size {
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
			of(x.b).write(x.p)
		}
		dispatches := s.dispatches() > 0
		graph := w.graph(s)
		run := runs[s]
		if run != nil {
			run.at = i
			run.entries = make([]entry, len(run.buffers))
			for j, b := range run.buffers {
				run.entries[j] = last[b]
				run.entries[j].holds = holds[b]
				if last[b].run == nil {
					pieces, err := read(b)
					if err != nil {
						return err
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
				case run != nil:
					last[root] = entry{run: run, role: run.number[root]}
				case graph || dispatches:
					last[root] = entry{lost: true} // by dispatches of no graph: nobody knows what it holds
				default:
					if c.kind == filling {
						of(root).write(piece{at + b.offset, c.bytes, nil, c.value})
						hosted(root, piece{n: c.bytes})
						break
					}
					from, start := c.binds[0].buffer.root()
					if e := last[from]; e.run != nil || e.lost {
						last[root] = entry{lost: true}
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
					hosted(root, piece{n: c.bytes})
				}
			}
		}
	}
	return nil
}

// writesSlot reports whether a kernel may write what is bound to a slot.
func writesSlot(k *ir.Kernel, slot int) bool {
	if k == nil {
		return true
	}
	a, ok := k.Arg(uint8(slot))
	return ok && a.Kind == ir.DeviceArg && a.Access != ir.ReadArg
}
