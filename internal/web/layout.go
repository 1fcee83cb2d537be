package web

import (
	"cmp"
	"slices"

	"github.com/mlxc/mlxc/internal/interval"
)

// Item is something that needs bytes from time A to time B, both inclusive.
type Item struct {
	A, B  int32
	Size  int64 // bytes
	After int64 // bytes that must exist behind it
	Align int64 // a power of two
	Rest  int64 // the place is Rest modulo Align
}

// Layout is a place for each item.
type Layout struct {
	At   []int64
	Peak int64 // bytes
	// Bound is the most bytes that are needed at one time: no layout has less.
	Bound int64
}

// Arrange gives places to items so that no two share a byte at one time, of 0 to
// last. If wrap is set, time 0 follows time last with nothing between, and what
// needs bytes at one of them shares none with what needs them at the other.
//
// It is the greedy method by size (Pisarchyk, Lee: Efficient memory management for
// deep neural net inference, 2020, 4.2): the largest first, each into the tightest
// gap between those placed that are needed at some time with it. Where that would
// look at too many pairs, items of one size take turns instead.
func Arrange(items []Item, last int32, wrap bool) Layout {
	l := Layout{Bound: bound(items, last, wrap)}
	var ok bool
	if l.At, ok = bySize(items, last, wrap); !ok {
		times := slices.Clone(items)
		if wrap {
			around(times, last)
		}
		l.At = byTurns(times)
	}
	for i, x := range items {
		l.Peak = max(l.Peak, l.At[i]+x.Size+x.After)
	}
	return l
}

// bound sums sizes at each time.
func bound(items []Item, last int32, wrap bool) int64 {
	change := make([]int64, last+2)
	for _, x := range items {
		change[x.A] += x.Size
		change[x.B+1] -= x.Size
	}
	most, sum := int64(0), int64(0)
	for _, c := range change {
		sum += c
		most = max(most, sum)
	}
	if wrap {
		ends := int64(0)
		for _, x := range items {
			if x.A == 0 || x.B == last {
				ends += x.Size
			}
		}
		most = max(most, ends)
	}
	return most
}

// around stretches what ends at the last time, or what begins at the first, over
// all times: whichever is less.
func around(items []Item, last int32) {
	var first, end int64
	for _, x := range items {
		if x.A == 0 {
			first += x.Size
		}
		if x.B == last {
			end += x.Size
		}
	}
	for i := range items {
		x := &items[i]
		if first <= end && x.A == 0 || first > end && x.B == last {
			x.A, x.B = 0, last
		}
	}
}

// maxPairs bounds the work of bySize, for each item on average.
const maxPairs = 16

func bySize(items []Item, last int32, wrap bool) (at []int64, ok bool) {
	order := make([]int32, len(items))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(i, j int32) int { return cmp.Compare(items[j].Size, items[i].Size) })
	at = make([]int64, len(items))
	var placed interval.Tree[int32]
	var near, first, end []int32 // placed: near in time, at time 0, at the last time
	work := 0
	for _, i := range order {
		x := &items[i]
		near = near[:0]
		placed.Overlapping(int64(x.A), int64(x.B)+1, func(j int32) bool {
			near = append(near, j)
			return true
		})
		if wrap && x.A == 0 {
			near = append(near, end...)
		}
		if wrap && x.B == last {
			near = append(near, first...)
		}
		if work += len(near); work > maxPairs*len(items)+1<<20 {
			return nil, false
		}
		slices.SortFunc(near, func(j, k int32) int { return cmp.Compare(at[j], at[k]) })
		top, best, waste := int64(0), int64(-1), int64(0)
		for _, j := range near {
			y := x.first(top)
			if gap := at[j] - (y + x.Size); gap >= 0 && (best < 0 || gap < waste) {
				best, waste = y, gap
			}
			top = max(top, at[j]+items[j].Size)
		}
		if best < 0 {
			best = x.first(top)
		}
		at[i] = best
		placed.Insert(int64(x.A), int64(x.B)+1, i)
		if x.A == 0 {
			first = append(first, i)
		}
		if x.B == last {
			end = append(end, i)
		}
	}
	return at, true
}

// first returns the first place from lo on.
func (x *Item) first(lo int64) int64 {
	return (lo-x.Rest+x.Align-1)/x.Align*x.Align + x.Rest
}

// byTurns gives items of one shape the places of earlier ones that are no longer
// needed.
func byTurns(items []Item) []int64 {
	type shape struct{ size, align, rest int64 }
	type turn struct {
		end int32
		at  int64
	}
	order := make([]int32, len(items))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(i, j int32) int { return cmp.Compare(items[i].A, items[j].A) })
	at := make([]int64, len(items))
	free := map[shape][]int64{}
	busy := map[shape][]turn{} // a queue, the first to end in front
	end := int64(0)
	for _, i := range order {
		x := &items[i]
		s := shape{x.Size, x.Align, x.Rest}
		q := busy[s]
		for len(q) > 0 && q[0].end < x.A {
			free[s] = append(free[s], q[0].at)
			q = q[1:]
		}
		if f := free[s]; len(f) > 0 {
			at[i], free[s] = f[len(f)-1], f[:len(f)-1]
		} else {
			at[i] = x.first(end)
			end = at[i] + x.Size
		}
		// Mostly an item ends after those that are there.
		k := len(q)
		for k > 0 && q[k-1].end > x.B && len(q)-k < 64 {
			k--
		}
		if k > 0 && q[k-1].end > x.B {
			k = len(q) // out of order: it frees its place later than it could
		}
		busy[s] = slices.Insert(q, k, turn{x.B, at[i]})
	}
	return at
}
