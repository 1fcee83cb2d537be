package values

import (
	"cmp"
	"math/bits"
	"slices"
)

// Item is something that needs Size bytes from time A to time B, both inclusive.
type Item struct {
	A, B   int32
	Size   int64 // bytes
	Before int64 // bytes that must exist before its place
	After  int64 // bytes that must exist after its place
	Align  int64 // a power of two
	Rest   int64 // its place is Rest modulo Align
}

// Layout is a place for each item.
type Layout struct {
	At   []int64
	Peak int64 // bytes
	// Bound is the max over time of the bytes that are needed: no layout has a lower peak.
	Bound int64
}

// Arrange gives places to items so that no two items share a byte at the same time, for times 0 to last. If wrap is
// set, time 0 directly follows time last, so that items needed at one of these times share no byte with
// items needed at the other.
//
// It is the greedy method by size (Pisarchyk, Lee: Efficient memory management for deep neural net inference, 2020,
// 4.2): items are placed from the largest to the smallest, each into the tightest gap between placed items whose
// times overlap its own. If that would compare too many pairs, items of equal size reuse places in turn instead.
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

// bound returns the max over time of the summed sizes.
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

// around makes sure that items needed on one side of the wrap share no byte with items needed on the other. It
// stretches either the items that begin at the first time or those that end at the last over all times, whichever
// have fewer bytes.
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

// maxPairs bounds the pairs that bySize compares, per item on average.
const maxPairs = 16

func bySize(items []Item, last int32, wrap bool) (at []int64, ok bool) {
	at = make([]int64, len(items))
	placed := newTimeline(items, last)
	var near []taken       // taken by placed items whose times overlap x's
	var first, end []int32 // placed items that are needed at time 0, and at the last time
	work := 0
	for _, i := range largestFirst(items) {
		x := &items[i]
		near = near[:0]
		add := func(j int32) { near = append(near, taken{at[j], at[j] + items[j].Size}) }
		placed.overlapping(x.A, x.B, add)
		if wrap && x.A == 0 {
			for _, j := range end {
				add(j)
			}
		}
		if wrap && x.B == last {
			for _, j := range first {
				add(j)
			}
		}
		if work += len(near); work > maxPairs*len(items)+1<<20 {
			return nil, false
		}
		slices.SortFunc(near, func(y, z taken) int { return cmp.Compare(y.lo, z.lo) })
		top, best, waste := int64(0), int64(-1), int64(0)
		for _, y := range near {
			p := x.first(top)
			if left := y.lo - (p + x.Size); left >= 0 && (best < 0 || left < waste) {
				best, waste = p, left
			}
			top = max(top, y.end)
		}
		if best < 0 {
			best = x.first(top)
		}
		at[i] = best
		placed.add(i, x.B)
		if x.A == 0 {
			first = append(first, i)
		}
		if x.B == last {
			end = append(end, i)
		}
	}
	return at, true
}

// taken are the bytes [lo, end).
type taken struct{ lo, end int64 }

// largestFirst orders items by size, with equal ones in their given order. There are few different sizes, so it counts
// instead of comparing.
func largestFirst(items []Item) []int32 {
	place := map[int64]int32{}
	for i := range items {
		place[items[i].Size]++
	}
	sizes := make([]int64, 0, len(place))
	for n := range place {
		sizes = append(sizes, n)
	}
	slices.SortFunc(sizes, func(m, n int64) int { return cmp.Compare(n, m) })
	next := int32(0)
	for _, n := range sizes {
		next, place[n] = next+place[n], next
	}
	out := make([]int32, len(items))
	for i := range items {
		n := items[i].Size
		out[place[n]] = int32(i)
		place[n]++
	}
	return out
}

// timeline finds, among the items added so far, those that are needed at some time within an interval. It is an
// interval tree (Cormen et al., Introduction to Algorithms, 14.3) in an array, because all items are known
// beforehand: the leaves are sorted by begin, and each node holds the max end of the leaves below it.
type timeline struct {
	item  []int32 // by leaf
	leaf  []int32 // by item
	begun []int32 // by time: how many items begin up to and including it
	ends  []int32 // by node: 1 + the max end below it; 0 if nothing below it was added
	size  int32   // number of leaves, a power of two
}

func newTimeline(items []Item, last int32) *timeline {
	n := len(items)
	t := &timeline{item: make([]int32, n), leaf: make([]int32, n), begun: make([]int32, last+2), size: int32(1) << bits.Len(uint(max(n, 1)-1))}
	t.ends = make([]int32, 2*t.size)
	for i := range items {
		t.begun[items[i].A+1]++
	}
	for a := range last + 1 {
		t.begun[a+1] += t.begun[a]
	}
	// begun[a] is where the next item that begins at time a goes, and in the end where those items end.
	for i := range items {
		k := &t.begun[items[i].A]
		t.item[*k], t.leaf[i] = int32(i), *k
		*k++
	}
	return t
}

// add adds an item that is needed up to time b.
func (t *timeline) add(i, b int32) {
	for n := t.size + t.leaf[i]; n > 0 && t.ends[n] < b+1; n /= 2 {
		t.ends[n] = b + 1
	}
}

// overlapping calls yield with each item added that is needed at some time from a to
// b, both inclusive.
func (t *timeline) overlapping(a, b int32, yield func(i int32)) {
	if t.begun[b] == 0 {
		return
	}
	// From the last leaf that begins in time to the left, skipping subtrees in which every item ends before a.
	for n := t.size + t.begun[b] - 1; ; n-- {
		for t.ends[n] > a && n < t.size {
			n = 2*n + 1
		}
		if t.ends[n] > a {
			yield(t.item[n-t.size])
		}
		for n%2 == 0 { // everything to its right under its parent has been visited
			n /= 2
		}
		if n == 1 {
			return
		}
	}
}

// first returns the first offset from lo on at which x is aligned.
func (x *Item) first(lo int64) int64 {
	return (max(lo, x.Before)-x.Rest+x.Align-1)&^(x.Align-1) + x.Rest
}

// byTurns gives items the places of earlier items of the same size and alignment whose time is over.
func byTurns(items []Item) []int64 {
	type shape struct{ size, before, align, rest int64 }
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
	busy := map[shape][]turn{} // by size and alignment: a queue of places, the first to become free in front
	end := int64(0)
	for _, i := range order {
		x := &items[i]
		s := shape{x.Size, x.Before, x.Align, x.Rest}
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
		// The queue stays sorted by end. An item mostly ends after those in the queue, so it is sought from the back.
		k := len(q)
		for k > 0 && q[k-1].end > x.B && len(q)-k < 64 {
			k--
		}
		if k > 0 && q[k-1].end > x.B {
			k = len(q) // out of order: the place becomes free later than it could
		}
		busy[s] = slices.Insert(q, k, turn{x.B, at[i]})
	}
	return at
}
