package trace

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// zeroUnread makes the words 0, or parts of them, that stand in inline bytes which no path of their kernel reads: a program that fills a
// struct leaves its padding as it was on the stack, so that runs of a graph, and logs of a program, differ in it.
func (g *group) zeroUnread(k *kernels) {
	first := g.runs[0]
	i := 0
	for n := range first.commands {
		c := &first.commands[n]
		switch c.kind {
		case dispatch:
		case copying, filling:
			i += len(c.binds) + 1
			continue
		default:
			continue
		}
		i += 3
		for j := range c.binds {
			b := &c.binds[j]
			switch {
			case b.buffer != nil:
				i++
			case len(b.data)%4 == 0:
				cloned := false
				for at := 0; at < len(b.data); at, i = at+4, i+1 {
					mask := k.read32(c.code, b.slot, at)
					if mask == 1<<32-1 {
						continue
					}
					for _, r := range g.runs {
						r.numbers[i] &= mask
					}
					if v := binary.LittleEndian.Uint32(b.data[at:]); int64(v)&^mask != 0 {
						if !cloned { // the bytes are the log's
							b.data, cloned = slices.Clone(b.data), true
						}
						binary.LittleEndian.PutUint32(b.data[at:], uint32(int64(v)&mask))
					}
				}
			}
		}
		i += 2 * len(c.hints)
	}
}

// read32 returns the bits of a word of a constant argument that a kernel may read; all, if that is not known.
func (k *kernels) read32(p *pipeline, slot, at int) int64 {
	all := int64(1<<32 - 1)
	// What the program's own kernel does not read, the one of the builtin library that stands for it may.
	if kernel, _, err := k.of(p); err != nil || kernel.Library.Kind == ir.Builtin {
		return all
	}
	if a, err := k.describe(p); err != nil || a == nil {
		return all
	}
	name := key(p.library, p.function)
	unread, ok := k.unread[name]
	if !ok {
		if u := k.units[name]; u != nil {
			unread, _ = u.Unread(p.function) // what cannot be read counts as used
		}
		k.unread[name] = unread
	}
	bytes, ok := unread[slot]
	if !ok {
		return all
	}
	mask := int64(0)
	for i := range 4 {
		if at+i < len(bytes) && !bytes[at+i] {
			mask |= 0xff << (8 * i)
		}
	}
	return mask
}

// maybePadding is what an error about inline bytes of a kernel has to add where it is not known which of them the kernel reads.
func (k *kernels) maybePadding(p *pipeline) string {
	if p == nil || k.unread[key(p.library, p.function)] != nil {
		return ""
	}
	why := k.silent[key(p.library, p.function)]
	switch {
	case p.library.kind == "metallib":
		why = "its code is of a compiled library"
	case why == "":
		return ""
	}
	return fmt.Sprintf("; if it is padding, which a program that fills a struct leaves as it was, it does not count, but what %s reads of the struct is not known here: %s", p.function, why)
}
