package trace

import (
	"slices"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// certainty is how a command writes bytes.
type certainty uint8

const (
	unsurely certainty = iota // some of the bytes may stay as they were
	surely                    // each byte
	alone                     // each byte, and all that the command writes is one run of bytes
)

// keep finds the bytes of buffers that a step may read as an earlier step left them: a cache, or whatever an engine accumulates. A
// write to such bytes changes a part of something that lives on, and does not begin a new life. The work is bounded: if finding out would take
// more, the result is nil.
func (k *kernels) keep(w *world) (kept map[*buffer][]span[bool], err error) {
	kept = map[*buffer][]span[bool]{}
	left := map[*buffer][]span[bool]{} // what steps have written since the host did
	budget := maxParts
	put := func(m map[*buffer][]span[bool], b *buffer, x span[bool]) {
		if budget -= 1 + (len(m[b])-reach(m[b], x.lo))/16; budget >= 0 {
			m[b] = mark(m[b], x)
		}
	}
	hosts := w.hostWrites()
	clear(k.wrote)
	var again []span[bool]
	var polls interrupt.Every
	for at, s := range w.steps {
		for _, x := range hosts[at] {
			if !x.holds && len(left[x.b]) > 0 {
				put(left, x.b, span[bool]{x.p.offset, x.p.offset + x.p.n, false})
			}
		}
		k.at = at
		graph := w.graph(s)
		mine := map[*buffer][]span[certainty]{} // what this step has written
		for i := range s.commands {
			polls.Poll(k.ctx, 256)
			c := &s.commands[i]
			if len(c.binds) == 0 {
				continue
			}
			all := k.anything(c)
			if c.kind != dispatch || graph {
				if err := k.used(c); err != nil {
					return nil, err
				}
				if all, err = k.accesses(c); err != nil {
					return nil, err
				}
			}
			for n := range c.binds {
				x := &c.binds[n]
				if x.buffer == nil {
					continue
				}
				b, begin := x.buffer.root()
				if begin += x.offset; all[n].whole && k.options.Values {
					if m := mine[b]; meets(m, begin, begin+1) && m[reach(m, begin)].of == alone {
						all[n].within(m[reach(m, begin)].hi)
					}
				}
				for _, list := range [][]span[bool]{all[n].reads, all[n].writes} {
					for _, x := range list {
						if x.of && len(all[n].reads) == 0 {
							continue
						}
						// What was not certainly written in this step is what one before it has left.
						for lo := x.lo; lo < x.hi && budget >= 0; {
							hi, own := x.hi, false
							if m := mine[b]; len(m) > 0 {
								if j := reach(m, lo); j < len(m) && m[j].lo <= lo {
									hi, own = min(hi, m[j].hi), m[j].of != unsurely
								} else if j < len(m) {
									hi = min(hi, m[j].lo)
								}
							}
							if !own {
								for _, o := range left[b][reach(left[b], lo):] {
									if budget--; o.lo >= hi || budget < 0 {
										break
									}
									if o.of {
										again = append(again, span[bool]{max(lo, o.lo), min(hi, o.hi), true})
									}
								}
								for _, x := range again { // that is known now
									put(kept, b, x)
									put(left, b, span[bool]{x.lo, x.hi, false})
								}
								again = again[:0]
							}
							budget--
							lo = hi
						}
					}
				}
			}
			for n := range c.binds {
				if c.binds[n].buffer == nil {
					continue
				}
				b, _ := c.binds[n].buffer.root()
				for _, x := range all[n].writes {
					of := certainty(bit(x.of))
					if x.of && len(all[n].writes) == 1 && k.options.Values {
						of = alone
					}
					if budget -= 1 + (len(mine[b])-reach(mine[b], x.lo))/16; budget >= 0 {
						if y := (span[certainty]{x.lo, min(x.hi, b.size), of}); of == alone {
							mine[b] = overlay(mine[b], y)
						} else {
							mine[b] = mark(mine[b], y)
						}
					}
				}
			}
			if budget < 0 {
				clear(k.wrote)
				return nil, nil
			}
		}
		for b, spans := range mine {
			for _, x := range spans {
				put(left, b, span[bool]{x.lo, x.hi, true})
			}
		}
		if graph {
			k.written(s)
		}
	}
	clear(k.wrote)
	return kept, nil
}

// keeps reports whether what is written to bytes of a buffer is a part of what lives on there: some step finds it, and it is not all of the
// buffer.
func (k *kernels) keeps(b *buffer, x span[bool]) bool {
	if k.kept == nil || !k.parts && x.lo > 0 {
		return x.lo > 0
	}
	return meets(k.kept[b], x.lo, x.hi) && (x.lo > 0 || x.hi < b.size)
}

// keptOf returns what lives on of bytes of a buffer.
func (k *kernels) keptOf(b *buffer, x span[bool]) []span[bool] {
	if k.kept == nil || !k.parts {
		return []span[bool]{x}
	}
	return within(k.kept[b], x.lo, x.hi)
}

// far notes a function that may touch all that is behind a value which it gets.
func (k *kernels) far(function string) {
	if !slices.Contains(k.reachers, function) {
		k.reachers = append(k.reachers, function)
	}
}
