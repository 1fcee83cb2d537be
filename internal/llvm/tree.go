package llvm

// Tree is a tree that grows from its root to its leaves, in which the last common ancestor of two
// nodes is found in time that grows with the logarithm of their depth: a node knows an ancestor far
// above beside its parent.
type Tree struct {
	Parent, jump, Depth []int32
}

// newTree returns a tree with room for so many nodes, in which only the root is.
func newTree(nodes, root int) *Tree {
	t := &Tree{make([]int32, nodes), make([]int32, nodes), make([]int32, nodes)}
	for i := range t.Depth {
		t.Depth[i] = -1
	}
	t.Parent[root], t.jump[root], t.Depth[root] = int32(root), int32(root), 0
	return t
}

// Has reports whether a node is in the tree.
func (t *Tree) Has(x int) bool { return t.Depth[x] >= 0 }

// add puts a node under a parent. The ancestor that it jumps to is chosen so that the lengths of jumps
// are those of a skew binary number.
func (t *Tree) add(x, parent int) {
	p := int32(parent)
	j := t.jump[p]
	t.Parent[x], t.jump[x], t.Depth[x] = p, p, t.Depth[p]+1
	if t.Depth[p]-t.Depth[j] == t.Depth[j]-t.Depth[t.jump[j]] {
		t.jump[x] = t.jump[j]
	}
}

// above returns the ancestor of a node at a depth, the node itself if it is no deeper.
func (t *Tree) above(x int, depth int32) int {
	n := int32(x)
	for t.Depth[n] > depth {
		Counted(1)
		if t.Depth[t.jump[n]] >= depth {
			n = t.jump[n]
		} else {
			n = t.Parent[n]
		}
	}
	return int(n)
}

// Common returns the last common ancestor of two nodes.
func (t *Tree) Common(a, b int) int {
	x, y := int32(t.above(a, t.Depth[b])), int32(t.above(b, t.Depth[a]))
	for x != y {
		Counted(1)
		if t.jump[x] != t.jump[y] {
			x, y = t.jump[x], t.jump[y]
		} else {
			x, y = t.Parent[x], t.Parent[y]
		}
	}
	return int(x)
}

// Under reports whether a node is another one, or lies under it.
func (t *Tree) Under(x, ancestor int) bool {
	return t.Has(x) && t.Has(ancestor) && t.Depth[x] >= t.Depth[ancestor] && t.above(x, t.Depth[ancestor]) == ancestor
}
