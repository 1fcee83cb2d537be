package air

import "slices"

// loop is a loop of a function: blocks from each of which every other one can be reached.
type loop struct {
	header      *block // where it is entered
	first, last int    // its blocks, in the order of arrange
}

// arrange returns the blocks in an order in which a thread that stands at one may still come to
// those behind it, the way back in a loop aside; and in which the blocks of a loop stand
// together, before all that a thread comes to when it has left the loop. The loops are returned
// too, inner ones before those that they lie in. Blocks that nothing leads to stand last.
func arrange(blocks []*block) (order []*block, loops []loop) {
	a := arrangement{number: make(map[string]int, len(blocks)), blocks: blocks}
	for i, b := range blocks {
		a.number[b.label] = i
	}
	a.next = make([][]int, len(blocks))
	for i, b := range blocks {
		for _, l := range b.successors() {
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
	a.visit(0, 0)
	for i, b := range blocks {
		if a.within[i] == 0 && a.index[i] == 0 {
			a.order = append(a.order, b)
		}
	}
	return a.order, a.loops
}

// arrangement is the work of arrange. Blocks go by their numbers.
type arrangement struct {
	blocks []*block
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

	order []*block
	loops []loop
}

// visit arranges what can be reached from a block within a part.
func (a *arrangement) visit(from, part int) {
	var found [][]int // components, each before those that lead to it
	a.connect(from, part, &found)
	slices.Reverse(found)
	for _, c := range found {
		entry := c[0]
		if len(c) == 1 && (a.header[entry] || !slices.Contains(a.next[entry], entry)) {
			a.order = append(a.order, a.blocks[entry])
			continue
		}
		// A loop: the same again without the ways back to its header.
		a.parts++
		for _, b := range c {
			a.within[b], a.index[b] = a.parts, 0
		}
		a.header[entry] = true
		first := len(a.order)
		a.visit(entry, a.parts)
		a.loops = append(a.loops, loop{a.blocks[entry], first, len(a.order) - 1})
	}
}

// connect finds the components of what can be reached from a block. The first block of each is
// the one by which it was entered.
func (a *arrangement) connect(b, part int, found *[][]int) {
	a.count++
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

// overtakes reports whether a thread can go round a loop of order without coming to a block
// that it shares with others: one at which is true.
func (l *loop) overtakes(order []*block, at func(*block) bool) bool {
	inside := make(map[string]*block, l.last-l.first+1)
	for _, b := range order[l.first : l.last+1] {
		inside[b.label] = b
	}
	for _, b := range order[l.first : l.last+1] {
		if b != l.header && at(b) && l.avoids(inside, b) {
			return true
		}
	}
	return false
}

// avoids reports whether a way leads from the header of a loop back to it, inside of the loop
// and past a block.
func (l *loop) avoids(inside map[string]*block, b *block) bool {
	seen := map[string]bool{}
	list := []*block{l.header}
	for len(list) > 0 {
		x := list[len(list)-1]
		list = list[:len(list)-1]
		for _, to := range x.successors() {
			if to == l.header.label {
				return true
			}
			if next := inside[to]; next != nil && next != b && !seen[to] {
				seen[to] = true
				list = append(list, next)
			}
		}
	}
	return false
}
