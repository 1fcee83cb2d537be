package llvm

import (
	"errors"
	"fmt"
	"regexp"
)

// Flow is the control flow of a function. Blocks go by their places in an order in which all ways lead
// forward but those back to the header of a loop ([Arrange]).
type Flow struct {
	Blocks   []*Block
	Ends     []Branch
	Next     [][]int // where a block leads, each place once for each way
	Prev     [][]int // the ways forward that lead to a block; none to a block that is never come to
	Loops    []Loop
	LoopOf   []int // the innermost loop that a block lies in, −1: none
	HeaderOf []int // the loop of which a block is the header, −1: none
	Before   *Tree // of dominators: a thread has been at all ancestors of a block when it comes to it
	// After is the tree of what a thread comes to later on, if it goes round no loop once more: a way
	// back to the header of a loop leads to a node of its own, from which ways lead to all that the
	// loop is left for. Its other nodes are the loops', len(blocks)+l, and the end.
	After *Tree
}

// Loop is a loop of a function.
type Loop struct {
	Header  int
	Last    int // its last block
	Parent  int // the loop that it lies in, −1: none
	Latches []int
	Exits   []Exit
}

// Exit is a way out of a loop.
type Exit struct{ From, to int }

// Branch is how a block ends.
type Branch struct {
	Line  int    // where it stands in the block
	On    string // the value that chooses the way; empty if there is no choice
	Type  string // of that value
	to    []string
	Cases []string // of a switch: at which values a thread goes to to[1], to[2] and so on; to[0] is the rest
}

// caseOf is a case of a switch: a value, and where it leads.
var caseOf = regexp.MustCompile(`i[0-9]+ (-?[0-9]+|true|false), label %`)

// ended is how a block ends; false if that is not understood.
func ended(b *Block) (Branch, bool) {
	for i, l := range b.Lines {
		end := Branch{Line: i}
		in := Read(l)
		if in == nil {
			continue
		}
		switch in.Op {
		case "ret", "unreachable":
			return end, true
		case "br", "switch":
			if len(in.Operands) > 0 {
				end.On, end.Type = in.Operands[0].Value, in.Operands[0].Type
			}
			lines := b.Lines[i:] // of a switch each case has one
			if in.Op == "br" {
				lines = lines[:1]
			}
			for _, more := range lines {
				for _, m := range labelUse.FindAllStringSubmatch(more, -1) {
					end.to = append(end.to, m[1])
				}
				for _, m := range caseOf.FindAllStringSubmatch(more, -1) {
					end.Cases = append(end.Cases, m[1])
				}
			}
			if in.Op == "switch" {
				return end, len(end.to) == len(end.Cases)+1
			}
			return end, len(end.to) == 1 && end.On == "" || len(end.to) == 2 && end.On != ""
		}
	}
	return Branch{}, false
}

// ErrFlow says that the ways through a function are not those of loops in loops.
var ErrFlow = errors.New("the control flow is not understood")

// NewFlow finds out how control flows through blocks.
func NewFlow(blocks []*Block) (*Flow, error) {
	a, err := Arrange(blocks)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFlow, err)
	}
	n := len(blocks)
	f := &Flow{
		Blocks: a.Order, Ends: make([]Branch, n), Next: make([][]int, n), Prev: make([][]int, n),
		LoopOf: make([]int, n), HeaderOf: make([]int, n),
	}
	place := make(map[string]int, n)
	for i, b := range f.Blocks {
		place[b.Label] = i
		f.LoopOf[i], f.HeaderOf[i] = -1, -1
	}
	f.nest(a, place)
	for i, b := range f.Blocks {
		Counted(len(b.Lines))
		var ok bool
		if f.Ends[i], ok = ended(b); !ok {
			return nil, fmt.Errorf("%w at %%%s", ErrFlow, b.Label)
		}
		for _, label := range f.Ends[i].to {
			to, ok := place[label]
			if !ok {
				return nil, fmt.Errorf("%w: %%%s leads to %%%s, which is not there", ErrFlow, b.Label, label)
			}
			f.Next[i] = append(f.Next[i], to)
		}
	}
	// Blocks that nothing leads to lead nowhere.
	met := make([]bool, n)
	met[0] = true
	for i := range f.Blocks {
		if !met[i] {
			f.Next[i] = nil
			continue
		}
		for _, to := range f.Next[i] {
			l := f.HeaderOf[to]
			switch {
			case l >= 0 && f.Within(i, l): // back
				f.Loops[l].Latches = append(f.Loops[l].Latches, i)
			case to <= i:
				return nil, fmt.Errorf("%w: %%%s leads back to %%%s, which is the header of no loop", ErrFlow, f.Blocks[i].Label, f.Blocks[to].Label)
			default:
				// A loop is entered at its header, and so are those that it lies in.
				if l = f.LoopOf[to]; l >= 0 && f.Loops[l].Header == to {
					l = f.Loops[l].Parent
				}
				if l >= 0 && !f.Within(i, l) {
					return nil, fmt.Errorf("%w: %%%s leads into the middle of a loop, to %%%s", ErrFlow, f.Blocks[i].Label, f.Blocks[to].Label)
				}
				f.Prev[to] = append(f.Prev[to], i)
				met[to] = true
			}
			for l := f.LoopOf[i]; l >= 0 && !f.Within(to, l); l = f.Loops[l].Parent {
				f.Loops[l].Exits = append(f.Loops[l].Exits, Exit{i, to})
			}
		}
	}
	f.dominators()
	return f, nil
}

// nest fills in the tree of loops: of each loop the one around it, and of each block the innermost loop around it.
func (f *Flow) nest(a *Arrangement, place map[string]int) {
	n := len(f.Blocks)
	begins := make([][]int, n) // loops, the outer ones first
	f.Loops = make([]Loop, len(a.Loops))
	for l := len(a.Loops) - 1; l >= 0; l-- { // the arrangement has inner loops first
		x := a.Loops[l]
		f.Loops[l] = Loop{Header: place[x.Header.Label], Last: x.Last, Parent: -1}
		begins[x.First] = append(begins[x.First], l)
		f.HeaderOf[f.Loops[l].Header] = l
	}
	inner := -1
	for i := range f.Blocks {
		for inner >= 0 && f.Loops[inner].Last < i {
			inner = f.Loops[inner].Parent
		}
		for _, l := range begins[i] {
			f.Loops[l].Parent, inner = inner, l
		}
		f.LoopOf[i] = inner
	}
}

// Within reports whether a block lies in a loop.
func (f *Flow) Within(b, l int) bool {
	x := f.Loops[l]
	return x.Header <= b && b <= x.Last
}

// End is the node of f.After that stands for the end of the function, and of loops without end.
func (f *Flow) End() int { return len(f.Blocks) + len(f.Loops) }

// Way is the node of f.After that a way from a block leads to.
func (f *Flow) Way(from, to int) int {
	if l := f.HeaderOf[to]; l >= 0 && f.Within(from, l) {
		return len(f.Blocks) + l
	}
	return to
}

func (f *Flow) dominators() {
	n := len(f.Blocks)
	f.Before = newTree(n, 0)
	for i := 1; i < n; i++ {
		if len(f.Prev[i]) == 0 {
			continue
		}
		at := f.Prev[i][0]
		for _, p := range f.Prev[i][1:] {
			at = f.Before.Common(at, p)
		}
		f.Before.add(i, at)
	}
	f.After = newTree(f.End()+1, f.End())
	join := func(at, way int) int {
		if at < 0 {
			return way
		}
		return f.After.Common(at, way)
	}
	// The loops that end at a block, the outer ones first: theirs lie behind.
	ends := make([][]int, n)
	for l := len(f.Loops) - 1; l >= 0; l-- {
		ends[f.Loops[l].Last] = append(ends[f.Loops[l].Last], l)
	}
	for i := n - 1; i >= 0; i-- {
		for _, l := range ends[i] {
			at := -1
			for _, x := range f.Loops[l].Exits {
				at = join(at, f.Way(x.From, x.to))
			}
			if at < 0 {
				at = f.End()
			}
			f.After.add(n+l, at)
		}
		at := -1
		for _, to := range f.Next[i] {
			at = join(at, f.Way(i, to))
		}
		if at < 0 {
			at = f.End()
		}
		f.After.add(i, at)
	}
}
