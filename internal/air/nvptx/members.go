package nvptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// members computes the active mask of each block of a kernel: which threads of a warp execute it together, and so
// exchange there. The mask that the hardware has (activemask) may be smaller, since threads of a warp are scheduled
// independently: those that have left a loop early need not wait for the others. So an exchange names the mask, and the
// GPU has these threads wait for each other.
//
// The mask of a block follows from that of a dominator, in one of four ways:
//
//   - Every thread of the dominator comes to the block, in the same iteration of all loops around both: the masks are
//     the same. That holds where the ways of an if reconverge, and behind a loop, however often its threads iterate.
//   - All threads of the dominator take the same way (uniformity): the masks are the same.
//   - A branch of the dominator is the only way to the block: the mask is a vote for that way.
//   - The block is the header of a loop which threads leave in different iterations: the mask is that of the threads
//     that enter the loop at first, and then that of those that iterate once more, which follows from the header's.
//
// What remains are blocks that some threads come to by several branches, as that of if (a || b) with code between, and
// control flow that is not made of nested loops. There the GPU is asked for the mask.
//
// Blocks go by their numbers. Behind them, len(blocks)+l stands for the way into loop l, whose mask is that of the
// threads that enter it. All of them leave it, each in some iteration.
type members struct {
	flow    *llvm.Flow
	uniform *uniformity
	from    []maskOf
	round   []maskOf // by loop: of those that go round; only of loops that threads leave in different rounds
	apart   []bool   // by loop: threads leave it in different rounds
	first   []int    // the one that has made the mask, which a chain of same masks leads to
	top     []int    // the entry, the header of a loop or one of unknown mask, from which the mask follows
	known   []bool
	needed  []bool
}

// maskOf says how a mask is made.
type maskOf struct {
	kind  maskKind
	block int // that it follows from
	to    int // of a vote: the block that threads vote for
}

type maskKind uint8

const (
	maskUnknown maskKind = iota
	maskEntry            // the threads of the grid
	maskSame
	maskVote
	maskLoop // for the header of a loop that threads leave in different rounds: first the threads that enter, then those that go round again
)

// newMembers finds out how the masks of all blocks are made.
func newMembers(c *llvm.Flow, u *uniformity) *members {
	n := len(c.Blocks)
	all := n + len(c.Loops)
	m := &members{
		flow: c, uniform: u, from: make([]maskOf, all), round: make([]maskOf, len(c.Loops)), apart: make([]bool, len(c.Loops)),
		first: make([]int, all), top: make([]int, all), known: make([]bool, all), needed: make([]bool, all),
	}
	for l := range c.Loops {
		m.apart[l] = slices.ContainsFunc(c.Loops[l].Exits, func(x llvm.Exit) bool { return u.splits[x.From] || u.between(x.From) })
	}
	set := func(b int, x maskOf) {
		m.from[b], m.first[b], m.top[b] = x, b, b
		if x.kind == maskSame {
			m.first[b] = m.first[x.block]
		}
		if x.kind == maskSame || x.kind == maskVote {
			m.top[b] = m.top[x.block]
		}
	}
	for b := range c.Blocks {
		l := c.HeaderOf[b]
		switch {
		case b == 0:
			set(b, maskOf{kind: maskEntry})
		case !c.Before.Has(b):
			set(b, maskOf{})
		case l < 0:
			set(b, m.follow(b))
		default:
			set(n+l, m.follow(b))
			if m.apart[l] {
				set(b, maskOf{maskLoop, n + l, 0})
			} else {
				set(b, maskOf{maskSame, n + l, 0})
			}
		}
	}
	know := func(b int) {
		x := m.from[b]
		m.known[b] = x.kind == maskEntry || x.kind != maskUnknown && m.known[x.block]
	}
	for b := range c.Blocks {
		l := c.HeaderOf[b]
		if l >= 0 {
			know(n + l)
		}
		know(b)
		if l >= 0 && m.apart[l] && m.known[b] {
			m.round[l] = m.rounds(l)
			m.known[b] = m.round[l].kind != maskUnknown
		}
	}
	return m
}

// lift returns the way into a loop that threads leave in different rounds, if a block lies in one that
// another block does not lie in: what the mask was in a round says nothing about all that leave.
func (m *members) lift(from, to int) int {
	c := m.flow
	out := from
	for l := c.LoopOf[from]; l >= 0 && !c.Within(to, l); l = c.Loops[l].Parent {
		if m.apart[l] {
			out = len(c.Blocks) + l
		}
	}
	return out
}

// always reports whether all that are at a block or on the way into a loop come to a node of c.After.
func (m *members) always(at, node int) bool {
	c := m.flow
	if n := len(c.Blocks); at >= n {
		at = c.Loops[at-n].Header
	}
	return c.After.Under(at, node)
}

// follow says what the mask of a block, on its first round if it is the header of a loop, follows from.
func (m *members) follow(b int) maskOf {
	c := m.flow
	before := int(c.Before.Parent[b])
	at := m.lift(before, b)
	if m.always(at, b) {
		return maskOf{maskSame, at, 0}
	}
	if at != before {
		return maskOf{}
	}
	return m.led(at, b, c.Prev[b])
}

// maxVoted is how many cases a switch has at most at whose end there are votes, each of which compares with
// all cases.
const maxVoted = 64

// led is follow for ways that lead to a block from others, which at stands before.
func (m *members) led(at, b int, ways []int) maskOf {
	together := true
	for _, p := range ways {
		llvm.Counted(1)
		together = together && m.first[p] == m.first[at] && !m.uniform.splits[p]
	}
	switch {
	case together:
		return maskOf{maskSame, at, 0}
	case len(ways) > 0 && !slices.ContainsFunc(ways, func(p int) bool { return p != at }) && len(m.flow.Ends[at].Cases) <= maxVoted:
		return maskOf{maskVote, at, b}
	}
	return maskOf{}
}

// rounds says what the mask of those that go round a loop follows from, in which the header's is known.
func (m *members) rounds(l int) maskOf {
	c := m.flow
	loop := c.Loops[l]
	at := loop.Latches[0]
	for _, b := range loop.Latches[1:] {
		at = c.Before.Common(at, b)
	}
	lifted := m.lift(at, loop.Header)
	var x maskOf
	switch {
	case m.always(lifted, len(c.Blocks)+l):
		x = maskOf{maskSame, lifted, 0}
	case lifted == at:
		x = m.led(at, loop.Header, loop.Latches)
	}
	if x.kind != maskUnknown && m.top[x.block] != loop.Header {
		return maskOf{}
	}
	return x
}

// need asks for the mask of a block, which is known, and for those that it follows from.
func (m *members) need(b int) {
	work := []int{b}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		if m.needed[b] {
			continue
		}
		m.needed[b] = true
		llvm.Counted(1)
		x := m.from[b]
		if x.kind == maskEntry {
			continue
		}
		work = append(work, x.block)
		if x.kind == maskLoop {
			work = append(work, m.round[m.flow.HeaderOf[b]].block)
		}
	}
}

// name is the value that a block's mask has, which is known.
func (m *members) name(b int) string {
	if b = m.first[b]; b == 0 {
		return entryMembers
	}
	return fmt.Sprint("%mlxc.members.", b)
}

// entryMembers is the parameter of a kernel that has the mask of a warp's threads that are in the grid.
const entryMembers = "%mlxc.members"

// write adds to the blocks what makes the masks that are needed.
func (m *members) write() {
	c := m.flow
	for b, x := range m.from {
		if !m.needed[b] {
			continue
		}
		switch x.kind {
		case maskVote:
			m.vote(x, m.name(b))
		case maskLoop:
			loop := c.Loops[c.HeaderOf[b]]
			name := m.name(b)
			again := m.round[c.HeaderOf[b]]
			round := m.name(again.block)
			if again.kind == maskVote {
				round = name + ".again"
				m.vote(again, round)
			}
			var ways []string
			for _, p := range c.Prev[b] {
				ways = append(ways, fmt.Sprintf("[ %s, %%%s ]", m.name(x.block), c.Blocks[p].Label))
			}
			for _, p := range loop.Latches {
				ways = append(ways, fmt.Sprintf("[ %s, %%%s ]", round, c.Blocks[p].Label))
			}
			c.Blocks[b].Lines = slices.Insert(c.Blocks[b].Lines, 0, fmt.Sprintf("  %s = phi i32 %s", name, strings.Join(ways, ", ")))
			c.Ends[b].Line++
		}
	}
}

// vote makes the mask of the threads that go one of the ways from a block, before they go.
func (m *members) vote(x maskOf, name string) {
	c := m.flow
	b, end := c.Blocks[x.block], &c.Ends[x.block]
	all := m.name(x.block)
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, "  "+fmt.Sprintf(format, args...)) }
	ballot := func(to, on string) {
		there := all
		if there == entryMembers {
			there = allThreads // those that have ended do not vote
		}
		add("%s = call i32 @llvm.nvvm.vote.ballot.sync(i32 %s, i1 %s) #990", to, there, on)
	}
	// A thread goes to the first way unless one of the cases says otherwise.
	switch rest := c.Next[x.block][0] == x.to; {
	case end.Cases == nil && rest:
		ballot(name, end.On)
	case end.Cases == nil:
		ballot(name+".not", end.On)
		add("%s = xor i32 %s, %s.not", name, all, name)
	default:
		is := "false"
		for i, v := range end.Cases {
			// Those that go there, or if all others do, those that do not.
			if (c.Next[x.block][i+1] == x.to) == rest {
				continue
			}
			add("%s.is%d = icmp eq %s %s, %s", name, i, end.Type, end.On, v)
			add("%s.or%d = or i1 %s, %s.is%d", name, i, is, name, i)
			is = fmt.Sprintf("%s.or%d", name, i)
		}
		if rest {
			ballot(name+".not", is)
			add("%s = xor i32 %s, %s.not", name, all, name)
		} else {
			ballot(name, is)
		}
	}
	b.Lines = slices.Insert(b.Lines, end.Line, lines...)
	end.Line += len(lines)
}
