package trace

import (
	"cmp"
	"container/heap"
	"errors"
	"slices"
	"sort"
)

// held is what a buffer holds: the pieces that were written, in order. Later ones cover earlier ones.
type held struct {
	pieces []piece
	flat   int // so many of them, the first, do not overlap and are ordered by their offsets
}

// write adds what was written last.
func (h *held) write(p piece) {
	if p.n > 0 {
		h.pieces = append(h.pieces, p)
	}
}

// errParts says that to follow what a buffer holds takes more than maxParts: so many parts are written and copied in turn.
var errParts = errors.New("is written and copied in too many parts")

// maxParts bounds how many pieces are looked at to find what buffers hold, in all.
const maxParts = 1 << 26

// read returns the pieces without what later ones cover, ordered by their offsets. left counts down from maxParts.
func (h *held) read(left *int) ([]piece, error) {
	if h.flat < len(h.pieces) {
		if *left -= len(h.pieces); *left < 0 {
			return nil, errParts
		}
		h.pieces = flatten(h.pieces)
		h.flat = len(h.pieces)
	}
	return h.pieces, nil
}

// latest is a heap of indices of pieces, the last one first.
type latest []int

func (l latest) Len() int           { return len(l) }
func (l latest) Less(i, j int) bool { return l[i] > l[j] }
func (l latest) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *latest) Push(x any)        { *l = append(*l, x.(int)) }
func (l *latest) Pop() any {
	old := *l
	x := old[len(old)-1]
	*l = old[:len(old)-1]
	return x
}

// flatten returns what later pieces leave of earlier ones, ordered by offset, in O(n log n).
func flatten(list []piece) (out []piece) {
	order := make([]int, len(list))
	bounds := make([]int64, 0, 2*len(list))
	for i := range list {
		order[i] = i
		bounds = append(bounds, list[i].offset, list[i].offset+list[i].n)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(list[a].offset, list[b].offset) })
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var open latest
	last := -1 // the piece of which out has its last part
	for i := 0; i+1 < len(bounds); i++ {
		lo, end := bounds[i], bounds[i+1]
		for len(order) > 0 && list[order[0]].offset <= lo {
			heap.Push(&open, order[0])
			order = order[1:]
		}
		for len(open) > 0 && list[open[0]].offset+list[open[0]].n <= lo {
			heap.Pop(&open)
		}
		if len(open) == 0 {
			last = -1
			continue
		}
		p := &list[open[0]]
		if n := len(out); last == open[0] { // it goes on
			out[n-1] = p.part(out[n-1].offset, end)
		} else {
			out = append(out, p.part(lo, end))
		}
		last = open[0]
	}
	return out
}

// part returns bytes lo to hi of what p holds, which has them.
func (p piece) part(lo, hi int64) piece {
	out := piece{lo, hi - lo, nil, p.value}
	if p.data != nil {
		out.data = p.data[lo-p.offset : hi-p.offset]
	}
	return out
}

// cut returns what pieces that are ordered and do not overlap have of n bytes from offset on.
func cut(pieces []piece, offset, n int64) (out []piece) {
	first := sort.Search(len(pieces), func(i int) bool { return pieces[i].offset+pieces[i].n > offset })
	for _, p := range pieces[first:] {
		if p.offset >= offset+n || n == 0 {
			break
		}
		out = append(out, p.part(max(p.offset, offset), min(p.offset+p.n, offset+n)))
	}
	return out
}
