package prove

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// matching says for every command after, in order, which commands before it is
// meant to implement; none where nobody knows. It is a hint: nothing is
// believed because of it.
type matching struct {
	ends []int32 // by command: where its list ends
	list []int32
}

func (m *matching) of(i int32) []int32 {
	from := int32(0)
	if i > 0 {
		from = m.ends[i-1]
	}
	return m.list[from:m.ends[i]:m.ends[i]]
}

// end ends the list of the next command, which began at from.
func (m *matching) end(from int) {
	if set := m.list[from:]; len(set) > 1 {
		slices.Sort(set)
		m.list = m.list[:from+len(slices.Compact(set))]
	}
	m.ends = append(m.ends, int32(len(m.list)))
}

func (m *matching) equal(n *matching) bool {
	return slices.Equal(m.ends, n.ends) && slices.Equal(m.list, n.list)
}

// byProvenance reads the matching that the graph after carries. The ids in `from` are
// those of a first recording: where the graph before was rewritten itself, they are
// the ids that its commands came from.
func byProvenance(b *model, after *ir.Graph) *matching {
	out := &matching{ends: make([]int32, 0, len(b.ops)), list: make([]int32, 0, len(b.ops))}
	origins := b.origins()
	for _, n := range after.Nodes {
		c, ok := working(n)
		if !ok {
			continue
		}
		first := len(out.list)
		known := true
		for _, f := range c.Origin() {
			j, ok := b.byID.find(f)
			if from, rewritten := origins.find(f); rewritten {
				j, ok = from, true
			}
			out.list = append(out.list, j)
			known = known && ok
		}
		if len(out.list) == first {
			j, ok := b.byID.find(c.Num())
			out.list = append(out.list, j)
			known = ok
		}
		if !known {
			out.list = out.list[:first]
		}
		out.end(first)
	}
	return out
}

// origins finds the op that came from a command of an earlier graph.
func (m *model) origins() index {
	x := newIndex(0)
	for i := range m.ops {
		list := m.ops[i].node.Origin()
		if len(list) > 0 && x.limit < len(m.ops) {
			x = newIndex(len(m.ops)) // few graphs need it
		}
		for _, f := range list {
			x.set(f, int32(i))
		}
	}
	return x
}
