package bytestate

import "github.com/mlxc/mlxc/ir"

// Seen returns those of the cells met, which [State.Look] returned for a, whose bytes a
// may see. In every cell, W must be the position of its last writer in one common
// order: a writer that covers all of a hides everything that was written before it.
func (s *State) Seen(a *Access, met []int32) []int32 {
	hidden := None
	for _, h := range met {
		if c := &s.nodes[h]; c.W > hidden && s.Holds(c, a) {
			hidden = c.W
		}
	}
	seen := s.visible[:0]
	for k, h := range met {
		if c := &s.nodes[h]; c.W >= hidden && !(c.Region != 0 && s.behind(met, k, a)) {
			seen = append(seen, h)
		}
	}
	s.visible = seen
	return seen
}

// behind reports whether solid cells with later writers hide everything that a shares
// with the loose cell met[k].
func (s *State) behind(met []int32, k int, a *Access) bool {
	c := &s.nodes[met[k]]
	at, end := max(a.Lo, c.Lo), min(a.End, c.End)
	for _, h := range met {
		d := &s.nodes[h]
		if d.Region != 0 || d.End <= at {
			continue
		}
		if d.Lo > at || d.W < c.W {
			return false
		}
		if at = d.End; at >= end {
			return true
		}
	}
	return false
}

// Hole reports whether a may have a byte that is in no solid cell.
func (s *State) Hole(a *Access) bool {
	found := false
	check := func(lo, end int64) {
		found = found || lo < end && (a.Region == 0 || !s.facts.Apart(a.Region, lo, end))
	}
	at := a.Lo
	for n := s.seek(a.Root, &s.roots[a.Root], a.Lo); n != 0 && !found; n = s.nodes[n].next {
		c := &s.nodes[n]
		if c.Lo >= a.End {
			break
		}
		check(at, min(c.Lo, a.End))
		at = max(at, c.End)
	}
	check(at, a.End)
	return found
}

// Crowded reports whether a meets the hulls of more than `most` cells. For a must-write
// only loose cells count, because it replaces solid ones.
func (s *State) Crowded(a *Access, most int) bool {
	found := 0
	r := &s.roots[a.Root]
	if a.Must {
		return s.count(r.loose, a.Lo, a.End, most) > most
	}
	for n := s.seek(a.Root, r, a.Lo); n != 0 && s.nodes[n].Lo < a.End; n = s.nodes[n].next {
		if found++; found > most {
			return true
		}
	}
	return s.count(r.loose, a.Lo, a.End, most-found) > most-found
}

// count returns how many loose cells in subtree at have hulls that meet [lo, end). It
// stops counting once it has exceeded most.
func (s *State) count(at int32, lo, end int64, most int) (found int) {
	for at != 0 && found <= most {
		c := &s.nodes[at]
		if c.max <= lo {
			break
		}
		found += s.count(c.left, lo, end, most-found)
		if c.Lo >= end {
			break
		}
		if c.End > lo {
			found++
		}
		at = c.right
	}
	return found
}

// Each calls yield with every cell, memory by memory in the order in which they were
// first used, and the solid cells of a memory before its loose ones.
func (s *State) Each(yield func(root ir.MemID, c *Cell)) {
	var loose func(root ir.MemID, at int32)
	loose = func(root ir.MemID, at int32) {
		for ; at != 0; at = s.nodes[at].right {
			loose(root, s.nodes[at].left)
			yield(root, &s.nodes[at])
		}
	}
	for _, r := range s.used {
		for n := s.first(r); n != 0; n = s.nodes[n].next {
			yield(ir.MemID(r), &s.nodes[n])
		}
		loose(ir.MemID(r), s.roots[r].loose)
	}
}
