package subsequence_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/collections/subsequence"
)

// The marked elements do not decrease, and there is no longer subset of which that is
// true.
func TestIncreasingIsLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 10).Draw(t, "list")
		chosen := func(in func(i int) bool) (n int, ok bool) {
			last := -1
			for i, x := range list {
				if !in(i) {
					continue
				}
				if x < last {
					return 0, false
				}
				last = x
				n++
			}
			return n, true
		}
		most := 0
		for set := range 1 << len(list) {
			if n, ok := chosen(func(i int) bool { return set>>i&1 == 1 }); ok {
				most = max(most, n)
			}
		}
		got := subsequence.Increasing(list)
		n, ok := chosen(func(i int) bool { return got[i] })
		require.True(t, ok)
		require.Equal(t, most, n)
	})
}
