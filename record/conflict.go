package record

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

// Conflict says why two commands must not overlap.
type Conflict struct {
	// Kind is RAW (read after write), WAR or WAW, or "unknown" if one of the two commands
	// may touch anything.
	Kind           string
	Earlier, Later ir.ID
	// EarlierLabel and LaterLabel are the labels of the commands or, if they have none, the
	// names of their operations or kernels.
	EarlierLabel, LaterLabel string
	// Bytes are the bytes that the later command touches, as %name[off:end]; "" if the kind
	// is "unknown".
	Bytes string
}

func (c Conflict) String() string {
	s := fmt.Sprintf("%s: %s %s after %s %s", c.Kind, c.Later, c.LaterLabel, c.Earlier, c.EarlierLabel)
	if c.Bytes != "" {
		s += " on " + c.Bytes
	}
	return s
}

// conflict is a [Conflict] whose texts are not made yet.
type conflict struct {
	hazard.Conflict
	later         ir.ID
	earlier, name string
	race          bool // there is no barrier between the two commands
}

// conflictLog holds conflicts in blocks. Blocks are not moved when the log grows, so that
// several logs can share them.
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

// own gives the log its own copy of the last block, the only one that add may still write
// into.
func (l *conflictLog) own() {
	l.blocks = slices.Clone(l.blocks[:(l.n+logBlock-1)/logBlock])
	if l.n%logBlock != 0 {
		last := &l.blocks[len(l.blocks)-1]
		*last = append(make([]conflict, 0, logBlock), (*last)[:l.n%logBlock]...)[:logBlock]
	}
}

func (l *conflictLog) at(i int) *conflict { return &l.blocks[i/logBlock][i%logBlock] }

// maxRaces bounds how many races are kept.
const maxRaces = 256

// Conflicts returns the conflict behind each automatic barrier of the recording so far.
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

// nameInGroup names a command since the last barrier. The search is linear, but a conflict
// places a barrier, so that each command is passed at most once. With ManualBarriers, at
// most maxRaces conflicts are named.
func (s *stream) nameInGroup(id ir.ID) string {
	for _, n := range s.g.Nodes[s.first:] {
		if c, ok := n.(ir.Command); ok && c.Num() == id {
			return s.nameOf(n)
		}
	}
	return ""
}

// nameOf returns the label of a command or, if it has none, its operation or kernel.
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
