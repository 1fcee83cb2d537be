// Package subsequence says which elements of a list must move to bring it into
// order.
package subsequence

import (
	"cmp"
	"sort"
)

// Increasing marks a longest non-decreasing subsequence of list, in O(n log n)
// (Fredman 1975, patience sorting): the rest is the fewest elements to move to
// sort it. The list has less than 2^31 elements.
func Increasing[T cmp.Ordered](list []T) []bool {
	tails, before := make([]int32, 0, len(list)), make([]int32, len(list))
	for k, x := range list {
		p := len(tails)
		if p > 0 && list[tails[p-1]] > x { // not so where the list is in order already
			p = sort.Search(p, func(i int) bool { return list[tails[i]] > x })
		}
		before[k] = -1
		if p > 0 {
			before[k] = tails[p-1]
		}
		if p == len(tails) {
			tails = append(tails, int32(k))
		} else {
			tails[p] = int32(k)
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
