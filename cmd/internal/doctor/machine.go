package doctor

import (
	"context"
	"errors"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// machine is a compiled graph with a buffer for each memory.
type machine struct {
	queue   backend.Queue
	exec    backend.Executable
	frame   backend.Frame
	buffers []backend.Buffer
}

func newMachine(ctx context.Context, d backend.Device, g *ir.Graph) (_ *machine, err error) {
	m := &machine{}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.close())
		}
	}()
	if m.queue, err = d.NewQueue(); err != nil {
		return m, err
	}
	places := make([]backend.Place, len(g.Memories))
	for i := range g.Memories {
		b, err := d.Alloc(backend.Spec(&g.Memories[i]))
		if err != nil {
			return m, err
		}
		m.buffers = append(m.buffers, b)
		places[i] = backend.At(b)
	}
	if m.exec, err = d.Compile(ctx, &backend.Program{Graph: g, Places: places}); err != nil {
		return m, err
	}
	m.frame, err = m.exec.NewFrame(backend.FrameSpec{})
	return m, err
}

func (m *machine) close() error {
	var errs []error
	if m.queue != nil {
		errs = append(errs, m.queue.Close())
	}
	if m.frame != nil {
		errs = append(errs, m.frame.Close())
	}
	if m.exec != nil {
		errs = append(errs, m.exec.Close())
	}
	for _, b := range m.buffers {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// run runs the graph once.
func (m *machine) run(ctx context.Context) (backend.Times, error) {
	p, err := m.queue.Submit(ctx, backend.Submission{Executable: m.exec, Frame: m.frame})
	if err != nil {
		return backend.Times{}, err
	}
	if err := p.Wait(ctx); err != nil {
		return backend.Times{}, err
	}
	return p.Result().Times, nil
}

// put writes the bytes of memory i.
func (m *machine) put(ctx context.Context, i int, data []byte) error {
	return backend.Wait(ctx)(m.queue.Upload(ctx, backend.At(m.buffers[i]), data))
}

// get returns the first n bytes of memory i.
func (m *machine) get(ctx context.Context, i, n int) ([]byte, error) {
	data := make([]byte, n)
	return data, backend.Wait(ctx)(m.queue.Download(ctx, data, backend.At(m.buffers[i])))
}
