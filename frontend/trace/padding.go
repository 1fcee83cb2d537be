package trace

// zeroUnread makes the numbers 0 that stand in inline bytes which no path of their kernel reads, where runs of a group differ in them:
// a program that fills a struct leaves its padding as it was on the stack. Parts of words are cleared too.
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
				for at := 0; at < len(b.data); at += 4 {
					if differs(g.runs, i) {
						if mask := k.read32(c.code, b.slot, at); mask != 1<<32-1 {
							for _, r := range g.runs {
								r.numbers[i] &= mask
							}
						}
					}
					i++
				}
			}
		}
		i += 2 * len(c.hints)
	}
}

func differs(runs []*run, i int) bool {
	for _, r := range runs[1:] {
		if r.numbers[i] != runs[0].numbers[i] {
			return true
		}
	}
	return false
}

// read32 returns the bits of a word of a constant argument that a kernel may read; all, if that is not known.
func (k *kernels) read32(p *pipeline, slot, at int) int64 {
	all := int64(1<<32 - 1)
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
