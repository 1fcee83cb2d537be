package passes

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// relister writes the list of a graph again with its commands in another order.
//
// Commits stay between the commands between which they stood: no command leaves its command buffer.
// Groups are labels and follow their commands. If commands of a group move apart, the group stands
// in the list several times, around each run of its commands. A group without commands is dropped.
// Groups that are nested deeper than [maxGroups] are replaced by their ancestor of that depth, so
// that the list stays in proportion to its commands.
//
// A barrier is put between epochs and after the last command, for the next replay. So the list is
// sound before the pass barriers finds the barriers that are not needed.
type relister struct {
	out    []ir.Node
	groups []group // element 0 stands for no group
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

// relist returns a relister for the list of g, which has the given number of commands.
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

// enter closes and opens groups until group x is the innermost open one.
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

// command appends command i. barrier says that a new epoch begins with it.
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

// commit appends the commit that ends a command buffer.
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

// commandBuffers returns the command buffers of g, in order. The last one may have no commit.
func commandBuffers(g *ir.Graph) []commandBuffer {
	var out []commandBuffer
	var b commandBuffer
	for _, n := range g.Nodes {
		switch n.(type) { // a type switch reads only the list, where a method would read each command
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
