package trace

import (
	"maps"
	"slices"

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
func (w *world) usage(k *kernels) (*usage, error) {
	u := &usage{map[*buffer]int{}, map[*buffer][]piece{}, map[*buffer]bool{}, map[*buffer]bool{}, map[*buffer]bool{}}
	held := map[*buffer][]piece{}
	writes := make([][]struct {
		b *buffer
		p piece
	}, len(w.steps)+1)
	for _, id := range slices.Sorted(maps.Keys(w.buffers)) {
		b := w.buffers[id]
		for _, h := range b.host {
			at := min(h.before, len(w.steps))
			writes[at] = append(writes[at], struct {
				b *buffer
				p piece
			}{b, h.piece})
		}
	}
	for i, s := range w.steps {
		for _, x := range writes[i] {
			if _, used := u.first[x.b]; used {
				u.rewritten[x.b] = true
			}
			held[x.b] = put(held[x.b], x.p)
		}
		dispatches := s.dispatches() > 0
		graph := w.graph(s)
		for j := range s.commands {
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
					u.first[root], u.contents[root] = i, slices.Clone(held[root])
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
						held[root] = put(held[root], piece{at + b.offset, c.bytes, nil, c.value})
						break
					}
					from, start := c.binds[0].buffer.root()
					for _, p := range cut(held[from], start+c.binds[0].offset, c.bytes) {
						p.offset += at + b.offset - start - c.binds[0].offset
						held[root] = put(held[root], p)
					}
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

// put adds what is written last to the pieces of a buffer, which do not overlap and are ordered.
func put(held []piece, p piece) []piece {
	if p.n == 0 {
		return held
	}
	end := p.offset + p.n
	lo, _ := slices.BinarySearchFunc(held, p.offset, func(q piece, at int64) int {
		if q.offset+q.n <= at {
			return -1
		}
		return 1
	})
	hi := lo
	var around []piece
	for ; hi < len(held) && held[hi].offset < end; hi++ {
		q := held[hi]
		if q.offset < p.offset {
			around = append(around, q.part(q.offset, p.offset))
		}
		if q.offset+q.n > end {
			around = append(around, q.part(end, q.offset+q.n))
		}
	}
	at := len(around)
	if at > 0 && around[at-1].offset >= end {
		at--
	}
	return slices.Replace(held, lo, hi, slices.Insert(around, at, p)...)
}

// part returns bytes lo to hi of what p holds, which has them.
func (p piece) part(lo, hi int64) piece {
	out := piece{lo, hi - lo, nil, p.value}
	if p.data != nil {
		out.data = p.data[lo-p.offset : hi-p.offset]
	}
	return out
}

// cut returns what is held of n bytes from offset on.
func cut(held []piece, offset, n int64) (out []piece) {
	for _, p := range held {
		lo, hi := max(p.offset, offset), min(p.offset+p.n, offset+n)
		if lo < hi {
			out = append(out, p.part(lo, hi))
		}
	}
	return out
}
