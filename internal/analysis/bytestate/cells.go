package bytestate

// Cell is a piece of a root memory together with what is remembered of it. A solid cell
// stands for every byte of [Lo, End); solid cells are disjoint. A loose cell (Region ≠
// 0) stands for the bytes of its region, and [Lo, End) is their hull.
type Cell struct {
	Lo, End     int64
	max         int64 // of a loose cell: the max End in its subtree
	left, right int32
	prev, next  int32 // of a solid cell: its neighbours in the memory
	priority    uint32
	Region      int32
	root        int32 // the memory of a solid cell; None if the cell is in no tree
	// W describes the last writer, R the readers since. What the numbers mean is up to
	// the caller: positions, levels or lists. None: there is none.
	W, R int32
}

// cells holds the cells of all root memories. Each memory has two treaps (Seidel and
// Aragon 1996). One holds its solid cells, in order and linked to their neighbours;
// because nothing overlaps them, their ends may be moved in place. The other holds its
// loose cells: an interval tree ordered by (Lo, index), in which each node knows the
// greatest End below it (Cormen et al., Introduction to Algorithms, 14.3). All cells
// live in one slice, so that emptying the trees frees nothing.
type cells struct {
	nodes []Cell // index 0 stands for nil
	free  []int32
	roots []treeRoots // by memory
	used  []int32     // memories that got a tree since the last reset
	seed  uint32
	hits  []int32
	ops   int64
	// changes counts insertions, removals and moved ends. Results of find are stale
	// once it has grown.
	changes int64
	// spots finds solid cells by a hash of where they begin, because most accesses
	// begin where an earlier one did. An entry may be out of date.
	spots [1 << 10]int32
}

type treeRoots struct {
	solid, loose int32
	hint         int32 // a solid cell that was found recently, or 0
	used         bool
}

func newCells(memories int) cells {
	// The seed may be any number but 0. It is fixed so that every run is the same.
	return cells{nodes: append(make([]Cell, 0, 64), Cell{root: None}), roots: make([]treeRoots, memories), seed: 2463534242}
}

// Reset empties all trees. It takes time proportional to the number of memories used.
func (m *cells) Reset() {
	for _, r := range m.used {
		m.roots[r] = treeRoots{}
	}
	m.used, m.free, m.nodes = m.used[:0], m.free[:0], m.nodes[:1]
}

// add makes a cell of memory root that is not in a tree yet.
func (m *cells) add(root int32, c Cell) int32 {
	m.seed ^= m.seed << 13 // xorshift32 (Marsaglia 2003)
	m.seed ^= m.seed >> 17
	m.seed ^= m.seed << 5
	c.max, c.left, c.right, c.prev, c.next, c.root, c.priority = c.End, 0, 0, 0, 0, None, m.seed
	m.changes++
	if r := &m.roots[root]; !r.used {
		m.used, r.used = append(m.used, root), true
	}
	if k := len(m.free); k > 0 {
		n := m.free[k-1]
		m.free = m.free[:k-1]
		m.nodes[n] = c
		return n
	}
	m.nodes = append(m.nodes, c)
	return int32(len(m.nodes) - 1)
}

// insert adds a loose cell to memory root.
func (m *cells) insert(root int32, c Cell) {
	n := m.add(root, c)
	m.roots[root].loose = m.put(m.roots[root].loose, n)
}

// insertSolid adds a solid cell after cell prev, or as the first cell if prev is 0. It
// returns the index of the new cell.
func (m *cells) insertSolid(root, prev int32, c Cell) int32 {
	n := m.add(root, c)
	x := &m.nodes[n]
	x.root = root
	*m.spot(root, x.Lo) = n
	x.prev = prev
	if prev != 0 {
		x.next = m.nodes[prev].next
		m.nodes[prev].next = n
	} else {
		x.next = m.first(root)
	}
	if x.next != 0 {
		m.nodes[x.next].prev = n
	}
	// Go down to where n belongs by its priority, and split the subtree there.
	at := &m.roots[root].solid
	for *at != 0 && m.nodes[*at].priority >= x.priority {
		m.ops++
		if y := &m.nodes[*at]; x.Lo < y.Lo {
			at = &y.left
		} else {
			at = &y.right
		}
	}
	rest := *at
	*at = n
	l, r := &x.left, &x.right
	for rest != 0 {
		m.ops++
		if y := &m.nodes[rest]; y.Lo < x.Lo {
			*l = rest
			l, rest = &y.right, y.right
		} else {
			*r = rest
			r, rest = &y.left, y.left
		}
	}
	*l, *r = 0, 0
	return n
}

// spot returns the entry of spots for a solid cell that begins at lo.
func (m *cells) spot(root int32, lo int64) *int32 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio (Knuth)
	return &m.spots[(uint64(lo)+uint64(root)*0x632be5ab)*golden>>(64-10)]
}

// first returns the first solid cell of a memory, or 0.
func (m *cells) first(root int32) int32 {
	n := m.roots[root].solid
	for n != 0 && m.nodes[n].left != 0 {
		m.ops++
		n = m.nodes[n].left
	}
	return n
}

// removeSolid takes solid cell n out of memory root.
func (m *cells) removeSolid(root, n int32) {
	m.changes++
	if m.roots[root].hint == n {
		m.roots[root].hint = 0
	}
	x := &m.nodes[n]
	x.root = None
	if x.prev != 0 {
		m.nodes[x.prev].next = x.next
	}
	if x.next != 0 {
		m.nodes[x.next].prev = x.prev
	}
	at := &m.roots[root].solid
	for *at != n {
		m.ops++
		if y := &m.nodes[*at]; x.Lo < y.Lo {
			at = &y.left
		} else {
			at = &y.right
		}
	}
	// Join the two subtrees of n.
	a, b := x.left, x.right
	for a != 0 && b != 0 {
		m.ops++
		if m.nodes[a].priority > m.nodes[b].priority {
			*at = a
			at = &m.nodes[a].right
			a = *at
		} else {
			*at = b
			at = &m.nodes[b].left
			b = *at
		}
	}
	*at = a + b // one of the two is 0
	m.free = append(m.free, n)
}

// before orders loose cells by Lo, and those with equal Lo by index.
func (m *cells) before(a, b int32) bool {
	x, y := m.nodes[a].Lo, m.nodes[b].Lo
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

// split cuts a subtree into the cells before n and the others.
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
	c.max = c.End
	if c.left != 0 {
		c.max = max(c.max, m.nodes[c.left].max)
	}
	if c.right != 0 {
		c.max = max(c.max, m.nodes[c.right].max)
	}
}

// remove takes loose cell n out of memory root.
func (m *cells) remove(root, n int32) {
	m.changes++
	m.roots[root].loose = m.cut(m.roots[root].loose, n)
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

// join merges two trees, of which the first stands before the second.
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

// find appends to m.hits the cells of memory root whose hulls meet [lo, end): first the
// solid cells, then the loose ones, both in ascending order of Lo.
func (m *cells) find(root int32, lo, end int64) {
	m.findSolid(root, lo, end)
	m.findLoose(root, lo, end)
}

func (m *cells) findSolid(root int32, lo, end int64) {
	r := &m.roots[root]
	for at := m.seek(root, r, lo); at != 0; {
		m.ops++
		c := &m.nodes[at]
		if c.Lo >= end {
			break
		}
		r.hint = at
		m.hits = append(m.hits, at)
		at = c.next
	}
}

func (m *cells) findLoose(root int32, lo, end int64) {
	if n := m.roots[root].loose; n != 0 {
		m.visit(n, lo, end)
	}
}

// seek returns the first solid cell that ends after lo, or 0. Accesses often follow one
// another in memory, or return to what was just written, so it looks near the last
// result first.
func (m *cells) seek(root int32, r *treeRoots, lo int64) int32 {
	if n := *m.spot(root, lo); int(n) < len(m.nodes) {
		m.ops++
		if c := &m.nodes[n]; c.root == root && c.Lo == lo {
			return n
		}
	}
	if r.hint != 0 {
		m.ops++
		if c := &m.nodes[r.hint]; c.Lo <= lo {
			if c.End > lo {
				return r.hint
			}
			if c.next == 0 || m.nodes[c.next].End > lo {
				return c.next
			}
		}
	}
	at := int32(0)
	for n := r.solid; n != 0; {
		m.ops++
		if c := &m.nodes[n]; c.End > lo {
			at, n = n, c.left
		} else {
			n = c.right
		}
	}
	return at
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
		if c.Lo >= end {
			return
		}
		if c.End > lo {
			m.hits = append(m.hits, at)
		}
		at = c.right
	}
}
