package graphdiff

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/collections/subsequence"
	"github.com/mlxc/mlxc/ir"
)

// match finds the counterparts of all commands.
func (c *comparison) match() {
	c.images, c.of = make([][]int, len(c.a.commands)), make([][]int, len(c.b.commands))
	// Commands with the same ID and the same provenance are the same, even if other
	// commands claim to stand for them too.
	byID := make(map[ir.ID]int, len(c.b.commands))
	for j, id := range c.b.ids {
		byID[id] = j
	}
	slab := make([]int, 0, 2*len(c.a.commands))
	one := func(x int) []int {
		slab = append(slab, x)
		return slab[len(slab)-1 : len(slab) : len(slab)]
	}
	for i, id := range c.a.ids {
		if j, ok := byID[id]; ok && slices.Equal(c.b.from[j], c.a.from[i]) {
			c.images[i], c.of[j] = one(j), one(i)
		}
	}
	owner := make(map[ir.ID]int, len(c.b.commands))
	for j, ids := range c.b.from {
		if len(c.of[j]) > 0 {
			continue
		}
		for _, id := range ids {
			owner[id] = j
		}
	}
	for i, ids := range c.a.from {
		if len(c.images[i]) > 0 {
			continue
		}
		for _, id := range ids {
			j, ok := owner[id]
			if !ok {
				continue
			}
			if n := len(c.of[j]); n == 0 || c.of[j][n-1] != i {
				c.images[i] = append(c.images[i], j)
				c.of[j] = append(c.of[j], i)
			}
		}
		slices.Sort(c.images[i])
	}
	for j := range c.of {
		switch {
		case len(c.of[j]) == 0:
			c.add(Dropped, c.b.ids[j:j+1], nil, "%s", c.b.describe(j))
		case len(c.of[j]) > 1:
			c.add(Split, c.b.ids[j:j+1], c.idsOf(c.a, c.of[j]), "%s is now %s", c.b.describe(j), c.a.list(c.of[j]))
		}
	}
	for i := range c.images {
		switch {
		case len(c.images[i]) == 0:
			c.add(Added, nil, c.a.ids[i:i+1], "%s", c.a.describe(i))
		case len(c.images[i]) > 1:
			c.add(Fused, c.idsOf(c.b, c.images[i]), c.a.ids[i:i+1], "%s are now %s by %s", c.b.list(c.images[i]), c.a.ids[i], c.a.kernel(i))
		}
	}
}

func (c *comparison) idsOf(s *side, commands []int) (out []ir.ID) {
	for _, i := range commands {
		out = append(out, s.ids[i])
	}
	return out
}

func (s *side) describe(i int) string { return s.g.Describe(s.commands[i]) }

func (s *side) list(commands []int) string {
	var out []string
	for _, i := range commands {
		out = append(out, s.describe(i))
	}
	return strings.Join(out, ", ")
}

func (s *side) kernel(i int) string {
	switch n := s.commands[i].(type) {
	case *ir.Dispatch:
		return s.g.Kernels[n.Kernel].Function
	case *ir.Copy:
		return "copy"
	case *ir.Join:
		return "join"
	case *ir.Carry:
		return "carry"
	}
	return "fill"
}

// pair returns the command before whose only counterpart is command i after, or −1 if
// there is no such command.
func (c *comparison) pair(i int) int {
	if len(c.images[i]) != 1 || len(c.of[c.images[i][0]]) != 1 {
		return -1
	}
	return c.images[i][0]
}

// order finds the commands that moved: those that are not on a longest increasing
// subsequence (Fredman 1975) of the positions before, taken in the order after. A fused
// command is taken to stand where the last of its commands stood.
func (c *comparison) order() {
	var at []int // commands after that stand for some command before
	var place []int
	for i := range c.images {
		if n := len(c.images[i]); n > 0 {
			at, place = append(at, i), append(place, c.images[i][n-1])
		}
	}
	stays := subsequence.Increasing(place)
	for k, i := range at {
		if stays[k] {
			continue
		}
		where := "to the end"
		if i+1 < len(c.a.commands) {
			where = "before " + c.a.describe(i+1)
		}
		c.add(Moved, c.idsOf(c.b, c.images[i]), c.a.ids[i:i+1], "%s, %s", c.a.describe(i), where)
	}
}

// marks compares barriers, commits and groups by the command that they stand before,
// which for marks of the graph before is mapped to the graph after.
func (c *comparison) marks() {
	// image[j] is where position j before lies after: at the next command that is still
	// there.
	n := len(c.b.commands)
	image := make([]int, n+1)
	image[n] = len(c.a.commands)
	for j := n - 1; j >= 0; j-- {
		if image[j] = image[j+1]; len(c.of[j]) > 0 {
			image[j] = c.of[j][0]
		}
	}
	type key struct {
		at    int
		kind  byte
		label string
	}
	of := func(m mark, at int) key {
		switch x := m.node.(type) {
		case *ir.Barrier:
			return key{at, 'b', ""}
		case *ir.Commit:
			return key{at, 'c', x.Label}
		case *ir.GroupBegin:
			return key{at, 'g', x.Label}
		}
		return key{at, 'e', ""}
	}
	was := map[key][]mark{}
	before := len(c.found[Barriers]) + len(c.found[Commits]) + len(c.found[Labels])
	for _, m := range c.b.marks {
		k := of(m, image[m.at])
		was[k] = append(was[k], m)
	}
	for _, m := range c.a.marks {
		k := of(m, m.at)
		old := was[k]
		if len(old) == 0 {
			c.mark(c.a, m, "added")
			continue
		}
		was[k] = old[1:]
		if x, ok := m.node.(*ir.Commit); ok && x.Order != old[0].node.(*ir.Commit).Order {
			c.add(Commits, nil, nil, "commit %s: order %s before, %s after", c.a.place(m), old[0].node.(*ir.Commit).Order, x.Order)
		}
	}
	for _, m := range c.b.marks { // the marks left over, in list order
		k := of(m, image[m.at])
		if old := was[k]; len(old) > 0 && old[0].node == m.node && old[0].at == m.at {
			was[k] = old[1:]
			c.mark(c.b, m, "removed")
		}
	}
	if before < len(c.found[Barriers])+len(c.found[Commits])+len(c.found[Labels]) {
		return
	}
	for i, m := range c.a.marks { // both sides have equally many marks of the same kinds at the same positions
		if of(m, m.at) != of(c.b.marks[i], image[c.b.marks[i].at]) {
			c.add(Barriers, nil, nil, "marks %s stand in another order", c.a.place(m))
			return
		}
	}
}

func (s *side) place(m mark) string {
	if m.at == len(s.commands) {
		return "at the end"
	}
	return "before " + s.describe(m.at)
}

func (c *comparison) mark(s *side, m mark, what string) {
	switch x := m.node.(type) {
	case *ir.Barrier:
		c.add(Barriers, nil, nil, "%s %s", what, s.place(m))
	case *ir.Commit:
		c.add(Commits, nil, nil, "%s %s: order %s", what, s.place(m), x.Order)
	case *ir.GroupBegin:
		c.add(Labels, nil, nil, "group %q %s %s", x.Label, what, s.place(m))
	default:
		c.add(Labels, nil, nil, "end of a group %s %s", what, s.place(m))
	}
}
