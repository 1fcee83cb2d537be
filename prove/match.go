package prove

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// matching says for each command of A, in order, which commands of B it is meant to implement. The
// list of a command is empty if that is not known. A matching is a hint, and the proof checks it.
type matching struct {
	ends []int32 // by command of A: where its part of list ends
	list []int32
}

func (m *matching) of(i int32) []int32 {
	from := int32(0)
	if i > 0 {
		from = m.ends[i-1]
	}
	return m.list[from:m.ends[i]:m.ends[i]]
}

// end closes the list of the next command of A, which began at position from.
func (m *matching) end(from int) {
	if set := m.list[from:]; len(set) > 1 {
		slices.Sort(set)
		m.list = m.list[:from+len(slices.Compact(set))]
	}
	m.ends = append(m.ends, int32(len(m.list)))
}

// byProvenance reads the matching that the provenance of A describes. The IDs in `from`
// are those of a first recording: if B was rewritten itself, its commands are found by
// the IDs that they came from.
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

// origins returns an index of the ops by the commands of an earlier graph that they
// came from.
func (m *model) origins() index {
	x := newIndex(0)
	for i := range m.ops {
		list := m.ops[i].node.Origin()
		if len(list) > 0 && x.limit < len(m.ops) {
			x = newIndex(len(m.ops)) // few graphs need one
		}
		for _, f := range list {
			x.set(f, int32(i))
		}
	}
	return x
}
