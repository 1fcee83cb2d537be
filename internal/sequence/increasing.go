// Package sequence says which elements of a list must move to bring it into
// order.
package sequence

import (
	"cmp"
	"sort"
)

// Increasing marks a longest non-decreasing subsequence of list, in O(n log n)
// (Fredman 1975, patience sorting): the rest is the fewest elements to move to
// sort it.
func Increasing[T cmp.Ordered](list []T) []bool {
	tails, before := []int{}, make([]int, len(list))
	for k, x := range list {
		p := sort.Search(len(tails), func(i int) bool { return list[tails[i]] > x })
		before[k] = -1
		if p > 0 {
			before[k] = tails[p-1]
		}
		if p == len(tails) {
			tails = append(tails, k)
		} else {
			tails[p] = k
		}
	}
	out := make([]bool, len(list))
	if len(tails) > 0 {
		for k := tails[len(tails)-1]; k >= 0; k = before[k] {
			out[k] = true
		}
	}
	return out
}
