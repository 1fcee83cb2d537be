package hazard

import "github.com/mlxc/mlxc/ir"

// entry is one access.
type entry struct {
	lo, end int64
	id      ir.ID
	write   bool
	region  ir.Region
}

// tree is an interval tree: a treap ordered by lo, each node knowing the
// greatest end below it (Cormen et al., Introduction to Algorithms, 14.3).
// Nodes live in one slice, 0 is nil, so that a reset frees nothing.
type tree struct {
	nodes []treeNode
	root  int32
	seed  uint32
}

type treeNode struct {
	entry
	max         int64
	left, right int32
	priority    uint32
}

func (t *tree) reset() { t.nodes, t.root = t.nodes[:min(len(t.nodes), 1)], 0 }

func (t *tree) insert(e entry) {
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, treeNode{})
	}
	// xorshift32 (Marsaglia 2003): deterministic, and that is all it must be.
	if t.seed == 0 {
		t.seed = 2463534242
	}
	t.seed ^= t.seed << 13
	t.seed ^= t.seed >> 17
	t.seed ^= t.seed << 5
	t.nodes = append(t.nodes, treeNode{entry: e, max: e.end, priority: t.seed})
	t.root = t.put(t.root, int32(len(t.nodes)-1))
}

func (t *tree) put(at, n int32) int32 {
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

// split cuts a subtree into what begins before lo and the rest.
func (t *tree) split(at int32, lo int64) (left, right int32) {
	if at == 0 {
		return 0, 0
	}
	n := &t.nodes[at]
	if n.lo < lo {
		n.right, right = t.split(n.right, lo)
		t.update(at)
		return at, right
	}
	left, n.left = t.split(n.left, lo)
	t.update(at)
	return left, at
}

func (t *tree) update(at int32) {
	n := &t.nodes[at]
	n.max = max(n.end, t.maxOf(n.left), t.maxOf(n.right))
}

func (t *tree) maxOf(at int32) int64 {
	if at == 0 {
		return 0
	}
	return t.nodes[at].max
}

// overlapping calls yield with every entry that meets [lo, end), until it
// returns false.
func (t *tree) overlapping(lo, end int64, yield func(*entry) bool) { t.visit(t.root, lo, end, yield) }

func (t *tree) visit(at int32, lo, end int64, yield func(*entry) bool) bool {
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
	if n.end > lo && !yield(&n.entry) {
		return false
	}
	return t.visit(n.right, lo, end, yield)
}
