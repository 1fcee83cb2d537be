package page

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// columns returns a layout of epochs of the given sizes.
func columns(sizes []int32) *layout {
	l := &layout{first: []int32{0}}
	for _, n := range sizes {
		l.first, l.ends = append(l.first, l.first[len(l.first)-1]+n), append(l.ends, 'B')
	}
	l.nodes = make([]int32, l.first[len(sizes)])
	l.widths()
	return l
}

// Epochs of any graph made of any commands keep their order and have their columns. Where a command
// alone is left to be placed, it stands under what it was made of.
func TestAlign(t *testing.T) {
	under := 0
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int32Range(1, 20), 1, 12)
		before, after := columns(sizes.Draw(t, "before")), columns(sizes.Draw(t, "after"))
		images := make([][]int32, len(after.nodes))
		for i := range images {
			images[i] = rapid.SliceOfN(rapid.Int32Range(0, int32(len(before.nodes)-1)), 0, 3).Draw(t, "images")
		}
		if rapid.Bool().Draw(t, "in order") {
			for i := range images {
				images[i] = []int32{min(int32(i), int32(len(before.nodes)-1))}
			}
		}
		after.align(before, images)
		column := func(c int32) (lo, hi int32) {
			e, _ := slices.BinarySearch(before.first, c+1)
			return before.x[e-1], before.x[e]
		}
		end := int32(0)
		for e := range after.epochs() {
			lo, hi, behind := int32(1<<30), int32(-1), int32(1<<30) // of this epoch, and of those behind it
			for c := after.first[e]; c < int32(len(after.nodes)); c++ {
				for _, j := range images[c] {
					a, b := column(j)
					if c >= after.first[e+1] {
						behind = min(behind, a)
						continue
					}
					lo, hi = min(lo, a), max(hi, b)
				}
			}
			from, to := after.from[e], after.to[e]
			require.GreaterOrEqual(t, from, end)
			require.GreaterOrEqual(t, to-from, after.columns(e))
			if hi < 0 {
				require.Equal(t, []int32{end, end + after.columns(e)}, []int32{from, to}, "of nothing")
				end = to
				continue
			}
			require.LessOrEqual(t, from, max(end, lo))
			require.GreaterOrEqual(t, from, min(lo, behind))
			require.LessOrEqual(t, to, max(from+after.columns(e), min(hi, behind)))
			if end <= lo && lo <= behind && hi <= behind && hi-lo >= after.columns(e) {
				require.Equal(t, []int32{lo, hi}, []int32{from, to})
				under++
			}
			end = to
		}
	})
	require.Greater(t, under, 5, "drawn epochs that lie exactly under what they come from: about 26 of 100 draws")
}
