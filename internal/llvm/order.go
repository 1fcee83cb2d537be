package llvm

import (
	"fmt"
	"slices"
)

// Cycle is a loop of a function: blocks from each of which every other one can be reached.
type Cycle struct {
	Header      *Block // where it is entered
	First, Last int    // its blocks, in the order of the arrangement
}

// Arrange returns the blocks in an order in which a thread that stands at one may still come to
// those behind it, the way back in a loop aside; and in which the blocks of a loop stand
// together, before all that a thread comes to when it has left the loop. The loops are there
// too, inner ones before those that they lie in. Blocks that nothing leads to stand last.
func Arrange(blocks []*Block) (*Arrangement, error) {
	a := &Arrangement{number: make(map[string]int, len(blocks)), blocks: blocks}
	for i, b := range blocks {
		a.number[b.Label] = i
	}
	a.next = make([][]int, len(blocks))
	for i, b := range blocks {
		for _, l := range b.Successors() {
			if to, ok := a.number[l]; ok {
				a.next[i] = append(a.next[i], to)
			}
		}
	}
	a.within = make([]int, len(blocks))
	a.header = make([]bool, len(blocks))
	a.index = make([]int, len(blocks))
	a.low = make([]int, len(blocks))
	a.waits = make([]bool, len(blocks))
	if err := a.visit(0, 0, 0); err != nil {
		return nil, err
	}
	for i := range blocks {
		if a.within[i] == 0 && a.index[i] == 0 {
			a.sorted = append(a.sorted, i)
		}
	}
	for _, i := range a.sorted {
		a.Order = append(a.Order, blocks[i])
	}
	return a, nil
}

// Arrangement is an order of blocks, and what [Arrange] knows on the way to it. Blocks go by their numbers.
type Arrangement struct {
	blocks []*Block
	number map[string]int // by label
	next   [][]int        // to which a block leads
	within []int          // the innermost part that a block is known to lie in; 0 is the function
	header []bool         // of a loop that is being arranged: nothing leads back to it there
	parts  int

	// Tarjan's algorithm for strongly connected components, on one part.
	count      int
	index, low []int // 0: not met in this part
	stack      []int
	waits      []bool // on the stack

	sorted []int // the blocks in the order
	Order  []*Block
	Loops  []Cycle
}

// visit arranges what can be reached from a block within a part, which lies in so many loops.
func (a *Arrangement) visit(from, part, depth int) error {
	if depth > MaxNesting {
		return fmt.Errorf("at %%%s loops lie in each other more than %d deep", a.blocks[from].Label, MaxNesting)
	}
	var found [][]int // components, each before those that lead to it
	a.connect(from, part, &found)
	slices.Reverse(found)
	for _, c := range found {
		entry := c[0]
		if len(c) == 1 && (a.header[entry] || !slices.Contains(a.next[entry], entry)) {
			a.sorted = append(a.sorted, entry)
			continue
		}
		// A loop: the same again without the ways back to its header.
		a.parts++
		for _, b := range c {
			a.within[b], a.index[b] = a.parts, 0
		}
		a.header[entry] = true
		first := len(a.sorted)
		if err := a.visit(entry, a.parts, depth+1); err != nil {
			return err
		}
		a.Loops = append(a.Loops, Cycle{a.blocks[entry], first, len(a.sorted) - 1})
	}
	return nil
}

// connect finds the components of what can be reached from a block. The first block of each is
// the one by which it was entered.
func (a *Arrangement) connect(b, part int, found *[][]int) {
	a.count++
	Counted(1)
	a.index[b], a.low[b] = a.count, a.count
	at := len(a.stack)
	a.stack, a.waits[b] = append(a.stack, b), true
	for _, to := range slices.Backward(a.next[b]) { // what stands first in a branch comes out first
		switch {
		case a.within[to] != part || a.header[to]:
		case a.index[to] == 0:
			a.connect(to, part, found)
			a.low[b] = min(a.low[b], a.low[to])
		case a.waits[to]:
			a.low[b] = min(a.low[b], a.index[to])
		}
	}
	if a.low[b] == a.index[b] {
		for _, x := range a.stack[at:] {
			a.waits[x] = false
		}
		*found = append(*found, slices.Clone(a.stack[at:]))
		a.stack = a.stack[:at]
	}
}

// Overtakes reports whether a thread can go round a loop without coming to a block that it shares
// with others: one at which is true. Such a block stands on every way from the loop's header back
// to it.
//
// Some way round is taken. Along it, it is known how far ahead one comes by leaving it: a block
// that is not jumped over so stands on every way. Each block of the loop is looked at once.
func (a *Arrangement) Overtakes(l Cycle, at func(*Block) bool) bool {
	numbers := a.sorted[l.First : l.Last+1]
	inside := make(map[int]bool, len(numbers))
	some := false
	for _, n := range numbers {
		inside[n] = true
		some = some || at(a.blocks[n])
	}
	header := a.number[l.Header.Label]
	if !some || slices.Contains(a.next[header], header) {
		return slices.ContainsFunc(numbers, func(n int) bool { return n != header && at(a.blocks[n]) })
	}
	// from has by which block each was come to, breadth first.
	from := map[int]int{header: header}
	list := []int{header}
	latch := -1
	for k := 0; k < len(list) && latch < 0; k++ {
		Counted(1)
		for _, to := range a.next[list[k]] {
			if to == header {
				latch = list[k]
				break
			}
			if _, known := from[to]; inside[to] && !known {
				from[to] = list[k]
				list = append(list, to)
			}
		}
	}
	if latch < 0 {
		return false // INVARIANT: not of a loop
	}
	var way []int
	for n := latch; n != header; n = from[n] {
		way = append(way, n)
	}
	way = append(way, header)
	slices.Reverse(way)
	place := make(map[int]int, len(way)) // on the way
	for i, n := range way {
		place[n] = i
	}
	seen := make(map[int]bool, len(numbers))
	shared := map[int]bool{} // blocks on every way round
	far := 0
	for i, n := range way {
		if far <= i {
			shared[n] = true
		}
		work := []int{n}
		for len(work) > 0 {
			x := work[len(work)-1]
			work = work[:len(work)-1]
			Counted(1)
			for _, to := range a.next[x] {
				if to == header {
					far = len(way)
				} else if p, on := place[to]; on {
					far = max(far, p)
				} else if inside[to] && !seen[to] {
					seen[to] = true
					work = append(work, to)
				}
			}
		}
		if i+1 < len(way) {
			far = max(far, i+1)
		}
	}
	return slices.ContainsFunc(numbers, func(n int) bool { return n != header && at(a.blocks[n]) && !shared[n] })
}
