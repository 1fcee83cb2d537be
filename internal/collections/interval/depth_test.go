package interval

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A tree does not degenerate into a list, whatever the intervals have in common.
func TestDepth(t *testing.T) {
	const n = 20_000
	for what, lo := range map[string]func(i int) int64{
		"equal":     func(int) int64 { return 0 },
		"ascending": func(i int) int64 { return int64(i) },
		"falling":   func(i int) int64 { return int64(n - i) },
		"a few":     func(i int) int64 { return int64(i % 3) },
	} {
		var tree Tree[int]
		for i := range n {
			tree.Insert(lo(i), lo(i)+10, i)
		}
		var depth func(at int32) int
		depth = func(at int32) int {
			if at == 0 {
				return 0
			}
			return 1 + max(depth(tree.nodes[at].left), depth(tree.nodes[at].right))
		}
		require.Less(t, depth(tree.root), 60, what)
		found := 0
		tree.Overlapping(0, 1, func(int) bool { found++; return true })
		if what == "equal" {
			require.Equal(t, n, found)
		}
	}
}
