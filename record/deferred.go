package record

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// execute submits the command buffers of a deferred recording.
func (d *device) execute(ctx context.Context, g *ir.Graph) error {
	made := map[ir.MemID]backend.Buffer{}
	defer func() {
		for _, b := range made {
			d.given = append(d.given, given{b, d.serial, 0})
		}
		d.reap()
	}()
	scope := &backend.Scope{Graph: g, Places: make([]backend.Place, len(g.Memories)), Params: d.values.bits}
	order, rest := ir.OrderEvent, g.Nodes // order is how the next command buffer follows the previous ones
	for len(rest) > 0 {
		n := slices.IndexFunc(rest, func(n ir.Node) bool { _, ok := n.(*ir.Commit); return ok })
		end := &ir.Commit{Label: g.Name}
		part, after := rest, []ir.Node(nil)
		if n >= 0 {
			end, part, after = rest[n].(*ir.Commit), rest[:n], rest[n+1:]
		}
		commands := 0
		for _, n := range part {
			if _, ok := n.(ir.Command); ok {
				commands++
			}
		}
		if commands > 0 {
			if err := d.executePart(ctx, scope, part, commands, order, end.Label, made); err != nil {
				return err
			}
			order = ir.OrderNone
		}
		order, rest = max(order, end.Order), after
	}
	return nil
}

// executePart submits one command buffer, which consists of the given nodes.
func (d *device) executePart(ctx context.Context, scope *backend.Scope, nodes []ir.Node, commands int, order ir.CommitOrder, label string, made map[ir.MemID]backend.Buffer) error {
	if err := d.beginBuffer(ctx, scope); err != nil {
		return err
	}
	err := d.values.check(scope.Graph)
	if err == nil {
		err = d.bound(ctx, scope.Graph, nodes, scope.Places, made)
	}
	for i := 0; i < len(nodes) && err == nil; i++ {
		switch nodes[i].(type) {
		case *ir.GroupBegin, *ir.GroupEnd: // left out, because a group may contain commits
		default:
			err = d.encodeNode(nodes[i])
		}
	}
	return d.submit(ctx, err, commands, order, label)
}

// bound fills in the places of all memories that the nodes of a deferred graph bind. Memories
// that the encoder has are found by their names. The others were added by passes; their
// buffers are kept in made for as long as g executes.
func (d *device) bound(ctx context.Context, g *ir.Graph, nodes []ir.Node, places []backend.Place, made map[ir.MemID]backend.Buffer) (err error) {
	each := func(v *ir.View) {
		root, _ := g.Root(v.Mem)
		if err == nil {
			var b backend.Buffer
			b, err = d.bufferOf(ctx, g, root, made)
			places[root] = backend.At(b)
		}
	}
	for _, n := range nodes {
		if c, ok := n.(ir.Command); ok {
			c.EachView(each)
		}
	}
	return err
}

// bufferOf returns the buffer of a root memory of g, see bound.
func (d *device) bufferOf(ctx context.Context, g *ir.Graph, root ir.MemID, made map[ir.MemID]backend.Buffer) (backend.Buffer, error) {
	m, ms := &g.Memories[root], d.memory
	id, ok := ms.names[m.Name]
	if ok && ms.graph.Memories[id].Kind == m.Kind && ms.graph.Memories[id].Size >= m.Size && m.Kind != ir.Argument {
		d.use(&ms.places[id])
		err := d.ensure(ctx, id)
		return ms.places[id].buffer, err
	}
	if b := made[root]; b != nil {
		return b, nil
	}
	b, err := backend.AllocMemory(ctx, d.on, d.queue, m)
	if err != nil {
		return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
	}
	made[root] = b
	if m.Kind == ir.Argument {
		data := make([]byte, m.Size)
		m.WriteValues(data, d.values.bits)
		if err := d.store(ctx, backend.At(b), data); err != nil {
			return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
		}
	}
	return b, nil
}
