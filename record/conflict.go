package record

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// Conflict is why two commands must not overlap.
type Conflict struct {
	// Kind is RAW, WAR or WAW by what the later command does to bytes of the
	// earlier one; "unknown" where one of the two may touch anything.
	Kind           string
	Earlier, Later ir.ID
	// Labels of the two commands: what the recording calls them.
	EarlierLabel, LaterLabel string
	// Bytes is what the later command touches, %name[off:end]; "" if unknown.
	Bytes string
}

func (c Conflict) String() string {
	s := fmt.Sprintf("%s: %s %s after %s %s", c.Kind, c.Later, c.LaterLabel, c.Earlier, c.EarlierLabel)
	if c.Bytes != "" {
		s += " on " + c.Bytes
	}
	return s
}

// conflict is a Conflict before it is put in words.
type conflict struct {
	hazard.Conflict
	later         ir.ID
	earlier, name string
	race          bool // nothing stands between
}

// conflictLog holds conflicts in blocks, which do not move as it grows.
type conflictLog struct {
	blocks [][]conflict
	n      int
}

const logBlock = 64

func (l *conflictLog) add(c *hazard.Conflict, later ir.ID, earlier, name string, race bool) {
	if l.n/logBlock == len(l.blocks) {
		l.blocks = append(l.blocks, make([]conflict, logBlock))
	}
	x := &l.blocks[l.n/logBlock][l.n%logBlock]
	x.Conflict, x.later, x.earlier, x.name, x.race = *c, later, earlier, name, race
	l.n++
}

// own makes the log one that shares no block that may still be written.
func (l *conflictLog) own() {
	l.blocks = slices.Clone(l.blocks[:(l.n+logBlock-1)/logBlock])
	if l.n%logBlock != 0 {
		last := &l.blocks[len(l.blocks)-1]
		*last = append(make([]conflict, 0, logBlock), (*last)[:l.n%logBlock]...)[:logBlock]
	}
}

func (l *conflictLog) at(i int) *conflict { return &l.blocks[i/logBlock][i%logBlock] }

// maxRaces bounds how many conflicts without a barrier are kept.
const maxRaces = 256

// Conflicts returns why each automatic barrier of the recording stands.
func (e *Encoder) Conflicts() []Conflict { return e.found.list(e.g, false) }

func (l *conflictLog) list(g *ir.Graph, races bool) (out []Conflict) {
	for i := range l.n {
		c := l.at(i)
		if c.race != races {
			continue
		}
		x := Conflict{Kind: c.Kind.String(), Earlier: c.With, Later: c.later, EarlierLabel: c.earlier, LaterLabel: c.name}
		if c.Kind != hazard.Unknown {
			x.Bytes = g.FormatRegion(c.Bytes)
		}
		out = append(out, x)
	}
	return out
}

// nameInGroup names a command of the open group. Each barrier ends a group, so
// looking there costs no more than recording it did.
func (s *stream) nameInGroup(id ir.ID) string {
	for _, n := range s.g.Nodes[s.first:] {
		if c, ok := n.(ir.Command); ok && c.Num() == id {
			return s.nameOf(n)
		}
	}
	return ""
}

// nameOf is what people call a command: its label, else its operation or kernel.
func (s *stream) nameOf(n ir.Node) string {
	switch n := n.(type) {
	case *ir.Dispatch:
		switch {
		case n.Label != "":
			return n.Label
		case n.Op != "":
			return n.Op
		}
		return s.g.Kernels[n.Kernel].Name
	case *ir.Copy:
		return cmp.Or(n.Label, "copy")
	case *ir.Carry:
		return cmp.Or(n.Label, "carry")
	case *ir.Fill:
		return cmp.Or(n.Label, "fill")
	}
	return ""
}
