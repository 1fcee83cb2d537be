package interval_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/collections/interval"
)

func TestOverlappingAgainstScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree interval.Tree[int]
		var all [][2]int64
		for i := range rapid.IntRange(0, 60).Draw(t, "n") {
			if rapid.IntRange(0, 30).Draw(t, "reset") == 0 {
				tree.Reset()
				all = nil
			}
			lo := rapid.Int64Range(-50, 50).Draw(t, "lo")
			end := lo + rapid.Int64Range(1, 40).Draw(t, "len")
			tree.Insert(lo, end, len(all))
			all = append(all, [2]int64{lo, end})
			require.Equal(t, len(all), tree.Len())
			qlo := rapid.Int64Range(-60, 60).Draw(t, "qlo")
			qend := qlo + rapid.Int64Range(0, 30).Draw(t, "qlen")
			var want, got []int
			for j, x := range all {
				if x[0] < qend && qlo < x[1] {
					want = append(want, j)
				}
			}
			tree.Overlapping(qlo, qend, func(v int) bool { got = append(got, v); return true })
			slices.Sort(got)
			require.Equal(t, want, got, "step %d", i)
		}
	})
}

func TestOverlappingStops(t *testing.T) {
	var tree interval.Tree[int]
	for i := range 10 {
		tree.Insert(0, 10, i)
	}
	n := 0
	tree.Overlapping(0, 1, func(int) bool { n++; return n < 3 })
	require.Equal(t, 3, n)
}

// Insertion and search in a tree of a million stay logarithmic.
func BenchmarkInsertAndFind(b *testing.B) {
	var tree interval.Tree[int32]
	for i := range 1 << 20 {
		tree.Insert(int64(i)*64%(1<<24), int64(i)*64%(1<<24)+64, int32(i))
	}
	b.ResetTimer()
	for i := range b.N {
		at := int64(i) * 4096 % (1 << 24)
		tree.Overlapping(at, at+1, func(int32) bool { return false })
	}
}
