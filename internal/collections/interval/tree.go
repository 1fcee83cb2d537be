// Package interval holds half-open intervals [lo, end) of int64. A [Tree] holds any
// intervals and finds those that meet a given one. The intervals of a [Partition] are
// disjoint and have a value each, which makes it a map from integers to values.
package interval

// Tree is an interval tree: a treap ordered by lo, in which each node knows the
// greatest end below it (Cormen et al., Introduction to Algorithms, 14.3). The zero
// value is empty. Nodes live in one slice, which Reset keeps.
type Tree[T any] struct {
	nodes []node[T] // index 0 stands for nil
	root  int32
	seed  uint32
}

type node[T any] struct {
	lo, end     int64
	value       T
	max         int64
	left, right int32
	priority    uint32
}

// Len returns the number of intervals.
func (t *Tree[T]) Len() int { return max(len(t.nodes)-1, 0) }

// Reset empties the tree.
func (t *Tree[T]) Reset() {
	if len(t.nodes) > 0 {
		clear(t.nodes)
		t.nodes = t.nodes[:1]
	}
	t.root = 0
}

// Insert adds [lo, end).
func (t *Tree[T]) Insert(lo, end int64, v T) {
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, node[T]{})
	}
	// xorshift32 (Marsaglia 2003). It only has to be deterministic.
	if t.seed == 0 {
		t.seed = 2463534242
	}
	t.seed ^= t.seed << 13
	t.seed ^= t.seed >> 17
	t.seed ^= t.seed << 5
	t.nodes = append(t.nodes, node[T]{lo: lo, end: end, value: v, max: end, priority: t.seed})
	t.root = t.put(t.root, int32(len(t.nodes)-1))
}

func (t *Tree[T]) put(at, n int32) int32 {
	if at == 0 {
		return n
	}
	if t.nodes[n].priority > t.nodes[at].priority {
		t.nodes[n].left, t.nodes[n].right = t.split(at, t.nodes[n].lo)
		t.update(n)
		return n
	}
	if t.nodes[n].lo < t.nodes[at].lo {
		t.nodes[at].left = t.put(t.nodes[at].left, n)
	} else {
		t.nodes[at].right = t.put(t.nodes[at].right, n)
	}
	t.update(at)
	return at
}

// split cuts a subtree into the intervals before one that begins at lo, and the others.
// INVARIANT: of intervals that begin alike, one that was inserted later stands later,
// here as in put. Otherwise they would form a list and not a tree.
func (t *Tree[T]) split(at int32, lo int64) (left, right int32) {
	if at == 0 {
		return 0, 0
	}
	n := &t.nodes[at]
	if n.lo <= lo {
		n.right, right = t.split(n.right, lo)
		t.update(at)
		return at, right
	}
	left, n.left = t.split(n.left, lo)
	t.update(at)
	return left, at
}

func (t *Tree[T]) update(at int32) {
	n := &t.nodes[at]
	n.max = n.end
	for _, c := range [2]int32{n.left, n.right} {
		if c != 0 {
			n.max = max(n.max, t.nodes[c].max)
		}
	}
}

// Overlapping calls yield with the value of every interval that meets [lo, end), in
// ascending order of lo, until yield returns false.
func (t *Tree[T]) Overlapping(lo, end int64, yield func(T) bool) { t.visit(t.root, lo, end, yield) }

func (t *Tree[T]) visit(at int32, lo, end int64, yield func(T) bool) bool {
	if at == 0 || t.nodes[at].max <= lo {
		return true
	}
	n := &t.nodes[at]
	if !t.visit(n.left, lo, end, yield) {
		return false
	}
	if n.lo >= end {
		return true
	}
	if n.end > lo && !yield(n.value) {
		return false
	}
	return t.visit(n.right, lo, end, yield)
}
