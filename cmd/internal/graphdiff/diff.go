package graphdiff

import (
	"context"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// Kind is the kind of a change.
type Kind string

// The kinds, in the order in which they are reported.
const (
	Interface  Kind = "interface"  // inputs, outputs, states, weights
	Param      Kind = "param"      // params and their constraints
	Memory     Kind = "memory"     // scratch and argument memory, aliases
	Dropped    Kind = "dropped"    // commands without a counterpart in the graph after
	Added      Kind = "added"      // commands without a counterpart in the graph before
	Fused      Kind = "fused"      // several commands became one
	Split      Kind = "split"      // one command became several
	Moved      Kind = "moved"      // commands stand in another order
	Ordering   Kind = "ordering"   // what orders the commands: barriers and commits, the list, or edges; and whether replays wait for the host
	Edges      Kind = "edge"       // edges added or removed
	Barriers   Kind = "barrier"    // barriers added or removed
	Commits    Kind = "commit"     // commits added, removed, or with another order
	Views      Kind = "view"       // a command binds other bytes
	Constants  Kind = "constant"   // inline bytes and scalars, and where they are kept
	Command    Kind = "command"    // kernel, grid, threadgroup
	Effects    Kind = "effects"    // the effects that a command stores
	Provenance Kind = "provenance" // the commands that a command says it stands for, and IDs
	Labels     Kind = "label"      // texts for readers: ops, labels, groups
	Kernels    Kind = "kernel"     // the table of kernels
)

// Kinds lists all kinds, in that order.
var Kinds = []Kind{Interface, Param, Memory, Dropped, Added, Fused, Split, Moved, Ordering, Edges, Barriers, Commits, Views, Constants, Command, Effects, Provenance, Labels, Kernels}

// Change is one difference.
type Change struct {
	Kind   Kind    `json:"kind"`
	Text   string  `json:"text"`
	Before []ir.ID `json:"before,omitempty"` // the commands concerned
	After  []ir.ID `json:"after,omitempty"`
}

// Diff is what changed between two graphs.
type Diff struct {
	CommandsBefore int      `json:"commands_before"`
	CommandsAfter  int      `json:"commands_after"`
	Changes        []Change `json:"changes"` // by kind
	// Images are, by command after, the commands before that it stands for, in ascending order.
	// Both are numbered by their places among the commands of their lists.
	Images [][]int `json:"-"`
}

// Equal reports whether nothing changed.
func (d *Diff) Equal() bool { return len(d.Changes) == 0 }

// Of returns the changes of kind k.
func (d *Diff) Of(k Kind) (out []Change) {
	for _, c := range d.Changes {
		if c.Kind == k {
			out = append(out, c)
		}
	}
	return out
}

// Summary describes the changes in one line.
func (d *Diff) Summary() string {
	if d.Equal() {
		return fmt.Sprintf("equal, %d commands", d.CommandsBefore)
	}
	parts := []string{fmt.Sprintf("%d commands before, %d after", d.CommandsBefore, d.CommandsAfter)}
	count, from := map[Kind]int{}, map[Kind]int{}
	for _, c := range d.Changes {
		count[c.Kind]++
		from[c.Kind] += len(c.Before)
	}
	for _, k := range Kinds {
		n := count[k]
		switch {
		case n == 0:
		case k == Fused:
			parts = append(parts, fmt.Sprintf("%d fused into %d", from[k], n))
		case k == Dropped || k == Added || k == Split || k == Moved:
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		case n == 1:
			parts = append(parts, fmt.Sprintf("1 %s change", k))
		default:
			parts = append(parts, fmt.Sprintf("%d %s changes", n, k))
		}
	}
	return strings.Join(parts, ", ")
}

// Graphs compares two graphs, which must have passed [ir.Graph.Check]. The error is
// that of an ended ctx.
func Graphs(ctx context.Context, before, after *ir.Graph) (out *Diff, err error) {
	defer interrupt.Catch(&err)
	c := newComparison(before, after)
	c.params()
	c.memories()
	c.kernels()
	c.match()
	c.order()
	c.ordering()
	c.marks()
	c.commands()
	out = &Diff{CommandsBefore: len(c.b.commands), CommandsAfter: len(c.a.commands), Changes: []Change{}, Images: c.images}
	for _, k := range Kinds {
		out.Changes = append(out.Changes, c.found[k]...)
	}
	return out, nil
}

// side is one of the two graphs.
type side struct {
	g        *ir.Graph
	commands []ir.Command
	from     [][]ir.ID // by command: the recorded commands that it stands for
	ids      []ir.ID
	memories map[string]ir.MemID
	marks    []mark
}

// mark is a node that is not a command. It stands before command `at`.
type mark struct {
	at   int
	node ir.Node
}

func newSide(g *ir.Graph) *side {
	s := &side{g: g, memories: make(map[string]ir.MemID, len(g.Memories))}
	for i := range g.Memories {
		s.memories[g.Memories[i].Name] = ir.MemID(i)
	}
	for _, n := range g.Nodes {
		c, ok := n.(ir.Command)
		if !ok {
			s.marks = append(s.marks, mark{len(s.commands), n})
			continue
		}
		s.commands = append(s.commands, c)
		s.ids = append(s.ids, c.Num())
	}
	s.from = make([][]ir.ID, len(s.commands))
	for i, n := range s.commands {
		if s.from[i] = n.Origin(); s.from[i] == nil {
			s.from[i] = s.ids[i : i+1 : i+1]
		}
	}
	return s
}

type comparison struct {
	b, a  *side
	found map[Kind][]Change
	// images[i] are the commands before that command i after stands for. of[j] are the
	// commands after that stand for command j before.
	images, of [][]int
}

func newComparison(before, after *ir.Graph) *comparison {
	return &comparison{b: newSide(before), a: newSide(after), found: map[Kind][]Change{}}
}

func (c *comparison) add(k Kind, before, after []ir.ID, format string, args ...any) {
	c.found[k] = append(c.found[k], Change{k, fmt.Sprintf(format, args...), before, after})
}
