package graphdiff

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// params compares params by position, because expressions refer to them so, and
// constraints as they are written.
func (c *comparison) params() {
	b, a := c.b.g, c.a.g
	for i := range max(len(b.Params), len(a.Params)) {
		switch {
		case i >= len(a.Params):
			c.add(Param, nil, nil, "$%s is gone", b.Params[i].Name)
		case i >= len(b.Params):
			c.add(Param, nil, nil, "$%s is new: %s", a.Params[i].Name, param(a.Params[i]))
		case b.Params[i] != a.Params[i]:
			c.add(Param, nil, nil, "$%s, %s, is now $%s, %s", b.Params[i].Name, param(b.Params[i]), a.Params[i].Name, param(a.Params[i]))
		}
	}
	was := map[string]int{}
	text := func(g *ir.Graph, x ir.Constraint) string {
		return fmt.Sprintf("%s <= %d", g.FormatAffine(x.LHS), x.Max)
	}
	for _, x := range b.Constraints {
		was[text(b, x)]++
	}
	for _, x := range a.Constraints {
		if t := text(a, x); was[t] > 0 {
			was[t]--
		} else {
			c.add(Param, nil, nil, "new constraint %s", t)
		}
	}
	for _, x := range b.Constraints {
		if t := text(b, x); was[t] > 0 {
			was[t]--
			c.add(Param, nil, nil, "constraint %s is gone", t)
		}
	}
}

// ordering compares what orders the commands, and what orders one replay after the
// next.
func (c *comparison) ordering() {
	b, a := c.b.g, c.a.g
	if b.Ordering != a.Ordering {
		c.add(Ordering, nil, nil, "by %s before, by %s after", inWords[b.Ordering], inWords[a.Ordering])
	} else if a.Ordering == ir.ByEdges {
		c.edges()
	}
	if b.NextHost != a.NextHost {
		words := map[bool]string{true: "waits", false: "does not wait"}
		c.add(Ordering, nil, nil, "between two replays the host %s before, %s after", words[b.NextHost], words[a.NextHost])
	}
}

var inWords = [...]string{ir.ByBarriers: "barriers and commits", ir.Serial: "the list", ir.ByEdges: "edges"}

// edges compares edges by the IDs of the commands that they connect.
func (c *comparison) edges() {
	was := make(map[ir.Edge]bool, len(c.b.g.Edges))
	for _, e := range c.b.g.Edges {
		was[e] = true
	}
	report := func(what string, e ir.Edge) {
		from := e.From.String()
		if e.Previous {
			from = "previous " + from
		}
		c.add(Edges, nil, nil, "%s: %s after %s", what, e.To, from)
	}
	for _, e := range c.a.g.Edges {
		if !was[e] {
			report("added", e)
		}
		delete(was, e)
	}
	for _, e := range c.b.g.Edges {
		if was[e] {
			report("removed", e)
		}
	}
}

func param(p ir.Param) string {
	text := fmt.Sprintf("%s in [%g, %g]", p.Type, p.Min, p.Max)
	if p.Advance != 0 {
		text += fmt.Sprintf(" %+d a replay", p.Advance)
	}
	return text
}

// memories compares memories by name.
func (c *comparison) memories() {
	for i := range c.b.g.Memories {
		m := &c.b.g.Memories[i]
		j, ok := c.a.memories[m.Name]
		if !ok {
			c.add(kindOf(m), nil, nil, "%s is gone", c.b.memory(ir.MemID(i)))
			continue
		}
		for _, text := range c.differences(m, &c.a.g.Memories[j]) {
			c.add(kindOf(m), nil, nil, "%s %%%s: %s", m.Kind, m.Name, text)
		}
	}
	for i := range c.a.g.Memories {
		m := &c.a.g.Memories[i]
		if _, ok := c.b.memories[m.Name]; !ok {
			c.add(kindOf(m), nil, nil, "%s is new", c.a.memory(ir.MemID(i)))
		}
	}
	if c.renumbered() {
		c.add(Memory, nil, nil, "memories are listed in another order")
	}
}

// renumbered reports whether the memories that both graphs have stand in a different
// order.
func (c *comparison) renumbered() bool {
	last := ir.NoMem
	for i := range c.b.g.Memories {
		if j, ok := c.a.memories[c.b.g.Memories[i].Name]; ok {
			if j < last {
				return true
			}
			last = j
		}
	}
	return false
}

// kindOf returns Interface for memories that the host sees, and Memory for others.
func kindOf(m *ir.Memory) Kind {
	if m.Kind == ir.Scratch || m.Kind == ir.Argument || m.Alias != ir.NoMem {
		return Memory
	}
	return Interface
}

func (s *side) memory(i ir.MemID) string {
	m := &s.g.Memories[i]
	if m.Alias != ir.NoMem {
		return fmt.Sprintf("alias %%%s of %%%s + %d, %d bytes,", m.Name, s.g.Memories[m.Alias].Name, m.AliasOff, m.Size)
	}
	return fmt.Sprintf("%s %%%s, %d bytes,", m.Kind, m.Name, m.Size)
}

func (c *comparison) differences(m, n *ir.Memory) (out []string) {
	add := func(what string, x, y any) {
		if x != y {
			out = append(out, fmt.Sprintf("%s %v before, %v after", what, x, y))
		}
	}
	add("kind", m.Kind, n.Kind)
	add("bytes:", m.Size, n.Size)
	add("kept of every replay:", m.Every, n.Every)
	add("storage", m.Storage, n.Storage)
	add("alignment", m.Align, n.Align)
	add("type", m.DType.String(), n.DType.String())
	add("shape", fmt.Sprint(m.Shape), fmt.Sprint(n.Shape))
	add("place:", place(c.b.g, m), place(c.a.g, n))
	if !m.SameContents(n) {
		if m.Init.Kind == ir.InitValues || n.Init.Kind == ir.InitValues {
			out = append(out, fmt.Sprintf("other values (%d before, %d after)", len(m.Init.Values), len(n.Init.Values)))
		} else {
			out = append(out, "other initial contents")
		}
	}
	return out
}

func place(g *ir.Graph, m *ir.Memory) string {
	if m.Alias == ir.NoMem {
		return "of its own"
	}
	return fmt.Sprintf("%%%s + %d", g.Memories[m.Alias].Name, m.AliasOff)
}

// kernels compares the kernel tables by name.
func (c *comparison) kernels() {
	was := map[string]*ir.Kernel{}
	for i := range c.b.g.Kernels {
		was[c.b.g.Kernels[i].Name] = &c.b.g.Kernels[i]
	}
	last := -1
	index := map[string]int{}
	for i := range c.b.g.Kernels {
		index[c.b.g.Kernels[i].Name] = i
	}
	moved := false
	for i := range c.a.g.Kernels {
		k := &c.a.g.Kernels[i]
		old := was[k.Name]
		delete(was, k.Name)
		if old == nil {
			c.add(Kernels, nil, nil, "@%s is new: %s %s", ir.QuoteName(k.Name), k.Library.Kind, ir.Shorten(k.Function))
			continue
		}
		moved = moved || index[k.Name] < last
		last = index[k.Name]
		if what := otherKernel(old, k); what != "" {
			c.add(Kernels, nil, nil, "@%s: %s", ir.QuoteName(k.Name), what)
		}
	}
	for i := range c.b.g.Kernels {
		if k := &c.b.g.Kernels[i]; was[k.Name] != nil {
			c.add(Kernels, nil, nil, "@%s is gone", ir.QuoteName(k.Name))
		}
	}
	if moved {
		c.add(Kernels, nil, nil, "kernels are listed in another order")
	}
}

// otherKernel says in what two kernels differ, "" if they do not.
func otherKernel(k, l *ir.Kernel) string {
	switch {
	case k.Function != l.Function:
		return fmt.Sprintf("function %s before, %s after", ir.Shorten(k.Function), ir.Shorten(l.Function))
	case k.Library != l.Library:
		return fmt.Sprintf("library %s before, %s after", library(k), library(l))
	case !slices.Equal(k.Constants, l.Constants):
		return "other function constants"
	case !slices.Equal(k.Args, l.Args):
		return "another table of arguments"
	}
	return ""
}

func library(k *ir.Kernel) string {
	if msl.Declared(k) {
		return k.Library.Kind.String()
	}
	return fmt.Sprintf("%s %q sha256 %.12s…", k.Library.Kind, k.Library.Path, k.Library.Digest)
}
