package passes

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// relister writes a graph's list anew, in another order of its commands.
//
// Commits stay between the commands that they stood between: no command leaves
// its command buffer. Groups are labels and follow their commands: a group of
// which a command moved away stands in the list more than once, under its label,
// around each run of its commands; one without commands is gone. Groups nested
// deeper than [maxGroups] are taken for their ancestor, so that the list stays
// in proportion to its commands.
//
// A barrier stands between epochs and one behind the last command, for the next
// replay, so that the list is sound before the pass barriers finds out which of
// them it can do without.
type relister struct {
	out    []ir.Node
	groups []group // 0 is no group
	of     []int32 // by command: its innermost group; nil if there are no groups
	open   int32   // the innermost group that is open
	stack  []int32
	nodes  int // commands written since the last barrier or commit
}

const maxGroups = 16

type group struct {
	parent int32
	depth  int32
	begin  *ir.GroupBegin
}

// relist prepares to write the list of g, which has so many commands.
func relist(g *ir.Graph, commands int) *relister {
	l := &relister{out: make([]ir.Node, 0, len(g.Nodes)+len(g.Nodes)/4), groups: make([]group, 1)}
	if !slices.ContainsFunc(g.Nodes, isGroup) {
		return l
	}
	l.of = make([]int32, 0, commands)
	at, hidden := int32(0), 0
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.GroupBegin:
			if l.groups[at].depth == maxGroups {
				hidden++
				continue
			}
			l.groups = append(l.groups, group{at, l.groups[at].depth + 1, n})
			at = int32(len(l.groups) - 1)
		case *ir.GroupEnd:
			if hidden > 0 {
				hidden--
				continue
			}
			at = l.groups[at].parent
		case *ir.Barrier, *ir.Commit:
		default:
			l.of = append(l.of, at)
		}
	}
	return l
}

func isGroup(n ir.Node) bool {
	_, ok := n.(*ir.GroupBegin)
	return ok
}

// enter closes and opens groups until group x is the innermost.
func (l *relister) enter(x int32) {
	if l.open == x {
		return
	}
	l.stack = l.stack[:0]
	for x != l.open {
		if l.groups[x].depth >= l.groups[l.open].depth && x != 0 {
			l.stack = append(l.stack, x)
			x = l.groups[x].parent
			continue
		}
		l.out = append(l.out, &ir.GroupEnd{})
		l.open = l.groups[l.open].parent
	}
	for i := len(l.stack) - 1; i >= 0; i-- {
		l.out = append(l.out, l.groups[l.stack[i]].begin)
		l.open = l.stack[i]
	}
}

// command writes command i; barrier: a new epoch begins with it.
func (l *relister) command(i int32, n ir.Node, barrier bool) {
	if l.of != nil {
		l.enter(l.of[i])
	}
	if barrier && l.nodes > 0 {
		l.out = append(l.out, &ir.Barrier{})
		l.nodes = 0
	}
	l.nodes++
	l.out = append(l.out, n)
}

// commit writes the commit at the end of a command buffer.
func (l *relister) commit(c ir.Node) {
	l.out = append(l.out, c)
	l.nodes = 0
}

// finish returns the list.
func (l *relister) finish() []ir.Node {
	l.enter(0)
	if l.nodes > 0 {
		l.out = append(l.out, &ir.Barrier{})
	}
	return l.out
}

// commandBuffer is a stretch of commands between commits, with the commits that
// follow it.
type commandBuffer struct {
	first, end int32
	commits    []ir.Node
}

// commandBuffers returns those of g, in order; the last one may have no commit.
func commandBuffers(g *ir.Graph) []commandBuffer {
	var out []commandBuffer
	var b commandBuffer
	for _, n := range g.Nodes {
		switch n.(type) { // not NodeID, which looks into the command
		case *ir.Commit:
			b.commits = append(b.commits, n)
		case ir.Command:
			if len(b.commits) > 0 {
				out = append(out, b)
				b = commandBuffer{first: b.end, end: b.end}
			}
			b.end++
		}
	}
	return append(out, b)
}
