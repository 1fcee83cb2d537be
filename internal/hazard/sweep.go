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
	at := a.lo
	for _, h := range s.hits {
		c := &s.nodes[h]
		if c.region != 0 {
			continue
		}
		if c.lo > at {
			s.insert(a.root, cell{lo: at, end: c.lo, w: none, r: s.read(none, x)})
			c = &s.nodes[h] // insert may move the nodes
		}
		at = c.end
		if c.lo >= a.lo && c.end <= a.end {
			c.r = s.read(c.r, x)
			continue
		}
		old := s.trim(a, h)
		mid := old
		mid.lo, mid.end = max(old.lo, a.lo), min(old.end, a.end)
		mid.r = s.read(old.r, x)
		s.insert(a.root, mid)
	}
	if at < a.end {
		s.insert(a.root, cell{lo: at, end: a.end, w: none, r: s.read(none, x)})
	}
}

// trim removes solid cell h, puts back what lies outside a, and returns it.
func (s *sweep) trim(a *access, h int32) cell {
	old := s.nodes[h]
	s.remove(a.root, h)
	if old.lo < a.lo || old.end > a.end {
		old.r = s.shared(old.r)
	}
	if old.lo < a.lo {
		left := old
		left.end = a.lo
		s.insert(a.root, left)
	}
	if old.end > a.end {
		right := old
		right.lo = a.end
		s.insert(a.root, right)
	}
	return old
}

// addWrite notes that x writes a.
func (s *sweep) addWrite(a *access, x int32) {
	s.find(a.root, a.lo, a.end)
	fresh := cell{lo: a.lo, end: a.end, region: a.region, w: x, r: none}
	same := int32(0) // a cell that becomes the fresh one
	for _, h := range s.hits {
		c := &s.nodes[h]
		switch {
		case c.region == a.region && c.lo == a.lo && c.end == a.end:
			same = h
		case s.covers(a, c):
			s.remove(a.root, h)
		case a.region == 0 && c.region == 0:
			s.trim(a, h)
		case c.r != none && s.share != nil && s.meets(a, c):
			r := s.shared(c.r)
			s.nodes[h].r = r
		}
	}
	if same != 0 {
		c := &s.nodes[same]
		c.w, c.r = x, none
		return
	}
	s.insert(a.root, fresh)
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
