package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// beginBuffer begins a command buffer whose commands refer to the graph of scope.
func (d *device) beginBuffer(ctx context.Context, scope *backend.Scope) error {
	d.reap()
	if err := d.renew(); err != nil {
		return err
	}
	cb, err := d.queue.CommandBuffer(ctx, backend.Recording{Scope: scope, Profile: d.profile})
	if err != nil {
		return err
	}
	if d.begin.IsZero() {
		d.begin = time.Now()
	}
	d.open, d.barriers = cb, 0
	d.serial++
	d.counters.add(commandBuffers, 1)
	return nil
}

// encode adds a command or barrier of a live recording to the open command buffer.
func (d *device) encode(ctx context.Context, n ir.Node) error {
	if err := d.locate(ctx, n); err != nil {
		return err
	}
	d.scope.Params = d.values.bits
	return d.encodeNode(n)
}

// encodeNode adds a node to the open command buffer.
func (d *device) encodeNode(n ir.Node) error {
	if _, ok := n.(*ir.Barrier); ok {
		d.barriers++
	}
	return d.open.Encode(n)
}

// locate fills in the places of the memories that n binds.
func (d *device) locate(ctx context.Context, n ir.Node) error {
	switch n := n.(type) {
	case *ir.Dispatch:
		for i := range n.Bindings {
			if b := &n.Bindings[i]; b.Kind == ir.BindView {
				if err := d.locateMemory(ctx, b.View.Mem); err != nil {
					return err
				}
			}
		}
	case *ir.Copy:
		return errors.Join(d.locateMemory(ctx, n.Dst.Mem), d.locateMemory(ctx, n.Src.Mem))
	case *ir.Fill:
		return d.locateMemory(ctx, n.Dst.Mem)
	}
	return nil
}

func (d *device) locateMemory(ctx context.Context, m ir.MemID) error {
	root, _ := d.memory.graph.Root(m)
	for int(root) >= len(d.scope.Places) {
		d.scope.Places = append(d.scope.Places, backend.Place{})
	}
	if err := d.ensure(ctx, root); err != nil {
		return err
	}
	if b := d.memory.places[root].buffer; d.scope.Places[root].Buffer != b {
		d.scope.Places[root] = backend.At(b)
	}
	return nil
}

// ensure makes sure that a root memory has a buffer of its size. Memory that has grown gets
// a greater buffer with the old contents.
func (d *device) ensure(ctx context.Context, root ir.MemID) (err error) {
	p, m := &d.memory.places[root], &d.memory.graph.Memories[root]
	if p.buffer != nil && p.bytes >= m.Size {
		return nil
	}
	var b backend.Buffer
	switch {
	case p.host != nil:
		b, err = d.on.Map(p.host, m.Kind.ReadOnly())
	case p.buffer != nil: // the arena has grown and may grow again, so take half as much more
		more := *m
		more.Size = max(m.Size, p.bytes+p.bytes/2)
		b, err = d.on.Alloc(backend.Spec(&more))
	default:
		b, err = backend.AllocMemory(ctx, d.on, d.queue, m)
	}
	if err != nil {
		return fmt.Errorf("record %s: memory %%%s: %w", d.memory.graph.Name, ir.QuoteName(m.Name), err)
	}
	old := p.buffer
	p.buffer, p.bytes = b, b.Size()
	switch {
	case old == nil:
	case d.open != nil: // the copy runs after the commands that were encoded so far
		if err := d.open.Copy(backend.At(b), backend.At(old), old.Size()); err != nil {
			return errors.Join(err, old.Close())
		}
		d.grown = append(d.grown, grown{old, b})
	default:
		ctx := context.Background() // the contents must survive even if the recording is aborted
		err := backend.Wait(ctx)(d.queue.Copy(ctx, backend.At(b), backend.At(old), old.Size()))
		return errors.Join(err, old.Close())
	}
	return nil
}

// store copies data to memory that no command buffer uses now.
func (d *device) store(ctx context.Context, at backend.Place, data []byte) error {
	if to := at.Bytes(int64(len(data))); to != nil {
		copy(to, data)
		return nil
	}
	return backend.Wait(ctx)(d.queue.Upload(ctx, at, data))
}

// submit commits the open command buffer. If err is not nil, it discards the command buffer
// and returns that error.
func (d *device) submit(ctx context.Context, err error, commands int, order ir.CommitOrder, label string) error {
	if d.open == nil {
		return nil
	}
	var p backend.Pending
	if err != nil {
		d.open.Discard()
	} else {
		p, err = d.open.Commit(ctx, label, order)
	}
	if err != nil {
		d.abandon()
		d.counters.add(failedBuffers, 1)
		return fmt.Errorf("command buffer %q: %w", label, err)
	}
	d.open = nil
	for _, g := range d.grown {
		d.given = append(d.given, given{g.from, d.serial, 0})
	}
	d.grown = nil
	s := &submitted{serial: d.serial, label: label, commands: commands, barriers: d.barriers, buffer: p}
	d.flight, d.pending = append(d.flight, s), append(d.pending, s)
	d.last = time.Now()
	d.reap()
	return nil
}
