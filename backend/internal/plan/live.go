package plan

import (
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// Live makes the plan of a command buffer whose commands come one by one. The memories of its scope may
// move meanwhile: an operation names the place that its memory had then, by number.
type Live struct {
	*Recorder
	Places []backend.Place // by number
	Nodes  []ir.Node       // that were added: [Grid.Node] and [Plan.Timed] are places in this list

	scope  *backend.Scope
	check  func(m *ir.Memory, p backend.Place) error
	seen   int // operations whose memories are numbered
	number map[backend.Place]int32
	roots  []backend.Place // by memory, as operations were made with them
}

// NewLive begins a command buffer. check is asked about each place that a memory comes to lie at.
func NewLive(scope *backend.Scope, o Options, check func(m *ir.Memory, p backend.Place) error) *Live {
	return &Live{Recorder: NewRecorder(scope.Graph, o), scope: scope, check: check, number: map[backend.Place]int32{}}
}

// Encode appends a node.
func (l *Live) Encode(n ir.Node) (err error) {
	if cmd, ok := n.(ir.Command); ok {
		cmd.EachView(func(v *ir.View) {
			if root, _ := l.Graph.Root(v.Mem); err == nil {
				err = l.locate(root)
			}
		})
		if err != nil {
			return err
		}
	}
	l.Nodes = append(l.Nodes, n)
	if err := l.add(len(l.Nodes)-1, n); err != nil {
		return err
	}
	// Numbers at once: memories may move before the next command.
	for ; l.seen < len(l.Ops); l.seen++ {
		o := &l.Ops[l.seen]
		if (o.Kind == SetBuffer || o.Kind == SetOffset) && o.Index != Guarded {
			o.Index = l.numbered(l.roots[o.Index])
		}
	}
	return nil
}

// locate notes where a memory lies.
func (l *Live) locate(root ir.MemID) error {
	m := &l.Graph.Memories[root]
	name := ir.QuoteName(m.Name)
	if int(root) >= len(l.scope.Places) || l.scope.Places[root].Buffer == nil {
		return fmt.Errorf("memory %%%s has no place", name)
	}
	for int(root) >= len(l.roots) {
		l.roots = append(l.roots, backend.Place{})
	}
	p := l.scope.Places[root]
	if l.roots[root] == p {
		return nil
	}
	if err := p.Holds(m.Size); err != nil {
		return fmt.Errorf("memory %%%s %w", name, err)
	}
	if err := l.check(m, p); err != nil {
		return fmt.Errorf("memory %%%s: %w", name, err)
	}
	if align := max(m.DType.Size(), 1); p.Offset%align != 0 {
		return fmt.Errorf("memory %%%s begins at byte %d of a buffer, which is no multiple of %d", name, p.Offset, align)
	}
	l.roots[root] = p
	l.Moved(root)
	return nil
}

// numbered is the number of a place.
func (l *Live) numbered(p backend.Place) int32 {
	n, ok := l.number[p]
	if !ok {
		n = int32(len(l.Places))
		l.number[p], l.Places = n, append(l.Places, p)
	}
	return n
}

// Copy appends a copy of n bytes between two places, with barriers before and behind it.
func (l *Live) Copy(dst, src backend.Place, n int64) {
	l.Nodes = append(l.Nodes, nil)
	l.transfer(len(l.Nodes)-1, l.numbered(backend.At(dst.Buffer)), l.numbered(backend.At(src.Buffer)), dst.Offset, src.Offset, n)
	l.seen = len(l.Ops)
}

// Describe names the node of a grid for errors.
func (l *Live) Describe(node int32) string {
	if n := l.Nodes[node]; n != nil {
		return l.Graph.Describe(n)
	}
	return "copy"
}
