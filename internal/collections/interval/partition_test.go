package interval_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/collections/interval"
)

// A partition does what an array of 64 values does.
func TestPartitionAgainstArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 64
		var p interval.Partition[int]
		var slow [n]int // 0: no value
		for range rapid.IntRange(0, 60).Draw(t, "operations") {
			lo := rapid.IntRange(0, n).Draw(t, "lo")
			end := rapid.IntRange(0, n).Draw(t, "end")
			switch rapid.IntRange(0, 4).Draw(t, "operation") {
			case 0:
				p.Update(int64(lo), int64(end), func(v int) int { return v*3 + 1 })
				for i := lo; i < end; i++ {
					slow[i] = slow[i]*3 + 1
				}
			case 1:
				if rapid.IntRange(0, 9).Draw(t, "reset") == 0 {
					p.Reset()
					slow = [n]int{}
				}
			default:
				v := rapid.IntRange(1, 100).Draw(t, "value")
				p.Set(int64(lo), int64(end), v)
				for i := lo; i < end; i++ {
					slow[i] = v
				}
			}
			var got [n]int
			count, last := 0, int64(-1)
			p.Each(0, n, func(lo, end int64, v int) bool {
				require.GreaterOrEqual(t, lo, last, "intervals are disjoint and ascend")
				require.Less(t, lo, end)
				for i := lo; i < end; i++ {
					got[i] = v
				}
				count, last = count+1, end
				return true
			})
			require.Equal(t, slow, got)
			require.Equal(t, count, p.Len())
			// A part of it: the intervals that meet it, and no others.
			p.Each(int64(lo), int64(end), func(a, b int64, v int) bool {
				require.True(t, a < int64(end) && b > int64(lo))
				count--
				return true
			})
			p.Each(0, n, func(a, b int64, v int) bool {
				if !(a < int64(end) && b > int64(lo)) {
					count--
				}
				return true
			})
			require.Zero(t, count)
		}
	})
}
