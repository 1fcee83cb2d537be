package hazard

// sweep runs over the accesses of a table in order and keeps, for every byte,
// what is known of its last writer and of the readers since.
//
// A write that covers a cell retires it, whether it must write or only may: who
// conflicts with what the cell stood for conflicts with the write as well, and
// the write stands after it.
type sweep struct {
	t *Table
	cells
	// What a reader leaves in a cell that has r already. The default keeps the
	// greater number.
	reader func(r, x int32) int32
	// Called with r where a cell is split or keeps its readers although a writer
	// conflicts with them; what it returns takes their place.
	share func(r int32) int32
}

func newSweep(t *Table) *sweep {
	return &sweep{t: t, cells: newCells(len(t.g.Memories))}
}

// done adds the sweep's work to the table's.
func (s *sweep) done() { s.t.ops += s.ops }

// look finds the cells that a meets, exactly as far as [Disjoint] knows, and
// calls f with the index of each.
func (s *sweep) look(a *access) []int32 {
	s.find(a.root, a.lo, a.end)
	met := s.hits[:0]
	for _, h := range s.hits {
		if c := &s.nodes[h]; (a.region == 0 && c.region == 0) || s.meets(a, c) {
			met = append(met, h)
		}
	}
	return met
}

func (s *sweep) meets(a *access, c *cell) bool {
	switch {
	case a.region == 0:
		return !s.t.regions.apart(c.region, a.lo, a.end)
	case c.region == 0:
		return !s.t.regions.apart(a.region, c.lo, c.end)
	}
	return s.t.regions.pair(a.region, c.region)&factDisjoint == 0
}

func (s *sweep) shared(r int32) int32 {
	if s.share == nil || r == none {
		return r
	}
	return s.share(r)
}

func (s *sweep) read(r, x int32) int32 {
	if s.reader == nil {
		return max(r, x)
	}
	return s.reader(r, x)
}

// addRead notes that x reads a.
func (s *sweep) addRead(a *access, x int32) {
	s.find(a.root, a.lo, a.end)
	if a.region != 0 {
		for _, h := range s.hits {
			if c := &s.nodes[h]; c.region == a.region {
				c.r = s.read(c.r, x)
				return
			}
		}
		s.insert(a.root, cell{lo: a.lo, end: a.end, region: a.region, w: none, r: s.read(none, x)})
		return
	}
	at, before := a.lo, int32(0)
	for k, h := range s.hits {
		c := &s.nodes[h]
		if c.region != 0 {
			break // the solid ones come first
		}
		if k == 0 {
			before = c.prev
		}
		if c.lo > at {
			s.insertSolid(a.root, before, cell{lo: at, end: c.lo, w: none, r: s.read(none, x)})
			c = &s.nodes[h] // the cells may have moved
		}
		at, before = c.end, h
		r := c.r
		if c.lo < a.lo || c.end > a.end {
			r = s.shared(r)
			c = &s.nodes[h]
			c.r = r
		}
		if c.end > a.end { // its tail is not read
			tail := *c
			tail.lo = a.end
			c.end = a.end
			s.insertSolid(a.root, h, tail)
			c = &s.nodes[h]
		}
		if c.lo < a.lo { // its head is not read
			body := *c
			body.lo, body.r = a.lo, s.read(r, x)
			c.end = a.lo
			before = s.insertSolid(a.root, h, body)
			continue
		}
		c.r = s.read(r, x)
	}
	if at < a.end {
		if len(s.hits) == 0 || s.nodes[s.hits[0]].region != 0 {
			before = s.solidBefore(a.root, a.lo)
		}
		s.insertSolid(a.root, before, cell{lo: at, end: a.end, w: none, r: s.read(none, x)})
	}
}

// solidBefore returns the last solid cell of a memory that begins before lo, or
// 0.
func (s *sweep) solidBefore(root int32, lo int64) int32 {
	at := int32(0)
	for n := s.roots[root].solid; n != 0; {
		s.ops++
		if c := &s.nodes[n]; c.lo < lo {
			at, n = n, c.right
		} else {
			n = c.left
		}
	}
	return at
}

// addWrite notes that x writes a.
func (s *sweep) addWrite(a *access, x int32) {
	s.find(a.root, a.lo, a.end)
	// The solid cell that becomes a's, or before which a's stands.
	same, before := int32(0), int32(0)
	solid := a.region == 0
	if solid && (len(s.hits) == 0 || s.nodes[s.hits[0]].region != 0) {
		before = s.solidBefore(a.root, a.lo)
	}
	for k, h := range s.hits {
		c := &s.nodes[h]
		if !solid || c.region != 0 {
			switch {
			case c.region == a.region:
				same = h
			case s.covers(a, c):
				if c.region == 0 {
					s.removeSolid(a.root, h)
				} else {
					s.remove(a.root, h)
				}
			case c.r != none && s.share != nil && s.meets(a, c):
				r := s.shared(c.r)
				s.nodes[h].r = r
			}
			continue
		}
		if k == 0 {
			before = c.prev
		}
		if c.lo < a.lo || c.end > a.end {
			r := s.shared(c.r)
			c = &s.nodes[h]
			c.r = r
		}
		switch {
		case c.lo < a.lo: // its head stays
			if c.end > a.end {
				tail := *c
				tail.lo = a.end
				s.insertSolid(a.root, h, tail)
				c = &s.nodes[h]
			}
			c.end = a.lo
			before = h
		case c.end > a.end: // its tail stays
			c.lo = a.end
		case same == 0:
			same = h
		default:
			s.removeSolid(a.root, h)
		}
	}
	switch {
	case same != 0:
		c := &s.nodes[same]
		c.lo, c.end, c.w, c.r = a.lo, a.end, x, none
	case solid:
		s.insertSolid(a.root, before, cell{lo: a.lo, end: a.end, w: x, r: none})
	default:
		s.insert(a.root, cell{lo: a.lo, end: a.end, region: a.region, w: x, r: none})
	}
}

// covers reports whether a contains every byte of c, whatever the params.
func (s *sweep) covers(a *access, c *cell) bool {
	switch {
	case a.region == 0:
		return a.lo <= c.lo && c.end <= a.end
	case c.region == 0:
		x := &s.t.regions.all[a.region]
		return x.coreLo <= c.lo && c.end <= x.coreEnd
	}
	return s.t.regions.pair(a.region, c.region)&factCovers != 0
}
