package backend

import (
	"context"
	"errors"

	"github.com/mlxc/mlxc/ir"
)

// Rig is a compiled graph with a queue of its own and a buffer for each memory, for tests and measurements, which look
// at every byte. Programs use package replay.
type Rig struct {
	Queue   Queue
	Buffers []Buffer // by memory; nil: it is an alias
	graph   *ir.Graph
	exec    Executable
	frame   Frame
}

// NewRig allocates the buffers and compiles the graph.
func NewRig(ctx context.Context, d Device, g *ir.Graph) (_ *Rig, err error) {
	r := &Rig{graph: g, Buffers: make([]Buffer, len(g.Memories))}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	if r.Queue, err = d.NewQueue(); err != nil {
		return nil, err
	}
	places := make([]Place, len(g.Memories))
	for i := range g.Memories {
		if g.Memories[i].Alias != ir.NoMem {
			continue
		}
		if r.Buffers[i], err = d.Alloc(Spec(&g.Memories[i])); err != nil {
			return nil, err
		}
		places[i] = At(r.Buffers[i])
	}
	if r.exec, err = d.Compile(ctx, &Program{Graph: g, Places: places}); err != nil {
		return nil, err
	}
	r.frame, err = r.exec.NewFrame(FrameSpec{})
	return r, err
}

// Close releases everything.
func (r *Rig) Close() error {
	var errs []error
	if r.Queue != nil {
		errs = append(errs, r.Queue.Close())
	}
	if r.frame != nil {
		errs = append(errs, r.frame.Close())
	}
	if r.exec != nil {
		errs = append(errs, r.exec.Close())
	}
	for _, b := range r.Buffers {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	return errors.Join(errs...)
}

// Run replays the graph once and returns what it took. If ctx ends first, the replay may still run: then the rig must
// not be closed.
func (r *Rig) Run(ctx context.Context, params ...uint32) (Times, error) {
	p, err := r.Queue.Submit(ctx, Submission{Executable: r.exec, Frame: r.frame, Params: params})
	if err != nil {
		return Times{}, err
	}
	if err := p.Wait(ctx); err != nil {
		return Times{}, err
	}
	return p.Result().Times, nil
}

// Put writes the first bytes of a memory. Nothing that was submitted may still run.
func (r *Rig) Put(ctx context.Context, m ir.MemID, data []byte) error {
	if to := r.Buffers[m].Bytes(); to != nil {
		copy(to, data)
		return nil
	}
	return Wait(ctx)(r.Queue.Upload(ctx, At(r.Buffers[m]), data))
}

// Get returns a copy of a memory's bytes, in out if that is not nil. Nothing that was submitted may still run.
func (r *Rig) Get(ctx context.Context, m ir.MemID, out []byte) ([]byte, error) {
	if out == nil {
		out = make([]byte, r.graph.Memories[m].Size)
	}
	if from := r.Buffers[m].Bytes(); from != nil {
		copy(out, from)
		return out, nil
	}
	return out, Wait(ctx)(r.Queue.Download(ctx, out, At(r.Buffers[m])))
}

// Once runs a graph once on a device, on memories with the given bytes (nil: any), and returns the bytes that they have
// then.
func Once(ctx context.Context, d Device, g *ir.Graph, before [][]byte, params ...uint32) (after [][]byte, err error) {
	r, err := NewRig(ctx, d, g)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for m, data := range before {
		if data != nil {
			if err := r.Put(ctx, ir.MemID(m), data); err != nil {
				return nil, err
			}
		}
	}
	if _, err := r.Run(ctx, params...); err != nil {
		return nil, err
	}
	after = make([][]byte, len(before))
	for m := range before {
		if after[m], err = r.Get(ctx, ir.MemID(m), nil); err != nil {
			return nil, err
		}
	}
	return after, nil
}
