package hazard

// cell is a piece of a root memory with what is remembered of it. Solid cells
// stand for every byte of [lo, end) and are disjoint from one another; a loose
// one (region ≠ 0) stands for the bytes of its region, and [lo, end) is their
// hull.
type cell struct {
	lo, end, max int64 // max: greatest end in the subtree
	left, right  int32
	priority     uint32
	region       int32
	// w tells of the last writer, r of the readers since; what they are is up to
	// the sweep (positions, levels, lists). none: there is none.
	w, r int32
}

// cells holds the cells of all root memories, each memory's in an interval
// tree: a treap ordered by (lo, index), each node knowing the greatest end below
// it (Cormen et al., Introduction to Algorithms, 14.3; Seidel and Aragon 1996).
// All live in one slice, so that emptying them frees nothing.
type cells struct {
	nodes []cell // index 0 is nil
	free  []int32
	roots []int32 // by memory
	used  []int32 // memories that had a tree since the last reset
	known []bool  // by memory: is it in used?
	seed  uint32
	hits  []int32
	ops   int64
}

func newCells(memories int) cells {
	// Any seed but 0: what matters is that every run is the same.
	return cells{nodes: make([]cell, 1, 64), roots: make([]int32, memories), known: make([]bool, memories), seed: 2463534242}
}

// reset empties all trees, in time proportional to the memories used.
func (m *cells) reset() {
	for _, r := range m.used {
		m.roots[r], m.known[r] = 0, false
	}
	m.used, m.free, m.nodes = m.used[:0], m.free[:0], m.nodes[:1]
}

// insert adds a cell to memory root and returns its index.
func (m *cells) insert(root int32, c cell) int32 {
	m.seed ^= m.seed << 13 // xorshift32 (Marsaglia 2003)
	m.seed ^= m.seed >> 17
	m.seed ^= m.seed << 5
	c.max, c.left, c.right, c.priority = c.end, 0, 0, m.seed
	var n int32
	if k := len(m.free); k > 0 {
		n = m.free[k-1]
		m.free = m.free[:k-1]
		m.nodes[n] = c
	} else {
		m.nodes = append(m.nodes, c)
		n = int32(len(m.nodes) - 1)
	}
	if !m.known[root] {
		m.used, m.known[root] = append(m.used, root), true
	}
	m.roots[root] = m.put(m.roots[root], n)
	return n
}

// before orders cells by their lower ends, equal ones by index.
func (m *cells) before(a, b int32) bool {
	x, y := m.nodes[a].lo, m.nodes[b].lo
	return x < y || x == y && a < b
}

func (m *cells) put(at, n int32) int32 {
	m.ops++
	if at == 0 {
		return n
	}
	if m.nodes[n].priority > m.nodes[at].priority {
		m.nodes[n].left, m.nodes[n].right = m.split(at, n)
		m.update(n)
		return n
	}
	if m.before(n, at) {
		m.nodes[at].left = m.put(m.nodes[at].left, n)
	} else {
		m.nodes[at].right = m.put(m.nodes[at].right, n)
	}
	m.update(at)
	return at
}

// split cuts a subtree into what stands before n and the rest.
func (m *cells) split(at, n int32) (left, right int32) {
	if at == 0 {
		return 0, 0
	}
	m.ops++
	c := &m.nodes[at]
	if m.before(at, n) {
		c.right, right = m.split(c.right, n)
		m.update(at)
		return at, right
	}
	left, c.left = m.split(c.left, n)
	m.update(at)
	return left, at
}

func (m *cells) update(at int32) {
	c := &m.nodes[at]
	c.max = c.end
	if c.left != 0 {
		c.max = max(c.max, m.nodes[c.left].max)
	}
	if c.right != 0 {
		c.max = max(c.max, m.nodes[c.right].max)
	}
}

// remove takes cell n out of memory root.
func (m *cells) remove(root, n int32) {
	m.roots[root] = m.cut(m.roots[root], n)
	m.free = append(m.free, n)
}

func (m *cells) cut(at, n int32) int32 {
	m.ops++
	if at == n {
		return m.join(m.nodes[n].left, m.nodes[n].right)
	}
	if m.before(n, at) {
		m.nodes[at].left = m.cut(m.nodes[at].left, n)
	} else {
		m.nodes[at].right = m.cut(m.nodes[at].right, n)
	}
	m.update(at)
	return at
}

// join makes one tree of two, the first standing before the second.
func (m *cells) join(a, b int32) int32 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	m.ops++
	if m.nodes[a].priority > m.nodes[b].priority {
		m.nodes[a].right = m.join(m.nodes[a].right, b)
		m.update(a)
		return a
	}
	m.nodes[b].left = m.join(a, m.nodes[b].left)
	m.update(b)
	return b
}

// find fills m.hits with the cells of memory root whose hulls meet [lo, end),
// by ascending lower ends.
func (m *cells) find(root int32, lo, end int64) {
	m.hits = m.hits[:0]
	m.visit(m.roots[root], lo, end)
}

func (m *cells) visit(at int32, lo, end int64) {
	for at != 0 {
		m.ops++
		c := &m.nodes[at]
		if c.max <= lo {
			return
		}
		if c.left != 0 {
			m.visit(c.left, lo, end)
			c = &m.nodes[at]
		}
		if c.lo >= end {
			return
		}
		if c.end > lo {
			m.hits = append(m.hits, at)
		}
		at = c.right
	}
}
