package trace

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// zeroUnread makes the inline bytes 0 that no path of their kernel reads: a program that fills a
// struct leaves its padding as it was on the stack, so that runs of a graph, and logs of a program, differ in it.
func (k *kernels) zeroUnread(s *step) {
	for n := range s.commands {
		c := &s.commands[n]
		if c.kind != dispatch {
			continue
		}
		for j := range c.binds {
			b := &c.binds[j]
			if b.buffer != nil || len(b.data)%4 != 0 {
				continue
			}
			unread := k.unreadOf(c.code)[b.slot]
			cloned := false
			for i, not := range unread[:min(len(unread), len(b.data))] {
				if not && b.data[i] != 0 {
					if !cloned { // the bytes are the log's
						b.data, cloned = slices.Clone(b.data), true
					}
					b.data[i] = 0
				}
			}
		}
	}
}

// unreadOf returns, by slot, which bytes of the constant arguments of a pipeline's kernel nothing reads, as far as that is known.
func (k *kernels) unreadOf(p *pipeline) map[int][]bool {
	// What the program's own kernel does not read, the one of the builtin library that stands for it may.
	if kernel, _, err := k.of(p); err != nil || kernel.Library.Kind == ir.Builtin {
		return nil
	}
	if a, err := k.describe(p); err != nil || a == nil {
		return nil
	}
	name := key(p.library, p.function)
	unread, ok := k.unread[name]
	if !ok {
		if u := k.units[name]; u != nil {
			unread, _ = u.Unread(p.function) // what cannot be read counts as used
		}
		k.unread[name] = unread
	}
	return unread
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
