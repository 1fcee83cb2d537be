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
	gpu    Maker
	limits []Limits // by pipeline, of those that are made
	seen   int      // number of operations that have their memories' numbers
	number map[backend.Place]int32
	roots  []backend.Place // by memory, as operations were made with them
}

// Maker is what a command buffer asks of its GPU.
type Maker interface {
	// Holds returns an error if n bytes from a place on are not the GPU's.
	Holds(p backend.Place, n int64) error
	// Placed is told where a memory lies that commands are about to bind.
	Placed(m *ir.Memory, p backend.Place)
	// Make makes a pipeline, the next of the plan, and returns the GPU's limits for it.
	Make(p *Pipeline) (Limits, error)
}

// NewLive begins a command buffer.
func NewLive(scope *backend.Scope, o Options, gpu Maker) *Live {
	return &Live{Recorder: NewRecorder(scope.Graph, o), scope: scope, gpu: gpu, number: map[backend.Place]int32{}}
}

// Encode appends a node, and makes the pipelines that it needs. Errors name it.
func (l *Live) Encode(n ir.Node) error {
	if err := l.encode(n); err != nil {
		return fmt.Errorf("%s: %w", l.Graph.Describe(n), err)
	}
	return nil
}

func (l *Live) encode(n ir.Node) (err error) {
	d, dispatch := n.(*ir.Dispatch)
	if dispatch {
		if err := Arguments(l.Graph, d); err != nil {
			return err
		}
	}
	if cmd, ok := n.(ir.Command); ok {
		cmd.EachView(func(v *ir.View) {
			if root, _ := l.Graph.Root(v.Mem); err == nil {
				err = l.locate(root)
			}
		})
		if dispatch {
			bound(l.Graph, d, func(root ir.MemID, align int64) {
				if err == nil {
					err = l.begins(root, align)
				}
			})
		}
		if err != nil {
			return err
		}
	}
	l.Nodes = append(l.Nodes, n)
	if err := l.add(len(l.Nodes)-1, n); err != nil {
		return err
	}
	// Roots become numbers of places at once: memories may move before the next command.
	for ; l.seen < len(l.Ops); l.seen++ {
		o := &l.Ops[l.seen]
		if (o.Kind == SetBuffer || o.Kind == SetOffset) && o.Index != Guarded {
			o.Index = l.numbered(l.roots[o.Index])
		}
	}
	if err := l.make(); err != nil {
		return err
	}
	if i := l.state.pipeline; dispatch && i >= 0 {
		return l.limits[i].Takes(d)
	}
	return nil
}

// make makes those pipelines of the plan that are not made yet.
func (l *Live) make() error {
	for i := len(l.limits); i < len(l.Pipelines); i++ {
		limits, err := l.gpu.Make(&l.Pipelines[i])
		if err != nil {
			return err
		}
		l.limits = append(l.limits, limits)
	}
	return nil
}

// locate records where a memory lies, after checks.
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
	if err := l.gpu.Holds(p, m.Size); err != nil {
		return fmt.Errorf("memory %%%s: %w", name, err)
	}
	if err := l.begins(root, Placed(m)); err != nil {
		return err
	}
	l.gpu.Placed(m, p)
	l.roots[root] = p
	l.moved(root)
	return nil
}

// begins returns an error if a memory's place is no multiple of align.
func (l *Live) begins(root ir.MemID, align int64) error {
	if p := l.scope.Places[root]; p.Offset%align != 0 {
		return fmt.Errorf("memory %%%s begins at byte %d of a buffer, which is no multiple of %d", ir.QuoteName(l.Graph.Memories[root].Name), p.Offset, align)
	}
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
func (l *Live) Copy(dst, src backend.Place, n int64) error {
	if err := l.gpu.Holds(dst, n); err != nil {
		return err
	}
	if err := l.gpu.Holds(src, n); err != nil {
		return err
	}
	l.Nodes = append(l.Nodes, nil)
	l.transfer(len(l.Nodes)-1, l.numbered(backend.At(dst.Buffer)), l.numbered(backend.At(src.Buffer)), dst.Offset, src.Offset, n)
	l.seen = len(l.Ops)
	return l.make()
}

// Describe names the node of a grid for errors.
func (l *Live) Describe(node int32) string {
	if n := l.Nodes[node]; n != nil {
		return l.Graph.Describe(n)
	}
	return "copy"
}
