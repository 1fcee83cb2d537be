package air

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// controlFlow is the control flow of a function. Blocks go by their places in an order in which all ways lead
// forward but those back to the header of a loop (arrange).
type controlFlow struct {
	blocks []*block
	ends   []branch
	next   [][]int // where a block leads, each place once for each way
	prev   [][]int // the ways forward that lead to a block; none to a block that is never come to
	loops  []flowLoop
	loop   []int // the innermost loop that a block lies in, −1: none
	header []int // the loop of which a block is the header, −1: none
	before *tree // of dominators: a thread has been at all ancestors of a block when it comes to it
	// after is the tree of what a thread comes to later on, if it goes round no loop once more: a way
	// back to the header of a loop leads to a node of its own, from which ways lead to all that the
	// loop is left for. Its other nodes are the loops', len(blocks)+l, and the end.
	after *tree
}

// flowLoop is a loop of a function.
type flowLoop struct {
	header  int
	last    int // its last block
	parent  int // the loop that it lies in, −1: none
	latches []int
	exits   []exit
}

// exit is a way out of a loop.
type exit struct{ from, to int }

// branch is how a block ends.
type branch struct {
	line  int    // where it stands in the block
	on    string // the value that chooses the way; empty if there is no choice
	typ   string // of that value
	to    []string
	cases []string // of a switch: at which values a thread goes to to[1], to[2] and so on; to[0] is the rest
}

var (
	choice   = regexp.MustCompile(`^  br i1 (.*?), label %`)
	manyWays = regexp.MustCompile(`^  switch (i[0-9]+) (.*?), label %`)
	caseOf   = regexp.MustCompile(`i[0-9]+ (-?[0-9]+|true|false), label %`)
)

// ended is how a block ends; false if that is not understood.
func ended(b *block) (branch, bool) {
	for i, l := range b.lines {
		end := branch{line: i}
		switch {
		case strings.HasPrefix(l, "  ret "), strings.HasPrefix(l, "  unreachable"):
			return end, true
		case strings.HasPrefix(l, "  br "):
			for _, m := range labelUse.FindAllStringSubmatch(l, -1) {
				end.to = append(end.to, m[1])
			}
			if c := choice.FindStringSubmatch(l); c != nil {
				end.on, end.typ = c[1], "i1"
			}
			return end, len(end.to) == 1 && end.on == "" || len(end.to) == 2 && end.on != ""
		case strings.HasPrefix(l, "  switch "):
			s := manyWays.FindStringSubmatch(l)
			if s == nil {
				return end, false
			}
			end.typ, end.on = s[1], s[2]
			for _, more := range b.lines[i:] { // a line each
				for _, m := range labelUse.FindAllStringSubmatch(more, -1) {
					end.to = append(end.to, m[1])
				}
				for _, m := range caseOf.FindAllStringSubmatch(more, -1) {
					end.cases = append(end.cases, m[1])
				}
			}
			return end, len(end.to) == len(end.cases)+1
		}
	}
	return branch{}, false
}

// errFlow says that the ways through a function are not those of loops in loops.
var errFlow = errors.New("the control flow is not understood")

// newFlow finds out how control flows through blocks.
func newFlow(blocks []*block) (*controlFlow, error) {
	a, err := arrange(blocks)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFlow, err)
	}
	n := len(blocks)
	f := &controlFlow{
		blocks: a.order, ends: make([]branch, n), next: make([][]int, n), prev: make([][]int, n),
		loop: make([]int, n), header: make([]int, n),
	}
	place := make(map[string]int, n)
	for i, b := range f.blocks {
		place[b.label] = i
		f.loop[i], f.header[i] = -1, -1
	}
	f.nest(a, place)
	for i, b := range f.blocks {
		counted(len(b.lines))
		var ok bool
		if f.ends[i], ok = ended(b); !ok {
			return nil, fmt.Errorf("%w at %%%s", errFlow, b.label)
		}
		for _, label := range f.ends[i].to {
			to, ok := place[label]
			if !ok {
				return nil, fmt.Errorf("%w: %%%s leads to %%%s, which is not there", errFlow, b.label, label)
			}
			f.next[i] = append(f.next[i], to)
		}
	}
	// Blocks that nothing leads to lead nowhere.
	met := make([]bool, n)
	met[0] = true
	for i := range f.blocks {
		if !met[i] {
			f.next[i] = nil
			continue
		}
		for _, to := range f.next[i] {
			l := f.header[to]
			switch {
			case l >= 0 && f.within(i, l): // back
				f.loops[l].latches = append(f.loops[l].latches, i)
			case to <= i:
				return nil, fmt.Errorf("%w: %%%s leads back to %%%s, which is the header of no loop", errFlow, f.blocks[i].label, f.blocks[to].label)
			default:
				// A loop is entered at its header, and so are those that it lies in.
				if l = f.loop[to]; l >= 0 && f.loops[l].header == to {
					l = f.loops[l].parent
				}
				if l >= 0 && !f.within(i, l) {
					return nil, fmt.Errorf("%w: %%%s leads into the middle of a loop, to %%%s", errFlow, f.blocks[i].label, f.blocks[to].label)
				}
				f.prev[to] = append(f.prev[to], i)
				met[to] = true
			}
			for l := f.loop[i]; l >= 0 && !f.within(to, l); l = f.loops[l].parent {
				f.loops[l].exits = append(f.loops[l].exits, exit{i, to})
			}
		}
	}
	f.dominators()
	return f, nil
}

// nest finds out which loop lies in which.
func (f *controlFlow) nest(a *arrangement, place map[string]int) {
	n := len(f.blocks)
	begins := make([][]int, n) // loops, the outer ones first
	f.loops = make([]flowLoop, len(a.loops))
	for l := len(a.loops) - 1; l >= 0; l-- { // arrange has inner loops first
		x := a.loops[l]
		f.loops[l] = flowLoop{header: place[x.header.label], last: x.last, parent: -1}
		begins[x.first] = append(begins[x.first], l)
		f.header[f.loops[l].header] = l
	}
	inner := -1
	for i := range f.blocks {
		for inner >= 0 && f.loops[inner].last < i {
			inner = f.loops[inner].parent
		}
		for _, l := range begins[i] {
			f.loops[l].parent, inner = inner, l
		}
		f.loop[i] = inner
	}
}

// within reports whether a block lies in a loop.
func (f *controlFlow) within(b, l int) bool {
	x := f.loops[l]
	return x.header <= b && b <= x.last
}

// end is the node of f.after that stands for the end of the function, and of loops without end.
func (f *controlFlow) end() int { return len(f.blocks) + len(f.loops) }

// way is the node of f.after that a way from a block leads to.
func (f *controlFlow) way(from, to int) int {
	if l := f.header[to]; l >= 0 && f.within(from, l) {
		return len(f.blocks) + l
	}
	return to
}

func (f *controlFlow) dominators() {
	n := len(f.blocks)
	f.before = newTree(n, 0)
	for i := 1; i < n; i++ {
		if len(f.prev[i]) == 0 {
			continue
		}
		at := f.prev[i][0]
		for _, p := range f.prev[i][1:] {
			at = f.before.common(at, p)
		}
		f.before.add(i, at)
	}
	f.after = newTree(f.end()+1, f.end())
	join := func(at, way int) int {
		if at < 0 {
			return way
		}
		return f.after.common(at, way)
	}
	// The loops that end at a block, the outer ones first: theirs lie behind.
	ends := make([][]int, n)
	for l := len(f.loops) - 1; l >= 0; l-- {
		ends[f.loops[l].last] = append(ends[f.loops[l].last], l)
	}
	for i := n - 1; i >= 0; i-- {
		for _, l := range ends[i] {
			at := -1
			for _, x := range f.loops[l].exits {
				at = join(at, f.way(x.from, x.to))
			}
			if at < 0 {
				at = f.end()
			}
			f.after.add(n+l, at)
		}
		at := -1
		for _, to := range f.next[i] {
			at = join(at, f.way(i, to))
		}
		if at < 0 {
			at = f.end()
		}
		f.after.add(i, at)
	}
}
