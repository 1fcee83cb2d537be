// Package subsequence says which elements of a list must move to bring it into
// order.
package subsequence

import (
	"cmp"
	"sort"
)

// Increasing marks a longest non-decreasing subsequence of list, in O(n log n) (Fredman
// 1975, patience sorting). The elements that are not marked are the fewest that must
// move to sort the list. The list must have fewer than 2^31 elements.
func Increasing[T cmp.Ordered](list []T) []bool {
	tails, before := make([]int32, 0, len(list)), make([]int32, len(list))
	for k, x := range list {
		p := len(tails)
		if p > 0 && list[tails[p-1]] > x { // false if the list is in order so far
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
