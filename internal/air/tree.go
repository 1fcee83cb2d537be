package air

// tree is a tree that grows from its root to its leaves, in which the last common ancestor of two
// nodes is found in time that grows with the logarithm of their depth: a node knows an ancestor far
// above beside its parent.
type tree struct {
	parent, jump, depth []int32
}

// newTree returns a tree with room for so many nodes, in which only the root is.
func newTree(nodes, root int) *tree {
	t := &tree{make([]int32, nodes), make([]int32, nodes), make([]int32, nodes)}
	for i := range t.depth {
		t.depth[i] = -1
	}
	t.parent[root], t.jump[root], t.depth[root] = int32(root), int32(root), 0
	return t
}

func (t *tree) has(x int) bool { return t.depth[x] >= 0 }

// add puts a node under a parent. The ancestor that it jumps to is chosen so that the lengths of jumps
// are those of a skew binary number.
func (t *tree) add(x, parent int) {
	p := int32(parent)
	j := t.jump[p]
	t.parent[x], t.jump[x], t.depth[x] = p, p, t.depth[p]+1
	if t.depth[p]-t.depth[j] == t.depth[j]-t.depth[t.jump[j]] {
		t.jump[x] = t.jump[j]
	}
}

// above returns the ancestor of a node at a depth, the node itself if it is no deeper.
func (t *tree) above(x int, depth int32) int {
	n := int32(x)
	for t.depth[n] > depth {
		counted(1)
		if t.depth[t.jump[n]] >= depth {
			n = t.jump[n]
		} else {
			n = t.parent[n]
		}
	}
	return int(n)
}

// common returns the last common ancestor of two nodes.
func (t *tree) common(a, b int) int {
	x, y := int32(t.above(a, t.depth[b])), int32(t.above(b, t.depth[a]))
	for x != y {
		counted(1)
		if t.jump[x] != t.jump[y] {
			x, y = t.jump[x], t.jump[y]
		} else {
			x, y = t.parent[x], t.parent[y]
		}
	}
	return int(x)
}

// under reports whether a node is another one, or lies under it.
func (t *tree) under(x, ancestor int) bool {
	return t.has(x) && t.has(ancestor) && t.depth[x] >= t.depth[ancestor] && t.above(x, t.depth[ancestor]) == ancestor
}
