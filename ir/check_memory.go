package ir

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/interrupt"
)

func (c *checker) memories(g *Graph) {
	seen := map[string]bool{}
	var polls interrupt.Every
	for i := range g.Memories {
		polls.Poll(c.ctx, 64)
		m := &g.Memories[i]
		if !validName(m.Name) {
			c.memory(g, i, "name is empty, too long or not printable", "")
		}
		if seen[m.Name] {
			c.memory(g, i, "another memory has this name", "rename one")
		}
		seen[m.Name] = true
		if m.Size <= 0 || m.Size > maxSize {
			c.memory(g, i, fmt.Sprintf("size of %d bytes is outside [1, %d]", m.Size, int64(maxSize)), "")
		}
		if m.Align < 0 || m.Align&(m.Align-1) != 0 || m.Align > 1<<20 {
			c.memory(g, i, fmt.Sprintf("alignment %d is no power of two up to 1 MiB", m.Align), "")
		}
		if int(m.Kind) >= len(memKinds) || m.Storage > Private || m.Init.Kind > InitValues {
			c.memory(g, i, "kind, storage or initial contents are of no known sort", "")
			continue
		}
		if m.Every && (m.Kind != Output || m.Alias != NoMem) {
			c.memory(g, i, "is no output and keeps every replay's contents", "only outputs are kept of every replay of a submission")
		}
		c.shape(g, i, m)
		c.init(g, i, m)
		c.alias(g, i, m)
	}
}

func (c *checker) shape(g *Graph, i int, m *Memory) {
	if m.DType == Invalid && m.Shape == nil {
		return
	}
	if !m.DType.Valid() {
		c.memory(g, i, "has a shape but no element type", "")
		return
	}
	bits := int64(m.DType.Bits())
	for _, d := range m.Shape {
		p, ok := mulOK(bits, d)
		if d <= 0 || !ok || p > maxSize*8 {
			c.memory(g, i, fmt.Sprintf("shape %v is not positive or too large", m.Shape), "")
			return
		}
		bits = p
	}
	if (bits+7)/8 > m.Size {
		c.memory(g, i, fmt.Sprintf("shape %s%v needs %d bytes, memory has %d", m.DType, m.Shape, (bits+7)/8, m.Size), "")
	}
}

func (c *checker) init(g *Graph, i int, m *Memory) {
	in := m.Init
	switch {
	case m.Alias != NoMem && in.Kind != InitNone:
		c.memory(g, i, "an alias has no initial contents of its own", "give them to the memory that it lies in")
	case (in.Kind == InitBlob) != (in.Blob != nil):
		c.memory(g, i, "blob contents without a blob, or a blob without blob contents", "")
	case in.Blob != nil && in.Blob.Length != m.Size:
		c.memory(g, i, fmt.Sprintf("initial contents have %d bytes, memory has %d", in.Blob.Length, m.Size), "")
	case in.Blob != nil && (in.Blob.Offset < 0 || in.Blob.Offset > maxSize):
		c.memory(g, i, fmt.Sprintf("initial contents begin at byte %d of %q", in.Blob.Offset, in.Blob.Path), "")
	case (in.Kind == InitValues) != (in.Values != nil):
		c.memory(g, i, "value contents without values, or values without value contents", "")
	case m.Alias == NoMem && (m.Kind == Argument) != (in.Kind == InitValues):
		c.memory(g, i, "argument memory has values, and nothing else does", "list what the replay writes")
	case in.Kind == InitValues:
		c.values(g, i, m)
	case m.Kind == Weight && m.Alias == NoMem && in.Kind == InitNone:
		c.memory(g, i, "a weight needs initial contents", "give it a blob, a file, a fill or a random seed")
	case (m.Kind == Input || m.Kind == Output || m.Kind == Scratch) && in.Kind != InitNone:
		c.memory(g, i, fmt.Sprintf("%s memory has initial contents", m.Kind), "only weights and states keep bytes between replays")
	}
}

// values checks the values of argument memory.
func (c *checker) values(g *Graph, i int, m *Memory) {
	if m.Storage != Shared {
		c.memory(g, i, "argument memory is private", "the host writes it: make it shared")
	}
	end := int64(0)
	for j := range m.Init.Values {
		v := &m.Init.Values[j]
		if len(c.defects) >= maxDefects {
			return
		}
		if v.Type != Invalid && !v.Type.Valid() {
			c.memory(g, i, fmt.Sprintf("value %d is of no known type", j), "")
			return
		}
		// INVARIANT: the limits of memory sizes keep these sums far from overflowing 64 bits.
		if v.Size() == 0 || v.Off < end || v.Off > m.Size || v.Size() > m.Size-v.Off {
			c.memory(g, i, fmt.Sprintf("value %d, %d bytes at %d, is empty, overlaps the one before or leaves the memory (%d bytes)", j, v.Size(), v.Off, m.Size), "values stand in ascending order, apart")
			return
		}
		end = v.Off + v.Size()
		if v.Bytes == nil {
			if what, hint := scalarDefect(c, g, v.Type, v.Expr); what != "" {
				c.memory(g, i, fmt.Sprintf("value %d%s", j, what), hint)
			}
		}
	}
}

func (c *checker) alias(g *Graph, i int, m *Memory) {
	if m.Alias == NoMem {
		if m.AliasOff != 0 {
			c.memory(g, i, "has an alias offset but is no alias", "")
		}
		return
	}
	// A parent stands before its aliases, so that there can be no cycle.
	if m.Alias < 0 || int(m.Alias) >= i {
		c.memory(g, i, "aliases a memory that is not declared before it", "declare the memory that holds it first")
		return
	}
	p := &g.Memories[m.Alias]
	if m.Kind != p.Kind || m.Storage != p.Storage {
		c.memory(g, i, fmt.Sprintf("is %s %s but lies in %s %s memory", m.Storage, m.Kind, p.Storage, p.Kind), "an alias takes its parent's kind")
	}
	if end, ok := addOK(m.AliasOff, m.Size); m.AliasOff < 0 || !ok || end > p.Size {
		c.memory(g, i, fmt.Sprintf("alias [%d:%d] ends past %s (%d bytes)", m.AliasOff, m.AliasOff+m.Size, g.memName(m.Alias), p.Size), "shorten the alias or grow the memory")
	}
}
